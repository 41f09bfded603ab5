package intent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// Request is what an executor is asked to do.
type Request struct {
	Args map[string]any // decoded, nil for none; the executor checks them
	// Cause goes with every effect, so that it can be traced: the attempt's token.
	Cause string
	// Clock is Unix time in ms for what is told, nil for that of this machine.
	Clock func() int64
	// Tell reports what a running execution has seen, nil where nobody listens. It
	// returns false when there is no room: tell it later, with what comes then.
	Tell func(values map[string]any) bool
}

// now is Unix time in ms.
func (r Request) now() int64 {
	if r.Clock == nil {
		return time.Now().UnixMilli()
	}
	return r.Clock()
}

// Result is how an intent ended, or why it would be refused.
type Result struct {
	Code   wire.Code      // final
	Detail string         // a sentence for people, empty if the code says it all
	Values map[string]any // what was found or done, nil for none; see wire.EncodeMap
	Lease  *Lease         // an output that was set for a limited time, nil for none
}

// Lease is an output that was set for a limited time: the owner of the pins ends
// it.
type Lease struct {
	Pin   string
	After gpio.Level // the level that it has then
}

// Executor carries out one intent.
type Executor interface {
	// Check returns why a request is certain to be refused, or nil. It has no
	// effect and does not block.
	Check(args map[string]any) *Result
	// Run carries the request out. It returns soon after ctx ends.
	Run(ctx context.Context, r Request) Result
}

// Intent is an executor with its name.
type Intent struct {
	Name string
	// Idempotent says that running it twice is the same as running it once, so
	// that an agent that died in between may simply do it again.
	Idempotent bool
	Executor   Executor
}

// Processed is a result as it goes on the wire.
type Processed struct {
	Code    wire.Code
	Detail  string      // at most wire.MaxDetailBytes
	Payload wire.RawMap // at most wire.MaxPayloadBytes, nil for none
	Lease   *Lease      // see Result
}

// Registry is the set of intents of an agent.
type Registry struct {
	log     *slog.Logger
	intents map[string]Intent
}

// New returns a registry. Each list is what a constructor of this package, or of
// another, returns.
func New(log *slog.Logger, lists ...[]Intent) (*Registry, error) {
	r := &Registry{log: log, intents: map[string]Intent{}}
	for _, list := range lists {
		for _, in := range list {
			if err := wire.CheckIntent(in.Name); err != nil {
				return nil, err
			}
			if in.Executor == nil {
				return nil, fmt.Errorf("intent %q has no executor", in.Name)
			}
			if _, ok := r.intents[in.Name]; ok {
				return nil, fmt.Errorf("intent %q is registered twice", in.Name)
			}
			r.intents[in.Name] = in
		}
	}
	return r, nil
}

// Names returns the intents in alphabetical order.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.intents)) }

// Idempotent reports whether an intent may be run again after a crash. Unknown
// intents may not.
func (r *Registry) Idempotent(name string) bool { return r.intents[name].Idempotent }

// Check returns why the request is certain to be refused, or nil. Nothing
// happens.
func (r *Registry) Check(name string, args wire.RawMap) (refused *Processed) {
	in, m, refusal := r.prepare(name, args)
	if refusal == nil {
		refusal = func() (res *Result) {
			defer r.rescue(name, func(internal Result) { res = &internal })
			return in.Executor.Check(m)
		}()
	}
	if refusal == nil {
		return nil
	}
	p := r.process(name, *refusal)
	return &p
}

// Run carries the request out and always comes back with a final code. The
// arguments in req are set here.
func (r *Registry) Run(ctx context.Context, name string, args wire.RawMap, req Request) Processed {
	in, m, refusal := r.prepare(name, args)
	if refusal != nil {
		return r.process(name, *refusal)
	}
	result := func() (res Result) {
		defer r.rescue(name, func(internal Result) { res = internal })
		req.Args = m
		return in.Executor.Run(ctx, req)
	}()
	return r.process(name, result)
}

// prepare finds the intent and decodes the arguments.
func (r *Registry) prepare(name string, args wire.RawMap) (Intent, map[string]any, *Result) {
	in, ok := r.intents[name]
	if !ok {
		return in, nil, &Result{Code: wire.CodeUnknownIntent,
			Detail: fmt.Sprintf("this agent has no intent %.80q: it has %s", name, strings.Join(r.Names(), ", "))}
	}
	m, err := wire.DecodeMap(args)
	if err != nil {
		return in, nil, &Result{Code: wire.CodeBadArgs, Detail: fmt.Sprintf("the arguments can't be read: %v", err)}
	}
	return in, m, nil
}

// rescue turns a panic of an executor into a result. It is deferred.
func (r *Registry) rescue(name string, set func(Result)) {
	v := recover()
	if v == nil {
		return
	}
	r.log.Error("intent panicked", "intent", name, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	set(Result{Code: wire.CodeInternal, Detail: fmt.Sprintf("a fault in the agent, see its log: %s panicked: %v", name, v)})
}

// process brings a result into the limits of the wire. What has happened stays
// what it is: a payload that does not fit is left out and the sentence says so.
func (r *Registry) process(name string, res Result) Processed {
	if !res.Code.Final() {
		r.log.Error("intent ended without a final code", "intent", name, "code", res.Code.String())
		res = Result{Code: wire.CodeInternal, Detail: fmt.Sprintf("a fault in the agent: %s ended with the code %s", name, res.Code)}
	}
	payload, err := wire.EncodeMap(res.Values, wire.MaxPayloadBytes)
	if err != nil {
		r.log.Error("result payload left out", "intent", name, "err", err)
		// The note comes first, where a long sentence can't push it out.
		res.Detail = strings.TrimSpace(fmt.Sprintf("payload left out: %v. %s", err, res.Detail))
	}
	return Processed{Code: res.Code, Detail: clip(res.Detail), Payload: payload, Lease: res.Lease}
}

// clip shortens a sentence to what the wire carries, without cutting a letter.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= wire.MaxDetailBytes {
		return s
	}
	const more = "..."
	end := wire.MaxDetailBytes - len(more)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + more
}

// badArgs is the refusal for an error of wire.ParseArgs.
func badArgs(err error) *Result { return &Result{Code: wire.CodeBadArgs, Detail: err.Error()} }

// ended says how a context ended, for a result whose work it stopped.
func ended(ctx context.Context) wire.Code {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return wire.CodeTimeout
	}
	return wire.CodeCancelled
}

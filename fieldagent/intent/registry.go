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
	// Args are the arguments in their own type (wire.GPIOWrite ...), as Check has read
	// them; Raw for an intent that is not built in. With nil Run reads them.
	Args wire.Args
	// Cause goes with every effect, so that it can be traced: the attempt's token.
	Cause string
	// Order is the number of the instruction in the order at its lines, 0 for none.
	Order uint64
	// Lines are those that it holds. Towards safe they are what it drives, more or
	// fewer than its arguments name; nil for what they name.
	Lines []wire.LineKey
	// Hold says that a gpio.safe holds what it drives: one that is only driven once more
	// does not, somebody may have released it since.
	Hold bool
	// Check is asked right before a pin moves: an error keeps it where it is. nil for no
	// question.
	Check func() error
	// Left is how long a level may stay that would stay so long by itself: less for what
	// has to end by a certain time. nil for no such time.
	Left func(length time.Duration) time.Duration
	// Clock is Unix time in ms for what is told, nil for that of this machine.
	Clock func() int64
	// Tell reports what a running execution has seen, nil where nobody listens. It
	// returns false when there is no room: tell it later, with what comes then.
	Tell func(values map[string]any) bool
}

// Raw are the decoded arguments of an intent that is not built in.
type Raw map[string]any

// Map implements wire.Args.
func (r Raw) Map() map[string]any { return r }

// check asks what is asked right before a pin moves.
func (r Request) check() error {
	if r.Check == nil {
		return nil
	}
	return r.Check()
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
	Ended  *Ended         // how a pulse was cut short, nil if it was not
}

// Ended is how a pulse was cut short.
type Ended struct {
	Pin   string
	Why   wire.LeaseEnd
	Level gpio.Level // that the pin has now
}

// Lease is an output that was set away from its safe level: the owner of the pins ends
// that by itself.
type Lease struct {
	Pin   string
	After gpio.Level // the level that it has then, if nothing else becomes known
	// Plain says that it has no time: it ends when the board ends it.
	Plain bool
}

// Executor carries out one intent.
type Executor interface {
	// Check returns why a request is certain to be refused, or nil. It has no
	// effect and does not block.
	Check(args wire.Args) *Result
	// Run carries the request out. It returns soon after ctx ends.
	Run(ctx context.Context, r Request) Result
}

// Intent is an executor with its name.
type Intent struct {
	Name string
	// Traits are those of an intent that is not built in; the table of package wire has
	// the others. The zero value is the most careful.
	Traits   wire.Traits
	Executor Executor
}

// Typed makes an intent of two functions that take the arguments in their own type.
func Typed[A wire.Args](name string, check func(A) *Result, run func(context.Context, A, Request) Result) Intent {
	return Intent{Name: name, Executor: typed[A]{check, run}}
}

type typed[A wire.Args] struct {
	check func(A) *Result
	run   func(context.Context, A, Request) Result
}

// Check implements Executor.
func (t typed[A]) Check(args wire.Args) *Result {
	if t.check == nil {
		return nil
	}
	return t.check(args.(A))
}

// Run implements Executor.
func (t typed[A]) Run(ctx context.Context, r Request) Result {
	a := r.Args.(A)
	if t.check != nil {
		if refused := t.check(a); refused != nil {
			return *refused
		}
	}
	return t.run(ctx, a, r)
}

// Processed is a result as it goes on the wire.
type Processed struct {
	Code    wire.Code
	Detail  string      // at most wire.MaxDetailBytes
	Payload wire.RawMap // at most wire.MaxPayloadBytes, nil for none
	Lease   *Lease      // see Result, as the next
	Ended   *Ended
}

// Registry is the set of intents of an agent.
type Registry struct {
	log     *slog.Logger
	intents map[string]Intent
}

// New returns a registry. Each list is what BuiltIn or a constructor of another
// package returns.
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
			if wire.BuiltIn(in.Name) {
				in.Traits = wire.TraitsOf(in.Name)
			}
			r.intents[in.Name] = in
		}
	}
	return r, nil
}

// makers are the intents that are built in: each file of this package adds its own
// while the package is initialised, so that no list has to name it, and nothing ever
// changes it afterwards.
var makers []func(Board) Intent

func builtIn(m func(Board) Intent) struct{} {
	makers = append(makers, m)
	return struct{}{}
}

// BuiltIn returns the intents of a board. One that it can't have is an Intent without
// an executor, and left out.
func BuiltIn(b Board) []Intent {
	var list []Intent
	for _, m := range makers {
		if in := m(b); in.Executor != nil {
			list = append(list, in)
		}
	}
	return list
}

// Names returns the intents in alphabetical order.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.intents)) }

// Actuating returns the indices into Names of those that move something.
func (r *Registry) Actuating() []uint16 {
	var list []uint16
	for i, name := range r.Names() {
		if !r.intents[name].Traits.Still {
			list = append(list, uint16(i))
		}
	}
	return list
}

// Check says what a request means for the board, and why it is certain to be refused;
// nil if it is not. Nothing happens.
func (r *Registry) Check(name string, args wire.RawMap) (act wire.Act, refused *Processed) {
	_, act, refused = r.Read(name, args)
	return act, refused
}

// Read is Check and has the arguments as they were read, for Request.Args: so they are
// read once, and nobody can read them differently later.
func (r *Registry) Read(name string, args wire.RawMap) (parsed wire.Args, act wire.Act, refused *Processed) {
	in, parsed, refusal := r.prepare(name, args)
	if refusal == nil {
		act = in.act(parsed)
		refusal = func() (res *Result) {
			defer r.rescue(name, func(internal Result) { res = &internal })
			return in.Executor.Check(parsed)
		}()
	}
	if refusal == nil {
		return parsed, act, nil
	}
	p := r.process(name, *refusal)
	return nil, act, &p
}

// act is what a request means for the board.
func (in Intent) act(args wire.Args) wire.Act {
	if wire.BuiltIn(in.Name) {
		return wire.ActOf(in.Name, args)
	}
	return wire.Act{Traits: in.Traits}
}

// Run carries the request out and always comes back with a final code. args are read
// only if nobody has done it.
func (r *Registry) Run(ctx context.Context, name string, args wire.RawMap, req Request) Processed {
	in, known := r.intents[name]
	if req.Args == nil || !known {
		var refusal *Result
		if in, req.Args, refusal = r.prepare(name, args); refusal != nil {
			return r.process(name, *refusal)
		}
	}
	result := func() (res Result) {
		defer r.rescue(name, func(internal Result) { res = internal })
		return in.Executor.Run(ctx, req)
	}()
	return r.process(name, result)
}

// prepare finds the intent and reads the arguments: once, and into their own type.
func (r *Registry) prepare(name string, args wire.RawMap) (Intent, wire.Args, *Result) {
	in, ok := r.intents[name]
	if !ok {
		return in, nil, &Result{Code: wire.CodeUnknownIntent,
			Detail: fmt.Sprintf("this agent has no intent %.80q: it has %s", name, strings.Join(r.Names(), ", "))}
	}
	m, err := wire.DecodeMap(args)
	if err != nil {
		return in, nil, &Result{Code: wire.CodeBadArgs, Detail: fmt.Sprintf("the arguments can't be read: %v", err)}
	}
	if !wire.BuiltIn(name) {
		return in, Raw(m), nil
	}
	parsed, err := wire.ParseArgs(name, m)
	if err != nil {
		return in, nil, badArgs(err)
	}
	return in, parsed, nil
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
	return Processed{Code: res.Code, Detail: clip(res.Detail), Payload: payload, Lease: res.Lease, Ended: res.Ended}
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

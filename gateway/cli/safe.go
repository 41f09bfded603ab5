package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

// safePatience is how long a verb is waited for unless somebody says otherwise: a way
// to safe is at the pin within a second, so whoever waits longer must hear that it is
// not there.
const safePatience = 30 * time.Second

// verb is the flags of a command without a document.
type verb struct {
	path     string // below /v1
	reason   string
	owed     bool
	noWait   bool
	patience time.Duration
}

func (o *verb) define(fs *flag.FlagSet) {
	fs.StringVar(&o.reason, "reason", "", "why, a `TEXT` kept with the task")
	fs.BoolVar(&o.noWait, "no-wait", false, "return when the gateway has it on disk")
	fs.DurationVar(&o.patience, "timeout", safePatience, "stop waiting after `DURATION`")
}

func safeCommand() *command {
	return &command{
		name:  "safe",
		short: "drive outputs to their safe levels, and hold them there",
		usage: "safe NODE [PIN] | safe --owed",
		long: `
All outputs of the node that have a safe level, or the one that is named. It passes
everything that waits, ends what runs there, and nothing moves them away again until
apollo release. The node need not be there: what it is owed is listed by --owed, and
it gets it when it comes back. Exit code 1 unless every output asked for is at its
safe level: an output without one (safe: in the pin map) is not moved, and is named.`,
		examples: []string{"apollo safe pump-1", "apollo safe pump-1 valve-1 --reason 'leak in hall 2'", "apollo safe --owed", "apollo safe pump-1 -o json"},
		words:    2,
		flags: func(fs *flag.FlagSet) run {
			o := verb{path: "safe"}
			o.define(fs)
			fs.BoolVar(&o.owed, "owed", false, "list what nobody has confirmed yet")
			return o.run
		},
	}
}

func releaseCommand() *command {
	return &command{
		name:  "release",
		short: "let outputs be set again that apollo safe holds",
		usage: "release NODE [PIN]",
		long: `
It moves nothing: what was held stays at its safe level until somebody sets it. Look
at the machine first. A newer apollo safe of the same output goes on holding it.`,
		examples: []string{"apollo release pump-1", "apollo release pump-1 valve-1 --reason 'the leak is mended'"},
		words:    2,
		flags: func(fs *flag.FlagSet) run {
			o := verb{path: "release"}
			o.define(fs)
			return o.run
		},
	}
}

func (o *verb) run(ctx context.Context, a *app, words []string) error {
	if o.owed {
		if len(words) > 0 || o.reason != "" || o.noWait {
			return misuse("--owed lists what is owed to all nodes: it takes nothing else")
		}
		return o.list(ctx, a)
	}
	switch {
	case len(words) == 0 || words[0] == "":
		return misuse("which one? the node is missing").hint("usage: apollo %s NODE [PIN]", o.path).hint("apollo node list shows them")
	case o.patience < 0:
		return misuse("--timeout %v is negative", o.patience)
	}
	if err := isText("--reason", o.reason); err != nil {
		return err
	}
	pin := ""
	if len(words) > 1 {
		pin = words[1]
	}
	// The same rules as at the gateway, so that a slip is a usage error.
	if _, err := scada.Verb(map[string]string{"safe": wire.IntentSafe, "release": wire.IntentRelease}[o.path], words[0], pin, o.reason); err != nil {
		return slip(err)
	}
	if len(words) > 1 && pin == "" {
		return misuse("the pin is empty").hint("leave it out for all outputs of the node")
	}
	acc, raw, err := o.send(ctx, a, words)
	if err != nil {
		return err
	}
	if a.output != "json" || !o.noWait {
		a.warnOf(acc)
	}
	if o.noWait {
		if a.output == "json" {
			return printJSON(a.out, raw)
		}
		a.print("task %s is on the gateway's disk\n", visible(acc.TaskID))
		return nil
	}
	f := a.follower(acc.TaskID)
	f.safe = o.path == "safe"
	return f.run(ctx, o.patience, o.ended(a, words[0]))
}

// slip is a fault of the command line.
func slip(err error) error {
	var fault *scada.Error
	if !errors.As(err, &fault) {
		return err
	}
	e := misuse("the %s %s", fault.Field, fault.Problem)
	if fault.Hint != "" {
		e.hint("%s", fault.Hint)
	}
	return e
}

// send submits, and again while it is not known whether it was taken: the command has
// a name, so that it is one however often it arrives.
func (o *verb) send(ctx context.Context, a *app, words []string) (*api.Accepted, []byte, error) {
	path := "/v1/" + o.path
	for _, w := range words {
		path += "/" + url.PathEscape(w)
	}
	id, err := newTaskID()
	if err != nil {
		return nil, nil, err
	}
	header, body := http.Header{"Idempotency-Key": {id}}, []byte(nil)
	if o.reason != "" {
		if body, err = json.Marshal(map[string]string{"reason": o.reason}); err != nil {
			return nil, nil, err
		}
		header.Set("Content-Type", "application/json")
	}
	pause := repeatPause
	for k := 0; ; k++ {
		var acc api.Accepted
		raw, err := a.client.call(ctx, http.MethodPost, path, header, body, &acc)
		var maybe unsure
		switch {
		case err == nil:
			return &acc, raw, nil
		case !errors.As(err, &maybe):
			return nil, nil, a.client.explain(err)
		case k < repeats && ctx.Err() == nil:
			select {
			case <-time.After(pause):
				pause *= 2
				continue
			case <-ctx.Done():
			}
		}
		p := trouble("%s; it is not known whether it was taken", maybe.Error())
		var e *problem
		if errors.As(a.client.explain(maybe.error), &e) {
			p.hints = append(p.hints, e.hints...)
		}
		return nil, nil, p.hint("send it again: doing it twice does no harm")
	}
}

// ended says which outputs were driven, and which were not.
func (o *verb) ended(a *app, node string) func(scada.TaskView, []byte) error {
	return func(v scada.TaskView, raw []byte) error {
		good := v.State == engine.StateSucceeded.String()
		var r wire.SafeReport
		for _, in := range v.Instructions {
			r = wire.SafeReportOf(in.Result)
			if in.State != engine.StateSucceeded.String() {
				a.say("%s on %s: %s\n", visible(in.State), visible(in.Node), why(in))
			}
		}
		if a.output == "json" {
			if err := printJSON(a.out, raw); err != nil {
				return err
			}
		} else {
			a.tellSafe(o.path, node, good, r)
		}
		for _, p := range r.NotMoved {
			a.say("not moved: %s has no safe level\n", visible(p))
		}
		for _, p := range r.Newer {
			a.say("not moved: something newer has begun on %s\n", visible(p))
		}
		if !good || len(r.NotMoved)+len(r.Newer) > 0 {
			return errTold
		}
		return nil
	}
}

func (a *app) tellSafe(path, node string, good bool, r wire.SafeReport) {
	switch {
	case path == "release" && good && len(r.Released) > 0:
		a.print("%s: released: %s; nothing was moved\n", visible(node), listed(r.Released, r.Unlisted))
	case path == "release" && good && r.Released != nil:
		a.print("%s: nothing was held there; nothing was moved\n", visible(node))
	case path == "release" && good:
		a.print("%s: released; nothing was moved\n", visible(node))
	case path == "release":
	case len(r.Driven) > 0:
		a.print("%s: at the safe level and held: %s\n", visible(node), listed(r.Driven, r.Unlisted))
	case good && len(r.NotMoved)+len(r.Newer) == 0:
		a.print("%s: at the safe level and held\n", visible(node))
	}
}

// listed are the names of a report, and how many it had no room for.
func listed(names []string, more int) string {
	s := visible(strings.Join(names, ", "))
	if more > 0 {
		s += ", and " + count(more, "more output")
	}
	return s
}

// list shows what is owed.
func (o *verb) list(ctx context.Context, a *app) error {
	var v api.OwedList
	raw, err := a.client.get(ctx, "/v1/safe/owed", &v)
	if err != nil {
		return a.client.explain(err)
	}
	if a.output == "json" {
		return printJSON(a.out, raw)
	}
	if len(v.Owed) == 0 {
		a.say("nothing is owed: every way to safe was confirmed\n")
		return nil
	}
	var t table
	t.head("NODE", "PIN", "SINCE", "TIMES", "DRIVEN", "TASK", "WAITS FOR")
	for _, x := range v.Owed {
		pin, driven := x.Pin, "no"
		if pin == "" {
			pin = "all"
		}
		if x.Driven {
			driven = "yes"
		}
		row := plain(x.Node, pin, "", strconv.FormatUint(uint64(x.Count), 10), driven, x.TaskID, x.Reason)
		row[2] = cell{text: shortMoment(x.Since)}
		t.add(row...)
	}
	if err := t.write(a); err != nil {
		return err
	}
	if v.More > 0 {
		a.say("there are %d more\n", v.More)
	}
	return nil
}

package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

// repeats is how often a submission is sent again when it is not known whether
// it arrived, and repeatPause the wait before the first repetition, which
// doubles. The task has a name, so that nothing runs twice.
const (
	repeats     = 3
	repeatPause = 200 * time.Millisecond
)

func submitCommand() *command {
	return &command{
		name:  "task submit",
		short: "submit a task from a file, or a one-line command",
		usage: "task submit --file F | --intent I --node N [--arg K=V ...] [--wait]",
		long: `
Returns when the task is on the gateway's disk; with --wait, when it has ended.
F is a task in JSON or YAML, - is standard input. A value of --arg is taken as
JSON where it is JSON (1, true, null, "17"), else as text.`,
		examples: []string{
			"apollo task submit --file pump.yaml --wait",
			"echo '{...}' | apollo task submit --file -",
			"apollo task submit --intent gpio.write --node pump-1 --arg pin=GPIO17 --arg level=1 --ttl 30s",
			"apollo task submit --intent collect_metrics --label role=worker --wait --timeout 1m -o json",
		},
		flags: func(fs *flag.FlagSet) run {
			var o submission
			fs.StringVar(&o.file, "file", "", "take the task from `FILE`, - for standard input")
			fs.StringVar(&o.taskID, "task-id", "", "name the task `ID`; the same one twice is one task")
			fs.StringVar(&o.intent, "intent", "", "what to do, an `INTENT` like gpio.write")
			fs.Var(&o.nodes, "node", "run on `NODE`; may be repeated")
			fs.StringVar(&o.label, "label", "", "run on the nodes with the label `KEY=VALUE`")
			fs.Var(&o.args, "arg", "argument of the intent, `KEY=VALUE`; may be repeated")
			fs.StringVar(&o.ttl, "ttl", "", "do not start later than `DURATION` after submission")
			fs.StringVar(&o.notAfter, "not-after", "", "do not start later than `TIME` (RFC 3339)")
			fs.StringVar(&o.limit, "run-timeout", "", "stop an execution after `DURATION`")
			fs.StringVar(&o.priority, "priority", "", "high, normal or low `PRIORITY`")
			fs.Var(&o.meta, "meta", "note kept with the task, `KEY=VALUE`; may be repeated")
			fs.BoolVar(&o.wait, "wait", false, "follow the task to its end; exit 1 unless it SUCCEEDED")
			fs.DurationVar(&o.patience, "timeout", 0, "with --wait: stop waiting after `DURATION`")
			return o.run
		},
	}
}

// list is a flag that may be repeated.
type list []string

func (l *list) String() string     { return strings.Join(*l, ", ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// submission is the flags of task submit.
type submission struct {
	file, taskID                                  string
	intent, label, ttl, notAfter, limit, priority string
	nodes, args, meta                             list
	wait                                          bool
	patience                                      time.Duration
}

func (o *submission) run(ctx context.Context, a *app, _ []string) error {
	if o.patience != 0 && !o.wait {
		return misuse("--timeout says how long to wait, but there is no --wait").
			hint("the limit of an execution is --run-timeout")
	}
	if o.patience < 0 {
		return misuse("--timeout %v is negative", o.patience)
	}
	d, err := o.document(ctx, a)
	if err != nil {
		return err
	}
	header := http.Header{}
	if d.kind != "" {
		header.Set("Content-Type", d.kind)
	}
	if d.key != "" {
		header.Set("Idempotency-Key", d.key)
	}
	var acc api.Accepted
	raw, err := o.send(ctx, a, d, header, &acc)
	if err != nil {
		return err
	}
	if o.wait {
		if a.output == "text" {
			a.tell(&acc)
		}
		return a.follow(ctx, acc.TaskID, o.patience)
	}
	if a.output == "json" {
		return printJSON(a.out, raw)
	}
	a.tell(&acc)
	return nil
}

// send submits, and again while it is not known whether the task was taken.
func (o *submission) send(ctx context.Context, a *app, d *document, header http.Header, acc *api.Accepted) ([]byte, error) {
	pause := repeatPause
	for k := 0; ; k++ {
		raw, err := a.client.call(ctx, http.MethodPost, "/v1/tasks", header, d.text, acc)
		var maybe unsure
		switch {
		case err == nil:
			return raw, nil
		case !errors.As(err, &maybe):
			return nil, d.explain(a, err)
		case k < repeats && d.id() != "" && ctx.Err() == nil:
			select {
			case <-time.After(pause):
				pause *= 2
				continue
			case <-ctx.Done():
			}
		}
		return nil, o.unknown(a, d, maybe.error)
	}
}

// unknown says what to do when nobody knows whether the task was taken.
func (o *submission) unknown(a *app, d *document, err error) error {
	p := trouble("%s; it is not known whether the task was taken", err.Error())
	var e *problem
	if errors.As(a.client.explain(err), &e) {
		p.hints = append(p.hints, e.hints...)
	}
	if id := d.id(); id != "" {
		return p.hint("ask:   apollo task status %s", id).
			hint("again: the same command with --task-id %s does not run it twice", id)
	}
	return p.hint("look for it with apollo task list before you send it again")
}

// tell says what became of a submission.
func (a *app) tell(acc *api.Accepted) {
	how := "is on the gateway's disk"
	if acc.Existing {
		how = "was submitted before; nothing new happens"
	}
	a.print("task %s %s: %s\n", visible(acc.TaskID), how, count(len(acc.Instructions), "instruction"))
	for _, in := range acc.Instructions {
		a.print("  %s  on %s\n", visible(in.ID), visible(in.Node))
	}
	a.warnOf(acc)
}

// warnOf shows what the gateway has to say about a task that it has taken.
func (a *app) warnOf(acc *api.Accepted) {
	for _, w := range acc.Warnings {
		text := w.Message
		if w.Field != "" {
			text = w.Field + ": " + text
		}
		a.say("warning: %s\n", visible(text))
	}
}

// print writes to stdout. A reader that has gone is noticed by the caller's
// shell, not by us.
func (a *app) print(format string, args ...any) { _, _ = fmt.Fprintf(a.out, format, args...) }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// document is a task to be sent.
type document struct {
	name string // for messages: a file's name, or empty when made of flags
	text []byte
	kind string // content type, empty to leave it to the gateway
	own  string // its task_id, as far as it could be read
	key  string // the name it is given because it has none
}

// id is the name by which it can be asked for.
func (d *document) id() string {
	if d.own != "" {
		return d.own
	}
	return d.key
}

// document reads or makes the task, and names it.
func (o *submission) document(ctx context.Context, a *app) (*document, error) {
	d := &document{kind: "application/json"}
	var err error
	switch {
	case o.file == "" && o.intent == "":
		return nil, misuse("nothing to submit").hint("use --file F, or --intent and --node; see apollo task submit --help")
	case o.file == "":
		d.text, err = o.build()
	case o.built():
		return nil, misuse("--file is a whole task: flags that make one do not go with it").
			hint("only --task-id, --wait and --timeout do")
	default:
		d, err = readDocument(ctx, a, o.file)
	}
	if err != nil {
		return nil, err
	}
	format, _ := scada.FormatOf(d.kind)
	// Read here only for its name: whether the task is good is for the gateway to
	// say, which may be newer.
	spec, _, err := scada.ParseTask(d.text, format, scada.Options{})
	d.own = spec.TaskID
	switch {
	case o.taskID != "" && d.own != "" && o.taskID != d.own:
		return nil, misuse("--task-id is %s, but the task in %s is called %s", o.taskID, d.name, d.own).hint("leave out one of the two")
	case o.taskID != "":
		if err := wire.CheckTaskID(o.taskID); err != nil {
			return nil, misuse("--task-id: %v", err)
		}
		d.key = o.taskID
	case err == nil && d.own == "":
		if d.key, err = newTaskID(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// newTaskID names a task: who, when, and 48 random bits.
func newTaskID() (string, error) {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("no randomness for a task id: %w", err)
	}
	return fmt.Sprintf("cli-%d-%s", time.Now().UnixMilli(), hex.EncodeToString(b[:])), nil
}

// built reports whether flags were given that make a task.
func (o *submission) built() bool {
	return o.intent != "" || o.label != "" || o.ttl != "" || o.notAfter != "" || o.limit != "" || o.priority != "" ||
		len(o.nodes)+len(o.args)+len(o.meta) > 0
}

// taskFields is a task made of flags.
type taskFields struct {
	TaskID   string                     `json:"task_id,omitempty"`
	Intent   string                     `json:"intent"`
	Nodes    []string                   `json:"nodes,omitempty"`
	Selector *scada.SelectorDoc         `json:"target_selector,omitempty"`
	Args     map[string]json.RawMessage `json:"args,omitempty"`
	Timeout  string                     `json:"timeout,omitempty"`
	TTL      string                     `json:"ttl,omitempty"`
	NotAfter string                     `json:"not_after,omitempty"`
	Priority string                     `json:"priority,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

func (o *submission) build() ([]byte, error) {
	t := taskFields{Intent: o.intent, Timeout: o.limit, TTL: o.ttl, NotAfter: o.notAfter, Priority: o.priority}
	switch {
	case len(o.nodes) > 0 && o.label != "":
		return nil, misuse("--node and --label exclude each other").hint("use one of them")
	case len(o.nodes) == 0 && o.label == "":
		return nil, misuse("no node to run on").hint("use --node NODE or --label KEY=VALUE; see apollo node list")
	}
	for _, n := range o.nodes {
		t.Nodes = append(t.Nodes, strings.Split(n, ",")...)
	}
	if o.label != "" {
		key, value, ok := strings.Cut(o.label, "=")
		if !ok {
			return nil, misuse("--label %s is not KEY=VALUE", o.label)
		}
		t.Selector = &scada.SelectorDoc{Type: "label", Key: key, Value: value}
	}
	var err error
	if t.Args, err = pairs("arg", o.args, true); err != nil {
		return nil, err
	}
	if t.Metadata, err = pairs("meta", o.meta, false); err != nil {
		return nil, err
	}
	for _, s := range append([]string{o.intent, o.label, o.ttl, o.notAfter, o.limit, o.priority}, o.nodes...) {
		if err := isText("a flag", s); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, misuse("the flags make no task: %v", err)
	}
	return text, nil
}

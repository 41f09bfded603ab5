package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/apollo-11/apollo11/gateway/api"
)

const lookAtQueue = "see apollo queue list: what is no longer there was done"

func queueListCommand() *command {
	return &command{
		name:  "queue list",
		short: "list what only an operator moves on",
		usage: "queue list [--after N] [--limit N]",
		long: `
An instruction gets here when it has failed for good, or when its time or its
retries are spent. OUTCOME unknown means that nobody knows whether it has happened.`,
		examples: []string{"apollo queue list", "apollo queue list -o json"},
		flags: func(fs *flag.FlagSet) run {
			page := pageFlags(fs)
			return func(ctx context.Context, a *app, _ []string) error {
				var v api.Queue
				raw, err := a.client.get(ctx, "/v1/queue?"+page(), &v)
				if err != nil {
					return a.client.explain(err)
				}
				if a.output == "json" {
					return printJSON(a.out, raw)
				}
				return listQueue(a, v)
			}
		},
	}
}

// pageFlags are those of lists in rising order. The result makes the query.
func pageFlags(fs *flag.FlagSet) func() string {
	after := fs.Uint64("after", 0, "only those with numbers above `N`")
	limit := fs.Int("limit", 50, "show at most `N`, up to 500")
	return func() string {
		return url.Values{"limit": {strconv.Itoa(*limit)}, "after": {strconv.FormatUint(*after, 10)}}.Encode()
	}
}

func listQueue(a *app, v api.Queue) error {
	if len(v.Instructions) == 0 {
		a.say("nothing waits for an operator\n")
		return nil
	}
	var t table
	t.head("INSTRUCTION", "STATE", "NODE", "INTENT", "SINCE", "OUTCOME", "WHY")
	for _, in := range v.Instructions {
		outcome := "known"
		if in.OutcomeUnknown {
			outcome = "unknown"
		}
		row := plain(in.Instruction, in.State, in.Node, in.Intent, "", outcome, "")
		row[1], row[4], row[6] = stateCell(in.State), cell{text: shortMoment(in.SettledAt)}, cell{text: brief(why(in))}
		t.add(row...)
	}
	if err := t.write(a); err != nil {
		return err
	}
	if v.Next != 0 {
		a.say("there are more: apollo queue list --after %d\n", v.Next)
	}
	return nil
}

// brief cuts text for the last column of a list; the timeline has all of it.
func brief(s string) string {
	const most = 80
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-3]) + "..."
}

// instructionPath is where an instruction is acted on.
func instructionPath(words []string, command, action string) (string, error) {
	if len(words) == 0 || words[0] == "" {
		return "", misuse("which one? the instruction is missing").hint("usage: apollo %s INSTRUCTION", command).hint("apollo queue list shows them")
	}
	return "/v1/instructions/" + url.PathEscape(words[0]) + "/" + action, nil
}

func queueRetryCommand() *command {
	return &command{
		name:  "queue retry",
		short: "send another attempt, with a fresh budget of retries",
		usage: "queue retry INSTRUCTION [--note TEXT] [--yes]",
		long: `
INSTRUCTION is its id, or its sequence number. The attempt gets a new token. When
nobody knows whether the last attempt did its work, another one may do it a second
time: then the tool asks first, and where nobody can be asked it wants --yes.`,
		examples: []string{"apollo queue retry 42 --note 'the breaker is closed again'",
			"apollo queue retry default-1740821400005-1-9c1f --yes"},
		words: 1,
		flags: func(fs *flag.FlagSet) run {
			note := fs.String("note", "", "why, a `TEXT` for the timeline and the audit trail")
			yes := fs.Bool("yes", false, "also when it may happen a second time")
			return func(ctx context.Context, a *app, words []string) error {
				path, err := instructionPath(words, "queue retry", "retry")
				if err != nil {
					return err
				}
				return retry(ctx, a, path, words[0], noted{*note, *yes})
			}
		},
	}
}

func retry(ctx context.Context, a *app, path, id string, body noted) error {
	if err := isText("--note", body.Note); err != nil {
		return err
	}
	var d api.Done
	raw, err := a.change(ctx, http.MethodPost, path, body, &d, lookAtQueue)
	var e *apiError
	if errors.As(err, &e) && e.Code == api.CodeUnknownOutcome {
		if err := a.confirm(ctx, e.Message,
			"look at the machine first; it was done:  apollo queue resolve "+id+" --note TEXT"); err != nil {
			return err
		}
		body.AcceptUnknown = true
		raw, err = a.change(ctx, http.MethodPost, path, body, &d, lookAtQueue)
	}
	if err != nil {
		return a.client.explain(err)
	}
	if err := a.tellDone(raw, &d); err != nil {
		return err
	}
	a.say("see what comes of it: apollo timeline %s\n", visible(id))
	return nil
}

func queueResolveCommand() *command {
	return &command{
		name:  "queue resolve",
		short: "take an instruction out of the queue, as settled by hand",
		usage: "queue resolve INSTRUCTION --note TEXT",
		long: `
Its state stays what it is, nothing is sent. The note says how it was settled; it
stands in the timeline and in the audit trail.`,
		examples: []string{"apollo queue resolve 42 --note 'valve 3 closed by hand'"},
		words:    1,
		flags: func(fs *flag.FlagSet) run {
			note := fs.String("note", "", "how it was settled, a `TEXT`")
			return func(ctx context.Context, a *app, words []string) error {
				path, err := instructionPath(words, "queue resolve", "resolve")
				if err != nil {
					return err
				}
				if *note == "" {
					return misuse("a resolution needs a note").hint("say how it was settled: --note 'closed by hand'")
				}
				if err := isText("--note", *note); err != nil {
					return err
				}
				var d api.Done
				raw, err := a.change(ctx, http.MethodPost, path, noted{Note: *note}, &d, lookAtQueue)
				if err != nil {
					return a.client.explain(err)
				}
				return a.tellDone(raw, &d)
			}
		},
	}
}

func queueCancelCommand() *command {
	return &command{
		name:  "queue cancel",
		short: "end an instruction as cancelled",
		usage: "queue cancel INSTRUCTION [--note TEXT]",
		long: `
Out of the queue it ends CANCELLED. It also cancels a single instruction of a task
that is still under way; what may be running is stopped by its agent, if it is not
faster.`,
		examples: []string{"apollo queue cancel 42 --note 'no longer needed'"},
		words:    1,
		flags: func(fs *flag.FlagSet) run {
			note := fs.String("note", "", "why, a `TEXT` for the timeline and the audit trail")
			return func(ctx context.Context, a *app, words []string) error {
				path, err := instructionPath(words, "queue cancel", "cancel")
				if err != nil {
					return err
				}
				if err := isText("--note", *note); err != nil {
					return err
				}
				var c api.Cancelled
				raw, err := a.change(ctx, http.MethodPost, path, noted{Note: *note}, &c, lookAtQueue)
				if err != nil {
					return a.client.explain(err)
				}
				if a.output == "json" {
					return printJSON(a.out, raw)
				}
				a.print("%s\n", visible(fmt.Sprintf("%s of task %s: %s", words[0], c.TaskID, cancelText(c))))
				return nil
			}
		},
	}
}

// cancelText is how the cancellation of one instruction stands.
func cancelText(c api.Cancelled) string {
	switch {
	case c.Cancelled > 0:
		return "cancelled"
	case c.Asked > 0:
		return "its agent is asked to stop it"
	}
	return "had ended before"
}

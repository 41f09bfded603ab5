package cli

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/apollo-11/apollo11/gateway/api"
)

func deadLettersCommand() *command {
	return &command{
		name:     "deadletters list",
		short:    "list messages that could not be processed",
		usage:    "deadletters list [--after N] [--limit N]",
		examples: []string{"apollo deadletters list", "apollo deadletters list --after 120 -o json"},
		flags: func(fs *flag.FlagSet) run {
			page := pageFlags(fs)
			return func(ctx context.Context, a *app, _ []string) error {
				var v api.DeadLetterList
				raw, err := a.client.get(ctx, "/v1/deadletters?"+page(), &v)
				if err != nil {
					return a.client.explain(err)
				}
				if a.output == "json" {
					return printJSON(a.out, raw)
				}
				return listDeadLetters(a, v)
			}
		},
	}
}

func listDeadLetters(a *app, v api.DeadLetterList) error {
	if len(v.DeadLetters) == 0 {
		a.say("no dead letters\n")
		return nil
	}
	var t table
	t.head("NUMBER", "TIME", "KIND", "FROM", "BYTES", "REASON")
	for _, d := range v.DeadLetters {
		row := plain(strconv.FormatUint(d.Number, 10), "", d.Kind, d.From, size(d), d.Reason)
		row[1] = cell{text: shortMoment(d.Time)}
		t.add(row...)
	}
	if err := t.write(a); err != nil {
		return err
	}
	if v.Next != 0 {
		a.say("there are more: apollo deadletters list --after %d\n", v.Next)
	}
	return nil
}

// size is how many bytes were kept; + says that there were more, or may have been.
func size(d api.DeadLetter) string {
	if d.Cut {
		return strconv.Itoa(len(d.Raw)) + "+"
	}
	return strconv.Itoa(len(d.Raw))
}

// letterPath is where a dead letter is.
func letterPath(words []string, command string) (string, error) {
	if len(words) == 0 {
		return "", misuse("which one? the number is missing").hint("usage: apollo %s NUMBER", command).hint("apollo deadletters list shows them")
	}
	if n, err := strconv.ParseUint(words[0], 10, 64); err != nil || n == 0 {
		return "", misuse("%s is not the number of a dead letter", words[0]).hint("apollo deadletters list shows them")
	}
	return "/v1/deadletters/" + url.PathEscape(words[0]), nil
}

func deadLetterShowCommand() *command {
	return &command{
		name:  "deadletters show",
		short: "show a message that could not be processed",
		usage: "deadletters show NUMBER [--raw]",
		long: `
What came is shown as text where it is text, else in hexadecimal. --raw writes
exactly what came, to be mended and submitted.`,
		examples: []string{"apollo deadletters show 7", "apollo deadletters show 7 --raw > task.json"},
		words:    1,
		flags: func(fs *flag.FlagSet) run {
			asCame := fs.Bool("raw", false, "write only what came, byte by byte")
			return func(ctx context.Context, a *app, words []string) error {
				path, err := letterPath(words, "deadletters show")
				if err != nil {
					return err
				}
				if *asCame && (isTerminal(a.out) || a.output == "json") {
					return misuse("--raw writes bytes that are not for a terminal, and not JSON").hint("write them to a file: apollo deadletters show %s --raw > FILE", words[0])
				}
				var d api.DeadLetter
				raw, err := a.client.get(ctx, path, &d)
				switch {
				case err != nil:
					return a.client.explain(err)
				case *asCame:
					_, err := a.out.Write(d.Raw)
					return err
				case a.output == "json":
					return printJSON(a.out, raw)
				}
				return showDeadLetter(a, d)
			}
		},
	}
}

func showDeadLetter(a *app, d api.DeadLetter) error {
	var t table
	for _, f := range [][2]string{{"number", strconv.FormatUint(d.Number, 10)}, {"time", moment(d.Time)}, {"kind", visible(d.Kind)},
		{"from", visible(d.From)}, {"reason", visible(d.Reason)}, {"bytes", size(d)}} {
		t.add(cell{text: f[0]}, cell{text: f[1]})
	}
	if err := t.write(a); err != nil {
		return err
	}
	var b strings.Builder
	switch {
	case len(d.Raw) == 0:
	case d.Text == "":
		b.WriteString("\n" + hex.Dump(d.Raw))
	default:
		b.WriteString("\n")
		for line := range strings.Lines(d.Text) {
			b.WriteString(visible(strings.TrimSuffix(line, "\n")) + "\n")
		}
	}
	_, err := io.WriteString(a.out, b.String())
	return err
}

func deadLetterReplayCommand() *command {
	return &command{
		name:  "deadletters replay",
		short: "submit the task in a dead letter once more",
		usage: "deadletters replay NUMBER",
		long: `
The document is read as it came, as JSON or YAML, and the dead letter is forgotten
once the task is on disk. Replaying twice does not run it twice. A time limit counts
from when the message came. What a board reported cannot be replayed, nor what was
too long to be kept. To mend a document first: deadletters show NUMBER --raw > F,
task submit --file F, deadletters drop NUMBER.`,
		examples: []string{"apollo deadletters replay 7"},
		words:    1,
		flags: func(*flag.FlagSet) run {
			return func(ctx context.Context, a *app, words []string) error {
				path, err := letterPath(words, "deadletters replay")
				if err != nil {
					return err
				}
				var acc api.Accepted
				raw, err := a.change(ctx, http.MethodPost, path+"/replay", nil, &acc, "replay it again: the same task does not run twice")
				if err != nil {
					return explainReplay(a, err, words[0])
				}
				if a.output == "json" {
					return printJSON(a.out, raw)
				}
				a.tell(&acc)
				return nil
			}
		},
	}
}

// explainReplay adds how to mend a document that still cannot be read.
func explainReplay(a *app, err error, number string) error {
	var e *apiError
	out := a.client.explain(err)
	var p *problem
	if !errors.As(err, &e) || e.Line == 0 || !errors.As(out, &p) {
		return out
	}
	p.text = fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, p.text)
	return p.hint("mend it:  apollo deadletters show %s --raw > FILE, apollo task submit --file FILE, apollo deadletters drop %s", number, number)
}

func deadLetterDropCommand() *command {
	return &command{
		name:  "deadletters drop",
		short: "forget a dead letter for good",
		usage: "deadletters drop NUMBER [--note TEXT] [--yes]",
		long: `
What came cannot be looked at or replayed afterwards. The tool asks first; where
nobody can be asked it wants --yes.`,
		examples: []string{"apollo deadletters drop 7", "apollo deadletters drop 7 --yes --note 'test of the new panel'"},
		words:    1,
		flags: func(fs *flag.FlagSet) run {
			note := fs.String("note", "", "why, a `TEXT` for the audit trail")
			yes := fs.Bool("yes", false, "do not ask")
			return func(ctx context.Context, a *app, words []string) error {
				path, err := letterPath(words, "deadletters drop")
				if err != nil {
					return err
				}
				if err := isText("--note", *note); err != nil {
					return err
				}
				return drop(ctx, a, path, words[0], *note, *yes)
			}
		},
	}
}

func drop(ctx context.Context, a *app, path, number, note string, yes bool) error {
	if !yes {
		text := fmt.Sprintf("dead letter %s will be forgotten for good", number)
		if isTerminal(a.in) {
			var x api.DeadLetter
			if _, err := a.client.get(ctx, path, &x); err != nil {
				return a.client.explain(err)
			}
			text = fmt.Sprintf("dead letter %s will be forgotten for good (%s from %s, %s: %s)",
				number, x.Kind, x.From, shortMoment(x.Time), x.Reason)
		}
		if err := a.confirm(ctx, text); err != nil {
			return err
		}
	}
	var d api.Done
	if note != "" {
		path += "?" + url.Values{"note": {note}}.Encode()
	}
	raw, err := a.change(ctx, http.MethodDelete, path, nil, &d, "see apollo deadletters list: when it is no longer there, it was dropped")
	if err != nil {
		return a.client.explain(err)
	}
	return a.tellDone(raw, &d)
}

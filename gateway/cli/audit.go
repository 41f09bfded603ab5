package cli

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/engine"
)

const exportPath = "/v1/audit?format=jsonl"

func auditListCommand() *command {
	return &command{
		name:     "audit list",
		short:    "list what operators did, the oldest first",
		usage:    "audit list [--after N] [--limit N]",
		examples: []string{"apollo audit list", "apollo audit list --after 120 --limit 500", "apollo audit list -o json"},
		flags: func(fs *flag.FlagSet) run {
			page := pageFlags(fs)
			return func(ctx context.Context, a *app, _ []string) error {
				var v api.AuditList
				raw, err := a.client.get(ctx, "/v1/audit?"+page(), &v)
				if err != nil {
					return a.client.explain(err)
				}
				if a.output == "json" {
					return printJSON(a.out, raw)
				}
				return listAudit(a, v)
			}
		},
	}
}

func listAudit(a *app, v api.AuditList) error {
	if len(v.Entries) == 0 {
		a.say("the audit trail is empty\n")
		return nil
	}
	var t table
	t.head("NUMBER", "TIME", "ACTOR", "PATH", "ACTION", "SUBJECT", "NOTE")
	for _, e := range v.Entries {
		row := plain(strconv.FormatUint(e.Number, 10), "", e.Actor, e.Path, e.Action, e.Subject, e.Note)
		row[1] = cell{text: shortMoment(e.Time)}
		t.add(row...)
	}
	if err := t.write(a); err != nil {
		return err
	}
	if v.Next != 0 {
		a.say("there are more: apollo audit list --after %d\n", v.Next)
	}
	return nil
}

func auditExportCommand() *command {
	return &command{
		name:  "audit export",
		short: "write the whole audit trail as JSON lines",
		usage: "audit export [--file F]",
		long: `
One entry a line, for apollo audit verify. F appears when it is complete; to
standard output, look at the exit code.`,
		examples: []string{"apollo audit export --file audit.jsonl", "apollo audit export > audit.jsonl"},
		flags: func(fs *flag.FlagSet) run {
			file := fs.String("file", "", "write to `FILE`, else to standard output")
			return func(ctx context.Context, a *app, _ []string) error {
				if *file != "" {
					return export(ctx, a, *file)
				}
				return a.client.lines(ctx, exportPath, func(line []byte) error {
					if isTerminal(a.out) { // what a gateway sends is not obeyed
						return printJSONLine(a.out, bytes.TrimSuffix(line, []byte("\n")))
					}
					_, err := a.out.Write(line)
					return err
				})
			}
		},
	}
}

// export writes a file that is either whole or not there.
func export(ctx context.Context, a *app, name string) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".audit-*")
	if err != nil {
		return trouble("%v", err)
	}
	count := 0
	err = a.client.lines(ctx, exportPath, func(line []byte) error {
		count++
		_, err := f.Write(line)
		return err
	})
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		if rerr := os.Remove(f.Name()); rerr != nil {
			err = errors.Join(err, rerr)
		}
		return err
	}
	a.say("%s in %s\n", entries(count), visible(name))
	return nil
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

func auditVerifyCommand() *command {
	return &command{
		name:  "audit verify",
		short: "check that nothing in the audit trail was changed or taken out",
		usage: "audit verify [--file F] [--anchor N:HASH]",
		long: `
Checks the trail of the gateway, or an export, for which no gateway is needed. The
first entry that does not hold is named, with exit code 1. Each entry carries the
hash of the one before, so that only entries at the end can vanish unnoticed, or the
whole trail be written anew: note the anchor that this command prints in another
place, and give it the next time.`,
		examples: []string{"apollo audit verify", "apollo audit verify --file audit.jsonl",
			"apollo audit verify --anchor 12:5f0c..."},
		flags: func(fs *flag.FlagSet) run {
			file := fs.String("file", "", "check an export in `FILE`, - for standard input")
			anchor := fs.String("anchor", "", "an entry that must be in the trail, as `N:HASH`")
			return func(ctx context.Context, a *app, _ []string) error {
				c, err := newCheck(*anchor)
				if err != nil {
					return err
				}
				if *file != "" {
					err = c.file(a, *file)
				} else {
					err = a.client.lines(ctx, exportPath, c.line)
				}
				return c.tell(a, err)
			}
		},
	}
}

// check goes through a trail.
type check struct {
	trail    engine.Trail
	lines    int // all read
	good     int // entries that hold
	last     engine.Audit
	number   uint64 // of the anchor, 0 for none
	hash     string // of the anchor
	anchored bool
}

func newCheck(anchor string) (*check, error) {
	c := &check{}
	if anchor == "" {
		return c, nil
	}
	number, hash, ok := strings.Cut(anchor, ":")
	n, err := strconv.ParseUint(number, 10, 64)
	if raw, herr := hex.DecodeString(hash); !ok || err != nil || n == 0 || herr != nil || len(raw) != len(c.last.Hash) {
		return nil, misuse("--anchor %s is not N:HASH", anchor).hint("apollo audit verify prints it")
	}
	c.number, c.hash = n, strings.ToLower(hash)
	return c, nil
}

// broken is what does not hold.
type broken struct{ error }

func (c *check) line(line []byte) error {
	c.lines++
	entry, err := api.ParseAuditLine(bytes.TrimSuffix(line, []byte("\n")))
	if err == nil {
		err = c.trail.Check(entry)
	}
	if err == nil && entry.Number == c.number {
		if c.anchored = hex.EncodeToString(entry.Hash[:]) == c.hash; !c.anchored {
			err = fmt.Errorf("audit entry %d is not the one of the anchor: the trail was written anew up to there", entry.Number)
		}
	}
	if err != nil {
		return broken{fmt.Errorf("line %d: %w", c.lines, err)}
	}
	c.good, c.last = c.good+1, entry
	return nil
}

func (c *check) file(a *app, name string) error {
	in := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return openTrouble(name, err)
		}
		defer func() { _ = f.Close() }() // only read
		in = f
	}
	return eachLine(in, c.line, func(err error) error { return broken{fmt.Errorf("line %d: %w", c.lines+1, err)} })
}

// tell shows how the check went.
func (c *check) tell(a *app, err error) error {
	var bad broken
	switch {
	case err != nil && !errors.As(err, &bad):
		return err
	case err == nil && c.number != 0 && !c.anchored:
		bad = broken{fmt.Errorf("audit entry %d of the anchor is not there: entries were taken from the end", c.number)}
	}
	verdict := struct {
		OK      bool   `json:"ok"`
		Entries int    `json:"entries"` // that hold
		Anchor  string `json:"anchor,omitempty"`
		Problem string `json:"problem,omitempty"`
	}{OK: bad.error == nil, Entries: c.good}
	if c.good > 0 {
		verdict.Anchor = fmt.Sprintf("%d:%x", c.last.Number, c.last.Hash)
	}
	if bad.error != nil {
		verdict.Problem = bad.Error()
	}
	if a.output == "json" {
		text, err := json.Marshal(verdict)
		if err != nil {
			return fmt.Errorf("verdict as JSON: %w", err)
		}
		if err := printJSON(a.out, text); err != nil {
			return err
		}
	}
	switch {
	case bad.error != nil && a.output == "json":
		return errTold
	case bad.error != nil:
		return trouble("the audit trail does not hold: %s", verdict.Problem).hint("%s before it hold", entries(c.good))
	case a.output == "json":
		return nil
	case c.good == 0:
		a.print("the audit trail is empty\n")
		return nil
	}
	a.print("the audit trail holds: %s\nanchor  %s\n", entries(c.good), verdict.Anchor)
	return nil
}

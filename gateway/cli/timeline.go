package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/scada"
)

func timelineCommand() *command {
	return &command{
		name:  "timeline",
		short: "show step by step what happened to a task or an instruction",
		usage: "timeline ID [--node N]",
		long: `
ID is a task id (each of its instructions is shown), an instruction id, or the
sequence number of an instruction.`,
		examples: []string{"apollo timeline demo-1", "apollo timeline default-1740821400005-1-9c1f", "apollo timeline 42 -o json"},
		words:    1,
		flags: func(fs *flag.FlagSet) run {
			node := fs.String("node", "", "only the instruction on this `NODE`")
			return func(ctx context.Context, a *app, words []string) error {
				id, err := oneID("", words, "timeline")
				if err != nil {
					return err
				}
				all, raw, err := timelines(ctx, a, id, *node)
				if err != nil {
					return a.client.explain(err)
				}
				if a.output == "json" {
					text, err := json.Marshal(map[string][]json.RawMessage{"timelines": raw})
					if err != nil {
						return fmt.Errorf("timelines as JSON: %w", err)
					}
					return printJSON(a.out, text)
				}
				for k, t := range all {
					if k > 0 {
						a.print("\n")
					}
					if err := showTimeline(a, t); err != nil {
						return err
					}
				}
				return nil
			}
		},
	}
}

// timelines finds what an id means: a task first, then an instruction.
func timelines(ctx context.Context, a *app, id, node string) (all []api.Timeline, raw []json.RawMessage, err error) {
	var task scada.TaskView
	_, err = a.client.get(ctx, "/v1/tasks/"+url.PathEscape(id), &task)
	ids := []string{}
	switch {
	case err == nil:
		for _, in := range task.Instructions {
			if node == "" || in.Node == node {
				ids = append(ids, in.Instruction)
			}
		}
		if len(ids) == 0 {
			return nil, nil, trouble("task %s does not run on node %s", id, node).hint("see apollo task status %s", id)
		}
	case missing(err):
		ids = append(ids, id)
	default:
		return nil, nil, err
	}
	for _, in := range ids {
		var t api.Timeline
		text, err := a.client.get(ctx, "/v1/instructions/"+url.PathEscape(in)+"/timeline", &t)
		if missing(err) {
			return nil, nil, trouble("there is no task and no instruction %s", id).
				hint("apollo task list shows the tasks")
		}
		if err != nil {
			return nil, nil, err
		}
		all, raw = append(all, t), append(raw, bytes.TrimSpace(text))
	}
	return all, raw, nil
}

// missing reports whether the gateway says that there is no such thing, or that
// there cannot be.
func missing(err error) bool {
	var e *apiError
	return errors.As(err, &e) && (e.status == http.StatusNotFound || e.status == http.StatusBadRequest)
}

func showTimeline(a *app, t api.Timeline) error {
	in := t.Instruction
	a.print("instruction %s  %s on %s  %s\n", visible(in.Instruction), visible(in.Intent), visible(in.Node), a.paint(stateCell(in.State)))
	a.print("task %s  trace %s\n", visible(in.TaskID), visible(in.TraceID))
	a.print("submitted %s\n\n", moment(in.Created))
	var tb table
	tb.head("TIME", "+DELTA", "STEP", "FROM -> TO", "TRY", "TOKEN", "PATH", "ACTOR", "TOOK", "DETAIL")
	last := ""
	for _, e := range t.Entries {
		row := plain("", delta(last, e.Time), e.What, "", number(e.Attempt), e.Token, e.Path, e.Actor, "", "")
		row[0] = cell{text: clock(e.Time)}
		row[3] = change(e)
		if e.DurationMs != 0 {
			row[8] = cell{text: span(time.Duration(e.DurationMs) * time.Millisecond)}
		}
		row[9] = cell{text: entryDetail(e)}
		tb.add(row...)
		last = e.Time
	}
	return tb.write(a)
}

func change(e scada.EntryView) cell {
	switch {
	case e.From == e.To:
		return cell{text: visible(e.To)}
	case e.From == "":
		return cell{text: "-> " + visible(e.To)}
	}
	return cell{text: visible(e.From + " -> " + e.To), style: stateCell(e.To).style}
}

// delta is the time since the entry before.
func delta(before, now string) string {
	from, err1 := time.Parse(time.RFC3339Nano, before)
	to, err2 := time.Parse(time.RFC3339Nano, now)
	if err1 != nil || err2 != nil {
		return ""
	}
	d := to.Sub(from)
	if d < 0 {
		return "-" + span(-d) // the wall clock was set back
	}
	return "+" + span(d)
}

// entryDetail is what an entry has to say beside its state.
func entryDetail(e scada.EntryView) string {
	text := e.Detail
	if e.Code != "" && text != "" {
		text = e.Code + ": " + text
	} else if e.Code != "" {
		text = e.Code
	}
	if e.Implied {
		text = strings.TrimSpace("(implied) " + text)
	}
	return visible(text)
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
)

const (
	// pollFast and pollSlow bound how often a task is looked at: as live as a
	// person can see, then sparing for a task that takes long.
	pollFast = 150 * time.Millisecond
	pollSlow = time.Second
	// lostPatience is how long a gateway may be away while a task is followed:
	// longer than its restart.
	lostPatience = time.Minute
	// maxLive is up to how many instructions each step is shown; of more, only
	// the counts.
	maxLive = 10
)

// follower shows a task's steps as they come.
type follower struct {
	a     *app
	id    string
	seen  map[uint64]int    // entries shown, by instruction
	at    map[uint64]uint32 // version shown, by instruction
	stood string            // the last counts shown
	state string            // the last state known
	safe  bool              // it is owed until it has happened
}

// follow shows a task until it has settled, its patience (0: none) or the
// caller's has ended. It returns errTold unless the task SUCCEEDED.
func (a *app) follow(ctx context.Context, id string, patience time.Duration) error {
	f := a.follower(id)
	return f.run(ctx, patience, f.end)
}

func (a *app) follower(id string) *follower {
	return &follower{a: a, id: id, seen: map[uint64]int{}, at: map[uint64]uint32{}}
}

// run follows the task; end says what came of it.
func (f *follower) run(ctx context.Context, patience time.Duration, end func(scada.TaskView, []byte) error) error {
	a := f.a
	if patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	pause, lost := pollFast, time.Time{}
	for {
		v, raw, err := f.look(ctx)
		switch {
		case ctx.Err() != nil:
			return f.left(patience)
		case err == nil && v.Settled:
			return end(v, raw)
		case err == nil:
			lost = time.Time{}
		case !passing(err):
			return a.client.explain(err)
		case lost.IsZero():
			lost = time.Now()
			a.say("the gateway cannot be reached; trying for %v\n", lostPatience)
		case time.Since(lost) > lostPatience:
			return a.client.explain(err)
		}
		select {
		case <-time.After(pause):
			pause = min(pause*5/4, pollSlow)
		case <-ctx.Done():
			return f.left(patience)
		}
	}
}

// passing reports whether an error may go away by itself.
func passing(err error) bool {
	var e *apiError
	return !errors.As(err, &e) || e.status >= http.StatusInternalServerError
}

// look reads the task and shows what is new.
func (f *follower) look(ctx context.Context) (v scada.TaskView, raw []byte, err error) {
	raw, err = f.a.client.get(ctx, "/v1/tasks/"+url.PathEscape(f.id), &v)
	if err != nil {
		return v, raw, err
	}
	f.state = v.State
	if f.a.output == "json" {
		return v, raw, nil
	}
	if len(v.Instructions) > maxLive {
		f.counts(v)
		return v, raw, nil
	}
	for _, in := range v.Instructions {
		if f.at[in.Seq] == in.Version {
			continue
		}
		var t api.Timeline
		if _, err := f.a.client.get(ctx, fmt.Sprintf("/v1/instructions/%d/timeline", in.Seq), &t); err != nil {
			return v, raw, err
		}
		for _, e := range t.Entries[min(f.seen[in.Seq], len(t.Entries)):] {
			f.line(in.Node, e)
		}
		f.seen[in.Seq], f.at[in.Seq] = len(t.Entries), t.Instruction.Version
	}
	return v, raw, nil
}

func (f *follower) line(node string, e scada.EntryView) {
	state := visible(e.To)
	if e.From != e.To {
		state = f.a.paint(stateCell(e.To))
	}
	line := fmt.Sprintf("%s  %s  %-16s  %s", clock(e.Time), visible(node), visible(e.What), state)
	if d := entryDetail(e); d != "" {
		line += "  " + d
	}
	f.a.print("%s\n", line)
}

func (f *follower) counts(v scada.TaskView) {
	var parts []string
	for state, n := range v.Counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, visible(state)))
	}
	slices.Sort(parts)
	if s := strings.Join(parts, ", "); s != f.stood {
		f.stood = s
		f.a.print("%s  %s\n", clock(v.Updated), s)
	}
}

// end sums up a settled task.
func (f *follower) end(v scada.TaskView, raw []byte) error {
	good := v.State == engine.StateSucceeded.String()
	if f.a.output == "json" {
		if err := printJSON(f.a.out, raw); err != nil {
			return err
		}
	} else {
		f.a.print("task %s %s%s\n", visible(v.TaskID), f.a.paint(stateCell(v.State)), took(v))
		for _, in := range v.Instructions {
			if in.State != engine.StateSucceeded.String() {
				f.a.say("%s on %s: %s\n", visible(in.State), visible(in.Node), why(in))
			} else if r := inline(in.Result); r != "" {
				f.a.print("  %s  %s\n", visible(in.Node), r)
			}
		}
	}
	if !good {
		return errTold
	}
	return nil
}

func took(v scada.TaskView) string {
	from, err1 := time.Parse(time.RFC3339Nano, v.Created)
	to, err2 := time.Parse(time.RFC3339Nano, v.Updated)
	if err1 != nil || err2 != nil {
		return ""
	}
	return " after " + span(to.Sub(from))
}

// why is how an instruction came to its state: reason, code, sentence.
func why(in scada.InstructionView) string {
	var parts []string
	for _, s := range []string{in.Reason, in.Code, in.Detail} {
		if s != "" && !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return "no reason was given"
	}
	return visible(strings.Join(parts, ": "))
}

// left ends when the waiting ends before the task does.
func (f *follower) left(patience time.Duration) error {
	state := f.state
	if state == "" {
		state = "open"
	}
	p := trouble("stopped waiting; task %s is still %s and goes on", f.id, state)
	if patience > 0 {
		p = trouble("task %s is still %s after %v; it goes on", f.id, state, patience)
	}
	if f.safe {
		return p.hint("the board has not confirmed it: look at the machine").
			hint("watch it:   apollo task status %s --watch", f.id).hint("what is owed to nodes:  apollo safe --owed")
	}
	return p.hint("watch it:   apollo task status %s --watch", f.id).hint("cancel it:  apollo task cancel %s", f.id)
}

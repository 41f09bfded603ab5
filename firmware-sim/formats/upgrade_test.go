package formats

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// TestSiteGoesOn: the programs of today are started on the recorded directories,
// the gateway first. Every command ends as the table says, what has once been
// entered in a timeline stays there, and what waits is done once and in its order.
func TestSiteGoesOn(t *testing.T) {
	t.Parallel()
	bin, dir, ctx := built(t, newPrograms), unpacked(t), t.Context()
	rows := due(t, table(t))
	s, err := rig.NewSite(ctx, bin, dir, rig.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, r := range rows {
		if len(r.then) == 1 && r.then[0] == r.state {
			wantOf(t, s, r, []string{r.state})
		}
	}
	// Within a week of the recording its quiet period would hold back what waits.
	if body, status, err := s.Ask(ctx, http.MethodDelete, "/v1/quiet", ""); err != nil || status >= http.StatusInternalServerError {
		t.Fatalf("end the quiet period: status %d, %v: %s", status, err, body)
	}
	pins := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(pins, []byte(pinMap), 0o600); err != nil {
		t.Fatal(err)
	}
	for node, args := range map[string][]string{"pump-1": nil, "queue-1": nil, "full-1": nil, "absent-1": nil, "valve-1": {"--config", pins}} {
		if _, err := s.StartAgent(node, s.Door(), append(args, "--workers", "2")...); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rows {
		wantOf(t, s, r, r.then)
	}
	ordered(t, s, "absent-1", "GPIO17", "one-pin-1", "one-pin-2", "one-pin-3")
	ordered(t, s, "queue-1", "GPIO17", "behind-1", "behind-2")
	if slices.ContainsFunc(rows, func(r row) bool { return timed[r.task] }) {
		never(t, s, "queue-1", "GPIO22")
		never(t, s, "absent-1", "GPIO23")
	}
	task, _, err := s.Task(ctx, "lease-open")
	if err != nil {
		t.Fatal(err)
	}
	var list string
	err = rig.Await(ctx, rig.Patience, "the end of the lease in the timeline", func() (bool, error) {
		entries, err := s.Timeline(ctx, task.Instructions[0].Seq)
		list = whats(entries)
		return strings.HasSuffix(list, "lease_ended"), err
	})
	if err != nil {
		t.Errorf("%v: timeline %q", err, list)
	}
}

// timed are the tasks whose end depends on the clock being past their limits.
var timed = map[string]bool{"limit-of-minutes": true, "behind-late": true, "retrying": true}

// due leaves out the rows of timed tasks on a machine whose clock is not there yet.
func due(t *testing.T, rows []row) []row {
	t.Helper()
	at := time.UnixMilli(recordedAt(t, openLog(t, filepath.Join(unpacked(t), "gateway")))).Add(2 * time.Minute)
	if time.Now().After(at) {
		return rows
	}
	t.Logf("the clock of this machine is before %v: left out is what has a limit in the recording", at)
	return slices.DeleteFunc(rows, func(r row) bool { return timed[r.task] })
}

// wantOf waits for the instruction of a row to be in one of the states.
func wantOf(t *testing.T, s *rig.Site, r row, states []string) {
	t.Helper()
	var got string
	err := rig.Await(t.Context(), rig.Patience, r.task, func() (bool, error) {
		task, found, err := s.Task(t.Context(), r.task)
		if err != nil || !found {
			return false, err
		}
		k := slices.IndexFunc(task.Instructions, func(i scada.InstructionView) bool { return i.Node == r.node })
		if k < 0 {
			return false, nil
		}
		got = stateText(task.Instructions[k])
		if !slices.Contains(states, got) {
			return false, nil
		}
		entries, err := s.Timeline(t.Context(), task.Instructions[k].Seq)
		if list := whats(entries); !strings.HasPrefix(list, r.whats) {
			t.Errorf("README.md:%d: timeline of %s on %s is %q, it was %q", r.line, r.task, r.node, list, r.whats)
		}
		return true, err
	})
	if err != nil {
		t.Errorf("README.md:%d: %s on %s is %q, want %q: %v", r.line, r.task, r.node, got, states, err)
	}
}

// ordered wants that a pin of a board was set by these tasks, once by each and in
// this order.
func ordered(t *testing.T, s *rig.Site, node, pin string, tasks ...string) {
	t.Helper()
	var want []string
	for _, id := range tasks {
		task, _, err := s.Task(t.Context(), id)
		if err != nil || len(task.Instructions) != 1 {
			t.Errorf("task %s: %+v, %v", id, task, err)
			return
		}
		want = append(want, task.Instructions[0].Token)
	}
	if got := causes(t, s, node, pin); !slices.Equal(got, want) {
		t.Errorf("%s of %s was set by %q, want %q (%q)", pin, node, got, want, tasks)
	}
}

func never(t *testing.T, s *rig.Site, node, pin string) {
	t.Helper()
	if got := causes(t, s, node, pin); len(got) > 0 {
		t.Errorf("%s of %s was set by %q, although it was too late for that", pin, node, got)
	}
}

// causes are the tokens that have set a pin.
func causes(t *testing.T, s *rig.Site, node, pin string) (tokens []string) {
	t.Helper()
	all, err := s.Actuations(node)
	if err != nil {
		t.Error(err)
	}
	for _, a := range all {
		if a.Pin == pin {
			tokens = append(tokens, a.Cause)
		}
	}
	return tokens
}

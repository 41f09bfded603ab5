package formats

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// TestLogIsRead: every command in the recorded log has the state and the timeline
// that the table says, and there is none that the table does not name.
func TestLogIsRead(t *testing.T) {
	t.Parallel()
	r := openLog(t, filepath.Join(unpacked(t), "gateway")).Reader()
	seen := map[string]bool{}
	for _, want := range table(t) {
		seen[want.task] = true
		i, ok := instruction(t, r, want.task, want.node)
		if !ok {
			t.Errorf("README.md:%d: the log does not have %s on %s", want.line, want.task, want.node)
			continue
		}
		_, entries, _, err := r.Timeline(t.Context(), i.Seq)
		if err != nil {
			t.Errorf("README.md:%d: timeline of %s: %v", want.line, want.task, err)
			continue
		}
		var list []scada.EntryView
		for _, e := range entries {
			list = append(list, scada.NewEntryView(i.Node, e))
		}
		if got := stateText(scada.NewInstructionView("default", i)); got != want.state {
			t.Errorf("README.md:%d: %s on %s is %q, want %q", want.line, want.task, want.node, got, want.state)
		}
		if got := whats(list); got != want.whats {
			t.Errorf("README.md:%d: timeline of %s on %s is %q, want %q", want.line, want.task, want.node, got, want.whats)
		}
		if last := list[len(list)-1]; last.To != i.State.String() {
			t.Errorf("README.md:%d: the timeline of %s ends in %s, but it is %s", want.line, want.task, last.To, i.State)
		}
	}
	tasks, next, err := r.Tasks(t.Context(), 0, ledger.MaxPage)
	if err != nil || next != 0 {
		t.Fatalf("list of tasks: next %d, %v", next, err)
	}
	for _, s := range tasks {
		if !seen[s.Task.ID] {
			t.Errorf("the table has no row for %s", s.Task.ID)
		}
	}
}

func instruction(t *testing.T, r *ledger.Reader, task, node string) (engine.Instruction, bool) {
	t.Helper()
	s, found, err := r.Task(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	k := slices.IndexFunc(s.Instructions, func(i engine.Instruction) bool { return i.Node == node })
	if !found || k < 0 {
		return engine.Instruction{}, false
	}
	return s.Instructions[k], true
}

// TestOperatorsWorkIsRead: the queue, the dead letters, the audit trail and its
// chain, and the leases are as they were.
func TestOperatorsWorkIsRead(t *testing.T) {
	t.Parallel()
	r := openLog(t, filepath.Join(unpacked(t), "gateway")).Reader()
	queue, next, err := r.Queue(t.Context(), 0, ledger.MaxPage)
	if err != nil || next != 0 {
		t.Fatalf("queue: next %d, %v", next, err)
	}
	var got, want []string
	for _, i := range queue {
		got = append(got, i.Task)
	}
	for _, r := range table(t) {
		if strings.HasSuffix(r.state, " operator") {
			want = append(want, r.task)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("for an operator wait %q, want %q", got, want)
	}
	letters, err := r.DeadLetters(t.Context(), 0, ledger.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	if len(letters) != 1 || letters[0].Number != 2 || letters[0].Kind != "task" || string(letters[0].Raw) != "no task at all" || letters[0].Reason == "" {
		t.Errorf("dead letters %+v, want number 2 alone, which says: no task at all", letters)
	}
	entries, err := r.Audit(t.Context(), 0, ledger.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	var trail engine.Trail
	var actions []string
	for _, a := range entries {
		if err := trail.Check(a); err != nil {
			t.Error(err)
		}
		actions = append(actions, string(a.Action))
	}
	if got, want := strings.Join(actions, " "), "cancel cancel retry resolve dead_drop quiet_on"; got != want {
		t.Errorf("the audit trail has %q, want %q", got, want)
	}
	for task, open := range map[string]bool{"lease-over": false, "lease-open": true} {
		if i, _ := instruction(t, r, task, "valve-1"); i.Lease == nil || i.Lease.Pin != "valve" || i.Lease.Over() == open {
			t.Errorf("the lease of %s is %+v, want one of valve with open %v", task, i.Lease, open)
		}
	}
}

// TestEngineRecovers: the engine of today goes on from the recorded log, at the
// time at which it was recorded.
func TestEngineRecovers(t *testing.T) {
	t.Parallel()
	l := openLog(t, filepath.Join(unpacked(t), "gateway"))
	now := engine.Now{Wall: recordedAt(t, l)}
	e, err := l.Recover(now, engine.Config{}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, s := range e.Unfinished() {
		got = append(got, s.Task.ID)
	}
	for _, r := range table(t) {
		state, ok := engine.ParseState(strings.Fields(r.state)[0])
		if !ok {
			t.Fatalf("README.md:%d: no state is called %s", r.line, r.state)
		}
		if !state.Settled() && !slices.Contains(want, r.task) {
			want = append(want, r.task)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("unfinished are %q, want %q", got, want)
	}
	if q := e.Quiet(); !q.On || q.Reason != "valve 3 is being replaced" {
		t.Errorf("the quiet period is %+v, want the one of the table", q)
	}
	waiting := map[string]int{}
	for _, n := range e.Nodes() {
		waiting[n.Node.ID] = n.Queued + n.Flying + n.Running
		if n.Online {
			t.Errorf("%s is online before it has said hello", n.Node.ID)
		}
	}
	for node, n := range map[string]int{"pump-1": 1, "queue-1": 6, "valve-1": 0, "full-1": 0} {
		if got, known := waiting[node]; !known || got != n {
			t.Errorf("%s has %d instructions (known: %v), want %d", node, got, known, n)
		}
	}
	ready := e.Ready(now)
	if len(ready.Effects.Sends) > 0 {
		t.Errorf("messages for nodes that have not said hello: %+v", ready.Effects.Sends)
	}
	if p, err := l.Apply(&ready.Records); err != nil {
		t.Errorf("the log does not take what the engine writes: %v", err)
	} else if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// recordedAt is when something last changed in the log.
func recordedAt(t *testing.T, l *ledger.Ledger) (at int64) {
	t.Helper()
	tasks, _, err := l.Reader().Tasks(t.Context(), 0, ledger.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range tasks {
		for _, i := range s.Instructions {
			at = max(at, i.Updated)
		}
	}
	return at
}

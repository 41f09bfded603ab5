package trial_test

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/firmware-sim/torture/trial"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// TestTallyBites plants each kind of fault into what log and pins say, and wants it
// counted, and nothing counted without one.
func TestTallyBites(t *testing.T) {
	t.Parallel()
	limit := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	stamp := func(d time.Duration) string { return limit.Add(d).Format(time.RFC3339Nano) }
	write := func(state, reason string) *trial.Account {
		return &trial.Account{ID: "c", Acked: true, Found: true, Settled: true, Tokens: []string{"t1", "t2"},
			End: scada.InstructionView{Node: "n", Intent: "gpio.write", State: state, Reason: reason, Token: "t2", Attempt: 2}}
	}
	pulse := func(a *trial.Account) *trial.Account { a.End.Intent = "gpio.pulse"; return a }
	unknown := func(a *trial.Account) *trial.Account { a.End.OutcomeUnknown, a.End.Operator = true, true; return a }
	limited := func(a *trial.Account, started time.Duration) *trial.Account {
		a.End.NotAfter, a.End.Started = stamp(0), stamp(started)
		return a
	}
	for _, c := range []struct {
		name  string
		a     *trial.Account
		moves string // tokens in the order of their actuations
		late  time.Duration
		want  string
	}{
		{"success", write("SUCCEEDED", ""), "2", 0, ""},
		{"success after an attempt whose end was lost", write("SUCCEEDED", ""), "12", 0, ""},
		{"pulse", pulse(write("SUCCEEDED", "")), "22", 0, ""},
		{"expired", write("TIMEOUT", "expired"), "", 0, ""},
		{"unknown and done", unknown(write("TIMEOUT", "interrupted")), "2", 0, ""},
		{"unknown and not done", unknown(write("TIMEOUT", "interrupted")), "", 0, ""},
		{"in time", limited(write("SUCCEEDED", ""), 0), "2", 0, ""},
		{"never taken", &trial.Account{ID: "c"}, "", 0, ""},

		{"done twice", write("SUCCEEDED", ""), "22", 0, "twice"},
		{"an earlier attempt done twice", write("SUCCEEDED", ""), "112", 0, "twice"},
		{"pulse done twice", pulse(write("SUCCEEDED", "")), "2222", 0, "twice"},
		{"pulse done by two attempts", pulse(write("SUCCEEDED", "")), "1122", 0, "twice"},
		{"unknown and done twice", unknown(write("TIMEOUT", "interrupted")), "22", 0, "twice"},
		{"acknowledged and gone", &trial.Account{ID: "c", Acked: true}, "", 0, "lost"},
		{"never settles", func() *trial.Account { a := write("DISPATCHED", ""); a.Settled = false; return a }(), "", 0, "lost"},
		{"started late", limited(write("SUCCEEDED", ""), time.Millisecond), "2", time.Millisecond, "late"},
		{"moved late", limited(write("SUCCEEDED", ""), 0), "2", time.Minute, "late"},
		{"success that did nothing", write("SUCCEEDED", ""), "", 0, "false"},
		{"half a pulse", pulse(write("SUCCEEDED", "")), "2", 0, "false"},
		{"expired and done", write("TIMEOUT", "expired"), "1", 0, "false"},
		{"failed out of nothing", write("FAILED", "io"), "", 0, "false"},
		{"unknown and not shown so", write("TIMEOUT", "interrupted"), "", 0, "false"},
		{"moved by nobody", write("SUCCEEDED", ""), "29", 0, "false"},
	} {
		var acts []gpio.Actuation
		for _, token := range c.moves {
			acts = append(acts, gpio.Actuation{At: limit.Add(c.late).UnixNano(), Cause: "t" + string(token)})
		}
		var got trial.Tally
		if err := got.Weigh([]*trial.Account{c.a}, map[string][]gpio.Actuation{"n": acts}); err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{"": true, c.want: true}
		for what, n := range map[string]int{"twice": got.Duplicated, "lost": got.Lost, "late": got.Late, "false": got.False} {
			if (n > 0) != want[what] {
				t.Errorf("%s: %s is %d: %v", c.name, what, n, got.Faults)
			}
		}
		if got.OK() != (c.want == "") {
			t.Errorf("%s: OK is %v", c.name, got.OK())
		}
	}
}

// TestTallyKnowsWhoseTokenItIs: a pin of another node is not the instruction's.
func TestTallyKnowsWhoseTokenItIs(t *testing.T) {
	t.Parallel()
	a := &trial.Account{ID: "c", Found: true, Settled: true, Tokens: []string{"t1"},
		End: scada.InstructionView{Node: "n", Intent: "gpio.write", State: "SUCCEEDED", Token: "t1", Attempt: 1}}
	var got trial.Tally
	if err := got.Weigh([]*trial.Account{a}, map[string][]gpio.Actuation{"other": {{Cause: "t1"}}}); err != nil {
		t.Fatal(err)
	}
	if got.False != 2 { // moved without a right, and not moved where it should have been
		t.Errorf("%+v", got)
	}
}

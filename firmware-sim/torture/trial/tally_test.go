package trial_test

import (
	"fmt"
	"strings"
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
			End: scada.InstructionView{Seq: 5, Node: "n", Intent: "gpio.write", Args: map[string]any{"pin": "p", "level": 1}, State: state, Reason: reason, Token: "t2", Attempt: 2}}
	}
	pulse := func(a *trial.Account) *trial.Account { a.End.Intent = "gpio.pulse"; return a }
	off := func(a *trial.Account) *trial.Account { a.End.Args["level"] = 0.0; return a }
	unknown := func(a *trial.Account) *trial.Account { a.End.OutcomeUnknown, a.End.Operator = true, true; return a }
	superseded := func(a *trial.Account) *trial.Account { a.End.Operator = false; return a }
	limited := func(a *trial.Account, started time.Duration) *trial.Account {
		a.End.NotAfter, a.End.Started = stamp(0), stamp(started)
		return a
	}
	for _, c := range []struct {
		name  string
		a     *trial.Account
		moves string // tokens in the order of their actuations; n of a newer one, o of an older, s the owner's own; f a compact frame, u past the journal
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
		{"went low by itself", write("SUCCEEDED", ""), "2s", 0, "false"},
		{"a pulse without an end", pulse(unknown(write("TIMEOUT", "interrupted"))), "2", 0, "false"},
		{"a pulse that the next start ends", pulse(unknown(write("TIMEOUT", "interrupted"))), "2s", 0, ""},
		{"in order", write("SUCCEEDED", ""), "o2n", 0, ""},
		{"after a newer one", write("SUCCEEDED", ""), "n2", 0, "overtaken"},
		{"amid a pulse", pulse(write("SUCCEEDED", "")), "2n2", 0, "overtaken"},
		{"superseded by what has begun", write("CANCELLED", "superseded"), "n", 0, ""},
		{"unknown, superseded", superseded(unknown(write("TIMEOUT", "superseded"))), "2n", 0, ""},
		{"interrupted, and a newer one stands for it", superseded(unknown(write("TIMEOUT", "interrupted"))), "2n", 0, ""},
		{"interrupted, and nobody decides", superseded(unknown(write("TIMEOUT", "interrupted"))), "2", 0, "false"},
		{"superseded by nothing", write("CANCELLED", "superseded"), "", 0, "false"},
		{"superseded by something older", write("CANCELLED", "superseded"), "o", 0, "false"},
		{"superseded and done", write("CANCELLED", "superseded"), "2n", 0, "false"},
		{"superseded, and somebody shall decide", unknown(write("TIMEOUT", "superseded")), "n", 0, "false"},
		{"superseded, and not said to be unknown", write("TIMEOUT", "superseded"), "n", 0, "false"},
		{"superseded and failed", write("FAILED", "superseded"), "n", 0, "false"},
		{"safe: taken there by the board", write("SUCCEEDED", ""), "s2s", 0, ""},
		{"safe: superseded by an off that waits", write("CANCELLED", "superseded"), "", 0, ""},
		{"safe: a pulse that is ended early", pulse(unknown(write("TIMEOUT", "superseded"))), "2s", 0, "false"},
		{"safe: an off that is driven twice", off(write("SUCCEEDED", "")), "22", 0, ""},
		{"safe: an off amid a pulse", off(write("SUCCEEDED", "")), "q2", 0, ""},
		{"safe: an off after a newer on", off(write("SUCCEEDED", "")), "n2", 0, "overtaken"},
		{"safe: an off that a frame drives before it comes", off(write("SUCCEEDED", "")), "of2", 0, ""},
		{"safe: an off that a frame drives after it came", off(write("SUCCEEDED", "")), "o2f", 0, ""},
		{"safe: an off that only a frame drives, and a newer one stands for it", off(write("CANCELLED", "superseded")), "ofn", 0, ""},
		{"safe: an off that only a frame drives, and which is told as done", off(write("SUCCEEDED", "")), "of", 0, "false"},
		{"safe: an off past the journal, and then written down", off(write("SUCCEEDED", "")), "ou2", 0, ""},
		{"safe: an off past the journal, by a frame and written down", off(write("SUCCEEDED", "")), "ofu22", 0, ""},
		{"safe: an off past the journal after a newer on", off(write("SUCCEEDED", "")), "2nu", 0, "overtaken"},
		{"safe: an on past the journal", write("SUCCEEDED", ""), "u2", 0, "false"},
		{"safe: a frame amid a pulse", off(write("SUCCEEDED", "")), "qf2", 0, ""},
		{"a frame where nothing is safe", write("SUCCEEDED", ""), "f2", 0, "false"},
	} {
		other := func(id, intent string, seq uint64, level int) *trial.Account {
			state := "SUCCEEDED"
			if !strings.Contains(c.moves, id) {
				state = "PENDING"
			}
			return &trial.Account{ID: id, Found: true, Settled: state == "SUCCEEDED", Tokens: []string{"t" + id},
				End: scada.InstructionView{Seq: seq, Node: "n", Intent: intent, Args: map[string]any{"pin": "p", "level": level}, State: state, Token: "t" + id, Attempt: 1}}
		}
		safe := strings.HasPrefix(c.name, "safe: ")
		all := []*trial.Account{c.a}
		for _, o := range []*trial.Account{other("o", "gpio.write", 1, 1), other("q", "gpio.pulse", 2, 1), other("n", "gpio.write", 9, 1)} {
			if o.ID == "q" { // the off has ended it
				o.End.State, o.End.Reason, o.End.OutcomeUnknown = "TIMEOUT", "superseded", true
			}
			if o.Settled {
				all = append(all, o)
			}
		}
		if strings.HasSuffix(c.name, "that waits") {
			o := off(other("n", "gpio.write", 9, 1))
			o.End.State, o.End.Reason, o.Settled = "TIMEOUT", "expired", true // and says so all the same
			all = append(all, o)
		}
		var acts []gpio.Actuation
		high := map[string]bool{}
		for _, token := range strings.Split(c.moves, "") {
			act := gpio.Actuation{At: limit.Add(c.late).UnixNano(), Pin: "p", Cause: "t" + token, Level: gpio.High}
			pulses := token == "q" || c.a.End.Intent == "gpio.pulse" && strings.Contains("12", token)
			if pulses {
				high[token] = !high[token]
				act.Level = gpio.Level(high[token])
			} else if strings.Contains("12", token) {
				act.Level = fmt.Sprint(c.a.End.Args["level"]) != "0"
			}
			switch token {
			case "s":
				act.Cause, act.Level = gpio.CauseStart, gpio.Low
			case "f":
				act.Cause, act.Level = "safe:urgent:narrowband", gpio.Low
			case "u":
				act.Cause, act.Level = "safe:urgent:t2", fmt.Sprint(c.a.End.Args["level"]) != "0"
			}
			if token != "" {
				acts = append(acts, act)
			}
		}
		var got trial.Tally
		if err := got.Weigh(all, map[string][]gpio.Actuation{"n": acts}, map[string]bool{"n": safe}); err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{"": true, c.want: true}
		for what, n := range map[string]int{"twice": got.Duplicated, "lost": got.Lost, "late": got.Late, "overtaken": got.Overtaken, "false": got.False} {
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
	if err := got.Weigh([]*trial.Account{a}, map[string][]gpio.Actuation{"other": {{Cause: "t1"}}}, nil); err != nil {
		t.Fatal(err)
	}
	if got.False != 2 { // moved without a right, and not moved where it should have been
		t.Errorf("%+v", got)
	}
}

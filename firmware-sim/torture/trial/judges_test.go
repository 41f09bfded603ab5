package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// TestOrderJudgeBites plants each kind of fault into what the pin did in a round and how
// its commands ended. Commands are even on, odd off, and all have ended well unless said.
func TestOrderJudgeBites(t *testing.T) {
	t.Parallel()
	agent, safe, pulses := OrderCase{Kill: "agent"}, OrderCase{Kill: "agent", Safe: true}, OrderCase{Kill: "gateway", Pulses: true}
	for _, c := range []struct {
		name  string
		of    OrderCase
		moves string // a command by its number, s by the start of the agent, f by a compact frame, u1 a command past the journal
		ends  string // a letter each: + done, x superseded, ? unknown and left, e expired
		want  string
	}{
		{"in order", agent, "01234567", "++++++++", ""},
		{"after a newer one", agent, "01324567", "++++++++", "overtaken"},
		{"done twice", agent, "001234567", "++++++++", "twice"},
		{"one is cut", agent, "0134567", "++?+++++", ""},
		{"two are cut", agent, "034567", "+??+++++", "missing"},
		{"one is cut, but no agent was killed", OrderCase{Kill: "gateway"}, "0134567", "++?+++++", "missing false"},
		{"a budget ran out", agent, "0134567", "++e+++++", "missing"},
		{"told as done", agent, "0134567", "++++++++", "false missing"},
		{"the last level does not stand", agent, "012345676", "++++++++", "overtaken twice wrong"},
		{"by nobody", agent, "0192", "+++", "false"},
		{"low by itself", agent, "01s2", "+++", "false"},
		{"safe: low by the start of the agent", safe, "012s", "+++", ""},
		{"safe: one that an off stands for comes after it", safe, "05674", "+xxxx+++", "overtaken false wrong"},
		{"safe: only offs stand for older ones", safe, "0567", "+xxxx+++", ""},
		{"safe: superseded, and no off after it", safe, "012345", "++++++x", "missing"},
		{"safe: a compact frame drives before the off comes", safe, "0f1234567", "++++++++", ""},
		{"safe: a compact frame drives, and a newer off stands for it", safe, "0f234567", "+x++++++", ""},
		{"safe: a compact frame drives alone, and that is told as done", safe, "0f234567", "++++++++", "false missing"},
		{"a compact frame where nothing is safe", agent, "0f1234567", "++++++++", "false"},
		{"safe: past the journal, and then written down", safe, "0u11234567", "++++++++", ""},
		{"pulses", pulses, "0011223344556677", "++++++++", ""},
		{"pulses: one without an end", pulses, "001122334455667", "++++++++", "false wrong"},
		{"pulses: one amid another", pulses, "0112", "+++", "overtaken false wrong"},
		{"pulses: seven", pulses, "00112233445566", "+++++++x", "missing"},
	} {
		r := &OrderResult{}
		o := orderTrial{c: c.of, r: r, of: map[string]turn{}}
		var list []*ordered
		for k, end := range c.ends {
			p := &ordered{id: fmt.Sprint(k), n: k, level: k%2 == 0, acted: map[string]int{}}
			p.end = scada.InstructionView{State: succeeded, Path: "primary", Attempt: 1, Sends: 1}
			switch end {
			case 'x':
				p.end.State, p.end.Reason = cancelled, "superseded"
			case '?':
				p.end.State, p.end.Reason, p.end.OutcomeUnknown = timedOut, "superseded", true
			case 'e':
				p.end.State, p.end.Reason = timedOut, "expired"
			}
			list = append(list, p)
			o.of[fmt.Sprint("t", k)] = turn{k, p}
		}
		var acts []gpio.Actuation
		high := map[string]bool{}
		cause := ""
		for _, m := range strings.Split(c.moves, "") {
			a := gpio.Actuation{Pin: orderLine}
			switch {
			case m == "u":
				cause = urgentAct
				continue
			case m == "s":
				a.Cause = gpio.CauseStart
			case m == "f":
				a.Cause = narrowAct
			case c.of.Pulses:
				high[m] = !high[m]
				a.Cause, a.Level = "t"+m, gpio.Level(high[m])
			default:
				a.Cause, a.Level = cause+"t"+m, m[0]%2 == 0
			}
			cause = ""
			acts = append(acts, a)
		}
		o.judge(1, list, acts)
		for what, n := range map[string]int{"overtaken": r.Overtaken, "missing": r.Missing, "twice": r.Twice, "false": r.False, "wrong": r.WrongEnd} {
			if want := strings.Contains(c.want, what); (n > 0) != want {
				t.Errorf("%s: %s is %d: %v", c.name, what, n, r.Faults)
			}
		}
		if r.OK() != (c.want == "") {
			t.Errorf("%s: OK is %v", c.name, r.OK())
		}
	}
}

// TestOffsJudgeBites gives each end of an off its place.
func TestOffsJudgeBites(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		name string
		v    offVerdict
		want string
	}{
		{"in time", offVerdict{took: s}, "in time"},
		{"in time, and nobody was there for half of it", offVerdict{took: s, blind: s / 2}, "in time"},
		{"late", offVerdict{took: s + 1}, "late"},
		{"late, with an alarm", offVerdict{took: 9 * s, alarm: 5 * s}, "late"},
		{"late beyond a cut", offVerdict{took: 4 * s, blind: 2 * s}, "late"},
		{"as soon as the board is back", offVerdict{took: 5 * s, blind: 4 * s, alarm: -1}, "away"},
		{"long after, alarmed", offVerdict{took: 20 * s, blind: 19 * s, alarm: 5 * s}, "alarmed"},
		{"long after, alarmed late", offVerdict{took: 20 * s, blind: 19 * s, alarm: 9 * s}, "mute"},
		{"long after, never alarmed", offVerdict{took: 20 * s, blind: 19 * s, alarm: -1}, "mute"},
		{"in time, risen", offVerdict{risen: "x"}, "in time risen"},
		{"in time, not told", offVerdict{untold: "x"}, "in time untold"},
	} {
		var n OffsCount
		wrong := n.count(c.v)
		for what, k := range map[string]int{"in time": n.InTime, "late": n.Late, "away": n.Away, "alarmed": n.Alarmed, "mute": n.Mute, "risen": n.Risen, "untold": n.Untold} {
			if want := strings.Contains(c.want, what) && (what != "alarmed" || c.want == "alarmed"); (k == 1) != want {
				t.Errorf("%s: %s is %d", c.name, what, k)
			}
		}
		if fine := c.want == "in time" || c.want == "away" || c.want == "alarmed"; n.OK() != fine || (wrong == "") != fine {
			t.Errorf("%s: OK is %v, wrong is %q", c.name, n.OK(), wrong)
		}
	}
}

// TestOffsAreHeldAgainstThePin: who has driven it does not count, when it was low does.
func TestOffsAreHeldAgainstThePin(t *testing.T) {
	t.Parallel()
	zero := time.Unix(1_750_000_000, 0)
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	// The off is sent at 0, acknowledged at 10, and followed by an on at 4000.
	o := off{pin: 1, sent: at(0), at: at(10), until: at(4000)}
	type move struct {
		ms    int
		level gpio.Level
	}
	for _, c := range []struct {
		name  string
		moves []move
		want  offVerdict
	}{
		{"at once", []move{{-500, gpio.High}, {9, gpio.Low}}, offVerdict{found: true}},
		{"driven, though it was low", []move{{-500, gpio.Low}, {300, gpio.Low}}, offVerdict{took: 290 * time.Millisecond}},
		{"beyond a cut", []move{{-500, gpio.High}, {2300, gpio.Low}}, offVerdict{found: true, took: 2290 * time.Millisecond, blind: 1500 * time.Millisecond}},
		{"low before it was taken, on once more, low", []move{{-500, gpio.Low}, {5, gpio.Low}, {11, gpio.High}, {20, gpio.Low}}, offVerdict{found: true, took: 10 * time.Millisecond}},
		{"on again by something older", []move{{-500, gpio.High}, {20, gpio.Low}, {3000, gpio.High}}, offVerdict{found: true, took: 10 * time.Millisecond, risen: "went on again 2.99s after it, by c"}},
		{"on again by what came later", []move{{-500, gpio.High}, {20, gpio.Low}, {4100, gpio.High}}, offVerdict{found: true, took: 10 * time.Millisecond}},
	} {
		// Twice at a time: what overlaps is not excused twice.
		n := offTrial{blind: union([]span{{at(1000), at(2000)}, {at(500), at(1500)}})}
		acts := []gpio.Actuation{{At: at(-900).UnixNano(), Pin: "GPIO2", Level: gpio.High}}
		for _, m := range c.moves {
			acts = append(acts, gpio.Actuation{At: at(m.ms).UnixNano(), Pin: "GPIO1", Level: m.level, Cause: "c"})
		}
		c.want.alarm = -1
		if got := n.reached(acts, o); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	n := offTrial{alarms: []span{{at(-9000), at(-8000)}, {at(5005), at(9000)}, {at(7000), at(7100)}}}
	if got := n.reached([]gpio.Actuation{{At: at(9000).UnixNano(), Pin: "GPIO1", Level: gpio.Low}}, o).alarm; got != 4995*time.Millisecond {
		t.Errorf("the alarm stood after %v", got)
	}
}

// TestPlanPlaysEachKindOften: each comes as often as it must, with different others.
func TestPlanPlaysEachKindOften(t *testing.T) {
	t.Parallel()
	for n := 1; n <= len(troubles); n++ {
		var kinds []int
		for k := range n {
			kinds = append(kinds, k)
		}
		often, with := map[int]int{}, map[[2]int]bool{}
		for _, turn := range plan(kinds) {
			for _, k := range turn {
				often[k]++
			}
			if len(turn) == 2 {
				slices.Sort(turn)
				with[[2]int(turn)] = true
			}
		}
		for _, k := range kinds {
			if n > 1 && often[k] != offTurns {
				t.Errorf("of %d kinds, %d comes %d times", n, k, often[k])
			}
		}
		if n >= 7 && len(with) != 2*n {
			t.Errorf("of %d kinds, %d different pairs, want %d", n, len(with), 2*n)
		}
	}
}

// AlarmAfter watches a site until an off that was sent now has its alarm.
func AlarmAfter(ctx context.Context, s *rig.Site) (alarm time.Duration, err error) {
	n, sent := &offTrial{s: s}, time.Now()
	ctx, stop := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() { watched <- n.watch(ctx) }()
	err = rig.Await(ctx, rig.Patience, "the alarm", func() (bool, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		alarm = n.reached(nil, off{at: sent}).alarm
		return alarm >= 0, nil
	})
	stop()
	return alarm, errors.Join(err, <-watched)
}

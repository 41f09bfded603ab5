package trial

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

const (
	// ownAct begins the cause of what the owner of the pins does by itself, and urgentAct
	// that of what it drives past an agent that hangs: the token follows.
	ownAct    = "safe:"
	urgentAct = "safe:urgent:"
	// frameAct stands in the place of the token where a frame over narrowband has come.
	frameAct = "narrowband"
)

// Weigh holds every command against what the pins of each node did. All outputs of the
// nodes in safe have the safe level 0. The error is about times that cannot be read.
func (t *Tally) Weigh(all []*Account, moves map[string][]gpio.Actuation, safe map[string]bool) error {
	owner := map[string]*Account{}
	lines := map[string][]*Account{}
	for _, a := range all {
		a.acted = map[string]int{}
		a.towards = safe[a.End.Node] && a.End.Intent == wire.IntentGPIOWrite && fmt.Sprint(a.End.Args["level"]) == "0"
		for _, token := range a.Tokens {
			owner[token] = a
		}
		if a.Found && (a.End.Intent == wire.IntentGPIOWrite || a.End.Intent == wire.IntentGPIOPulse) {
			lines[a.line()] = append(lines[a.line()], a)
		}
	}
	for _, list := range lines {
		slices.SortFunc(list, func(a, b *Account) int { return cmp.Compare(a.End.Seq, b.End.Seq) })
		for k, a := range list {
			a.newer = list[k+1:]
		}
	}
	for _, n := range slices.Sorted(maps.Keys(moves)) {
		o := orderAt{t: t, node: n, safe: safe[n], pins: map[string]*pinOrder{}}
		for _, act := range moves[n] {
			if err := o.weigh(owner, act); err != nil {
				return err
			}
		}
		o.end()
	}
	for _, a := range all {
		t.Submitted++
		if a.Acked {
			t.Acknowledged++
		}
		switch {
		case !a.Found && a.Acked:
			t.fault(&t.Lost, "%s was acknowledged and is not in the log", a.ID)
		case !a.Found:
		default:
			t.Taken++
			t.judge(a)
		}
	}
	return nil
}

// orderAt is what a node's pins did, as far as it has been read.
type orderAt struct {
	t    *Tally
	node string
	safe bool
	pins map[string]*pinOrder
}

// pinOrder is a line: the newest that has moved it, the pulse that is under way, and
// whether a pulse was the last to move it: its end may not have been written down.
type pinOrder struct {
	newest, pulse *Account
	pulsed        bool
}

// weigh holds one actuation against those before it.
func (o *orderAt) weigh(owner map[string]*Account, act gpio.Actuation) error {
	t := o.t
	p := o.pins[act.Pin]
	if p == nil {
		p = &pinOrder{}
		o.pins[act.Pin] = p
	}
	token, urgent := strings.CutPrefix(act.Cause, urgentAct)
	if strings.HasPrefix(act.Cause, ownAct) && !urgent {
		// The owner only ever goes to the safe level, or ends a pulse that it finds.
		if act.Level != gpio.Low || !o.safe && !p.pulsed {
			t.fault(&t.False, "%s went to %s by %s, out of nothing", o.node, act.Level, act.Cause)
		}
		p.pulse = nil
		return nil
	}
	if urgent && token == frameAct {
		// A safe frame names a line and no token: it only ever goes to the safe level.
		if act.Level != gpio.Low || !o.safe {
			t.fault(&t.False, "%s went to %s by a safe frame", o.node, act.Level)
		}
		p.pulse = nil
		return nil
	}
	a := owner[token]
	switch {
	case a == nil || a.End.Node != o.node:
		t.fault(&t.False, "%s was moved by %s, which no instruction for it accounts for", o.node, act.Cause)
		return nil
	case fmt.Sprint(a.End.Args["pin"]) != act.Pin:
		t.fault(&t.False, "%s moved %s, it is for %v", a.ID, act.Pin, a.End.Args["pin"])
	case urgent && !a.towards:
		t.fault(&t.False, "%s was driven past the agent's journal, and does not lead to safe", a.ID)
	}
	if p.newest != nil && a.End.Seq < p.newest.End.Seq {
		t.fault(&t.Overtaken, "%s moved %s after %s had, which is newer", a.ID, act.Pin, p.newest.ID)
	}
	if p.pulse != nil && p.pulse != a && !a.towards {
		t.fault(&t.Overtaken, "%s moved %s amid the pulse of %s", a.ID, act.Pin, p.pulse.ID)
	}
	if p.newest == nil || a.End.Seq > p.newest.End.Seq {
		p.newest = a
	}
	p.pulse, p.pulsed = nil, a.End.Intent == wire.IntentGPIOPulse
	switch {
	case a.End.Intent == wire.IntentGPIOPulse && act.Level == gpio.High:
		p.pulse = a
	case a.End.Intent == wire.IntentGPIOWrite && (act.Level == gpio.High) != (fmt.Sprint(a.End.Args["level"]) != "0"):
		t.fault(&t.False, "%s set %s to %s, it says %v", a.ID, act.Pin, act.Level, a.End.Args["level"])
	}
	if urgent {
		return nil
	}
	if a.acted[token]++; a.acted[token] > 1 {
		return nil // the end of a pulse may come later
	}
	return t.inTime(a, act.At)
}

// end demands that every pulse has an end.
func (o *orderAt) end() {
	for _, pin := range slices.Sorted(maps.Keys(o.pins)) {
		if p := o.pins[pin]; p.pulse != nil {
			o.t.fault(&o.t.False, "the pulse of %s at %s of %s has no end", p.pulse.ID, pin, o.node)
		}
	}
}

// inTime looks at the first actuation of an attempt of an instruction with a time limit.
func (t *Tally) inTime(a *Account, at int64) error {
	if a.End.NotAfter == "" {
		return nil
	}
	limit, err := time.Parse(time.RFC3339, a.End.NotAfter)
	if err != nil {
		return err
	}
	if over := time.Unix(0, at).Sub(limit); over > actuationSlack {
		t.fault(&t.Late, "%s moved a pin %v after its time limit", a.ID, over)
		return nil
	}
	if a.End.Started == "" {
		return nil
	}
	began, err := time.Parse(time.RFC3339, a.End.Started)
	if err == nil && began.After(limit) {
		t.fault(&t.Late, "%s was started %v after its time limit", a.ID, began.Sub(limit))
	}
	return err
}

// judge holds an instruction's state against its actuations.
func (t *Tally) judge(a *Account) {
	whole := 1
	if a.End.Intent == wire.IntentGPIOPulse {
		whole = 2 // on and off
	}
	acted, attempts := a.moved(), 0
	for _, token := range a.Tokens {
		n := a.acted[token]
		if n > 0 {
			attempts++
		}
		// What leads to safe is driven again whenever it comes again.
		if n > whole && !a.towards {
			t.fault(&t.Duplicated, "%s: the token %s moved a pin %d times, want %d at most", a.ID, token, n, whole)
		}
	}
	if whole > 1 && attempts > 1 {
		t.fault(&t.Duplicated, "%s must not be repeated and was done by %d attempts", a.ID, attempts)
	}
	if acted > 0 {
		t.Executed++
	}
	if a.End.Attempt > 1 {
		t.Retried++
	}
	i := &a.End
	switch {
	case !a.Settled:
		t.fault(&t.Lost, "%s is %s for ever", a.ID, i.State)
	case i.State == succeeded:
		t.Confirmed++
		earlier := strings.Contains(i.Detail, "has done it already")
		if got := a.acted[i.Token]; got < whole && !(earlier && acted > 0) {
			t.fault(&t.False, "%s is %s by %s, which moved a pin %d times, want %d", a.ID, i.State, i.Token, got, whole)
		}
	case i.Reason == "superseded", i.State == timedOut && i.OutcomeUnknown && !i.Operator:
		t.superseded(a) // or unknown for another reason, which something newer stands for
	case i.State == timedOut && i.OutcomeUnknown && i.Operator:
		t.Unknown++
	case i.State == timedOut && i.Reason == "expired":
		t.Expired++
		if acted > 0 {
			t.fault(&t.False, "%s is expired, which means that it never ran, and it moved a pin %d times", a.ID, acted)
		}
	default:
		t.fault(&t.False, "%s ended as %s %s (%s): nothing in this trial can lead there", a.ID, i.State, i.Reason, i.Detail)
	}
}

// superseded holds the end of a command that something newer stands for (docs/safety.md
// 2 to 5): there is such a newer one of its line, which leads to safe or has begun. If
// it is called cancelled, it was never begun; else nobody knows, and nobody need decide.
func (t *Tally) superseded(a *Account) {
	t.Superseded++
	i := &a.End
	stands := slices.ContainsFunc(a.newer, func(n *Account) bool { return n.towards || n.moved() > 0 || n.End.OutcomeUnknown })
	switch {
	case !stands:
		t.fault(&t.False, "%s is superseded, and nothing newer for its line leads to safe or has begun (%s)", a.ID, i.Detail)
	case i.State == cancelled && a.moved() > 0:
		t.fault(&t.False, "%s is %s, which means that it never ran, and it moved a pin %d times", a.ID, i.State, a.moved())
	case i.State == timedOut && (!i.OutcomeUnknown || i.Operator):
		t.fault(&t.False, "%s is %s, superseded: outcome unknown %t, want true; waits for an operator %t, want false", a.ID, i.State, i.OutcomeUnknown, i.Operator)
	case i.State != cancelled && i.State != timedOut:
		t.fault(&t.False, "%s is superseded and %s", a.ID, i.State)
	}
}

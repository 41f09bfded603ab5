package trial

import (
	"slices"
	"strings"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// narrowAct is the cause of what a compact frame has driven: it carries no token.
const narrowAct = urgentAct + "narrowband"

// judge holds the pin's moves of a round against the order of submission.
func (t *orderTrial) judge(round int, list []*ordered, acts []gpio.Actuation) {
	r := t.r
	first := list[0].n // retries come later, and the order within a round is all that counts
	for _, o := range list {
		first = min(first, o.n)
	}
	newest, pulse := -1, "" // the newest that has moved the pin, the token whose pulse is under way
	var last gpio.Actuation
	for _, a := range acts {
		if a.Pin != orderLine {
			r.fault(&r.False, "round %d: %s was moved by %s", round, a.Pin, a.Cause)
			continue
		}
		last = a
		token, urgent := strings.CutPrefix(a.Cause, urgentAct)
		switch {
		case a.Cause == narrowAct:
			if !t.c.Safe || a.Level != gpio.Low {
				r.fault(&r.False, "round %d: the pin went to %s over narrowband", round, a.Level)
			}
			pulse = ""
			continue
		case strings.HasPrefix(a.Cause, ownAct) && !urgent:
			first := round == 0 && t.c.Safe && a.Cause == gpio.CauseStart
			if a.Level != gpio.Low || !t.c.Safe && !t.c.Pulses || t.c.Kill != "agent" && !first {
				r.fault(&r.False, "round %d: the pin went to %s by %s, out of nothing", round, a.Level, a.Cause)
			}
			pulse = ""
			continue
		}
		of, ok := t.of[token]
		if !ok {
			r.fault(&r.False, "round %d: the pin was moved by %s, which no command of the log accounts for", round, a.Cause)
			continue
		}
		o, toSafe := of.o, t.c.Safe && a.Level == gpio.Low
		if of.n < newest {
			r.fault(&r.Overtaken, "round %d: command %d moved the pin after command %d", round, of.n-first, newest-first)
		}
		newest = max(newest, of.n)
		if pulse != "" && pulse != token {
			r.fault(&r.Overtaken, "round %d: command %d moved the pin amid the pulse of %s", round, of.n-first, pulse)
		}
		pulse = ""
		switch o.acted[token]++; {
		case t.c.Pulses:
			if a.Level == gpio.High {
				pulse = token
			}
			if o.acted[token] > 2 || len(o.acted) > 1 && !o.again || len(o.acted) > 2 {
				r.fault(&r.Twice, "round %d: the pulse %d was done by %v", round, of.n-first, o.acted)
			}
		case bool(a.Level) != o.level:
			r.fault(&r.False, "round %d: command %d set the pin to %s", round, of.n-first, a.Level)
		case o.acted[token] > 1 && !toSafe: // what leads to safe is driven whenever it comes
			r.fault(&r.Twice, "round %d: command %d was done %d times by one attempt", round, of.n-first, o.acted[token])
		}
	}
	if pulse != "" {
		r.fault(&r.False, "round %d: the pulse of %s has no end", round, pulse)
	}
	t.judgeTold(round, list)
	t.judgeEnd(round, list, last)
}

// judgeTold holds what is told of each command against what it did.
func (t *orderTrial) judgeTold(round int, list []*ordered) {
	r := t.r
	met, missing := false, 0
	for k, o := range list {
		r.Commands++
		end, acted := o.end, len(o.acted) > 0
		superseded := end.Reason == "superseded"
		met = met || end.Attempt > 1 || end.Sends > 1 || end.State != succeeded || end.Path != "primary"
		switch {
		case acted:
			r.Executed++
		case superseded:
			r.Superseded++
		}
		if end.OutcomeUnknown {
			r.Unknown++
			if t.c.Kill != "agent" {
				r.fault(&r.False, "round %d: nobody knows what became of command %d, and its agent has run all the time: %s %s (%s)", round, k, end.State, end.Reason, end.Detail)
			}
		}
		if !end.OutcomeUnknown && acted != (end.State == succeeded) {
			r.fault(&r.False, "round %d: command %d is %s %s, and has moved the pin: %t (%s)", round, k, end.State, end.Reason, acted, end.Detail)
		}
		if acted {
			continue
		}
		if !end.OutcomeUnknown && !superseded {
			r.fault(&r.Missing, "round %d: command %d (%t) moved nothing: %s %s (%s)", round, k, o.level, end.State, end.Reason, end.Detail)
			continue
		}
		if t.c.Safe && !t.c.Pulses {
			// Only an off stands for what is older, an off or an on.
			if superseded && !slices.ContainsFunc(list, func(n *ordered) bool { return n.n > o.n && !n.level }) {
				r.fault(&r.Missing, "round %d: command %d (%t) is superseded, and there is no off after it (%s)", round, k, o.level, end.Detail)
			}
			continue
		}
		// Where nothing leads to safe each is executed; but of one that was cut by the end
		// of its agent nobody knows, and behind a newer one it is not done again.
		if missing++; t.c.Kill != "agent" || missing > 1 || !end.OutcomeUnknown {
			r.fault(&r.Missing, "round %d: command %d moved nothing: %s %s (%s)", round, k, end.State, end.Reason, end.Detail)
		}
	}
	if met {
		r.Met++
	}
}

// judgeEnd wants that the last level stands.
func (t *orderTrial) judgeEnd(round int, list []*ordered, last gpio.Actuation) {
	if t.c.Pulses {
		if bool(last.Level) {
			t.r.fault(&t.r.WrongEnd, "round %d: the line is high after the last pulse, by %s", round, last.Cause)
		}
		return
	}
	end := slices.MaxFunc(list, func(a, b *ordered) int { return a.n - b.n })
	if t.c.Safe && last.Cause == gpio.CauseStart || len(end.acted) == 0 {
		return // the agent was started again after it: safe, and told so; or the last is told as not done
	}
	if bool(last.Level) != end.level {
		t.r.fault(&t.r.WrongEnd, "round %d: the pin is %s by %s, the last command said %t and is %s %s", round, last.Level, last.Cause, end.level, end.end.State, end.end.Reason)
	}
}

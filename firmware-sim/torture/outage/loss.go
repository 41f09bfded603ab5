package outage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
)

// LeastConfirmed is the share of commands that must be confirmed within three
// compensation rounds under 30 % loss (A6); the aim is AimConfirmed.
const (
	LeastConfirmed = 0.95
	AimConfirmed   = 0.999
	// roundsAllowed is how many rounds of compensation a command may have needed.
	roundsAllowed = 3
	// lossLimit bounds the time in which everything must settle.
	lossLimit = 2 * time.Hour
)

// LossOptions say what is lost.
type LossOptions struct {
	Seed       uint64
	Nodes      int
	Commands   int
	Share      float64 // of all messages, each way, on both paths
	Narrowband bool    // the nodes have the second path
	// Lines is how many lines of a node the commands are for, in turn; 0 for many. At one
	// each command waits for word of the one before it.
	Lines int
}

// LossResult says what became of the commands.
type LossResult struct {
	LossOptions `json:"options"`
	// Within[k] is the share confirmed after at most k rounds of compensation: that
	// is how often the confirm timer ran out.
	Within [roundsAllowed + 1]float64 `json:"confirmed_within_rounds"`
	// WithinSends is stricter: it also counts what was sent again at once, because
	// the node had said over narrowband that it had not got it.
	WithinSends [roundsAllowed + 1]float64 `json:"confirmed_within_resends"`
	// Median, P99 and P999 are from the first dispatch to the confirmation.
	Median    time.Duration `json:"median_ns"`
	P99       time.Duration `json:"p99_ns"`
	P999      time.Duration `json:"p999_ns"`
	Succeeded int           `json:"succeeded"`
	Given     int           `json:"given_up"` // TIMEOUT: to the operator queue
	// Outwaited are those of them that had held their line against a newer one for as
	// long as they may (docs/safety.md 4); LeastHeld is the shortest time from the first
	// dispatch to that.
	Outwaited int           `json:"outwaited"`
	LeastHeld time.Duration `json:"least_held_ns"`
	Open      int           `json:"open"`  // not settled: must be 0
	Twice     int           `json:"twice"` // tokens that ran more than once: must be 0
	Resent    int           `json:"resent"`
	// Jammed is how long the alarm stood that says that compensation pauses because
	// acks are slow: an ack that was lost comes with the agent's repetition after
	// 5 s, and looks slow.
	Jammed time.Duration `json:"jammed_ns"`
	Took   time.Duration `json:"took_ns"` // virtual
	Err    string        `json:"error,omitempty"`
}

// OK reports whether enough was confirmed in time, everything settled and nothing
// ran twice.
func (r LossResult) OK() bool {
	return r.Err == "" && r.Within[roundsAllowed] >= LeastConfirmed && r.Open == 0 && r.Twice == 0 && r.Succeeded+r.Given == r.Commands
}

func (r LossResult) String() string {
	with := "without narrowband"
	if r.Narrowband {
		with = "with narrowband"
	}
	share := func(k int) float64 { return 100 * r.Within[k] }
	if r.Lines == 1 {
		with += ", one line"
	}
	outwaited := ""
	if r.Outwaited > 0 {
		outwaited = fmt.Sprintf(" (%d after they had held their line for %.0f s or more)", r.Outwaited, r.LeastHeld.Seconds())
	}
	return fmt.Sprintf("%.0f %% of all messages lost, %s: confirmed within 0, 1, 2, 3 rounds %.2f, %.2f, %.2f, %.2f %% (3 resends: %.2f %%);\n"+
		"    99 %% in %.0f s, 99.9 %% in %.0f s, compensation_paused stood for %.0f of %.0f s; %d of %d succeeded, %d given up%s, %d ran twice",
		100*r.Share, with, share(0), share(1), share(2), share(3), 100*r.WithinSends[3],
		r.P99.Seconds(), r.P999.Seconds(), r.Jammed.Seconds(), r.Took.Seconds(), r.Succeeded, r.Commands, r.Given, outwaited, r.Twice)
}

// follow is what is known of one command.
type follow struct {
	resends, rounds int
	asked           bool // the next resend is no round of its own
	first           time.Duration
	confirmed, done bool
}

// Loss submits commands, one a second for each node, while messages are lost in
// both directions on both paths.
func Loss(o LossOptions) LossResult {
	s := newSite(o.Seed, o.Nodes, o.Narrowband)
	if o.Lines > 0 {
		s.lines = o.Lines
	}
	r := LossResult{LossOptions: o}
	known := map[uint64]*follow{}
	took := []time.Duration{}
	s.wrote = func(w engine.Write) { r.count(s.now, w, known, &took) }
	for _, n := range s.nodes {
		n.connect()
	}
	s.until(5*time.Second, nil)
	s.loss = o.Share
	const each = time.Second // between two commands for a node
	for k := range o.Commands {
		s.after(each*time.Duration(k)/time.Duration(o.Nodes), func() { s.submit(s.nodes[k%len(s.nodes)].name, 0, k/len(s.nodes)) })
	}
	s.until(lossLimit, func() bool { return r.Succeeded+r.Given == o.Commands })
	r.Took = s.now
	s.pauses.turn(s.now, false)
	r.Jammed = s.pauses.sum
	r.Open = s.eng.Open()
	slices.Sort(took)
	at := func(q float64) time.Duration { return took[min(len(took)-1, int(q*float64(len(took))))] }
	if len(took) > 0 {
		r.Median, r.P99, r.P999 = at(0.5), at(0.99), at(0.999)
	}
	for k := range r.Within {
		r.Within[k] /= float64(o.Commands)
		r.WithinSends[k] /= float64(o.Commands)
	}
	for _, n := range s.nodes {
		for _, times := range n.ran {
			if times > 1 {
				r.Twice++
			}
		}
	}
	if s.err != nil {
		r.Err = s.err.Error()
	}
	return r
}

// count takes in what the log says of an instruction.
func (r *LossResult) count(now time.Duration, w engine.Write, known map[uint64]*follow, took *[]time.Duration) {
	i := &w.Instruction
	f := known[i.Seq]
	if f == nil {
		f = &follow{}
		known[i.Seq] = f
	}
	for _, e := range w.Entries {
		switch e.What {
		case engine.WhatDispatched:
			if !e.Implied {
				f.first = now
			}
		case engine.WhatRequeued:
			// It was away, or said at once that it has not got it; else the timer of a
			// node ran out whose path is in doubt.
			f.asked = !strings.Contains(e.Detail, "seems dead")
		case engine.WhatResent:
			r.Resent++
			f.resends++
			if !f.asked {
				f.rounds++
			}
			f.asked = false
		case engine.WhatReceived:
			if !f.confirmed {
				*took = append(*took, now-f.first)
				r.confirm(f)
			}
		}
	}
	if i.State.Settled() && !f.done {
		f.done = true
		if i.State == engine.StateSucceeded {
			r.Succeeded++
		} else {
			r.Given++
			r.outwaited(now-f.first, i)
		}
	}
}

// outwaited counts one that was given up because something newer waited for it.
func (r *LossResult) outwaited(held time.Duration, i *engine.Instruction) {
	if i.State != engine.StateTimeout || i.Reason != engine.ReasonSuperseded || !i.Operator {
		return
	}
	if r.Outwaited == 0 || held < r.LeastHeld {
		r.LeastHeld = held
	}
	r.Outwaited++
}

func (r *LossResult) confirm(f *follow) {
	f.confirmed = true
	for k := range r.Within {
		if f.rounds <= k {
			r.Within[k]++
		}
		if f.resends <= k {
			r.WithinSends[k]++
		}
	}
}

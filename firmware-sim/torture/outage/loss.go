package outage

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
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
	Slowest     time.Duration              `json:"slowest_ns"` // of those, from first dispatch to confirmation
	Succeeded   int                        `json:"succeeded"`
	Given       int                        `json:"given_up"` // TIMEOUT: to the operator queue
	Open        int                        `json:"open"`     // not settled: must be 0
	Twice       int                        `json:"twice"`    // tokens that ran more than once: must be 0
	Resent      int                        `json:"resent"`
	Took        time.Duration              `json:"took_ns"` // virtual
	Err         string                     `json:"error,omitempty"`
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
	return fmt.Sprintf("%.0f %% of all messages lost, %s: confirmed within 0, 1, 2, 3 rounds %.2f, %.2f, %.2f, %.2f %% (3 resends: %.2f %%); %d of %d succeeded, %d given up, %d ran twice",
		100*r.Share, with, 100*r.Within[0], 100*r.Within[1], 100*r.Within[2], 100*r.Within[3], 100*r.WithinSends[3], r.Succeeded, r.Commands, r.Given, r.Twice)
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
	r := LossResult{LossOptions: o}
	known := map[uint64]*follow{}
	s.wrote = func(w engine.Write) { r.count(s.now, w, known) }
	for _, n := range s.nodes {
		n.connect()
	}
	s.until(5*time.Second, nil)
	s.loss = o.Share
	args, err := wire.EncodeMap(wire.GPIOWrite{Pin: "GPIO17", Level: true}.Map(), wire.MaxArgsBytes)
	s.check(err)
	const each = time.Second // between two commands for a node
	for k := range o.Commands {
		s.after(each*time.Duration(k)/time.Duration(o.Nodes), func() { s.submit(s.nodes[k%len(s.nodes)].name, 0, args) })
	}
	s.until(lossLimit, func() bool { return r.Succeeded+r.Given == o.Commands })
	r.Took = s.now
	r.Open = s.eng.Open()
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
func (r *LossResult) count(now time.Duration, w engine.Write, known map[uint64]*follow) {
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
		case engine.WhatRequeued: // it said that it has not got it, or was away
			f.asked = true
		case engine.WhatResent:
			r.Resent++
			f.resends++
			if !f.asked {
				f.rounds++
			}
			f.asked = false
		case engine.WhatReceived:
			r.confirm(now, f)
		}
	}
	if i.State.Settled() && !f.done {
		f.done = true
		if i.State == engine.StateSucceeded {
			r.Succeeded++
		} else {
			r.Given++
		}
	}
}

func (r *LossResult) confirm(now time.Duration, f *follow) {
	if f.confirmed {
		return
	}
	f.confirmed = true
	for k := range r.Within {
		if f.rounds <= k {
			r.Within[k]++
		}
		if f.resends <= k {
			r.WithinSends[k]++
		}
	}
	if f.rounds <= roundsAllowed {
		r.Slowest = max(r.Slowest, now-f.first)
	}
}

package explore

import (
	"slices"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/round"
	"github.com/apollo-11/apollo11/wire"
)

// pace is what the checker knows of how fast the gateway goes on by itself: retries,
// backlogs, quiet periods, windows, and cancels that are owed.
type pace struct {
	quiet, was bool // a quiet period is on; it was when the round before ended
	retry      map[uint64]retrying
	tries      map[uint64]int
	born       map[uint64]time.Duration
	away       map[string]bool
	back       map[string]time.Duration // when a node was heard again
	tokens     float64                  // of the bucket for backlogs
	at         time.Duration
	stops      []*stop
	told       map[uint64]bool // boards have been told to stop it, in its present attempt
}

// retrying is a wait for another attempt.
type retrying struct {
	process *identity
	at      time.Duration
	least   time.Duration
	// due is when the gateway means to make it, Unix ms by its own clock, 0 if that is too
	// soon after its decision: in a round that a slow disk has held up both may be old.
	due int64
}

// stop is a cancel that a board has not been told of.
type stop struct {
	seq   uint64
	token wire.Token
	reach time.Duration
}

func newPace() pace {
	return pace{retry: map[uint64]retrying{}, tries: map[uint64]int{}, born: map[uint64]time.Duration{}, away: map[string]bool{}, back: map[string]time.Duration{}, tokens: -1, told: map[uint64]bool{}}
}

func (p *pace) restarted() {
	p.quiet, p.was, p.tokens = false, false, -1
	clear(p.away)
	clear(p.back)
}

const (
	// drainRate and drainBurst are the gateway's defaults, window that of its window, and
	// insideWindows how many windows may be in an agent.
	drainRate, drainBurst, window, insideWindows = 50, 100, 16, 4
	// stopBound is how long the wish to stop something may take to a board over narrowband.
	stopBound = 3 * time.Second
)

func orElse(n, def int) int {
	if n == 0 {
		return def
	}
	return n
}

// retries holds another attempt against the policy: not sooner than it says, and not
// more often.
func (c *checker) retries(prev *engine.Instruction, w *engine.Write) {
	i, p := &w.Instruction, &c.pace
	if _, ok := p.born[i.Seq]; !ok {
		p.born[i.Seq] = c.w.now
	}
	if r, ok := p.retry[i.Seq]; ok && i.Attempt > prev.Attempt {
		delete(p.retry, i.Seq)
		if gone := c.w.now - r.at; r.process == c.w.gateway.process && gone < r.least && (r.due == 0 || w.Entries[len(w.Entries)-1].At < r.due) {
			c.fail("backoff", "attempt %d of instruction %d is made %v after the one before; its policy says %v at least", i.Attempt, i.Seq, gone, r.least)
		}
	}
	if i.Attempt > prev.Attempt {
		delete(p.told, i.Seq)
	}
	for _, k := range c.keeps.list {
		if _, open := c.pathOf(k.a); k.x.Seq == i.Seq && i.State.Settled() && !open {
			k.lost = true // nobody could be told: see docs/simulation.md, what is open
		}
	}
	for k := range w.Entries {
		e := &w.Entries[k]
		if e.To == e.From {
			continue
		}
		delete(p.retry, i.Seq)
		switch {
		case e.To != engine.StateRetrying:
		case e.Implied || e.Actor != "":
			p.tries[i.Seq] = 0
		default:
			c.budget(i)
			if i.Retries > prev.Retries {
				r := retrying{process: c.w.gateway.process, at: c.w.now, least: leastWait(i.Retry, i.Retries)}
				if time.Duration(i.RetryAt-e.At)*time.Millisecond >= r.least {
					r.due = i.RetryAt
				}
				p.retry[i.Seq] = r
			}
		}
	}
	if i.Retries > i.Retry.Max && i.Retries > prev.Retries {
		c.fail("budget", "instruction %d has been tried again %d times, allowed are %d", i.Seq, i.Retries, i.Retry.Max)
	}
}

// budget counts the attempts that the gateway makes by itself. One that was given up and
// has ended after all is counted twice.
func (c *checker) budget(i *engine.Instruction) {
	p := &c.pace
	p.tries[i.Seq]++
	a := c.w.byNode[i.Node]
	if a == nil || c.memory.older {
		return
	}
	if _, safe := towardsOn(a, i); !safe && i.Intent != wire.IntentSafe && p.tries[i.Seq] > 2*int(i.Retry.Max) {
		c.fail("budget", "instruction %d is tried again by itself for the %dth time, allowed are %d", i.Seq, p.tries[i.Seq], i.Retry.Max)
	}
}

// leastWait is the least wait before the n-th retry of a policy.
func leastWait(r engine.Retry, n uint8) time.Duration {
	d := time.Duration(r.InitialMs) * time.Millisecond
	if r.Backoff == engine.BackoffExponential {
		d <<= max(n, 1) - 1
	}
	if most := time.Duration(r.MaxMs) * time.Millisecond; most > 0 {
		d = min(d, most)
	}
	return d*85/100 - 5*time.Millisecond
}

// paced holds what a round sends against the bucket for backlogs and the quiet period.
func (c *checker) paced(j *round.Job) {
	p, g := &c.pace, c.w.gateway
	for _, a := range j.Effects.Alarms {
		if a.Kind != "node_offline" {
			continue
		}
		if p.away[a.Subject] && !a.Raised {
			p.back[a.Subject] = c.w.now
		}
		p.away[a.Subject] = a.Raised
	}
	most := float64(orElse(g.drainBurst, drainBurst))
	if p.tokens < 0 {
		p.tokens = most
	}
	p.tokens = min(most, p.tokens+(c.w.now-p.at).Seconds()*1.001*float64(orElse(g.drainRate, drainRate)))
	p.at = c.w.now
	for _, s := range j.Effects.Sends {
		m, ok := s.Msg.(*wire.Instruction)
		a := c.w.byNode[s.Node]
		if !ok || a == nil || c.byHand[m.Seq].retried {
			continue
		}
		i := c.book.last(m.Seq)
		if _, safe := towardsOn(a, &i); safe || i.Intent == wire.IntentSafe {
			continue
		}
		if back, ok := p.back[s.Node]; ok && p.born[m.Seq] < back && m.Attempt == 1 && m.Resend == 0 {
			if p.tokens--; p.tokens < -1.5 {
				c.fail("drain", "instruction %d waited while %s was away; it is sent in a burst of more than %v with %d a second", m.Seq, s.Node, most, orElse(g.drainRate, drainRate))
			}
		}
		if p.quiet && p.was && (m.Resend > 0 || m.Attempt > 1) && !c.pressed(&i) && !c.memory.stands[alarmOf{"twin", s.Node}] {
			c.fail("quiet", "instruction %d is sent again (attempt %d, copy %d), and there is a quiet period", m.Seq, m.Attempt, m.Resend)
		}
	}
	p.was = p.quiet
}

// pressed reports whether something newer waits for what an instruction holds.
func (c *checker) pressed(i *engine.Instruction) bool {
	for _, m := range []map[uint64]engine.Instruction{c.book.insts, c.book.newer} {
		for seq, o := range m {
			if seq > i.Seq && o.Node == i.Node && !c.book.last(seq).State.Settled() {
				return true
			}
		}
	}
	return false
}

// inside demands that no more is handed to a board than its windows hold.
func (c *checker) inside(node string, m *wire.Instruction) {
	if m.Resend > 0 || m.Attempt > 1 || c.memory.older {
		return
	}
	n := 0
	a := c.w.byNode[node]
	for _, i := range c.book.insts {
		if i.Node != node || i.Attempt == 0 || i.State.Settled() || i.State == engine.StateRetrying || i.State == engine.StatePending || i.StartedAt != 0 || i.By != 0 || i.CancelBy != "" {
			continue
		}
		if _, safe := towardsOn(a, &i); !safe {
			n++
		}
	}
	if most := insideWindows*orElse(c.w.gateway.window, window) + orElse(c.w.gateway.window, window); n > most {
		c.fail("window", "instruction %d is handed to %s, which has %d that have not begun; allowed are %d", m.Seq, node, n, most)
	}
}

// wantStopped notes that something is to be stopped, as it is on disk.
func (c *checker) wantStopped(i *engine.Instruction) {
	if i.CancelBy == "" || i.State.Settled() || i.Attempt == 0 || c.w.profile.NarrowLoss > 0 ||
		slices.ContainsFunc(c.pace.stops, func(s *stop) bool { return s.seq == i.Seq }) {
		return
	}
	c.pace.stops = append(c.pace.stops, &stop{seq: i.Seq, token: i.Token})
	c.ticks()
}

// stopTold notes that the wish to stop something has reached its board.
func (c *checker) stopTold(_ *agent, seq uint64) { c.pace.told[seq] = true }

// stillToStop demands that it reaches the board in time if the narrowband is there.
func (c *checker) stillToStop(s *stop) bool {
	i := c.book.insts[s.seq]
	a := c.w.byNode[i.Node]
	if i.State.Settled() || i.Token != s.token || i.CancelBy == "" || a == nil || a.second != nil || c.pace.told[s.seq] || c.memory.older || c.w.calm {
		return false
	}
	g := c.w.gateway
	came, ok := c.boards.arrived[i.Token]
	if g.process == nil || a.life == nil || a.narrow.conn == nil || !ok || came.life != a.life || i.State == engine.StateRetrying || c.w.now < max(g.slowUntil, g.fullUntil) ||
		a.narrow.nextDn > c.w.now+time.Second {
		s.reach = 0
		return true
	}
	if s.reach += offEvery; s.reach > stopBound {
		c.fail("stop-late", "instruction %d is to be cancelled (%s), %s has it, and for %v of living narrowband it was not told", s.seq, i.CancelBy, a.id, s.reach)
	}
	return true
}

// unasked demands that what may have happened already is not tried again without a yes.
func (c *checker) unasked(was *engine.Instruction, r engine.Reply) {
	acted := slices.ContainsFunc(c.bySeq[was.Seq], func(r *run) bool { return r.acted })
	if r.Done == nil || was.State != engine.StateTimeout || c.book.last(was.Seq).Version > was.Version+1 || !acted {
		return
	}
	c.fail("unasked", "instruction %d is tried again; nobody knows whether it has happened, and nobody has accepted that", was.Seq)
}

// ticks sees to it that somebody looks at what is owed.
func (c *checker) ticks() {
	if !c.orders.ticking {
		c.orders.ticking = true
		c.w.after(offEvery, c.lookAtOffs)
	}
}

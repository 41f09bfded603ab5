package order

import (
	"fmt"
	"math/rand/v2"
)

// faults are those that a seed has; half of them each.
type faults struct {
	loss, swap                             float64
	twice, cuts, narrow, crash, gatewayDie bool
	hang, local, restore, sameEpoch, wipe  bool
	quiet, fail, forge, hold, pulses       bool
	expiry, cancel, lease, defer_, flood   bool
	operator                               bool
}

// A world is one gateway, one board, what is on its way between them, and the
// checker, which sees all of it.
type world struct {
	rule  Rule
	r     *rand.Rand
	t     int
	f     faults
	up    bool // the primary path
	calm  bool
	g     gateway
	a     board
	net   []message
	pins  [lines]int
	all   []*command
	born  int
	subs  int
	runs  int // processes that the gateway has had
	check checker
	trace bool
	log   []string
}

// Run plays one seed under a rule and returns the first thing that is wrong,
// empty if nothing is, and with trace what happened.
func Run(seed uint64, rule Rule, trace bool) (string, []string) {
	w := &world{rule: rule, r: rand.New(rand.NewPCG(seed, 11)), trace: trace, up: true}
	w.check.w = w
	w.draw()
	w.g.next, w.g.epoch = 1, 1
	w.runs, w.g.runID, w.g.runs = 1, 1, []process{{id: 1}}
	w.a.card.card, w.a.mem.card = 1, 1
	w.a.card.epoch, w.a.mem.epoch = 1, 1
	w.a.connect(w)
	for range 40 + w.r.IntN(80) {
		w.t++
		w.people()
		w.mischief()
		if w.chance(.85) {
			w.g.tick(w)
		}
		for range w.r.IntN(5) {
			w.deliver()
		}
		if w.chance(.85) {
			w.a.tick(w)
		}
		w.check.tick()
		if w.check.wrong != "" {
			return w.check.wrong, w.log
		}
	}
	w.settle()
	return w.check.wrong, w.log
}

func (w *world) chance(p float64) bool { return w.r.Float64() < p }

func (w *world) say(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%4d  ", w.t)+fmt.Sprintf(format, args...))
}

// draw decides which faults the seed has.
func (w *world) draw() {
	b := func() bool { return w.r.IntN(2) == 0 }
	w.f = faults{twice: b(), cuts: b(), narrow: b(), crash: b(), gatewayDie: b(), hang: b(), local: b(), restore: b(),
		sameEpoch: b(), quiet: b(), fail: b(), hold: b(), pulses: b(), expiry: b(), cancel: b(), lease: b(), defer_: b(), flood: b(), operator: b()}
	w.f.wipe, w.f.forge = w.r.IntN(6) == 0, w.r.IntN(6) == 0
	if w.f.wipe { // two lost memories of one thing leave nobody who could notice
		w.f.restore = false
	}
	w.f.loss = []float64{0, .15, .4}[w.r.IntN(3)]
	w.f.swap = []float64{0, .3}[w.r.IntN(2)]
}

// people submit, cancel, retry, hold and release.
func (w *world) people() {
	rate := .2
	if w.f.flood {
		rate = .4
	}
	if w.chance(rate) {
		w.ask()
	}
	if w.f.cancel && len(w.all) > 0 && w.chance(.04) {
		w.g.cancel(w, w.all[max(0, len(w.all)-1-w.r.IntN(4))])
	}
	if w.f.operator && w.chance(.06) {
		w.g.retry(w)
	}
	if w.f.hold && w.chance(.05) {
		w.g.release(w, w.r.IntN(names))
	}
}

func (w *world) ask() {
	w.born++
	c := &command{id: len(w.all) + 1, born: w.born, name: w.r.IntN(names), level: w.r.IntN(2), took: w.t, high: w.chance(.2)}
	c.line = lineOf[c.name]
	if w.f.flood && w.chance(.4) {
		c.name, c.line = 3, 2
	}
	c.pulse = w.f.pulses && w.chance(.3)
	if c.pulse {
		c.level = 1
	}
	if w.f.expiry && w.chance(.25) {
		c.until = w.t + 2 + w.r.IntN(14)
	}
	if w.f.lease && c.level == 1 && !c.pulse && hasSafe[c.line] && w.chance(.5) {
		c.maxOn = 3 + w.r.IntN(8)
		c.renews = w.chance(.5)
		if c.renews && c.until == 0 && w.rule.RenewalTTL {
			c.until = w.t + c.maxOn
		}
	}
	if c.hold = w.f.hold && c.safe() && w.chance(.3); c.hold {
		c.until = 0
	}
	w.all = append(w.all, c)
	if w.f.defer_ && !c.safe() && w.chance(.15) {
		c.due = w.t + 4 + w.r.IntN(15)
		c.until = 0
		w.g.later(w, c)
		return
	}
	w.g.submit(w, c, 0)
}

// mischief is what the world does to the two of them.
func (w *world) mischief() {
	if w.f.cuts && w.chance(.05) {
		if w.up {
			w.cut("the primary path is cut")
		} else {
			w.up = true
			w.a.connect(w)
		}
	}
	if w.f.crash && w.chance(.03) {
		w.a.crash(w, false)
	}
	if w.f.wipe && w.chance(.015) {
		w.a.crash(w, true)
	}
	if w.f.gatewayDie && w.chance(.03) {
		w.g.crash(w)
	}
	if w.f.restore {
		w.memory()
	}
	if w.f.hang && w.chance(.06) {
		w.a.hang = !w.a.hang
		w.say1("the board's journal hangs: %v", w.a.hang)
	}
	if w.f.local && w.chance(.04) {
		w.a.turn(w, !w.a.local)
	}
	if w.a.local && w.chance(.15) {
		l := w.r.IntN(lines)
		w.pins[l] = w.r.IntN(2)
		w.check.hand(l)
		w.say1("a hand sets line %d to %d", l, w.pins[l])
	}
	if w.f.quiet && w.chance(.05) {
		w.g.quiet = !w.g.quiet
		w.say1("quiet: %v", w.g.quiet)
	}
	if w.f.forge && w.chance(.03) {
		w.check.forged = true
		w.net = append(w.net, message{kind: frame, toBoard: true, compact: true, n: forged, key: w.g.key(w, &command{line: 0, name: 0})})
		w.say1("somebody forges a compact frame, number %d", forged)
	}
}

// memory copies the gateway's log, or restores the copy, once.
func (w *world) memory() {
	switch {
	case w.g.copy == nil && w.chance(.04):
		c := w.g.ledger.clone()
		w.g.copy = &c
		w.say1("a copy of the gateway's log is made")
	case w.g.copy != nil && !w.check.restored && w.chance(.05):
		w.g.restore(w)
	}
}

func (w *world) say1(format string, args ...any) {
	if w.trace {
		w.say(format, args...)
	}
}

// cut ends the session at both ends. Half of what is on its way comes late.
func (w *world) cut(why string) {
	w.say1("%s", why)
	w.up = false
	w.g.connected, w.a.connected = false, false
	kept := w.net[:0]
	for _, m := range w.net {
		if m.compact || !m.toBoard && m.kind != hello && w.chance(.5) {
			kept = append(kept, m)
		}
	}
	w.net = kept
}

// send puts a message on its way.
func (w *world) send(m message) {
	if m.toBoard && !m.compact {
		m.run = w.g.runID
	}
	if !m.compact && !w.up || m.compact && !w.f.narrow {
		return
	}
	if !w.calm && w.chance(w.f.loss) {
		return
	}
	w.net = append(w.net, m)
	if w.f.twice && !w.calm && w.chance(.15) {
		w.net = append(w.net, m)
	}
}

// deliver takes one message off the net. Within a session the messages in one
// direction keep their order; sessions and paths overtake each other.
func (w *world) deliver() {
	if len(w.net) == 0 {
		return
	}
	k := 0
	if w.chance(w.f.swap) {
		k = w.r.IntN(len(w.net))
	}
	if !w.net[k].compact {
		for i := range k {
			if o := w.net[i]; !o.compact && o.toBoard == w.net[k].toBoard && o.session == w.net[k].session {
				k = i
				break
			}
		}
	}
	m := w.net[k]
	w.net = append(w.net[:k], w.net[k+1:]...)
	if m.toBoard {
		w.a.hear(w, m)
	} else {
		w.g.hear(w, m)
	}
}

// settle is the calm phase: the faults stop, and everything must end.
func (w *world) settle() {
	w.say1("the faults stop")
	w.calm = true
	w.a.hang, w.g.quiet = false, false
	if w.a.local {
		w.a.turn(w, false)
	}
	if !w.up {
		w.up = true
		w.a.connect(w)
	}
	for range 400 {
		w.t++
		w.g.tick(w)
		for range 40 {
			w.deliver()
		}
		w.a.tick(w)
		w.check.tick()
		if w.check.wrong != "" {
			return
		}
		if len(w.net) == 0 && w.g.idle(w) && w.a.idle() {
			break
		}
	}
	w.check.end()
}

// open names what has not ended.
func (w *world) open() string {
	for _, it := range w.g.items {
		if !it.settled() {
			return fmt.Sprintf("n%d #%d is %v (withdrawn %v, cancelled %v)", it.n, it.c.id, it.st, it.withdrawn, it.cancelled)
		}
	}
	return fmt.Sprintf("gateway: %d waiting, holds %v %v, releases %v %v, board: %d waiting, %d running, %d acts", len(w.g.waiting), w.g.holds, w.g.obeyed, w.g.frees, w.g.freed, len(w.a.mem.queue), len(w.a.jobs), len(w.a.mem.acts))
}

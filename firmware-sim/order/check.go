package order

import (
	"fmt"
	"slices"
)

// A checker sees everything and decides nothing. Its order is that in which
// people asked (command.sub); it knows no number but those given out.
type checker struct {
	w        *world
	wrong    string
	top      int // the highest number given out
	numbers  []numbered
	started  [lines]int
	begun    [lines][]seen // what began at the pin, in that order
	heard    [lines][]seen // towards safe that reached the board
	holds    [lines][]seen // holds that the board has obeyed
	freedSub [lines]int
	hands    [lines]bool // a hand or the owner moved the line last

	restored, wiped, forged bool
	restoredBorn            int
	forgedSub               int
	localID, localSub       int
	localEnds, localLast    int
	leases                  [lines]*command
}

// seen is a command and its place in the order when it was seen.
type seen struct {
	*command
	sub int
	n   int
}

type numbered struct {
	n, line int
	sub     int
	c       *command
}

func (k *checker) fail(format string, args ...any) {
	if k.wrong == "" {
		k.wrong = fmt.Sprintf(format, args...)
		k.w.say1("WRONG: %s", k.wrong)
	}
}

func (k *checker) given(n int) {
	if n <= k.top {
		k.fail("number: n%d is given out twice", n)
	}
	k.top = max(k.top, n)
}

func (k *checker) told(n int) { k.top = max(k.top, n) }

func (k *checker) byNumber(n, key int) *command {
	for i := len(k.numbers) - 1; i >= 0; i-- {
		if x := k.numbers[i]; x.n == n && x.line == lineOfKey(key) {
			return x.c
		}
	}
	return nil
}

// last returns the newest of a list that was not forgotten everywhere.
func last(list []seen) *seen {
	var c *seen
	for i := range list {
		if o := &list[i]; !o.void && (c == nil || o.sub > c.sub) {
			c = o
		}
	}
	return c
}

func (k *checker) newest(l int) int {
	if c := last(k.begun[l]); c != nil {
		return c.sub
	}
	return 0
}

// handing sees what the gateway hands out.
func (k *checker) handing(g *gateway, it *item) {
	k.numbers = append(k.numbers, numbered{it.n, it.c.line, it.c.sub, it.c})
	if it.c.safe() {
		return
	}
	if g.held(it.key) {
		k.fail("held: n%d #%d is handed out under a hold", it.n, it.c.id)
	}
	for _, s := range k.w.all {
		if s.safe() && s.line == it.c.line && s.sub > it.c.sub && !s.lost && !(s.ended && s.receipt && s.begun == 0 && s.cancelled && !k.w.rule.SupersedeSurvives) {
			k.fail("offered: n%d #%d is handed out after the newer towards safe #%d was submitted", it.n, it.c.id, s.id)
		}
	}
}

// starts sees a start go into the journal.
func (k *checker) starts(a *board, p place) {
	l := p.c.line
	if p.c.sub < k.started[l] && !k.wiped && !k.restored {
		k.fail("order: n%d #%d is written as begun after a newer one", p.n, p.c.id)
	}
	k.started[l] = max(k.started[l], p.c.sub)
}

// toldOver sees the board say superseded.
func (k *checker) toldOver(it *item) {
	if slices.ContainsFunc(k.w.a.card.queue, func(p place) bool { return p.c == it.c }) {
		k.fail("unrecorded: #%d is told as superseded and its end is not in the journal", it.c.id)
	}
}

// begins sees the first drive of what is away from safe.
func (k *checker) begins(a *board, j *job) {
	c, w := j.c, k.w
	l := c.line
	switch h := last(k.heard[l]); {
	case h != nil && h.sub > j.sub:
		k.fail("order: n%d #%d begins after the newer towards safe #%d was heard", j.n, c.id, h.id)
	case c.cut:
		k.fail("again: #%d begins again after an act of the owner or a restart has ended it", c.id)
	case c.begun > 0:
		k.fail("twice: #%d begins twice", c.id)
	case (k.localID != 0 || c.sub <= k.localSub) && !k.wiped:
		k.fail("local: #%d was submitted before the gateway heard of LOCAL and begins after it", c.id)
	case c.lostEpoch(a):
		k.fail("epoch: #%d of an older epoch begins in a newer one", c.id)
	}
	for _, h := range w.all {
		if h.hold && h.line == l && (h.keyed || h.name == c.name) && c.due > 0 && h.born > c.born && c.sub > h.sub && h.sub > 0 && h.receipt && !h.lost {
			k.fail("held: #%d waited without a number when #%d held its line, and begins after the release", c.id, h.id)
		}
	}
	c.begun++
}

func (c *command) lostEpoch(a *board) bool { return c.epoch < a.mem.epoch }

// drives sees every drive of a worker.
func (k *checker) drives(a *board, j *job) {
	c, w := j.c, k.w
	l := c.line
	away := !hasSafe[l] || w.pins[l] != 0
	if k.newest(l) > j.sub {
		k.fail("order: #%d drives line %d after the newer #%d", c.id, l, last(k.begun[l]).id)
	}
	k.begun[l] = append(k.begun[l], seen{c, j.sub, 0})
	k.hands[l], k.leases[l] = false, nil
	if c.renews {
		k.leases[l] = c
	}
	if !away {
		return
	}
	if a.local {
		k.fail("local: #%d drives line %d under LOCAL", c.id, l)
	}
	if fallsOff[l] && w.t-a.heardAt > lossAfter+2 {
		k.fail("loss: #%d drives line %d away from safe while the gateway is lost", c.id, l)
	}
	for _, h := range k.holds[l] {
		if !h.void && h.sub > k.freedSub[l] {
			k.fail("held: #%d drives line %d away from safe under the hold #%d", c.id, l, h.id)
		}
	}
}

// heardSafe sees a towards safe reach the board.
func (k *checker) heardSafe(c *command, m message) {
	if c == nil {
		k.forgedSub = k.w.subs
		return
	}
	if c.low = m.compact && m.fresh && k.restored; c.low {
		return // its number may be lower than those of the lost log; the hello puts it right
	}
	k.heard[c.line] = append(k.heard[c.line], seen{c, k.subOf(m.n, c), m.n})
}

// subOf is the place in the order that a command had when the number was given.
func (k *checker) subOf(n int, c *command) int {
	for _, x := range k.numbers {
		if x.n == n && x.c == c {
			return x.sub
		}
	}
	return c.sub
}

// afterSafe sees what the board has made of it.
func (k *checker) afterSafe(a *board, c *command, m message) {
	if c == nil {
		return
	}
	o := a.mem.outcome(c, m.attempt)
	switch {
	case c.drivenAt == k.w.t, a.local, k.w.pins[c.line] == 0,
		k.hands[c.line] && a.mem.begun[c.line] > m.n, // the newer may have begun, and a hand has moved the line since
		m.c != nil && c.until > 0 && k.w.t > c.until, k.newest(c.line) > k.subOf(m.n, c), c.cancelled:
	case o != nil && (o.result == isLocal || o.result == isSuperseded || o.result == isExpired):
	case k.wiped || k.restored || k.forged:
	default:
		k.fail("delayed: towards safe n%d #%d is heard and not driven", m.n, c.id)
	}
}

// safeDriven sees a line driven to its safe level, by nobody's command if c is
// nil.
func (k *checker) safeDriven(a *board, l int, c *command) {
	k.leases[l] = nil
	if c == nil {
		k.hands[l] = true
		return
	}
	if a.local {
		k.fail("local: #%d drives line %d under LOCAL", c.id, l)
	}
	if n := last(k.begun[l]); n != nil && n.sub > c.sub && !n.safe() {
		k.fail("order: towards safe #%d drives line %d after the newer #%d", c.id, l, n.id)
	}
	c.begun++
	c.drivenAt = k.w.t
	k.hands[l] = false
	if !c.low {
		k.begun[l] = append(k.begun[l], seen{c, c.sub, 0})
	}
}

// ends sees a line driven to safe because a command ends.
func (k *checker) ends(c *command, l int) {
	if k.newest(l) > c.sub {
		k.fail("ends: the end of #%d moves line %d, on which #%d has begun", c.id, l, last(k.begun[l]).id)
	}
}

func (k *checker) hand(l int) { k.hands[l], k.leases[l] = true, nil }

func (k *checker) submittedSafe(c *command) {
	if g := &k.w.g; !g.items[len(g.items)-1].may {
		k.fail("delayed: towards safe #%d is not handed out at its submission", c.id)
	}
}

func (k *checker) obeys(c *command, n int) {
	k.holds[c.line] = append(k.holds[c.line], seen{c, k.subOf(n, c), n})
}

func (k *checker) releasing(line int) { k.freedSub[line] = k.w.subs }

// ending sees the gateway settle an item.
func (k *checker) ending(it *item) {
	c, w := it.c, k.w
	if it.st != succeeded {
		c.ended = true
	}
	switch it.st {
	case succeeded:
		if c.begun == 0 {
			k.fail("false: #%d succeeded and never began", c.id)
		}
		if !slices.ContainsFunc(w.a.card.done, func(o outcome) bool { return o.c == c && o.result == isDone }) && !k.wiped {
			k.fail("unrecorded: #%d is settled as a success that a crash can take back", c.id)
		}
	case unknown:
		if it.stuck <= orderWait && (c.until == 0 || w.t <= c.until) {
			k.fail("budget: #%d is given up before its time", c.id)
		}
		if c.safe() && !c.cancelled {
			k.fail("budget: towards safe #%d is given up", c.id)
		}
	case held:
		if c.safe() {
			k.fail("delayed: towards safe #%d waits for an operator", c.id)
		}
	case superseded:
		if !k.mayBeSuperseded(it) {
			k.fail("deaf: n%d #%d is superseded by nothing that the gateway knows", it.n, c.id)
		}
	}
}

func (k *checker) mayBeSuperseded(it *item) bool {
	c, w := it.c, k.w
	if k.restored && slices.ContainsFunc(w.g.items, func(o item) bool { return o.key == it.key && o.n == it.by && o.c.sub > c.sub }) {
		return true // the counts of its budget were in the lost log
	}
	spent := it.stuck > orderWait || c.failedAt > 0 && w.t-c.failedAt >= orderWait
	if k.forged || k.wiped && c.safe() || !c.safe() && (w.g.held(it.key) || it.by > 0 && w.g.holds[it.key] == it.by) || c.first <= k.localEnds || spent || c.safe() && (k.newest(c.line) > c.sub || it.n < w.a.card.begun[c.line]) {
		return true
	}
	if w.f.restore && !w.f.sameEpoch && c.epoch < w.g.epoch {
		return true
	}
	if b := last(k.begun[c.line]); c.safe() && b != nil && b.safe() {
		return true // the line is safe, and by the number it is newer
	}
	return slices.ContainsFunc(w.all, func(s *command) bool {
		return s.line == c.line && s.safe() && s.sub > c.sub && (!s.lost || w.g.knowsCommand(s))
	})
}

func (g *gateway) knowsCommand(c *command) bool {
	return slices.ContainsFunc(g.lostSafe, func(x safeLost) bool { return x.c == c }) ||
		c.hold && g.held(c.line) && g.holder[c.line] == c
}

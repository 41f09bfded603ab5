package order

import "slices"

// An item is what the gateway knows of a command.
type item struct {
	c         *command
	n         int
	key       int
	st        state
	attempt   int
	sent      int  // tick of the last sending
	stuck     int  // ticks that it has held its line, counted while the board can be reached
	may       bool // an attempt may have begun
	retrying  bool
	failedAt  int
	withdrawn bool // a newer towards safe has ended it; the board has yet to answer
	cancelled bool // a person has
	by        int
	was       int // the number that it had first, if it got another one
	written   bool
}

func (it *item) settled() bool { return it.st >= succeeded }

// A ledger is what the gateway's disk holds.
type ledger struct {
	items    []item
	waiting  []*command // not due yet
	next     int
	reserved int
	epoch    int
	card     int // the board's journal, as it was last heard of
	mapped   bool
	holds    [keys]int      // number of the last hold
	frees    [keys]int      // number of the last release
	freed    [keys]int      // the release that the board has confirmed
	obeyed   [keys]int      // the hold that it has
	holder   [keys]*command // for the checker alone
	freeRun  [keys]int      // the process that took the release
	acts     []heardAct
	runs     []process
	lostSafe []safeLost
}

// heardAct is an act that the gateway has heard of, and the highest number that
// it had given out by then.
type heardAct struct{ id, top int }

// process is one life of the gateway, and the highest number that it had
// reserved when the next one began.
type process struct{ id, most int }

// safeLost is a towards safe whose record is lost and of which a report came.
type safeLost struct {
	key, n int
	c      *command // for the checker alone
}

func (l *ledger) clone() ledger {
	c := *l
	c.items, c.waiting, c.lostSafe, c.acts = slices.Clone(l.items), slices.Clone(l.waiting), slices.Clone(l.lostSafe), slices.Clone(l.acts)
	c.runs = slices.Clone(l.runs)
	return c
}

type gateway struct {
	ledger
	session   int // of the last hello
	heard     bool
	connected bool
	quiet     bool
	warned    int // the process that has told of a lost log
	runID     int
	copy      *ledger
	written   [keys]int // the holds as they are on the disk
}

func (g *gateway) key(w *world, c *command) int {
	if w.rule.KeyByLine && g.mapped {
		return c.line
	}
	return lines + c.name
}

func (g *gateway) held(key int) bool { return g.holds[key] > g.frees[key] }

func (g *gateway) idle(w *world) bool {
	for i := range g.items {
		if !g.items[i].settled() {
			return false
		}
	}
	return len(g.waiting) == 0 && g.heard && g.connected && !g.owesHolding(w)
}

// owesHolding says that the board has yet to confirm a hold or a release.
func (g *gateway) owesHolding(w *world) bool {
	for key := range keys {
		if g.freed[key] < g.frees[key] || w.rule.HoldOwed && g.obeyed[key] < g.holds[key] {
			return true
		}
	}
	return false
}

// number gives out the next number, and reserves a block first if need be.
func (g *gateway) number(w *world) int {
	if g.next > g.reserved {
		g.reserved = g.next - 1 + block
	}
	n := g.next
	g.next++
	w.check.given(n)
	return n
}

// later takes a command that is not due yet.
func (g *gateway) later(w *world, c *command) {
	c.run = g.runID
	if !w.rule.NumberWhenDue {
		w.subs++
		c.early, c.sub = g.number(w), w.subs
	}
	w.say1("submit %s %s #%d, due at %d", nameOf[c.name], c.what(), c.id, c.due)
	g.waiting = append(g.waiting, c)
}

// submit takes a command; n is the number that it has already, 0 for none.
func (g *gateway) submit(w *world, c *command, n int) {
	w.subs++
	c.sub, c.epoch, c.keyed = w.subs, g.epoch, g.mapped
	if c.first == 0 {
		c.first = c.sub
	}
	if c.run == 0 {
		c.run = g.runID
	}
	key := g.key(w, c)
	if !c.safe() && g.held(key) && w.rule.HeldAtGateway {
		c.ended, c.receipt = true, true
		w.say1("submit %s %s #%d: refused held_safe", nameOf[c.name], c.what(), c.id)
		return
	}
	if n == 0 {
		n = g.number(w)
	}
	w.say1("submit %s %s #%d as n%d (until %d, max_on %d)", nameOf[c.name], c.what(), c.id, n, c.until, c.maxOn)
	g.items = append(g.items, item{c: c, n: n, key: key, sent: never, attempt: 1})
	if !c.safe() {
		if !w.rule.NewerWaits {
			g.withdraw(w, key, n)
		}
		return
	}
	if c.hold {
		g.holds[key], g.holder[key] = n, c
		g.endWaiting(w, key)
	}
	g.withdraw(w, key, n)
	if w.rule.SafePasses {
		g.send(w, &g.items[len(g.items)-1])
	}
	w.check.submittedSafe(c)
}

func (g *gateway) endWaiting(w *world, key int) {
	if !w.rule.HoldEndsWaiting {
		return
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(c *command) bool {
		if g.key(w, c) != key {
			return false
		}
		c.ended = true
		w.say1("#%d ends superseded under the hold", c.id)
		return true
	})
}

// withdraw ends what is older than the towards safe n.
func (g *gateway) withdraw(w *world, key, n int) {
	for i := range g.items {
		it := &g.items[i]
		switch {
		case it.key != key || it.n >= n || it.settled():
		case it.c.safe():
			g.end(w, it, superseded, n)
		case w.rule.Withdraw:
			g.takeOut(w, it, n)
		}
	}
}

// takeOut ends an item that n has ended: at once if it was never sent, else when
// the board has answered.
func (g *gateway) takeOut(w *world, it *item, n int) {
	switch {
	case !it.may:
		g.end(w, it, superseded, n)
	case !it.withdrawn:
		it.withdrawn, it.by, it.sent, it.stuck = true, n, never, 0
		w.say1("gateway withdraws n%d", it.n)
	}
}

// endAway ends what is away from safe under a hold.
func (g *gateway) endAway(w *world, key int) {
	for i := range g.items {
		if it := &g.items[i]; it.key == key && !it.settled() && !it.c.safe() {
			g.takeOut(w, it, g.holds[key])
		}
	}
}

// end settles an item.
func (g *gateway) end(w *world, it *item, st state, by int) {
	it.st, it.by = st, by
	w.say1("gateway: n%d #%d is %v (by %d)", it.n, it.c.id, st, by)
	if it.c.safe() && (st == refused || st == expired || st == cancelled || it.cancelled) {
		it.c.explained = true // safe_refused_local, safe_expired, or a person's own doing
	}
	w.check.ending(it)
	if it.c.safe() && (st == refused || st == expired || st == cancelled) && !w.rule.SupersedeSurvives {
		for i := range g.items {
			if o := &g.items[i]; o.by == it.n && o.key == it.key && (o.withdrawn || o.st == superseded) && !o.c.safe() {
				o.st, o.withdrawn, o.sent = pending, false, never
			}
		}
	}
}

// cancel is a person's.
func (g *gateway) cancel(w *world, c *command) {
	for i := range g.items {
		it := &g.items[i]
		if it.c != c || it.withdrawn || it.cancelled || it.settled() && (it.st != succeeded || c.maxOn == 0) {
			continue
		}
		w.say1("a person cancels n%d #%d", it.n, c.id)
		c.cancelled = true
		if !it.may {
			g.end(w, it, cancelled, 0)
			continue
		}
		it.cancelled, it.sent, it.stuck = true, never, 0
		if it.settled() { // of its living lease: told once
			w.send(message{kind: cancel, toBoard: true, session: g.session, c: c, n: it.n, key: it.key})
		}
	}
}

// retry takes something out of the operator queue.
func (g *gateway) retry(w *world) {
	for i := range g.items {
		it := &g.items[i]
		if it.st != held && it.st != unknown || it.by < 0 || it.cancelled || it.withdrawn {
			continue
		}
		it.by = -1 // once
		w.born++
		c := *it.c
		c.id, c.born, c.begun, c.until, c.took, c.retry, c.due = len(w.all)+1, w.born, 0, 0, w.t, true, 0
		c.run, c.first = 0, 0
		if c.renews && w.rule.RenewalTTL {
			c.until = w.t + c.maxOn
		}
		c.lost, c.void, c.ended, c.cut, c.receipt, c.cancelled = false, false, false, false, false, false
		w.all = append(w.all, &c)
		w.say1("an operator retries n%d #%d", it.n, it.c.id)
		n := 0
		if !w.rule.RetryRenumbered {
			n = it.n
		}
		g.submit(w, &c, n)
		return
	}
}

// release ends a hold.
func (g *gateway) release(w *world, name int) {
	key := g.key(w, &command{name: name, line: lineOf[name]})
	if !g.held(key) {
		return
	}
	g.frees[key], g.freeRun[key] = g.number(w), g.runID
	w.say1("a person releases %s, n%d", nameOf[name], g.frees[key])
	w.check.releasing(lineOf[name])
}

// crash loses what was not written yet, and ends the session.
func (g *gateway) crash(w *world) {
	w.say1("the gateway crashes")
	var gone []int
	g.items = slices.DeleteFunc(g.items, func(it item) bool {
		if it.written || w.r.IntN(2) == 0 {
			return false
		}
		w.say1("the record of n%d #%d is lost", it.n, it.c.id)
		it.c.lost = true
		gone = append(gone, it.n, it.was)
		if g.holds[it.key] == it.n { // a hold is in the same record
			g.holds[it.key] = g.written[it.key]
		}
		return true
	})
	for i := range g.items { // what it ended was in the same record
		if it := &g.items[i]; it.by > 0 && slices.Contains(gone, it.by) && (it.st == superseded || it.withdrawn) {
			it.st, it.by, it.withdrawn, it.c.ended = pending, 0, false, false
		}
	}
	for _, it := range g.items {
		if it.c.safe() {
			g.withdraw(w, it.key, it.n)
		}
	}
	g.start(w)
	if w.rule.Reserve {
		g.next = g.reserved + 1
		return
	}
	g.next = 1
	for _, it := range g.items {
		g.next = max(g.next, it.n+1)
	}
	for key := range keys {
		g.next = max(g.next, g.frees[key]+1)
	}
}

func (g *gateway) start(w *world) {
	g.heard, g.connected, g.session = false, false, 0
	g.runs[len(g.runs)-1].most = g.reserved
	w.runs++
	g.runID = w.runs
	g.runs = append(g.runs, process{id: g.runID})
	for i := range g.items {
		g.items[i].sent = never
	}
	up := w.up
	w.cut("with it the session")
	if up {
		w.up = true
		w.a.connect(w)
	}
}

// restore puts the older copy in the place of the log.
func (g *gateway) restore(w *world) {
	now := g.ledger
	g.ledger = g.copy.clone()
	for _, it := range now.items {
		if !slices.ContainsFunc(g.items, func(o item) bool { return o.c == it.c }) && !slices.Contains(g.waiting, it.c) {
			it.c.lost = true
		}
	}
	w.check.restoring(g)
	g.next = g.reserved + 1
	w.say1("the older copy is restored, the same epoch: %v; next is n%d", w.f.sameEpoch, g.next)
	g.start(w)
	if w.f.sameEpoch {
		return
	}
	g.epoch++
	g.leap(w)
	if w.rule.HoldRestored {
		g.holdAll(w, g.runID-1, "the log was restored")
	}
}

// leap goes on with numbers that the lost log cannot have given out.
func (g *gateway) leap(w *world) {
	if w.rule.Jump {
		g.next += jump
		g.reserved = max(g.reserved, g.next-1)
	}
}

// holdAll puts what is away from safe, was taken up to a process and has not
// ended into the operator queue.
func (g *gateway) holdAll(w *world, run int, why string) {
	w.say1("gateway: %s, everything away from safe is held for an operator", why)
	for i := range g.items {
		if it := &g.items[i]; !it.settled() && !it.c.safe() && (it.c.run <= run || it.may) {
			g.end(w, it, held, 0)
		}
	}
	for _, c := range g.waiting {
		c.ended = true
	}
	g.waiting = nil
}

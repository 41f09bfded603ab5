package order

import "slices"

func (k *checker) finishing(o outcome) {
	if o.result == isCut && o.c.begun > 0 {
		o.c.cut = true
	}
}

func (k *checker) orderLost(it *item, by int) {
	c := it.c
	if x := k.byNumber(by, it.key); x != nil && x.sub > c.sub {
		return // it is newer, and lost
	}
	switch {
	case !k.restored && !k.wiped && !k.forged && !slices.ContainsFunc(k.w.all, func(c *command) bool { return c.lost }):
		k.fail("deaf: order_lost for #%d though no memory was lost", c.id)
	case c.safe() || k.wiped:
	case k.restored && c.born > k.restoredBorn && !k.forged:
		k.fail("deaf: #%d was submitted after the restore and got a number that the board has passed", c.id)
	case k.forged && !k.restored && c.sub > k.forgedSub:
		k.fail("deaf: #%d is superseded by a forged number", c.id)
	}
}

func (k *checker) logRestored() {
	if !k.restored {
		k.fail("false: log_restored is told and nothing was restored")
	}
}

func (k *checker) restoring(g *gateway) {
	k.restored, k.restoredBorn = true, k.w.born
	k.top = g.copy.next - 1
	k.forget(&k.w.a.mem)
}

func (k *checker) localOn(id int) { k.localID = id }

func (k *checker) localHeard(id int) {
	k.localEnds = k.w.subs
	if id > k.localLast {
		k.localSub, k.localLast = k.w.subs, id
	}
	if id == k.localID {
		k.localID = 0
	}
}

// crashed forgets what both sides have forgotten, and after the loss of a
// journal what the board alone knew.
func (k *checker) crashed(a *board, wipe bool) {
	if !slices.ContainsFunc(a.card.acts, func(x act) bool { return x.id == k.localID }) {
		k.localID = 0
	}
	k.forget(&a.card)
	k.started = [lines]int{}
	if wipe {
		k.wiped = true
		k.begun, k.heard, k.holds, k.localID = [lines][]seen{}, [lines][]seen{}, [lines][]seen{}, 0
		for _, c := range k.w.all {
			if c.begun > 0 {
				c.begun = 1
			}
		}
	}
}

// forget voids what is lost at the gateway and of which the board knows nothing.
func (k *checker) forget(d *disk) {
	for l := range lines {
		k.holds[l] = slices.DeleteFunc(k.holds[l], func(h seen) bool { return h.lost && d.holds[l] < h.n })
	}
	for _, c := range k.w.all {
		if !c.lost || k.w.g.knowsCommand(c) || slices.ContainsFunc(d.done, func(o outcome) bool { return o.c == c }) {
			continue
		}
		n := 0
		for _, x := range k.numbers {
			if x.c == c {
				n = x.n
			}
		}
		if d.marks[c.line] < n && !slices.ContainsFunc(d.acts, func(x act) bool { return x.n == n }) {
			c.void = true
		}
	}
}

// tick looks at the leases, and at how long a line is held.
func (k *checker) tick() {
	k.waits()
	for l, c := range k.leases {
		if c != nil && k.w.pins[l] == 1 && !k.w.a.local && k.w.t > c.took+c.maxOn+6 {
			k.fail("lease: the renewal #%d holds line %d on for longer than its max_on after it was taken", c.id, l)
		}
	}
}

// waits counts for how long what is not received, or is to be taken back, keeps
// newer ones of its line from being sent.
func (k *checker) waits() {
	g := &k.w.g
	if !g.connected || g.quiet || k.w.calm {
		return
	}
	for i := range g.items {
		o := &g.items[i]
		if o.settled() || !o.may || o.st == received && !o.withdrawn && !o.cancelled {
			continue
		}
		if (o.cancelled || o.withdrawn) && o.sent == never {
			o.c.untold++
		} else {
			o.c.untold = 0
		}
		for j := range g.items {
			if it := &g.items[j]; !o.c.safe() && it.key == o.key && it.n > o.n && it.st == pending && !it.c.safe() {
				o.c.blocks++
				break
			}
		}
		if o.c.blocks > 4*orderWait {
			k.fail("budget: #%d has held its line for %d ticks", o.c.id, o.c.blocks)
		}
		if o.c.untold > resend+6 {
			k.fail("delayed: the cancel of #%d is not sent", o.c.id)
		}
	}
}

// end looks at the whole when everything has settled.
func (k *checker) end() {
	w := k.w
	if !w.g.idle(w) || !w.a.idle() {
		k.fail("settle: something never ends: %s", w.open())
		return
	}
	for key := range lines {
		if w.a.held(key) != w.g.held(key) {
			k.fail("held: line %d is held on one side only", key)
		}
	}
	for _, it := range w.g.items {
		it.c.ended = it.c.ended || it.settled() && it.st != succeeded
	}
	for _, c := range w.all {
		if c.receipt && !c.lost && c.begun == 0 && !c.ended {
			k.fail("settle: nothing became of #%d", c.id)
		}
	}
	for l := range lines {
		if hasSafe[l] && !k.wiped {
			k.lastOff(l)
		}
	}
}

// lastOff holds that the line is off if the last word was off.
func (k *checker) lastOff(l int) {
	var off *command
	for _, c := range k.w.all {
		if c.line == l && c.safe() && !c.lost && !c.void && c.sub > 0 && (off == nil || c.sub > off.sub) {
			off = c
		}
	}
	begun := last(k.begun[l])
	switch {
	case off == nil || begun != nil && begun.sub > off.sub:
	case off.explained, off.begun == 0 && off.ended && k.hands[l] && k.w.pins[l] != 0: // told, and a hand moved the line
	case off.begun == 0 && k.w.pins[l] == 0 && (k.restored || begun != nil && begun.safe()): // an older one that is known only by its report
	case off.begun == 0:
		k.fail("off: towards safe #%d was never driven, nothing newer began, and nobody was told", off.id)
	case k.w.pins[l] != 0 && !k.hands[l]:
		k.fail("off: line %d is on and the last word was off", l)
	}
}

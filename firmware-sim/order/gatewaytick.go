package order

import "slices"

// tick is what the gateway does by itself.
func (g *gateway) tick(w *world) {
	g.written = g.holds
	for i := range g.items {
		if !g.items[i].written {
			g.items[i].written, g.items[i].c.receipt = true, true
		}
	}
	g.due(w)
	g.expire(w)
	for i := range g.items {
		it := &g.items[i]
		if it.settled() {
			continue
		}
		switch {
		case it.withdrawn || it.cancelled:
			g.takeBack(w, it)
		case it.c.safe():
			g.owe(w, it)
		}
	}
	g.handOut(w)
	if !g.connected {
		return
	}
	for key := range keys {
		if w.t%resend == 0 && (g.frees[key] > g.freed[key] || g.holds[key] > g.obeyed[key] && w.rule.HoldOwed) {
			w.send(message{kind: holding, toBoard: true, session: g.session, epoch: g.epoch, key: key, holds: g.holds, frees: g.frees})
		}
	}
	if w.t%resend == 0 {
		w.send(message{kind: ping, toBoard: true, session: g.session, top: g.next - 1})
	}
}

func (g *gateway) due(w *world) {
	for i := 0; i < len(g.waiting); {
		c := g.waiting[i]
		if c.due > w.t {
			i++
			continue
		}
		g.waiting = slices.Delete(g.waiting, i, i+1)
		c.took = w.t
		if c.renews && w.rule.RenewalTTL {
			c.until = w.t + c.maxOn
		}
		g.submit(w, c, c.early)
	}
}

func (g *gateway) expire(w *world) {
	for i := range g.items {
		it := &g.items[i]
		if it.settled() || it.c.until == 0 || w.t <= it.c.until {
			continue
		}
		switch {
		case it.withdrawn || it.cancelled: // what runs is still to be ended
		case it.c.safe():
			g.end(w, it, expired, 0) // and the alarm safe_expired
		case it.may && it.st != received:
			g.end(w, it, unknown, 0)
		case !it.may:
			g.end(w, it, expired, 0)
		}
	}
}

// owe sends towards safe until it is answered.
func (g *gateway) owe(w *world, it *item) {
	if !w.rule.SafePasses && (g.quiet || !g.heard || g.blocked(w, it)) {
		return
	}
	if g.connected {
		it.stuck++
	}
	if it.stuck > orderWait && !w.rule.ResendSafe {
		g.end(w, it, unknown, 0)
		return
	}
	if it.stuck > orderWait && !w.rule.OwedUntilBegun && g.newer(it) {
		g.end(w, it, superseded, it.n)
		return
	}
	if w.t-it.sent >= resend {
		g.send(w, it)
	}
}

func (g *gateway) newer(it *item) bool {
	return slices.ContainsFunc(g.items, func(o item) bool { return o.key == it.key && o.n > it.n })
}

// takeBack asks the board for the end of what was withdrawn or cancelled.
func (g *gateway) takeBack(w *world, it *item) {
	if !w.rule.CancelOvertakes && g.olderOpen(it) {
		return
	}
	if g.connected {
		it.stuck++
	}
	if it.stuck > orderWait && w.rule.CancelBounded {
		if it.withdrawn {
			g.end(w, it, superseded, it.by)
		} else {
			g.end(w, it, unknown, 0)
		}
		return
	}
	if w.t-it.sent >= resend {
		it.sent = w.t
		w.send(message{kind: cancel, toBoard: true, session: g.session, epoch: g.epoch, c: it.c, n: it.n, key: it.key})
	}
}

func (g *gateway) olderOpen(it *item) bool {
	return slices.ContainsFunc(g.items, func(o item) bool { return o.key == it.key && o.n < it.n && !o.settled() })
}

// blocked says that an older one of the line is neither received in order nor
// settled.
func (g *gateway) blocked(w *world, it *item) bool {
	yes := false
	for i := range g.items {
		o := &g.items[i]
		if o.key != it.key || o.n >= it.n {
			continue
		}
		switch {
		case o.st == unknown && !w.rule.UnknownHoldsNot && !o.withdrawn:
			yes = true
		case o.settled() || o.st == received && !o.withdrawn && !o.cancelled:
		case o.c.safe() && o.stuck > orderWait:
		default:
			yes = true
		}
	}
	return yes
}

// handOut sends what is away from safe: in order of each line, urgent lines
// first, as far as the window goes.
func (g *gateway) handOut(w *world) {
	if !g.connected && w.rule.HelloFirst || g.quiet {
		return
	}
	g.again(w)
	for range window {
		best := -1
		for i := range g.items {
			if g.mayGo(w, &g.items[i]) && (best < 0 || g.items[i].c.high && !g.items[best].c.high || g.items[i].c.high == g.items[best].c.high && g.items[i].n < g.items[best].n) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		g.send(w, &g.items[best])
	}
}

// again repeats what is out, and counts what is stuck.
func (g *gateway) again(w *world) {
	for i := range g.items {
		it := &g.items[i]
		if it.settled() || it.c.safe() || it.withdrawn || it.cancelled || !it.may {
			continue
		}
		if it.st != received && g.connected && (!w.rule.StuckBudget || g.newer(it)) {
			it.stuck++
		}
		if it.st != received && it.stuck > orderWait && w.rule.StuckBudget {
			g.end(w, it, unknown, 0)
			w.send(message{kind: cancel, toBoard: true, session: g.session, epoch: g.epoch, c: it.c, n: it.n, key: it.key, top: 1})
			continue
		}
		if w.rule.InOrder && w.rule.OfferedEver && it.st == handed && g.blocked(w, it) {
			continue
		}
		if w.t-it.sent >= resend && it.st == handed || w.t-it.sent >= repeat && it.st == received {
			g.send(w, it)
		}
	}
}

// mayGo says that an item may be sent for the first time, or for a retry.
func (g *gateway) mayGo(w *world, it *item) bool {
	if it.st != pending || it.c.safe() || !it.written || it.withdrawn || it.cancelled || w.t-it.sent < resend {
		return false
	}
	if w.rule.InOrder && g.blocked(w, it) {
		return false
	}
	out, ofLine, others := 0, 0, false
	for i := range g.items {
		o := &g.items[i]
		if o.settled() || o.c.safe() || o == it {
			continue
		}
		if o.st != pending {
			out++
			if o.key == it.key {
				ofLine++
			}
		} else if o.key != it.key && !g.blocked(w, o) && !it.may {
			others = true
		}
	}
	if it.may {
		return true // a retry has its place
	}
	if others && ofLine >= 2 {
		if w.rule.TwoPlaces || out >= window {
			return false
		}
		w.check.fail("window: a line takes a third place while another one waits")
	}
	return out < window
}

// send hands an item out.
func (g *gateway) send(w *world, it *item) {
	w.check.handing(g, it)
	if it.st == pending {
		it.st = handed
	}
	it.sent, it.may = w.t, true
	m := message{kind: frame, fresh: !g.heard && it.c.run == g.runID, hold: it.c.hold && g.holds[it.key] == it.n, toBoard: true, session: g.session, epoch: g.epoch, c: it.c, n: it.n, attempt: it.attempt, key: it.key, top: g.next - 1}
	if it.c.safe() && w.f.narrow {
		k := m
		k.truth, k.compact, k.c, k.session, k.attempt, k.top, k.run = it.c, true, nil, 0, 0, 0, 0
		w.send(k)
	}
	w.send(m)
}

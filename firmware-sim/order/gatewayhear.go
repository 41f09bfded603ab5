package order

import "slices"

// hear takes a message from the board.
func (g *gateway) hear(w *world, m message) {
	switch m.kind {
	case hello:
		g.hello(w, m)
	case holdingHeard:
		g.freed[m.key] = max(g.freed[m.key], min(m.frees[m.key], g.frees[m.key]))
		g.obeyed[m.key] = max(g.obeyed[m.key], min(m.holds[m.key], g.holds[m.key]))
	case actTold:
		g.act(w, m)
	case report:
		g.report(w, m)
	}
}

// hello learns what the board knows, and only then lets out what is away from
// safe.
func (g *gateway) hello(w *world, m message) {
	if m.session <= g.session && g.heard {
		if m.session == g.session {
			g.welcome(w)
		}
		return
	}
	w.say1("gateway hears hello %d: %v, journal %d", m.session, m.tops, m.card)
	g.session, g.connected, g.heard = m.session, true, true
	lost := false
	if !g.mapped {
		g.mapped = true
		g.rekey(w)
	}
	if g.card != 0 && g.card != m.card && w.rule.HoldReplaced {
		g.holdAll(w, g.runID-1, "the board's journal is another one")
	}
	if g.card != m.card {
		g.obeyed, g.freed = [keys]int{}, [keys]int{}
	}
	g.card = m.card
	for _, t := range m.tops {
		if t.id != g.runID && !g.gave(t.most, t.id) {
			w.check.logRestored()
			w.check.told(t.most)
			g.next = max(g.next, t.most+1)
			g.reserved = max(g.reserved, t.most)
			lost = true
		}
	}
	if lost && g.runID != g.warned { // once in a run
		g.warned = g.runID
		g.afterLoss(w, "the board knows numbers that the log does not")
	}
	for key := range keys {
		if w.rule.HoldInHello && m.holds[key] > m.frees[key] && m.holds[key] > max(g.frees[key], g.holds[key]) {
			g.holds[key], g.obeyed[key] = m.holds[key], m.holds[key]
			w.say1("gateway learns of a hold of key %d by n%d", key, m.holds[key])
			g.endWaiting(w, key)
			g.endAway(w, key)
		}
	}
	for key := range keys {
		if w.rule.HoldInHello && m.frees[key] > max(g.frees[key], g.holds[key]) {
			g.frees[key], g.freed[key] = m.frees[key], m.frees[key]
		}
	}
	for i := range g.items {
		it := &g.items[i]
		it.sent = never
		if it.st == received && !it.c.safe() && w.rule.OfferedEver {
			it.st = handed // received in order means: in this session
		}
	}
	g.welcome(w)
}

// afterLoss is what follows when a lost log is noticed: what an earlier process
// took is an operator's, what this one took gets numbers that hold.
func (g *gateway) afterLoss(w *world, why string) {
	if w.rule.HoldRestored {
		g.holdAll(w, g.runID-1, why)
	}
	g.leap(w)
	g.lift(w)
}

// lift gives what was submitted in this run numbers above what the board knows;
// towards safe whether it was answered or not.
func (g *gateway) lift(w *world) {
	for i := range len(g.items) {
		it := &g.items[i]
		switch {
		case it.c.run <= g.runID-1:
		case !it.c.safe() && !it.settled() && w.rule.LiftAway,
			it.c.safe() && (!it.settled() || it.st == succeeded) && w.rule.LiftSafe:
			g.renumber(w, it)
		}
	}
	for key := range keys {
		if w.rule.LiftSafe && g.held(key) {
			g.holds[key] = g.number(w)
		}
		if w.rule.LiftSafe && !g.held(key) && g.freeRun[key] == g.runID {
			g.frees[key] = g.number(w)
		}
	}
}

func (g *gateway) renumber(w *world, it *item) {
	was := it.n
	it.n = g.number(w)
	it.st, it.sent, it.stuck, it.may = pending, never, 0, false
	if it.c.safe() { // of what is away the board may know the outcome by its token
		it.attempt++
	}
	if g.holds[it.key] == was && g.held(it.key) {
		g.holds[it.key] = it.n
	}
	w.say1("gateway renumbers n%d #%d: n%d", was, it.c.id, it.n)
	w.subs++
	it.c.sub = w.subs // it counts as submitted now
	if it.was == 0 {
		it.was = was
	}
	if !it.c.safe() {
		return
	}
	it.c.run = g.runID
	g.withdraw(w, it.key, it.n)
	g.send(w, it)
}

// rekey puts what was kept by name under its line.
func (g *gateway) rekey(w *world) {
	if !w.rule.KeyByLine {
		return
	}
	for i := range g.items {
		g.items[i].key = g.items[i].c.line
	}
	for name := range names {
		l := lineOf[name]
		g.holds[l] = max(g.holds[l], g.holds[lines+name])
		g.frees[l] = max(g.frees[l], g.frees[lines+name])
		g.freeRun[l] = max(g.freeRun[l], g.freeRun[lines+name])
		g.freeRun[lines+name] = 0
		g.holds[lines+name], g.frees[lines+name], g.freed[lines+name] = 0, 0, 0
	}
	for i := range g.items {
		if it := g.items[i]; it.c.safe() {
			g.withdraw(w, it.key, it.n)
		}
	}
	for l := range lines {
		if g.held(l) {
			g.endAway(w, l)
		}
	}
}

func (g *gateway) welcome(w *world) {
	w.send(message{kind: welcome, toBoard: true, session: g.session, epoch: g.epoch, top: g.next - 1, holds: g.holds, frees: g.frees})
}

// act hears of LOCAL, or of a compact frame above what the board was told.
func (g *gateway) act(w *world, m message) {
	x := heardAct{m.act.id, g.next - 1}
	k := slices.IndexFunc(g.acts, func(o heardAct) bool { return o.id == x.id })
	if k >= 0 {
		x = g.acts[k]
	} else {
		g.acts = append(g.acts, x)
	}
	if m.act.key < 0 && k < 0 {
		w.check.localHeard(m.act.id)
		for i := range g.items {
			it := &g.items[i]
			if !w.rule.ActEndsEarlier || it.settled() || it.c.safe() || it.withdrawn || it.n > x.top {
				continue
			}
			g.takeOut(w, it, 0)
		}
	}
	by := 0
	if m.act.key >= 0 {
		by = g.asked(w, m.act, x.top)
	}
	if g.connected {
		w.send(message{kind: actHeard, toBoard: true, session: g.session, act: m.act, top: x.top, by: by})
	}
}

// asked answers for a compact frame above what the board was told: the mark that
// it leaves. Of one that the gateway does not know nobody can say whether it is
// forged or of a log that was lost, so what waits behind it is an operator's.
func (g *gateway) asked(w *world, x act, top int) int {
	own := slices.ContainsFunc(g.items, func(o item) bool { return o.n == x.n && !o.c.safe() })
	if g.knows(x.key, x.n) && !own { // such a frame is towards safe
		return x.n
	}
	by := min(x.n, top)
	for i := range g.items {
		if it := &g.items[i]; it.key == x.key && it.n <= by && !it.c.safe() && !it.settled() {
			g.end(w, it, held, 0)
		}
	}
	return by
}

// find returns the item of a report. One of a compact frame knows no token.
func (g *gateway) find(m message) *item {
	for i := range g.items {
		it := &g.items[i]
		if m.c == it.c && !m.compact || it.n == m.n && (m.compact && lineOfKey(it.key) == lineOfKey(m.key) && it.c.safe()) {
			return it
		}
	}
	return nil
}

func (g *gateway) report(w *world, m message) {
	it := g.find(m)
	if it == nil || it.settled() {
		if (m.result == isReceived || m.result == isWaiting) && g.connected { // it waits there and is not offered any more
			w.send(message{kind: cancel, toBoard: true, session: g.session, epoch: g.epoch, c: m.c, n: m.n, key: m.key})
		}
	}
	if it == nil {
		g.lostRecord(w, m)
		return
	}
	if m.result == isSuperseded && !m.compact && m.attempt < it.attempt {
		return // of the number that it had before
	}
	late := it.settled() && it.st != unknown
	switch {
	case late || m.attempt < it.attempt && !m.compact && (m.result == isFailed || m.result == isBusy):
		return
	case m.result == isReceived:
		if it.st == handed && m.session == g.session && g.connected {
			it.st = received
		}
	case m.result == isWaiting:
	case m.result == isDriven:
		g.begun(w, it)
		if it.settled() {
			return
		}
		it.st = received
		if !w.rule.DrivenSettlesNothing {
			g.end(w, it, succeeded, 0)
		}
	case m.result == isDone:
		g.end(w, it, succeeded, 0)
		g.begun(w, it)
	case m.result == isSuperseded:
		w.check.toldOver(it)
		g.over(w, it, m.by)
	case m.result == isBusy:
		if it.st != unknown {
			it.st, it.sent = pending, w.t
		}
	case m.result == isFailed:
		g.failed(w, it)
	case m.result == isCut:
		if w.rule.CutIsFinal {
			g.end(w, it, failed, 0)
		} else {
			g.failed(w, it)
		}
	default:
		st := map[result]state{isEnded: superseded, isExpired: expired, isLocal: refused, isHeld: refused, isCancelled: cancelled}[m.result]
		if it.withdrawn {
			st = superseded
		}
		g.end(w, it, st, it.by)
	}
}

// begun ends what older towards safe is still owed: a newer one has begun.
func (g *gateway) begun(w *world, it *item) {
	for i := range g.items {
		if o := &g.items[i]; o.key == it.key && o.n < it.n && o.c.safe() && !o.settled() {
			g.end(w, o, superseded, it.n)
		}
	}
}

// over hears that the line has begun something newer, and believes it only if
// it knows that one.
func (g *gateway) over(w *world, it *item, by int) {
	if it.st == unknown { // late: it corrects the state
		it.st, it.by = superseded, by
		return
	}
	if it.withdrawn {
		g.end(w, it, superseded, it.by)
		return
	}
	if by > it.n && g.knows(it.key, by) || !w.rule.Believe {
		g.end(w, it, superseded, by)
		return
	}
	w.say1("ALARM order_lost: n%d #%d is superseded by n%d, which the gateway does not know", it.n, it.c.id, by)
	w.check.orderLost(it, by)
	if !it.c.safe() || !w.rule.RenumberSafe {
		g.end(w, it, held, 0)
		return
	}
	g.next = max(g.next, by+1)
	w.check.told(by)
	g.renumber(w, it)
	if !g.heard { // whatever was lost, what this run has submitted may be too low
		g.afterLoss(w, "order_lost before the hello")
	}
}

func (g *gateway) knows(key, n int) bool {
	return g.holds[key] == n || g.frees[key] == n ||
		slices.ContainsFunc(g.items, func(o item) bool { return (o.key == key || !g.mapped && o.c.safe()) && o.n == n }) ||
		slices.ContainsFunc(g.lostSafe, func(x safeLost) bool { return x.key == key && x.n == n })
}

// gave says that a process of this log may have given out a number: the present
// one knows its own.
func (g *gateway) gave(n, run int) bool {
	return slices.ContainsFunc(g.runs, func(p process) bool { return p.id == run && p.id != g.runID && n <= p.most })
}

// lostRecord enters a report on a number that the log does not have.
func (g *gateway) lostRecord(w *world, m message) {
	if m.result != isDriven && m.result != isDone || m.compact || !m.c.safe() || g.knows(m.key, m.n) || !g.gave(m.n, m.run) {
		return
	}
	if !w.rule.RecordLost {
		w.check.logRestored()
		g.holdAll(w, g.runID-1, "a number that the log does not have")
		return
	}
	w.say1("gateway enters n%d: safe, record lost", m.n)
	g.lostSafe = append(g.lostSafe, safeLost{m.key, m.n, w.check.byNumber(m.n, m.key)})
	for i := range g.items { // what is owed stays owed: its number may be lower and it newer, after a restore
		if it := &g.items[i]; it.key == m.key && it.n < m.n && !it.c.safe() && !it.settled() {
			g.takeOut(w, it, m.n)
		}
	}
}

// failed tries again what failed in a way that may pass.
func (g *gateway) failed(w *world, it *item) {
	if it.withdrawn || it.cancelled || it.st == unknown {
		g.end(w, it, failed, it.by)
		return
	}
	if it.attempt >= attempts {
		g.end(w, it, failed, 0)
		w.send(message{kind: cancel, toBoard: true, session: g.session, epoch: g.epoch, c: it.c, n: it.n, key: it.key, top: 1})
		return
	}
	it.attempt++
	it.st, it.failedAt = pending, w.t
	it.retrying = true
	if !w.rule.RetryKeepsNumber {
		it.n = g.number(w)
	}
}

package order

import "slices"

// hear takes a message from the gateway.
func (a *board) hear(w *world, m message) {
	if !m.compact {
		if m.run > 0 && m.run != a.toldRun {
			a.told, a.toldRun = 0, m.run // another process: what an older one told may be of a lost log
		}
		a.told = max(a.told, m.top, m.n)
		if m.session == a.session && m.session > 0 {
			a.heardAt = w.t
			if a.loss {
				a.loss = false
				w.say1("the board hears the gateway again")
			}
		}
	}
	if m.epoch > a.mem.epoch {
		a.newEpoch(w, m.epoch)
	}
	if w.rule.KeyByLine {
		m.key = lineOfKey(m.key)
	}
	switch m.kind {
	case welcome:
		if m.session == a.session {
			a.connected = true
			for key := range keys {
				if m.holds[key] > a.mem.holds[key] || m.frees[key] > a.mem.frees[key] {
					a.holding(w, key, m)
				}
			}
		}
	case holding:
		a.holding(w, m.key, m)
	case cancel:
		a.cancel(w, m)
	case actHeard:
		a.actHeard(w, m)
	case frame:
		if m.compact || m.c.safe() {
			c := m.c
			if m.compact {
				c = m.truth
			}
			w.check.heardSafe(c, m)
			a.safe(w, m, c)
			w.check.afterSafe(a, c, m)
		} else {
			a.take(w, m)
		}
	}
}

// newEpoch ends what is of the older one and has not begun, before anything of
// the new one begins.
func (a *board) newEpoch(w *world, epoch int) {
	w.say1("the board learns of epoch %d", epoch)
	a.write(func(d *disk) { d.epoch = epoch }, nil)
	if !w.rule.EpochEnds {
		return
	}
	for _, p := range slices.Clone(a.mem.queue) {
		a.finish(w, p, isEnded, 0)
	}
	for i := range a.jobs {
		if j := &a.jobs[i]; j.step == 0 && !j.ended && j.c.epoch < epoch {
			j.ended, j.revoked = true, true
			a.finish(w, j.place, isEnded, 0)
		}
	}
}

// holding takes the state of holds: the higher number counts.
func (a *board) holding(w *world, key int, m message) {
	hold, free := m.holds[key], m.frees[key]
	if hold > max(a.mem.holds[key], a.mem.frees[key]) && hold > free {
		a.endOlder(w, key, hold)
		if c := w.check.byNumber(hold, key); c != nil {
			w.check.obeys(c, hold)
		}
	}
	if !w.rule.ReleaseNumbered && free > a.mem.frees[key] {
		hold = 0
	}
	a.write(func(d *disk) {
		d.holds[key], d.frees[key] = max(d.holds[key], hold), max(d.frees[key], free)
		d.marks[key] = max(d.marks[key], d.holds[key])
		d.raise(max(hold, free), m.run)
	}, func() {
		w.send(message{kind: holdingHeard, session: a.session, key: key, holds: m.holds, frees: m.frees})
	})
}

func (a *board) held(key int) bool { return a.mem.holds[key] > a.mem.frees[key] }

func (a *board) actHeard(w *world, m message) {
	if !slices.Contains(a.mem.acts, m.act) {
		return
	}
	w.say1("the gateway has heard of act %d, top %d", m.act.id, m.top)
	a.write(func(d *disk) {
		d.raise(m.top, m.run)
		d.acts = slices.DeleteFunc(d.acts, func(x act) bool { return x == m.act })
		for key := range keys {
			if m.act.key < 0 && w.rule.ActEndsEarlier {
				d.floors[key] = max(d.floors[key], m.top)
			} else if m.act.key == key {
				d.marks[key] = max(d.marks[key], m.by)
				if m.act.drove && m.by == m.act.n {
					d.begun[key] = max(d.begun[key], m.by)
				}
			}
		}
	}, nil)
	if m.act.key >= 0 {
		if m.act.drove && m.by == m.act.n {
			a.driven[m.act.key] = max(a.driven[m.act.key], m.by)
		}
	}
}

// take takes a frame that is away from safe.
func (a *board) take(w *world, m message) {
	p := place{m.c, m.n, m.attempt, m.key, m.session, m.run}
	if o := a.mem.outcome(p.c, p.attempt); o != nil {
		if a.card.outcome(p.c, p.attempt) != nil {
			a.tell(w, *o)
		}
		return
	}
	if p.session < a.session && a.session > 0 {
		return
	}
	for i := range a.jobs {
		if a.jobs[i].c == p.c {
			a.tell(w, outcome{p, isReceived, 0})
			return
		}
	}
	for i := range a.mem.queue {
		if q := &a.mem.queue[i]; q.c == p.c {
			q.session = max(q.session, p.session)
			if slices.ContainsFunc(a.card.queue, func(o place) bool { return o.c == p.c }) {
				a.tell(w, outcome{p, isReceived, 0})
			}
			return
		}
	}
	n := p.n
	switch mark := a.mem.marks[p.key]; {
	case p.c.until > 0 && w.t > p.c.until:
		a.finish(w, p, isExpired, 0)
	case p.n <= a.mem.floors[p.key]:
		a.finish(w, p, isEnded, 0)
	case n < mark && w.rule.Marks:
		a.superseded(w, p, mark)
	case a.held(p.key) && w.rule.HeldAtBoard:
		a.refuse(w, p, isHeld)
	case a.local && w.rule.LocalRefuses:
		a.refuse(w, p, isLocal)
	case len(a.mem.queue) >= queueMost:
		a.refuse(w, p, isBusy)
	default:
		w.say1("the board takes n%d #%d", p.n, p.c.id)
		a.write(func(d *disk) { d.queue = append(d.queue, p); d.raise(m.n, m.run) }, func() {
			a.tell(w, outcome{p, isReceived, 0})
		})
	}
}

// superseded says so, once it is in the journal.
func (a *board) superseded(w *world, p place, by int) {
	w.say1("the board: n%d #%d is superseded by n%d", p.n, p.c.id, by)
	a.finish(w, p, isSuperseded, by)
	if !w.rule.SaidAfterRecord {
		a.tell(w, outcome{p, isSuperseded, by})
	}
}

// refuse leaves no mark.
func (a *board) refuse(w *world, p place, r result) {
	w.say1("the board refuses n%d #%d: %v", p.n, p.c.id, r)
	if !w.rule.RefusalsLeaveNoMark {
		a.write(func(d *disk) { d.marks[p.key] = max(d.marks[p.key], p.n) }, nil)
	}
	if r == isBusy {
		a.tell(w, outcome{p, r, 0})
		return
	}
	a.finish(w, p, r, 0)
}

// endOlder ends what is older than a towards safe and has not begun.
func (a *board) endOlder(w *world, key, n int) {
	for _, p := range slices.Clone(a.mem.queue) {
		if p.key == key && p.n < n {
			a.superseded(w, p, n)
		}
	}
	if a.keeps[key].n < n {
		a.keeps[key] = keep{}
	}
}

// safe takes a frame towards safe. It waits for nothing.
func (a *board) safe(w *world, m message, truth *command) {
	p := place{m.c, m.n, m.attempt, m.key, m.session, m.run}
	key, n := m.key, m.n
	fresh := m.fresh && !m.compact && !a.connected && w.rule.FreshEnds
	if n < a.driven[key] && w.rule.NewerBegun && !fresh {
		w.say1("the board: n%d is superseded by n%d, which is at the pin", n, a.driven[key])
		if p.c != nil && a.mem.outcome(p.c, p.attempt) == nil {
			a.finish(w, p, isSuperseded, a.driven[key])
			return
		}
		a.tell(w, outcome{p, isSuperseded, a.driven[key]})
		return
	}
	if p.c != nil {
		if o := a.mem.outcome(p.c, p.attempt); o != nil && (o.result == isLocal || o.result == isCancelled) {
			a.tell(w, *o)
			return // nothing refused or cancelled runs later by itself
		}
	}
	if fresh {
		a.endWaiting(w, key, n)
	}
	recorded := p.c != nil && a.card.outcome(p.c, p.attempt) != nil
	if p.c != nil && p.c.until > 0 && w.t > p.c.until && !recorded {
		w.say1("the board: n%d #%d has expired", n, p.c.id)
		if w.rule.SupersedeSurvives {
			a.endOlder(w, key, n)
			a.mark(w, key, n, m.run)
		}
		a.tell(w, outcome{p, isExpired, 0})
		return
	}
	if a.local && w.rule.LocalRefuses {
		w.say1("the board refuses n%d: LOCAL", n)
		if w.rule.CompactAsks && n > a.told {
			a.ask(w, key, n, false)
			return
		}
		if w.rule.RefusedEndsOlder {
			a.endOlder(w, key, n)
		}
		if w.rule.RefusedMarks {
			a.mark(w, key, min(n, a.told), a.toldRun)
		}
		if p.c != nil && !recorded {
			a.finish(w, p, isLocal, 0)
		}
		return
	}
	if len(a.mem.queue) >= queueMost && !w.rule.SafeSlot || a.hang && !w.rule.SafeDrivesFirst {
		return
	}
	if fresh {
		a.endRunning(w, key, forged, n, false)
	}
	a.driveSafe(w, p, m, truth)
}

// endWaiting ends what has not begun on a line, whatever its number: of the
// numbers of the board the gateway knew nothing when it sent this.
func (a *board) endWaiting(w *world, key, n int) {
	for _, o := range slices.Clone(a.mem.queue) {
		if o.key == key {
			a.superseded(w, o, n)
		}
	}
	for i := range a.jobs {
		if j := &a.jobs[i]; j.key == key && j.step == 0 && !j.ended {
			j.ended, j.revoked = true, true
			a.finish(w, j.place, isSuperseded, n)
		}
	}
}

func (a *board) mark(w *world, key, n, run int) {
	if n > a.mem.marks[key] {
		a.write(func(d *disk) {
			d.marks[key] = max(d.marks[key], n)
			if run > 0 {
				d.raise(n, run)
			}
		}, nil)
	}
}

// ask asks the gateway about a number that only a compact frame has told.
func (a *board) ask(w *world, key, n int, drove bool) {
	if slices.ContainsFunc(a.mem.acts, func(x act) bool { return x.key == key && x.n == n }) {
		return
	}
	a.act(w, key, n, drove)
}

// act writes that something is to be told, and asked.
func (a *board) act(w *world, key, n int, drove bool) {
	a.acts++
	x := act{a.acts, key, n, drove}
	a.write(func(d *disk) { d.acts = append(d.acts, x) }, nil)
}

// driveSafe drives first, and the record follows.
func (a *board) driveSafe(w *world, p place, m message, truth *command) {
	key, n := p.key, p.n
	mark := n
	if m.compact && w.rule.CompactNoRaise {
		mark = min(n, a.told)
		if n > a.told && w.rule.CompactAsks {
			a.ask(w, key, n, true)
			mark = 0
		}
	}
	if mark > 0 {
		a.endOlder(w, key, n)
	}
	if w.rule.EndsRunning {
		a.endRunning(w, key, n, n, mark > 0)
	}
	a.driven[key] = max(a.driven[key], mark)
	a.own(w, key, truth)
	if a.card.driven(p.c) {
		a.tell(w, outcome{p, isDone, 0})
		return
	}
	a.tell(w, outcome{p, isDriven, 0})
	if a.mem.driven(p.c) {
		return
	}
	if p.c == nil {
		a.mark(w, key, mark, a.toldRun)
		return
	}
	hold := m.hold
	if hold && a.mem.frees[key] < n {
		w.check.obeys(p.c, n)
	}
	a.write(func(d *disk) {
		d.finish(outcome{p, isDone, 0})
		d.marks[key], d.begun[key] = max(d.marks[key], mark), max(d.begun[key], mark)
		d.raise(n, m.run)
		if hold && (d.frees[key] < n || !w.rule.ReleaseNumbered) {
			d.holds[key] = max(d.holds[key], n)
		}
	}, func() { a.tell(w, outcome{p, isDone, 0}) })
}

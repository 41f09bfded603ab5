package order

import "slices"

// A job is what holds a line and a worker.
type job struct {
	place
	ready   bool // its start is durable
	step    int
	sub     int // for the checker: its place in the order when it started
	at      int
	revoked bool // the owner has ended it, whatever its number
	ended   bool // by something newer, and the worker does not know yet
}

func level(c *command, step int) int {
	if c.pulse {
		return 1 - step%2
	}
	return c.level
}

// drive is the owner of the pins: it checks every drive of a worker.
func (a *board) drive(w *world, j *job) bool {
	to := level(j.c, j.step)
	away := !hasSafe[j.key] || to != 0
	switch {
	case j.revoked && w.rule.OwnerRevokes,
		w.rule.OwnerChecks && j.n < a.driven[j.key]:
		w.say1("the owner has ended n%d #%d", j.n, j.c.id)
		return false
	case !away:
	case w.rule.OwnerChecks && (j.n < a.mem.marks[j.key] || j.n <= a.mem.floors[j.key]),
		w.rule.HeldAtBoard && a.held(j.key),
		a.local && w.rule.LocalRefuses,
		w.rule.LossIsState && a.loss && fallsOff[j.key]:
		w.say1("the owner refuses n%d #%d", j.n, j.c.id)
		return false
	}
	if j.step == 0 {
		a.leases[j.key] = lease{}
		w.check.begins(a, j)
	}
	a.driven[j.key] = max(a.driven[j.key], j.n)
	w.say1("PIN %d = %d by n%d #%d", j.c.line, to, j.n, j.c.id)
	w.pins[j.c.line] = to
	w.check.drives(a, j)
	if j.c.maxOn > 0 {
		end := w.t + j.c.maxOn
		if j.c.renews && w.rule.RenewalTTL {
			end = min(end, j.c.took+j.c.maxOn)
		}
		a.leases[j.key] = lease{j.c, j.n, end}
	}
	return true
}

// work moves the jobs on.
func (a *board) work(w *world) {
	for i := 0; i < len(a.jobs); {
		j := &a.jobs[i]
		if !j.ready && !j.ended || w.t < j.at {
			i++
			continue
		}
		if j.ended { // the worker may be on its way to the pin
			if w.chance(.5) {
				a.drive(w, j)
			}
			a.jobs = slices.Delete(a.jobs, i, i+1)
			continue
		}
		end, r := true, isDone
		switch {
		case j.step == 0 && w.f.fail && !w.calm && w.chance(.3):
			r = isFailed
			w.say1("n%d #%d fails, which may pass", j.n, j.c.id)
			a.keeps[j.key] = keep{j.n, w.t + orderWait}
			j.c.failedAt = w.t
		case j.step == 0 && (j.c.until > 0 && w.t > j.c.until || j.c.renews && w.rule.RenewalTTL && w.t >= j.c.took+j.c.maxOn):
			r = isExpired
		case !a.drive(w, j):
			r = isCut
		case j.c.pulse && j.step < 3:
			j.step++
			j.at = w.t + pulseTicks
			end = false
		}
		if !end {
			i++
			continue
		}
		p := j.place
		a.jobs = slices.Delete(a.jobs, i, i+1)
		a.finish(w, p, r, 0)
	}
}

// endRunning ends what runs on a line and is older than n; by is told.
func (a *board) endRunning(w *world, key, n, by int, byNumber bool) {
	for i := range a.jobs {
		if j := &a.jobs[i]; j.key == key && j.n < n && !j.ended {
			j.ended, j.revoked = true, !byNumber
			a.finish(w, j.place, isSuperseded, by)
		}
	}
	if a.leases[key].n < n {
		a.leases[key] = lease{}
	}
}

// own drives a line to its safe level: for a command, or as the owner's act.
func (a *board) own(w *world, key int, c *command) {
	l := lineOfKey(key)
	if w.pins[l] != 0 {
		w.say1("PIN %d = 0, towards safe", l)
	}
	w.pins[l] = 0
	a.leases[key] = lease{}
	w.check.safeDriven(a, l, c)
}

// cutLine is an act of the owner: what holds the line ends and is told.
func (a *board) cutLine(w *world, key int) {
	for i := range a.jobs {
		if j := &a.jobs[i]; j.key == key && !j.ended {
			j.ended, j.revoked = true, true
			a.finish(w, j.place, isCut, 0)
		}
	}
}

// owner is what the owner of the pins does by itself: loss and leases.
func (a *board) owner(w *world) {
	if w.t-a.heardAt > lossAfter && (!a.loss || w.t-a.heardAt == lossAfter+1) {
		w.say1("the gateway is lost")
		a.loss = true
		for l := range keys {
			if fallsOff[l] && !a.local {
				a.cutLine(w, l)
				a.own(w, l, nil)
			}
		}
	}
	for l := range keys {
		if x := a.leases[l]; x.c != nil && w.t >= x.end && !a.local {
			w.say1("the lease of n%d #%d ends", x.n, x.c.id)
			w.check.ends(x.c, lineOfKey(l))
			a.own(w, l, nil)
		}
	}
}

// turn is the LOCAL switch.
func (a *board) turn(w *world, on bool) {
	a.local = on
	w.say1("LOCAL: %v", on)
	if !on {
		return
	}
	for l := range keys {
		busy := a.leases[l].c != nil || slices.ContainsFunc(a.jobs, func(j job) bool { return j.key == l && j.step > 0 })
		a.cutLine(w, l)
		a.keeps[l] = keep{}
		if busy && hasSafe[l] {
			a.own(w, l, nil)
		}
		a.leases[l] = lease{}
	}
	for _, p := range slices.Clone(a.mem.queue) {
		a.refuse(w, p, isLocal)
	}
	a.act(w, -1, 0, false)
	w.check.localOn(a.acts)
}

// cancel overtakes everything.
func (a *board) cancel(w *world, m message) {
	p := place{m.c, m.n, m.attempt, m.key, m.session, m.run}
	if a.keeps[p.key].n == p.n {
		a.keeps[p.key] = keep{}
	}
	if x := a.leases[p.key]; x.c != nil && (x.c == m.c || !w.rule.CancelOwnLease) {
		w.say1("cancel of n%d ends the lease of n%d", p.n, x.n)
		w.check.ends(m.c, lineOfKey(p.key))
		a.own(w, p.key, nil)
	}
	for i := range a.jobs {
		if j := a.jobs[i]; j.c == m.c && !j.ended {
			a.jobs[i].ended, a.jobs[i].revoked = true, true
			if j.step > 0 && hasSafe[j.key] && !a.local {
				w.check.ends(m.c, lineOfKey(j.key))
				a.own(w, j.key, nil)
			}
			break
		}
	}
	var last *outcome
	for i := range a.mem.done {
		if o := &a.mem.done[i]; o.c == m.c && o.result != isFailed {
			last = o
		}
	}
	if last != nil {
		if a.card.outcome(m.c, last.attempt) != nil {
			a.tell(w, *last)
		}
		return
	}
	w.say1("the board cancels n%d #%d", p.n, p.c.id)
	a.finish(w, p, isCancelled, 0)
}

package order

import "slices"

// A place is one attempt at the board.
type place struct {
	c       *command
	n       int
	attempt int
	key     int
	session int // in which it was offered last
	run     int // the gateway's process that did
}

// An outcome is what became of an attempt.
type outcome struct {
	place
	result result
	by     int
}

// A disk is what the board's journal holds.
type disk struct {
	marks   [keys]int // what is lower and away from safe has no place any more
	begun   [keys]int // the highest number begun
	floors  [keys]int // what is not above is ended by an act
	holds   [keys]int
	frees   [keys]int
	queue   []place
	running []place
	done    []outcome
	acts    []act
	tops    []process // for each process of the gateway the highest number that it has told
	epoch   int
	card    int
}

func (d *disk) clone() disk {
	c := *d
	c.tops = slices.Clone(d.tops)
	c.queue, c.running, c.done, c.acts = slices.Clone(d.queue), slices.Clone(d.running), slices.Clone(d.done), slices.Clone(d.acts)
	return c
}

func (d *disk) outcome(c *command, attempt int) *outcome {
	for i := range d.done {
		if o := &d.done[i]; o.c == c && (o.attempt == attempt || o.result == isCancelled) {
			return o
		}
	}
	return nil
}

// driven says that a towards safe stands there as done.
func (d *disk) driven(c *command) bool {
	return c != nil && slices.ContainsFunc(d.done, func(o outcome) bool { return o.c == c && o.result == isDone })
}

func (d *disk) drop(c *command) {
	d.queue = slices.DeleteFunc(d.queue, func(p place) bool { return p.c == c })
}

func (d *disk) finish(o outcome) {
	d.drop(o.c)
	d.running = slices.DeleteFunc(d.running, func(p place) bool { return p.c == o.c })
	d.done = append(d.done, o)
	if o.run > 0 {
		d.raise(o.n, o.run)
	}
}

// A record is written in order; what it allows happens when it is durable.
type record struct {
	do   func(*disk)
	then func()
}

// keep is a line that waits for the retry of what failed.
type keep struct{ n, until int }

type lease struct {
	c   *command
	n   int
	end int
}

type board struct {
	mem     disk // with what is not durable yet
	card    disk
	pending []record
	hang    bool

	jobs      []job
	driven    [keys]int // the owner's: the highest number at the pin
	keeps     [keys]keep
	leases    [keys]lease
	session   int
	sessions  int
	born      int // sessions up to this one were of an earlier process
	connected bool
	told      int // the highest number that the primary path has told
	toldRun   int // and the process that did
	heardAt   int
	helloAt   int
	loss      bool
	local     bool
	acts      int
	lastActs  int
}

func (a *board) idle() bool {
	return len(a.mem.queue) == 0 && len(a.jobs) == 0 && len(a.pending) == 0 && len(a.mem.acts) == 0
}

// write appends a record.
func (a *board) write(do func(*disk), then func()) {
	do(&a.mem)
	a.pending = append(a.pending, record{do, then})
}

// flush makes the records durable, unless the journal hangs.
func (a *board) flush() {
	if a.hang {
		return
	}
	list := a.pending
	a.pending = nil
	for _, r := range list {
		r.do(&a.card)
		if r.then != nil {
			r.then()
		}
	}
}

func (a *board) connect(w *world) {
	a.sessions++
	a.session, a.connected, a.helloAt = a.sessions, false, never
	// a connection takes with it what was on its way to the board
	w.net = slices.DeleteFunc(w.net, func(m message) bool { return m.toBoard && !m.compact })
}

// crash ends the process; of what was not durable a part is written all the
// same. Outputs with a safe level are set at the start.
func (a *board) crash(w *world, wipe bool) {
	k := w.r.IntN(len(a.pending) + 1)
	w.say1("the board crashes; another journal: %v; %d of %d records are written", wipe, k, len(a.pending))
	for _, r := range a.pending[:k] {
		r.do(&a.card)
	}
	if wipe {
		a.card = disk{card: a.card.card + 1}
	}
	local, hang, sessions, acts := a.local, a.hang, a.sessions, a.acts
	w.check.crashed(a, wipe)
	*a = board{card: a.card, mem: a.card.clone(), local: local, hang: hang, sessions: sessions, born: sessions, acts: acts, heardAt: w.t}
	a.driven = a.mem.begun
	for _, p := range slices.Clone(a.mem.running) {
		a.finish(w, p, isCut, 0)
	}
	for key := range keys {
		if hasSafe[key] {
			a.own(w, key, nil)
		}
	}
	if a.local {
		a.act(w, -1, 0, false)
		w.check.localOn(a.acts)
	}
	w.g.connected = false
	if w.up {
		a.connect(w)
	}
}

// finish writes how an attempt ended, and tells it then.
func (a *board) finish(w *world, p place, r result, by int) {
	o := outcome{p, r, by}
	w.check.finishing(o)
	a.write(func(d *disk) { d.finish(o) }, func() { a.tell(w, o) })
}

func (a *board) tell(w *world, o outcome) {
	if o.result == isReceived && o.session != a.session && w.rule.OfferedEver {
		o.result = isWaiting
	}
	w.send(message{kind: report, session: a.session, c: o.c, n: o.n, attempt: o.attempt, key: o.key, result: o.result, by: o.by, run: o.run, compact: o.c == nil})
}

// tick is what the board does by itself.
func (a *board) tick(w *world) {
	a.flush()
	if !a.connected && w.up && w.t-a.helloAt >= resend && a.session > 0 {
		a.helloAt = w.t
		w.send(message{kind: hello, session: a.session, tops: slices.Clone(a.mem.tops), card: a.mem.card, holds: a.mem.holds, frees: a.mem.frees})
	}
	if a.connected && w.t-a.lastActs >= resend {
		a.lastActs = w.t
		for _, x := range a.card.acts { // not before it is durable
			w.send(message{kind: actTold, session: a.session, act: x})
		}
	}
	if a.connected && w.t%repeat == 0 {
		for _, p := range a.mem.queue {
			if !a.offered(w, p) {
				a.tell(w, outcome{p, isWaiting, 0})
			}
		}
	}
	a.owner(w)
	a.work(w)
	a.begin(w)
	a.flush()
	a.work(w)
}

// begin takes from the queue what may begin: the oldest of each line.
func (a *board) begin(w *world) {
	for i := 0; i < len(a.mem.queue); {
		p := a.mem.queue[i]
		switch {
		case p.n <= a.mem.floors[p.key]:
			a.finish(w, p, isEnded, 0)
			i = 0
		case p.n < a.mem.marks[p.key] && w.rule.Marks:
			a.finish(w, p, isSuperseded, a.mem.marks[p.key])
			i = 0
		case p.c.until > 0 && w.t > p.c.until:
			a.finish(w, p, isExpired, 0)
			i = 0
		case a.ready(w, p):
			a.start(w, p)
			i = 0
		default:
			i++
		}
	}
}

// offered says that a place may begin as far as sessions go.
func (a *board) offered(w *world, p place) bool {
	return !w.rule.Offered || p.session > a.born && (p.session == a.session || !w.rule.OfferedEver)
}

func (a *board) ready(w *world, p place) bool {
	k := a.keeps[p.key]
	free := w.t > k.until && w.rule.KeepBounded || k.n == 0 || k.n == p.n || !w.rule.KeepLine
	for _, q := range a.mem.queue {
		if q.key == p.key && q.n < p.n && a.offered(w, q) {
			return false
		}
	}
	for _, j := range a.jobs {
		if j.key == p.key {
			return false
		}
	}
	for _, x := range a.mem.acts {
		if x.key < 0 && w.rule.ActEndsEarlier || x.key == p.key && w.rule.CompactAsks {
			return false
		}
	}
	return a.offered(w, p) && free && !a.local && !(w.rule.LossIsState && a.loss && fallsOff[p.key]) && len(a.jobs) < workers
}

// start writes the mark and the start first; the worker drives after that.
func (a *board) start(w *world, p place) {
	w.say1("the board starts n%d #%d", p.n, p.c.id)
	w.check.starts(a, p)
	a.keeps[p.key] = keep{}
	a.jobs = append(a.jobs, job{place: p, sub: p.c.sub})
	first := true // the memory is told, the disk only if the clause is in force
	a.write(func(d *disk) {
		d.drop(p.c)
		d.running = append(d.running, p)
		if first || w.rule.MarksWritten {
			d.marks[p.key], d.begun[p.key] = max(d.marks[p.key], p.n), max(d.begun[p.key], p.n)
		}
		first = false
	}, func() {
		for i := range a.jobs {
			if a.jobs[i].c == p.c {
				a.jobs[i].ready = true
			}
		}
	})
}

// raise notes the highest number that a process has told.
func (d *disk) raise(n, run int) {
	for i := range d.tops {
		if t := &d.tops[i]; t.id == run {
			t.most = max(t.most, n)
			return
		}
	}
	d.tops = append(d.tops, process{run, n})
}

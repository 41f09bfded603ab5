package explore

import (
	"slices"

	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// boards is what the checker knows of the boards beside their outputs: watches,
// LOCAL switches, and since when nothing keeps an instruction from starting.
type boards struct {
	watches map[wire.Token]*watchFact
	local   map[*agent][]turned
	arrived map[wire.Token]arrival
	open    map[*agent]moment        // the agent has been able to begin something since
	keeps   map[*agent]time.Duration // until then it may keep lines for another attempt
	throws  throws
}

// watchFact is a watch that was begun.
type watchFact struct {
	by       *agent
	input    signal
	from, to time.Duration
}

// turned is a time in which a LOCAL switch was on; to is 0 while it is. The agent had
// waited for syncs as long as syncs when it ended.
type turned struct{ from, to, syncs time.Duration }

// moment is a time, and for how long in all the agent had waited for syncs by then.
type moment struct{ at, syncs time.Duration }

// arrival is when an agent was given a token: first of all, and by its process that
// runs.
type arrival struct {
	first time.Duration
	local bool // the agent knew then that its LOCAL switch was on
	life  *identity
	moment
}

func newBoards() boards {
	return boards{watches: map[wire.Token]*watchFact{}, local: map[*agent][]turned{}, arrived: map[wire.Token]arrival{}, open: map[*agent]moment{}, keeps: map[*agent]time.Duration{}, throws: newThrows()}
}

const (
	// handSlack is how long after its turn a LOCAL switch may be overlooked.
	handSlack = handEvery*time.Millisecond + stepSlack
	// startSlack is how long an instruction may wait for which everything is free: a
	// few rounds, and the way of the result that made it so.
	startSlack = 100 * time.Millisecond
	// offeredBound is how long an offer may take that is lost once: four times the wait
	// for a confirmation, as after a bad ten minutes, and the way.
	offeredBound = 30 * time.Second
)

// begunWatch notes a watch.
func (c *checker) begunWatch(a *agent, x *work) {
	n := 1
	for _, o := range a.works {
		if o.watching != nil && c.w.now-o.begun <= o.Timeout+executor.OverdueAfter { // or it was given up
			n++
		}
	}
	if n > executor.MaxWatches {
		c.fail("watches", "%s runs %d watches", a.id, n)
	}
	c.boards.watches[x.Token] = &watchFact{by: a, input: signalOf(c.w, a.id, x.pin), from: c.w.now}
}

// opened notes that something that kept an agent from beginning work is over.
func (c *checker) opened(a *agent) { c.boards.open[a] = moment{c.w.now, a.syncs} }

// finishedWork notes the end of a work as far as watches and workers go.
func (c *checker) finishedWork(a *agent, x *work) {
	if f := c.boards.watches[x.Token]; f != nil {
		f.to = c.w.now
		return
	}
	c.opened(a)
}

// behindLimit reports whether an older instruction of the node with a time limit has not
// begun: it may have held its line until its time was over, because the agent was in
// doubt about the time.
func (c *checker) behindLimit(a *agent, x *work) bool {
	for seq, i := range c.book.insts {
		if i.Node != a.id || i.NotAfter == 0 || seq >= x.Seq || i.StartedAt != 0 {
			continue
		}
		act, err := wire.ParseAct(i.Intent, i.Args)
		if err != nil || act.Moves() && (act.Holds == wire.HoldsBoard || x.pin == "" || slices.Contains(act.Pins, x.pin)) {
			return true
		}
	}
	return false
}

// actuates checks the start of what moves something.
func (c *checker) actuates(a *agent, x *work, limit bool) {
	if list := c.boards.local[a]; a.local && !x.Towards && c.w.now-list[len(list)-1].from > handSlack {
		c.fail("local", "%s starts instruction %d (%s on %s), and its LOCAL switch has been on since %v", a.tag, x.Seq, x.Intent, x.pin, list[len(list)-1].from)
	}
	if !x.Towards && c.lost(a) {
		c.fail("autonomy", "%s starts instruction %d (%s on %s), and the gateway has been gone since %v (window %v)", a.tag, x.Seq, x.Intent, x.pin, c.pins.contact[a].lostAt, a.autonomy)
	}
	for _, o := range a.works {
		if o.watching == nil {
			return // something else takes a worker, or a pin
		}
	}
	came, ok := c.boards.arrived[x.Token]
	if !ok || came.life != a.life || limit || a.copies > 0 || a.link.drop > 0 && a.boots > 1 || c.w.now < c.boards.keeps[a] { // one that begins anew lets go of what it was given before
		return
	}
	since := came.moment
	if o := c.boards.open[a]; o.at > since.at {
		since = o
	}
	since = c.offeredLate(a, x, since)
	if wait := c.w.now - since.at - (a.syncs - since.syncs); wait > startSlack && !c.behindLimit(a, x) {
		c.fail("waits", "%s starts instruction %d %v after it could, beside syncs; %d works run, all of them watches", a.tag, x.Seq, wait, len(a.works))
	}
}

// hasIt notes that the gateway has on disk that a board has an attempt, or that it has not.
func (c *checker) hasIt(i *engine.Instruction) {
	if i.ReceivedAt == 0 {
		delete(c.orders.has, i.Token)
	} else if _, ok := c.orders.has[i.Token]; !ok {
		c.orders.has[i.Token] = c.w.now
	}
}

// offeredLate demands that what a board has, as is on disk, is offered to it in each
// session, whatever path has told it. It returns since when it could have begun.
func (c *checker) offeredLate(a *agent, x *work, since moment) moment {
	at := c.orders.offeredAt[x.Token]
	if at.at <= since.at {
		return since
	}
	has, ok := c.orders.has[x.Token]
	if wait := at.at - max(since.at, has); ok && wait > offeredBound && !c.memory.stands[alarmOf{"twin", a.id}] {
		c.fail("waits", "instruction %d is in %s, which has told so, and is offered to it in this session %v after that", x.Seq, a.tag, wait)
	}
	return at
}

// switched notes a LOCAL switch.
func (c *checker) switched(a *agent, on bool) {
	if on {
		c.boards.local[a] = append(c.boards.local[a], turned{from: c.w.now})
		return
	}
	last := &c.boards.local[a][len(c.boards.local[a])-1]
	last.to, last.syncs = c.w.now, a.syncs
}

// arrives notes that an agent is given a token.
func (c *checker) arrives(a *agent, m *wire.Instruction) {
	came, ok := c.boards.arrived[m.Token]
	if ok && came.life == a.life {
		return
	}
	if !ok {
		came.first, came.local = c.w.now, a.localTaken
	}
	came.life, came.moment = a.life, moment{c.w.now, a.syncs}
	c.boards.arrived[m.Token] = came
}

// handResult holds a result against the LOCAL switch.
func (c *checker) handResult(a *agent, seq uint64, t wire.Token, code wire.Code) {
	came, known := c.boards.arrived[t]
	list := c.boards.local[a]
	if code == wire.CodeLocal {
		for _, s := range list {
			// A loop that waited for its disk takes in late that the switch is off.
			if s.to == 0 || s.to+handSlack+a.syncs-s.syncs >= came.first {
				return
			}
		}
		if c.mayBeThrown(a, seq) {
			return
		}
		c.fail("false-local", "%s refuses instruction %d because of its LOCAL switch, which has been off since it came", a.id, seq)
	}
	if known && came.local && a.local && list[len(list)-1].from < came.first && (code == wire.CodeExpired || code == wire.CodeResources) && actuating(c.book.insts[seq].Intent) {
		c.fail("local", "%s refuses instruction %d with %v; it came while the LOCAL switch was on", a.id, seq, code)
	}
}

func actuating(intent string) bool {
	return !wire.TraitsOf(intent).Still
}

// edgesOf is how many edges an input has had, and how many of them were lost.
func (s signal) edgesOf(from, to time.Duration) (seen, missed uint64) {
	for k := int64(from/s.period) - 1; ; k++ {
		at, lost := s.edge(k)
		switch {
		case at > to:
			return seen, missed
		case at <= from:
		case lost:
			missed++
		default:
			seen++
		}
	}
}

// sight is what a report of a watch says.
type sight struct{ listed, total, unlisted, missed uint64 }

func sightOf(payload wire.RawMap) (s sight) {
	m, err := wire.DecodeMap(payload)
	if err != nil {
		return s
	}
	edges, _ := m["edges"].([]any)
	s.listed = uint64(len(edges))
	s.total, _ = m["total"].(uint64)
	s.unlisted, _ = m["unlisted"].(uint64)
	s.missed, _ = m["missed"].(uint64)
	return s
}

// finalWatch holds what the log has of a watch against what happened at its input.
func (c *checker) finalWatch(i *engine.Instruction, entries []engine.Entry) {
	f := c.boards.watches[i.Token]
	if f == nil || i.Code != wire.CodeOK || c.memory.older || c.copies[i.Node] > 0 || c.wipes[i.Node] {
		return
	}
	s := sightOf(i.Payload)
	listed := s.listed
	for k := range entries {
		if e := &entries[k]; e.What == engine.WhatProgress && e.Token == i.Token {
			listed += sightOf(e.Payload).listed
		}
	}
	c.w.counts.Edges += int(listed)
	seen, missed := f.input.edgesOf(f.from, f.to)
	if s.total != seen || s.missed != missed {
		c.fail("edges", "instruction %d tells of %d edges and %d missed ones from %v to %v; there were %d and %d", i.Seq, s.total, s.missed, f.from, f.to, seen, missed)
	}
	if listed+s.unlisted != s.total {
		c.fail("edges", "instruction %d tells of %d edges, its timeline and its result list %d, and %d are said to be left out", i.Seq, s.total, listed, s.unlisted)
	}
}

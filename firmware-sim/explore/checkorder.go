package explore

import (
	"slices"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/round"
	"github.com/apollo-11/apollo11/wire"
)

// orders is what the checker knows of the order at lines, and of the way to safe.
type orders struct {
	numbers   map[numberOf]uint64          // the instruction that has it
	limits    map[uint64]int64             // the latest limit with which an instruction was sent
	ends      map[uint64]int64             // by when its lease must have ended
	offs      []*off                       // that have not been driven, told, or stood for
	shared    map[int]string               // submissions that an equal one stands for -> its task
	offered   map[wire.Token]offer         // the process to which it was handed out, or which was asked after it, last
	offeredAt map[wire.Token]moment        // when it was first, there and in that session
	has       map[wire.Token]time.Duration // since when the gateway has on disk that its board has it
	whispered map[attemptKey]wire.Code     // ends that were told over narrowband
	held      map[string]map[string]bool   // by node and pin: by a gpio.safe that was taken, until a release was
	ahead     aheads
	ticking   bool                     // somebody looks at offs
	toldTo    map[*agent]int64         // the latest time of the gateway that earlier processes can have known
	known     map[string]time.Duration // nodes that have said hello, since when that is on disk
}

func newOrders() orders {
	return orders{ahead: aheads{out: map[uint64]engine.Instruction{}, lost: map[wire.Token]uint64{}, drove: map[uint64]bool{}, refused: map[wire.Token]bool{}, unmet: map[string]bool{}}, numbers: map[numberOf]uint64{}, limits: map[uint64]int64{}, ends: map[uint64]int64{}, shared: map[int]string{}, known: map[string]time.Duration{}, toldTo: map[*agent]int64{}, offered: map[wire.Token]offer{}, offeredAt: map[wire.Token]moment{}, has: map[wire.Token]time.Duration{}, whispered: map[attemptKey]wire.Code{}, held: map[string]map[string]bool{}}
}

// off is something towards safe that is owed.
type off struct {
	seq   uint64
	trace wire.Trace
	a     *agent
	reach time.Duration // for how long without a break nothing has been in its way
	path  pathway
}

// pathway is everything between the gateway's log and a board: while it stays the same
// and open, what is towards safe needs no more than its bound.
type pathway struct {
	gateway, board *identity
	conn           *conn
}

const (
	// offEvery is how often it is looked at what is owed.
	offEvery = 200 * time.Millisecond
	// offBound is how long something towards safe may take over an open path: a second
	// beyond the round trip, and the steps of looking.
	offBound = time.Second + 2*offEvery
)

// copyWithin is how long after a refusal by the LOCAL switch the next copy comes that a
// hanging loop does not take either.
const copyWithin = 6 * time.Second

// orderOf is the number of an instruction, as it is on disk.
func (c *checker) orderOf(i *engine.Instruction) uint64 {
	if i.Order != 0 {
		return i.Order
	}
	return i.Seq
}

// instOf is the instruction that a token was given out for.
func (c *checker) instOf(seq uint64, t wire.Token) engine.Instruction {
	if _, lost := c.memory.lost[t]; lost {
		return c.memory.orders[seq]
	}
	return c.book.insts[seq]
}

// inOrder demands that nothing older moves a line than what has moved it, and that a
// number stands for one instruction.
func (c *checker) inOrder(a *agent, x *work, p *pinDef, f *lineFact, order uint64) {
	if order < f.stood && x.begun > f.stoodAt && !x.Towards && x.frame == 0 {
		c.fail("spared", "instruction %d (number %d) moves %s of %s, and the board has ended number %d towards safe there", x.Seq, order, p.name, a.tag, f.stood)
	}
	switch {
	case order < f.ahead && !x.Towards && x.frame == 0:
		c.fail("order", "instruction %d (number %d) moves %s of %s after number %d, which went ahead of its record", x.Seq, order, p.name, a.tag, f.ahead)
	case order < f.mark && (x.Towards || x.frame != 0) && f.off >= f.mark:
		// Both lead to safe: what was driven past a hanging loop may have left no mark.
	case order < f.mark:
		c.fail("order", "instruction %d (number %d) moves %s of %s after number %d, which is newer", x.Seq, order, p.name, a.tag, f.mark)
	case x.frame == 0 && order == f.mark && f.markOf != x.Seq && !c.memory.older:
		c.fail("number-twice", "instructions %d and %d have both the number %d at %s of %s", x.Seq, f.markOf, order, p.name, a.tag)
	}
}

// begun demands that nothing begins of which it was told that it would not.
func (c *checker) begun(a *agent, x *work) {
	if r := c.runs[x.Token]; r != nil {
		r.acted = true
	}
	i := c.instOf(x.Seq, x.Token)
	if late := c.surelyLate(a, max(i.NotAfter, c.orders.limits[x.Seq])); x.Towards && i.NotAfter != 0 && late > 0 {
		c.fail("late", "instruction %d is driven %v too late by %s, which knows that", i.Seq, late, a.id)
	}
	if i.NotAfter != 0 && !x.Towards {
		if late, _ := c.lateBy(a, i.NotAfter); late > 0 {
			c.fail("late", "instruction %d reaches its pin at %s %v too late", i.Seq, a.id, late)
		}
	}
	if !x.Again && i.State == engine.StateCancelled && i.Token == x.Token && (i.By != 0 || i.Code == wire.CodeSuperseded) {
		c.fail("withdrawn", "instruction %d moves a line of %s, and it is on disk as withdrawn (%s)", x.Seq, a.tag, i.Reason)
	}
}

// numberOf is a number in the order at a line: of one node, or of the log.
type numberOf struct {
	order uint64
	node  string
}

// numbered notes the number of an instruction that was handed out: none is given out
// twice. What never left the gateway has told its number nobody; after a restart one
// that is above the log's own, for a node that has seen more, may serve again.
func (c *checker) numbered(i *engine.Instruction) {
	n := c.orderOf(i)
	if i.Attempt == 0 && n != i.Seq {
		return
	}
	c.reused(i, n)
	key := numberOf{n, ""}
	if n != i.Seq {
		key.node = i.Node // above the log's own numbers those of two nodes may be the same
	}
	if o, ok := c.orders.numbers[key]; ok && o != i.Seq && !c.memory.older {
		c.fail("number-twice", "instructions %d and %d have both the number %d", o, i.Seq, n)
	}
	c.orders.numbers[key] = i.Seq
}

// numbersLost notes that a crash has lost records: what had a number above the log's own
// only in those has told it nobody.
func (c *checker) numbersLost() {
	for key, seq := range c.orders.numbers {
		i := c.book.insts[seq]
		if key.node != "" && (i.Attempt == 0 || c.orderOf(&i) != key.order) {
			delete(c.orders.numbers, key)
		}
	}
}

// overlaps demands that nothing runs beside what holds the same line, or is another
// attempt of the same instruction. What is towards safe waits for neither.
func (c *checker) overlaps(a *agent, x *work) {
	for _, t := range sortedTokens(a.works) {
		o := a.works[t]
		if o.Seq == x.Seq && !x.Again {
			c.fail("overlap", "%s starts token %v of instruction %d, and token %v of it still runs", a.id, x.Token, x.Seq, o.Token)
		}
		if x.Towards || o.Towards || !holds(o) || !holds(x) {
			continue
		}
		shared := slices.ContainsFunc(x.Lines, func(l wire.LineKey) bool { return slices.Contains(o.Lines, l) })
		if shared || o.act.Holds == wire.HoldsBoard || x.act.Holds == wire.HoldsBoard {
			c.fail("overlap", "%s starts instruction %d (%s on %s), and instruction %d (%s on %s) still holds a line of it", a.id, x.Seq, x.Intent, x.pin, o.Seq, o.Intent, o.pin)
		}
	}
}

func holds(x *work) bool { return x.act.Holds != wire.HoldsNothing }

func sortedTokens(m map[wire.Token]*work) []wire.Token {
	list := make([]wire.Token, 0, len(m))
	for t := range m {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b wire.Token) int {
		if a.Seq != b.Seq {
			return int(int64(a.Seq) - int64(b.Seq))
		}
		return int(a.Shard) - int(b.Shard)
	})
	return list
}

// towards reports whether an instruction only leads to safe levels on a board, whatever
// a reload has made of its names: then the rules for the way to safe hold.
func towardsOn(a *agent, i *engine.Instruction) (lines []wire.LineKey, ok bool) {
	act, err := wire.ParseAct(i.Intent, i.Args)
	if err != nil || !act.Towards(a.pins.m.safe) || act.Safe && len(act.Pins) == 1 && !a.pins.m.byName[act.Pins[0]].isGuarded() {
		return nil, false
	}
	for _, p := range a.pins.m.of(act) {
		lines = append(lines, p.line)
	}
	return lines, len(lines) > 0
}

func (p *pinDef) isGuarded() bool { return p != nil && p.hasSafe }

// owed notes something towards safe that is on disk now.
func (c *checker) owed(i *engine.Instruction) {
	a := c.w.byNode[i.Node]
	if a == nil || a.link.drop > 0 || c.memory.older {
		return // single messages vanish: then it is only bound to arrive some day
	}
	if _, ok := towardsOn(a, i); !ok {
		return
	}
	c.orders.offs = append(c.orders.offs, &off{seq: i.Seq, trace: i.Trace, a: a})
	c.ticks()
}

// lookAtOffs demands that what is owed is driven, told or stood for in time.
func (c *checker) lookAtOffs() {
	c.orders.offs = slices.DeleteFunc(c.orders.offs, func(o *off) bool { return !c.stillOwed(o) })
	c.keeps.list = slices.DeleteFunc(c.keeps.list, func(k *kept) bool { return !c.letGo(k) })
	c.pace.stops = slices.DeleteFunc(c.pace.stops, func(s *stop) bool { return !c.stillToStop(s) })
	c.orders.ticking = len(c.orders.offs)+len(c.keeps.list)+len(c.pace.stops) > 0
	if c.orders.ticking {
		c.w.after(offEvery, c.lookAtOffs)
	}
}

func (c *checker) stillOwed(o *off) bool {
	i, may := c.asItIs(o)
	lines, ok := towardsOn(o.a, &i)
	if !ok || i.Trace != o.trace || i.State.Settled() || i.By != 0 || i.CancelBy != "" || i.Seq == 0 || o.a.retired || o.a.second != nil || o.a.copies > 0 {
		return false
	}
	if i.NotAfter != 0 && c.w.gateway.clock.wall() >= i.NotAfter {
		return false // it is not owed any more; a loop that hangs tells so later
	}
	driven := true
	for _, l := range lines {
		f := c.line(o.a, l)
		driven = driven && max(f.off, f.mark) >= c.orderOf(&i)
	}
	if driven || c.heardOf(o.seq) || c.w.reloads && c.orders.ahead.drove[c.orderOf(&i)] {
		return false
	}
	p, open := c.pathOf(o.a)
	if !may || !open || p != o.path || c.orders.ahead.refused[i.Token] && len(c.w.gateway.jobs) > 0 {
		o.path, o.reach = p, 0
		return true
	}
	if o.reach += offEvery; o.reach > offBound {
		c.fail("safe-late", "instruction %d (%s, number %d) is towards safe; nothing has been between its gateway and %s for %v, and it is %v, neither driven nor told", o.seq, i.Intent, c.orderOf(&i), o.a.tag, o.reach, i.State)
	}
	return true
}

// heardOf reports whether a board has told how an instruction ended, or has begun it.
func (c *checker) heardOf(seq uint64) bool {
	return slices.ContainsFunc(c.bySeq[seq], func(r *run) bool { return r.acted || r.code != wire.CodeNone })
}

// pathOf reports whether the way from the gateway to a board is open.
func (c *checker) pathOf(a *agent) (p pathway, open bool) {
	g, l := c.w.gateway, a.link
	p = pathway{g.process, a.life, l.brokerEnd}
	open = g.process != nil && a.life != nil && l.brokerEnd != nil && l.agentEnd == l.brokerEnd && !l.agentEnd.torn && c.knows(a).in == l.agentEnd.session &&
		c.w.now >= max(l.holdUntil, l.holeUntil, l.halfUp, l.halfDown, l.slowUntil, g.fullUntil) && len(g.blind) == 0 && g.held < round.Held && !a.local && c.w.now-c.localOver(a) > copyWithin &&
		max(l.brokerEnd.up.last, l.brokerEnd.down.last) <= c.w.now+offEvery // nothing is still held back
	return p, open
}

// mayRefuse reports whether a refusal at the door is a fair one.
func (c *checker) mayRefuse(p *submission, r *engine.Refusal) bool {
	act, err := wire.ParseAct(p.spec.Intent, p.spec.Args)
	if err != nil {
		return false
	}
	safe := act.Towards(c.w.startMap.safe) && !c.w.reloads
	for _, n := range p.spec.Nodes {
		at, known := c.orders.known[n] // before its first hello nobody knows its safe levels
		safe = safe && known && c.w.now-at > time.Second
	}
	switch r.Kind {
	case engine.RefusedNoNode:
		return true
	case engine.RefusedCapacity:
		return c.w.gateway.tight && !safe
	case engine.RefusedHeld:
		return !safe && act.Moves()
	}
	return false
}

// sharesTask reports whether a submission may be answered with the task of another one:
// an equal one towards safe.
func (c *checker) sharesTask(p *submission, t *engine.Task) bool {
	act, err := wire.ParseAct(p.spec.Intent, p.spec.Args)
	return err == nil && act.Towards(func(pin string) (bool, bool) { return c.w.startMap.safe(pin) }) || c.w.reloads &&
		t.Spec.Intent == p.spec.Intent && string(t.Spec.Args) == string(p.spec.Args)
}

// refusals holds the code of a result against what is fair: no easy way out.
func (c *checker) refusals(a *agent, seq uint64, t wire.Token, code wire.Code) {
	r := c.runs[t]
	i := c.instOf(seq, t)
	switch code {
	case wire.CodeResources:
		if act, _ := wire.ParseAct(i.Intent, i.Args); !act.Watch || len(c.boards.watches) < 60 {
			c.fail("easy-out", "%s refuses instruction %d for want of room; what does not fit waits", a.id, seq)
		}
	case wire.CodeBusy, wire.CodeIO, wire.CodeDependency, wire.CodeTimeout, wire.CodeFailed:
		if r == nil && !c.memory.unsure[t] && !c.wipes[a.id] {
			c.fail("easy-out", "%s says %v of token %v of instruction %d, and has not tried it", a.id, code, t, seq)
		}
	case wire.CodeExpired:
		c.falseExpired(a, &i, t)
	case wire.CodeSuperseded:
		// What is towards safe may have been driven past a loop that hung.
		if r != nil && r.acted && !r.towards && !c.memory.unsure[t] {
			c.fail("false-refusal", "%s says that token %v of instruction %d was not begun (superseded), and it was", a.id, t, seq)
		}
	case wire.CodeHeldSafe:
	}
}

// falseExpired demands that a limit had passed by any time that the agent was told.
func (c *checker) falseExpired(a *agent, i *engine.Instruction, t wire.Token) {
	k := c.knows(a)
	if i.NotAfter == 0 {
		c.fail("false-expired", "%s refuses instruction %d as expired, and it has no limit", a.id, i.Seq)
		return
	}
	if c.saidCode[t] == wire.CodeExpired || !k.heard {
		return // it says it again, after a restart
	}
	c.saidCode[t] = wire.CodeExpired
	now := max(k.most+a.clock.mono().Milliseconds(), k.least+a.clock.mono().Milliseconds(), c.orders.toldTo[a])
	if left := time.Duration(i.NotAfter-now)*time.Millisecond - stepSlack; left > 0 {
		c.fail("false-expired", "%s refuses instruction %d as expired, and by no time that it was told has its limit passed: %v are left", a.id, i.Seq, left)
	}
}

// stoodFor checks that what is withdrawn has not begun, and that what stands for it is
// newer and on the same board.
func (c *checker) stoodFor(i *engine.Instruction) {
	if c.memory.older || c.byHand[i.Seq] != (hand{}) {
		return
	}
	if o := c.book.last(i.By); i.By != 0 && (o.Node != i.Node || c.orderOf(&o) <= c.orderOf(i)) {
		c.fail("false-cancel", "instruction %d (number %d) is CANCELLED because instruction %d (number %d of %s) stands for it", i.Seq, c.orderOf(i), i.By, c.orderOf(&o), o.Node)
	}
	for _, r := range c.bySeq[i.Seq] {
		known := r.code.Class()
		if r.token != i.Token && r.acted && (known == wire.ClassProgress || known == wire.ClassUnknown || known == wire.ClassSuccess) && !c.memory.unsure[r.token] {
			c.fail("false-cancel", "instruction %d is CANCELLED, and its attempt %v was executed (%v)", i.Seq, r.token, r.code)
		}
	}
}

// attemptKey names an attempt on a board.
type attemptKey struct {
	board   *agent
	seq     uint64
	attempt uint8
}

// offer is where an attempt was handed out or asked after: the process, and the session
// that the gateway had welcomed.
type offer struct {
	life    *identity
	session uint64
}

// offers notes what the gateway hands out in a session, or asks after.
func (c *checker) offers(a *agent, m wire.Message) {
	here := offer{a.life, c.knows(a).in}
	note := func(t wire.Token) {
		if c.orders.offered[t] != here {
			c.orders.offered[t], c.orders.offeredAt[t] = here, moment{c.w.now, a.syncs}
		}
	}
	switch m := m.(type) {
	case *wire.Instruction:
		note(m.Token)
	case *wire.Query:
		for _, r := range m.Refs {
			note(r.Token)
		}
	}
}

// standsFor notes the end of something towards safe, whatever it is: nothing older
// begins on its lines any more.
func (c *checker) standsFor(a *agent, seq uint64, t wire.Token) {
	i := c.instOf(seq, t)
	lines, ok := towardsOn(a, &i)
	if !ok || c.w.reloads || c.memory.older || a.second != nil {
		return
	}
	if _, came := c.boards.arrived[t]; !came {
		return // its cancel was faster, and does not say what it would have stood for
	}
	for _, l := range lines {
		f := c.line(a, l)
		if n := c.orderOf(&i); n > f.stood {
			f.stood, f.stoodAt = n, c.w.now
		}
	}
}

// atTheDoor follows what the gateway has taken of gpio.safe and gpio.release, and demands
// that it takes nothing that leads away from what is held.
func (c *checker) atTheDoor(i *engine.Instruction) {
	act, err := wire.ParseAct(i.Intent, i.Args)
	if err != nil || c.w.reloads || c.memory.older || !wire.BuiltIn(i.Intent) {
		return
	}
	h := c.orders.held[i.Node]
	if h == nil {
		h = map[string]bool{}
		c.orders.held[i.Node] = h
	}
	for _, p := range c.w.startMap.of(act) {
		switch {
		case act.Traits.Safe:
			h[p.name] = true
		case act.Sets && p.hasSafe && (p.away(act.Level) || act.Pulse) && h[p.name]:
			c.fail("held-door", "instruction %d (%s) leads %s of %s away from its safe level, and a gpio.safe holds it", i.Seq, i.Intent, p.name, i.Node)
		}
	}
	for n := range h {
		if act.Release && (len(act.Pins) == 0 || slices.Contains(act.Pins, n)) {
			h[n] = false
		}
	}
}

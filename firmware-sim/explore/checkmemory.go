package explore

import (
	"maps"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// memories is what the checker knows of memories that were lost or doubled.
type memories struct {
	// Of a gateway whose log was restored. What was given out after the copy was
	// made is still known here.
	older    bool
	noticed  bool                          // the gateway has told of it
	lost     map[wire.Token]attemptOf      // given out, and not in the copy
	orders   map[uint64]engine.Instruction // what those instructions were
	none     map[uint64]bool               // instructions that the copy does not have
	gone     map[uint64][]*run             // and their executions
	redone   map[uint64]bool               // those that an operator had retried
	numbers  map[string]map[uint64]bool    // by node: token numbers that it may know
	kept     map[wire.Token]attemptOf      // in the copy
	returned map[string]bool               // nodes that have said hello since
	tops     map[string]uint64             // highest token number that they told then

	heard  map[string]voice // by node, the latest sign of life in the process that runs
	due    []due            // alarms that must come
	stands map[alarmOf]bool // conditions that do
	unsure map[wire.Token]bool
	liars  map[string]bool // nodes whose hellos claim what they do not know
	clones map[string]*cloned
}

// alarmOf names an alarm.
type alarmOf struct{ kind, subject string }

// due is an alarm that must come: one of several kinds.
type due struct {
	subject string
	kinds   []string
	why     string
}

// voice is the latest sign of life of the board that the log knows under a name.
type voice struct {
	incarnation, session uint64
	at                   time.Duration
}

func newMemories() memories {
	return memories{lost: map[wire.Token]attemptOf{}, orders: map[uint64]engine.Instruction{}, none: map[uint64]bool{}, gone: map[uint64][]*run{}, redone: map[uint64]bool{},
		numbers: map[string]map[uint64]bool{}, returned: map[string]bool{}, tops: map[string]uint64{},
		heard: map[string]voice{}, stands: map[alarmOf]bool{}, unsure: map[wire.Token]bool{}, liars: map[string]bool{}, clones: map[string]*cloned{}}
}

// impostorWithin is how long after the last word of a board another one under its
// name must not be believed: less than the engine's own time, for words that are
// still on their way to it count here.
const impostorWithin = 10 * time.Second

// copied keeps the book as it is on disk now.
func (c *checker) copied() {
	b := &c.book
	o := newBook()
	o.insts, o.tokens, o.tasks = maps.Clone(b.insts), maps.Clone(b.tokens), maps.Clone(b.tasks)
	o.numbers, o.cursors, o.top = maps.Clone(b.numbers), maps.Clone(b.cursors), b.top
	o.trail = trail{last: b.trail.durable, durable: b.trail.durable, acts: maps.Clone(b.trail.acts)}
	b.copy = &o
}

// restored puts the copy in the place of the book: what was promised since is lost
// for good, and nothing may be done twice for that. It returns the nodes that may
// know of it.
func (c *checker) restored() map[string]bool {
	old, m := c.book, &c.memory
	c.book = *old.copy
	c.book.inThree, c.book.copy = old.inThree, nil
	m.older, m.kept = true, maps.Clone(c.book.tokens)
	c.forgiveLeases(nil)
	blind := map[string]bool{}
	for t, o := range old.tokens {
		if _, ok := c.book.tokens[t]; ok {
			continue
		}
		i := old.insts[o.seq]
		m.lost[t], m.orders[o.seq] = o, i
		if m.numbers[i.Node] == nil {
			m.numbers[i.Node] = map[uint64]bool{}
		}
		m.numbers[i.Node][t.Seq] = true
		blind[i.Node] = true
	}
	for seq := range old.insts {
		if _, ok := c.book.insts[seq]; ok {
			continue
		}
		m.none[seq] = true
		m.redone[seq] = c.byHand[seq].retried // the attempt may be on its way
		delete(c.byHand, seq)
		if runs := c.bySeq[seq]; len(runs) > 0 {
			m.gone[seq] = runs
			delete(c.bySeq, seq)
		}
	}
	for number, id := range c.acked {
		if own, shared := c.book.numbers[number], c.orders.shared[number]; own != id && (shared != id || c.book.tasks[id].ID == "") {
			delete(c.acked, number)
		}
	}
	return blind
}

// forget lets go of tasks that a restored log does not have.
func (c *client) forget() {
	c.known = slices.DeleteFunc(c.known, func(p *submission) bool { return c.w.check.book.numbers[p.number] != p.taskID })
}

// cardRestored notes that an agent's journal is an older copy of itself. If the
// gateway has an event on disk that the copy cannot have, or knows another memory
// of the agent's, it must notice. If it has none, nobody can, and what the agent did
// since may be done again: what is told over narrowband carries no number that a
// card could be held against.
func (c *checker) cardRestored(a *agent) {
	card := a.copied
	was := nodeLife{a.id, card.incarnation, a.copies - 1}
	cur := c.book.cursors[a.id]
	notice := cur.Incarnation != 0 && cur.Incarnation != card.incarnation
	for n := uint64(1); n <= cur.Last && !notice && cur.Incarnation == card.incarnation; n++ {
		e := c.events[eventKey{was, n}]
		r := c.runs[e.token]
		notice = r != nil && r.by == a && (r.at > card.at && e.phase != wire.PhaseReceived || r.over > card.at && e.phase == wire.PhaseProcessed)
	}
	for t, r := range c.runs {
		if r.by == a && r.at > card.at && !notice {
			c.memory.unsure[t] = true
		}
	}
	for t, o := range c.book.tokens {
		if c.book.insts[o.seq].Node == a.id {
			delete(c.reported, t) // it may tell something else now
			c.retold[t] = true
		}
	}
	c.copies[a.id] = a.copies
	c.forgiveLeases(a)
	c.unmarked(a)
	if notice {
		c.mustNotice[a.id] = true
	}
	c.w.log(a.tag, "the gateway can notice: %v", notice)
}

// doubled notes that a second board has appeared under an agent's name.
func (c *checker) doubled(a *agent) {
	c.wipes[a.id] = true
	c.unmarked(a)
}

// gone notes that a board is away for good: what it had to report it may never
// report now.
func (c *checker) gone(a *agent) {
	c.forgiveLeases(a)
	for t, by := range c.saidBy {
		if by == a {
			delete(c.reported, t)
		}
	}
}

// greeted holds a hello that the engine is about to be given against what the log
// knows: some must raise an alarm.
func (c *checker) greeted(node string, m *wire.Hello) {
	mem := &c.memory
	cur := c.book.cursors[node]
	expect := func(why string, kinds ...string) {
		for _, k := range kinds {
			if mem.stands[alarmOf{k, node}] {
				return
			}
		}
		mem.due = append(mem.due, due{node, kinds, why})
	}
	if now := c.lastCursor(node); cur.Incarnation != 0 && cur.Incarnation != m.Incarnation && now.Incarnation == cur.Incarnation {
		expect("it has another memory than the log knows", "agent_reset", "node_refused")
	}
	if c.mustNotice[node] {
		delete(c.mustNotice, node)
		expect("its card is an older copy of itself", "agent_rolled_back", "agent_reset", "node_refused")
	}
	if f := mem.clones[node]; f != nil && m.Nonce == f.real && f.said && m.Session != f.session {
		mem.clones[node] = nil
		expect("two boards with one memory take turns", "twin")
	} else if f != nil && m.Nonce == f.Nonce {
		f.said = true
	}
	if mem.older && !mem.returned[node] {
		mem.returned[node], mem.tops[node] = true, m.TopToken
		if mem.numbers[node][m.TopToken] && !mem.noticed {
			mem.due = append(mem.due, due{"", []string{"log_rolled_back"}, node + " knows numbers that the restored log has not given out"})
		}
		if cur.Incarnation == m.Incarnation && m.First > cur.Last+1 {
			expect("it has let go of events that the restored log does not have", "events_lost")
		}
	}
}

// ofOldLife reports whether a welcome speaks of the events of a life that a node with
// an older card has just ended: its hellos of before and after may come together.
// The new life cannot take that for an acknowledgement.
func (c *checker) ofOldLife(node string, through uint64) bool {
	return c.copies[node] > 0 && through > c.book.cursors[node].Last && through <= c.book.before[node].Last
}

// cloned is the hello of a copy of a board, and what the board itself said before.
type cloned struct {
	wire.Hello
	real, session uint64
	said          bool // the gateway has taken it in
}

// cloned notes that a copy of a board says hello.
func (c *checker) cloned(a *agent, h *wire.Hello) {
	c.memory.clones[a.id] = &cloned{Hello: *h, real: a.lastHello.Nonce, session: a.lastHello.Session}
}

// spoken notes a sign of life of the board that the log knows.
func (c *checker) spoken(node string, incarnation uint64, m wire.Message) {
	v := c.memory.heard[node]
	switch m := m.(type) {
	case *wire.Hello:
		if c.lastCursor(node).Incarnation == incarnation {
			v = voice{incarnation, m.Session, c.w.now}
		}
		if v.session == m.Session {
			v.incarnation = incarnation // in its own session a board may begin anew
		}
	case *wire.Goodbye:
		if m.Session == v.session {
			v = voice{}
		}
	}
	c.memory.heard[node] = v
}

// usurped demands that another board is not believed under the name of one that
// was heard just now.
func (c *checker) usurped(n engine.NodeCursor) {
	v, was := c.memory.heard[n.Node], c.lastCursor(n.Node)
	if at := c.pace.decided(c.w.now); v.at > at {
		return // that was after it
	}
	if was.Incarnation != 0 && was.Incarnation != n.Incarnation && v.incarnation == was.Incarnation && c.w.now-v.at < impostorWithin {
		c.fail("second-board", "another board is believed under the name %s, %v after the one that the log knows was heard", n.Node, c.w.now-v.at)
	}
}

// lastCursor is a node's cursor as it was last written.
func (c *checker) lastCursor(node string) engine.Cursor {
	if cur, ok := c.book.moved[node]; ok {
		return cur
	}
	return c.book.cursors[node]
}

// raised takes an alarm off those that must come.
func (c *checker) raised(a engine.Alarm) {
	mem := &c.memory
	mem.stands[alarmOf{a.Kind, a.Subject}] = a.Raised
	mem.noticed = mem.noticed || a.Raised && a.Kind == "log_rolled_back"
	if a.Raised {
		mem.due = slices.DeleteFunc(mem.due, func(d due) bool {
			return (d.subject == "" || d.subject == a.Subject) && slices.Contains(d.kinds, a.Kind)
		})
	}
}

// finalAlarms demands that what had to be noticed was told.
func (c *checker) finalAlarms() {
	for _, d := range c.memory.due {
		c.fail("unalarmed", "no alarm of %v was raised for %q: %s", d.kinds, d.subject, d.why)
	}
}

// unused demands that a restored log gives out no number to a node that knows it
// already.
func (c *checker) unused(node string, m *wire.Instruction) {
	mem := &c.memory
	if _, kept := mem.kept[m.Token]; mem.older && !kept && m.Token.Seq <= mem.tops[node] {
		c.fail("number-reused", "instruction %d is sent to %s with the token %v, and the node has told that it knows numbers up to %d", m.Seq, node, m.Token, mem.tops[node])
	}
}

// liar notes that an agent lies about the numbers that it knows. That counts for it
// alone.
func (c *checker) liar(a *agent) { c.memory.liars[a.id] = true }

// topToken is the highest token number that was given out.
func (c *checker) topToken() (top uint64) {
	for t := range c.book.tokens {
		top = max(top, t.Seq)
	}
	return top
}

// numbersLeft demands that the word of agents leaves half of the numbers that a compact
// frame can carry, and ends nothing of another node.
func (c *checker) numbersLeft(i *engine.Instruction) {
	if i.Seq > wire.MaxCompactSeq/2 {
		c.fail("numbers", "instruction %d is beyond half of what a compact frame can carry", i.Seq)
	}
	if i.Reason == engine.ReasonRestored && !c.memory.older && !c.memory.liars[i.Node] {
		c.fail("hearsay", "instruction %d of %s is given up as if the log were an older copy, and %s never said so", i.Seq, i.Node, i.Node)
	}
}

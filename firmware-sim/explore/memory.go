package explore

import (
	"time"

	"github.com/apollo-11/apollo11/fieldagent/journal/journaltest"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// story is which memory of a site is lost or doubled beside what the profile does.
// A site has one of them: when two memories of the same thing are gone at once,
// nobody is left who could notice.
type story uint8

const (
	storyNone    story = iota
	storyGateway       // the gateway's log is restored from an older copy; no card is wiped
	storyAgents        // cards of agents are restored from older copies; none is wiped
	storyBoards        // second boards appear under the names of others
	storyLiars         // an agent says in its hellos that it knows numbers which nobody gave it
	stories
)

// drawStory draws the steps of a site's story, from a stream of its own: a seed
// without one stays the run that it was.
func drawStory(w *world, span time.Duration) (list []step) {
	r := w.stream("story")
	if !chance(r, w.profile.Memory) {
		return nil
	}
	w.story = storyNone + 1 + story(r.IntN(int(stories)-1))
	for range 1 + r.IntN(3) {
		s := step{at: when(r, span), kind: secondBoard, who: r.IntN(len(w.agents)), long: between(r, 1_000, 40_000), second: between(r, 50, 6000), p: r.Float64()}
		if w.story == storyLiars {
			s.kind = agentLies
			list = append(list, s)
			continue
		}
		if w.story == storyBoards {
			list = append(list, s)
			for range 3 {
				list = append(list, step{at: s.at + time.Duration(r.Int64N(int64(s.long))), kind: opCancel1, who: r.IntN(len(w.clients)), ref: r.IntN(1 << 20)})
			}
			continue
		}
		from, to := agentCopy, agentRestore
		if w.story == storyGateway {
			from, to = gatewayCopy, gatewayRestore
		}
		later := s
		if d := between(r, 100, 8_000); chance(r, 0.6) && s.at+d < span {
			later.at += d // most of what the copy has is then still under way
		} else {
			later.at += time.Duration(r.Int64N(int64(span - s.at)))
		}
		s.kind, later.kind = from, to
		list = append(list, s, later)
		if w.story == storyGateway {
			break
		}
	}
	return list
}

// hurtMemory does a step of the site's story. Without its copy, which may have been
// left out, there is nothing to restore.
func (w *world) hurtMemory(s *step) {
	g, a := w.gateway, w.agents[s.who]
	switch s.kind {
	case gatewayCopy:
		if g.process != nil {
			g.disk.copy()
			w.check.copied()
		}
	case gatewayRestore:
		g.restore(s)
	case agentCopy:
		switch {
		case s.p < 0.4:
			a.copyWaits = true
		case s.p < 0.7:
			a.copyRuns = true
		default:
			a.copyCard()
		}
	case agentRestore:
		a.restoreCard()
	case secondBoard:
		a.double(s.long)
	case agentLies:
		a.lie(s)
	}
}

// lies is how often an agent that lies says hello: enough to use up every number that
// a compact frame can carry if it were believed each time.
const lies = 20

// lie lets an agent say hello again and again, with numbers that nobody gave it: a
// little more than were given out, or as many as are just not absurd.
func (a *agent) lie(s *step) {
	a.w.check.liar(a)
	a.lying = 1 + uint64(s.p*8)
	if s.p > 0.5 {
		a.lying = 4_000_000_000
	}
	for n := range lies {
		a.later(time.Duration(n)*700*time.Millisecond, func() { a.link.broken(true) })
	}
	a.later(lies*700*time.Millisecond, func() { a.lying = 0 })
}

// forged is a hello as a liar says it.
func (a *agent) forged(h *wire.Hello) *wire.Hello {
	f := *h
	a.claimed = max(a.w.check.book.top, h.TopSeq, a.claimed) + a.lying // each time above what it has claimed
	f.TopSeq, f.TopToken = a.claimed, a.w.check.topToken()+a.lying
	return &f
}

// restore is the end of the gateway and its start on an older copy of its log.
func (g *gateway) restore(s *step) {
	if g.process == nil || g.w.check.book.copy == nil {
		return
	}
	g.die("it is restored from an older copy of its log", s.p)
	if g.w.violation != nil {
		return
	}
	if err := g.disk.restore(); err != nil {
		g.w.fail("recovery", "the gateway's disk: %v", err)
		return
	}
	g.blind = g.w.check.restored()
	for _, c := range g.w.clients {
		c.forget()
	}
	g.restart(s.second)
}

// cardCopy is a copy of an agent's card.
type cardCopy struct {
	at          time.Duration
	journal     []byte
	incarnation uint64
}

// journalFile is the agent's journal on its card.
const journalFile = agentDir + "/agent.journal"

// copyCard copies the card: at a step of the plan, or at the next moment after it
// when something begins to run or is told to wait.
func (a *agent) copyCard() {
	a.copyRuns, a.copyWaits = false, false
	if b, ok := a.disk.Content(journalFile); ok && a.incarnation != 0 {
		a.copied = &cardCopy{a.w.now, b, a.incarnation}
		a.w.log(a.tag, "its card is copied")
	}
}

// restoreCard is a power cut after which the card is an older copy of itself. A copy
// from before the agent began anew stays out: see docs/simulation.md, what is open.
func (a *agent) restoreCard() {
	if a.life == nil || a.copied == nil || a.copied.incarnation != a.incarnation {
		return
	}
	a.end("gets an older copy of its card", true)
	a.disk = journaltest.New()
	a.disk.Spoil(journalFile, a.copied.journal)
	a.copies++
	a.w.check.cardRestored(a)
}

// double switches on a second board under the agent's name, for a while.
func (a *agent) double(d time.Duration) {
	if a.second != nil {
		return
	}
	b := newAgent(a.w, a.index, a.tag+" second board")
	a.second, b.second = b, a
	a.w.check.doubled(a)
	b.boot()
	a.w.after(d, b.unplug)
}

// unplug takes a second board away for good.
func (a *agent) unplug() {
	if a.retired {
		return
	}
	a.retired = true
	a.end("is unplugged", true)
	a.w.check.gone(a)
}

// boards are all agents, those that are second boards included.
func (w *world) boards() []*agent {
	if w.story != storyBoards {
		return w.agents
	}
	var list []*agent
	for _, a := range w.agents {
		list = append(list, a)
		if a.second != nil {
			list = append(list, a.second)
		}
	}
	return list
}

// clone lets a copy of the board, with the same memory and another process, take the
// connection over and say hello. It does nothing else.
func (a *agent) clone() {
	l, h := a.link, a.lastHello
	if a.life == nil || h == nil || l.brokerEnd == nil || a.w.gateway.process == nil {
		return
	}
	l.broken(true)
	f := *h
	f.Session, f.Nonce = l.rnd.Uint64()|1, h.Nonce^0x5a5a
	f.First, f.Next = a.through+1, a.next
	a.w.log(a.tag, "a copy of it says hello, session %x", f.Session)
	in := &engine.Uplink{Node: a.id, Msg: &f}
	a.w.check.cloned(a, &f)
	a.w.check.arrived(in, a, a.incarnation, a.copies)
	a.w.gateway.put(in)
	l.will(&conn{session: f.Session}, between(l.rnd, 500, 3_000))
}

// atBroker is the board that holds the connection under the agent's name.
func (a *agent) atBroker() *agent {
	if a.second != nil && a.second.link.brokerEnd != nil {
		return a.second
	}
	return a
}

// atNarrow is the same on the narrowband path.
func (a *agent) atNarrow() *agent {
	if a.second != nil && a.second.narrow.conn != nil {
		return a.second
	}
	return a
}

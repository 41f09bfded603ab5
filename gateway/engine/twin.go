package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Two boards of one name and one journal (a card that was copied) throw each other out
// at the broker, every few seconds, and each command may run on both (B28). A process
// draws a nonce when it starts. One that has been replaced by another never comes back:
// when it does, both run. Then
//
//   - an alarm stands, and commands for the name are held back: nobody knows which of
//     the two would get them;
//   - one, mostly the one that was met first, goes on in its session, so that nothing
//     falls there; the other is refused and told so: it begins nothing;
//   - what is towards safe goes to whoever is connected, until each has answered.
//
// That ends when only one of them was heard of for a while. Nothing of it is kept: after
// a restart the next three hellos prove it anew.
const (
	alarmTwin = "twin" // subject: node

	// twinHold is for how long only one must have been heard of.
	twinHold = time.Minute
	// mostProcesses is how many processes of a node are remembered: an agent that is
	// started again and again must not push out its twin too soon.
	mostProcesses = 4
	// mostSafes is how many of the latest instructions towards safe are remembered for
	// a twin, and maxSafeArgs how large they may be: gpio.safe and gpio.write are small.
	mostSafes   = 8
	maxSafeArgs = 256
)

// process is one process of an agent under a node's name.
type process struct {
	nonce   uint64 // 0: an empty place
	born    uint64 // the incarnation of its first hello
	session uint64 // of its latest hello
	met     time.Duration
	heard   time.Duration
}

// twins are the latest processes under one name.
type twins struct {
	seen    [mostProcesses]process
	speaker int // whose hello was the latest
	on      bool
	first   uint64 // while on: who was met first
	safes   []safeSent
}

// safeSent is an instruction towards safe, and who has answered it.
type safeSent struct {
	at       time.Duration
	m        wire.Instruction
	answered []uint64
}

// meet takes in the nonce of a hello. It returns the process that spoke before, if that
// was another one.
func (e *Engine) meet(now Now, n *node, m *wire.Hello) (before *process) {
	t := &n.twins
	if m.Nonce == 0 || mutant.On(mutant.TwinUnseen) {
		return nil
	}
	q := &t.seen[t.speaker]
	k := slices.IndexFunc(t.seen[:], func(p process) bool { return p.nonce == m.Nonce })
	if k < 0 {
		k = 0
		for j := range t.seen { // the one that was silent for longest makes room
			if t.seen[j].heard < t.seen[k].heard {
				k = j
			}
		}
		if t.seen[k].nonce == q.nonce && q.nonce != 0 {
			k = (k + 1) % mostProcesses
		}
		t.seen[k] = process{nonce: m.Nonce, born: m.Incarnation, session: m.Session, met: now.in(0)}
	} else if p := &t.seen[k]; p.nonce != q.nonce && p.session != m.Session && p.born == q.born {
		e.twin(now, n, p, q, m)
	}
	p := &t.seen[k]
	p.session, p.heard = m.Session, now.in(0)
	t.speaker = k
	if q.nonce != 0 && q.nonce != m.Nonce {
		before = q
	}
	e.mindTwin(now, n)
	return before
}

// twin begins it: p is there again although q has taken its place. First is the one
// that was met first, unless its journal is behind what the other has told since: it
// would have to forget what it has done.
func (e *Engine) twin(now Now, n *node, p, q *process, m *wire.Hello) {
	t := &n.twins
	if t.on {
		return
	}
	t.on, t.first = true, p.nonce
	if behind := n.cursor.Incarnation != m.Incarnation || m.Next <= n.cursor.Last; behind || q.met < p.met {
		t.first = q.nonce
	}
	e.condition(now, alarmTwin, n.ID, fmt.Sprintf(
		"two boards say hello as %s with the same memory: was its card copied? Commands for it are held back, only what leads to safe goes out, to both. "+
			"Switch the copy off, and give it a name and an empty data directory of its own", n.ID))
	e.show(n)
}

// mindTwin ends it when only the one that speaks was heard of for a while.
func (e *Engine) mindTwin(now Now, n *node) {
	t := &n.twins
	if !t.on {
		return
	}
	for k, p := range t.seen {
		if k != t.speaker && p.nonce != 0 && now.in(0)-p.heard < twinHold {
			return
		}
	}
	t.on, t.first, t.safes = false, 0, nil
	e.clear(now, alarmTwin, n.ID)
	e.show(n)
	if !n.online {
		return
	}
	var refs []wire.Ref // nothing was offered since
	for _, i := range n.opened() {
		if i.ReceivedAt != 0 && !i.waiting() && i.By == 0 {
			refs = append(refs, wire.Ref{Seq: i.Seq, Token: i.Token})
		}
	}
	e.query(n, refs)
	e.startDrain(n)
	e.wantPump(n)
}

// second says why a hello is refused while there are two; empty when it is not. When
// the first is gone, another one takes its place.
func (e *Engine) second(now Now, n *node, m *wire.Hello) string {
	t := &n.twins
	if !t.on || m.Nonce == 0 || m.Nonce == t.first {
		return ""
	}
	for _, p := range t.seen {
		if p.nonce == t.first && now.in(0)-p.heard < e.cfg.OfflineAfter {
			return fmt.Sprintf("two boards say hello as %s with the same memory, and this is the second: it begins nothing but what leads to safe; "+
				"if it is the copy, give it a name and an empty data directory of its own; if not, switch the other one off", n.ID)
		}
	}
	t.first = m.Nonce
	return ""
}

// older says why a hello is not believed whose journal is an older copy than what the
// process before it, which was heard just now, has told: a board whose card is written
// back is silent first.
func (e *Engine) older(now Now, n *node, m *wire.Hello, before *process) string {
	if before == nil || n.Left || !n.met || n.cursor.Incarnation != m.Incarnation || m.Next > n.cursor.Last {
		return ""
	}
	silent := now.Mono - n.heard
	if silent >= e.cfg.OfflineAfter {
		return ""
	}
	n.refusedAt = now.in(0)
	return fmt.Sprintf("another agent, with a newer copy of this journal, was heard under the name %s %v ago: was the card copied? "+
		"If this one replaces it, stop the other and wait %v", n.ID, silent.Round(time.Second), e.cfg.OfflineAfter)
}

// speaks notes a sign of life of the process that is connected.
func (e *Engine) speaks(now Now, n *node) {
	if p := &n.twins.seen[n.twins.speaker]; p.nonce != 0 && p.session == n.session {
		p.heard = now.in(0)
	}
	e.mindTwin(now, n)
}

// unheard reports whether what an agent says of attempts is not taken, because the one
// of the two that is connected was refused: its events have numbers of their own. What
// it says of something towards safe is an answer all the same.
func (n *node) unheard(m wire.Message) bool {
	t := &n.twins
	p := t.seen[t.speaker]
	if p.nonce == 0 {
		return false
	}
	switch m := m.(type) {
	case *wire.Event:
		t.answer(p.nonce, m.Seq)
	case *wire.Report:
		for _, s := range m.States {
			if s.Status != wire.StatusNever {
				t.answer(p.nonce, s.Seq)
			}
		}
	default:
		return false
	}
	return t.on && p.nonce != t.first
}

func (t *twins) answer(nonce, seq uint64) {
	for k := range t.safes {
		if s := &t.safes[k]; s.m.Seq == seq && !slices.Contains(s.answered, nonce) && len(s.answered) < mostProcesses {
			s.answered = append(s.answered, nonce)
		}
	}
}

// sentSafe remembers an instruction towards safe, for a twin that may come.
func (n *node) sentSafe(now Now, m *wire.Instruction) {
	t := &n.twins
	if t.seen[t.speaker].nonce == 0 || len(m.Args) > maxSafeArgs {
		return
	}
	t.safes = slices.DeleteFunc(t.safes, func(s safeSent) bool { return s.m.Seq == m.Seq })
	if len(t.safes) == mostSafes {
		t.safes = slices.Delete(t.safes, 0, 1)
	}
	t.safes = append(t.safes, safeSent{at: now.in(0), m: *m})
}

// toTwin sends again, to the one that is connected now, what is towards safe and what it
// has not answered. It may have run on the other one long ago. Who is welcome gets
// anyway what was not received yet.
func (e *Engine) toTwin(now Now, n *node, welcome bool) {
	t := &n.twins
	if !t.on {
		return
	}
	for k := range t.safes {
		s := &t.safes[k]
		late := s.m.NotAfter != 0 && now.Wall >= s.m.NotAfter
		if slices.Contains(s.answered, t.seen[t.speaker].nonce) || late || e.takenBack(s.m.Seq, welcome) {
			continue
		}
		m := s.m
		m.SentAt, m.Through = now.Wall, 0
		m.Resend = min(m.Resend, 254) + 1
		e.effects.Sends = append(e.effects.Sends, Send{n.ID, &m})
	}
}

// takenBack reports whether something towards safe is not to go out any more, or goes
// out by itself.
func (e *Engine) takenBack(seq uint64, welcome bool) bool {
	i := e.insts[seq]
	return i != nil && (i.By != 0 || i.CancelBy != "" || welcome && i.ReceivedAt == 0 && !i.State.Settled())
}

// otherBoard says why a hello is not believed to be that of the board that the log
// knows; empty when it is.
func (e *Engine) otherBoard(now Now, n *node, m *wire.Hello) string {
	if slices.Contains(n.ended[:], m.Session) {
		return "" // overtaken by its own end
	}
	before := e.meet(now, n, m)
	if why := e.second(now, n, m); why != "" {
		return why
	}
	if n.twins.on {
		return ""
	}
	if why := e.older(now, n, m, before); why != "" {
		return why
	}
	return e.impostor(now, n, m)
}

package executor_test

import (
	"fmt"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// line is the part of a site that watches the order at the lines, and what D2 says
// that only scripts knew: stale attempts, forgotten tokens, two attempts at once, work
// past the autonomy window, and an early "expired".
type line struct {
	rules     wire.Rules
	marks     map[string]uint64     // highest instruction that began on each line
	drives    map[wire.Token]bool   // runs, and is towards safe
	cut       map[wire.Token]bool   // was asked to stop
	delivered map[uint64]uint8      // newest attempt of each instruction that an agent has had in a session of its own
	offered   map[wire.Token]uint64 // the life that each token was offered in last
	sent      []*wire.Instruction
	reached   bool // the agent has been welcomed in this session
	contact   int64
	missing   *wire.Instruction // towards safe, and on its way to the core
	kept      map[string]kept   // by line
	cancelled map[uint64]bool
}

// kept is a line that the agent has said to have failed on, and keeps for the retry.
type kept struct {
	seq   uint64
	until int64
}

func newLine(seed uint64) line {
	l := line{marks: map[string]uint64{}, drives: map[wire.Token]bool{}, cut: map[wire.Token]bool{}, delivered: map[uint64]uint8{}, offered: map[wire.Token]uint64{},
		kept: map[string]kept{}, cancelled: map[uint64]bool{}}
	if seed%3 != 0 {
		l.rules = wire.NewestRules
	}
	return l
}

func (s *site) driving() (n int) {
	for t := range s.running {
		if s.drives[t] || s.cut[t] {
			n++
		}
	}
	return n
}

func (s *site) restarted() {
	clear(s.drives)
	clear(s.cut)
	s.reached, s.contact = false, s.gateway()
}

// jobOf is the instruction of a token.
func (s *site) jobOf(t wire.Token) *job {
	for _, in := range s.sent {
		if in.Token == t {
			return s.jobs[in.Seq-1]
		}
	}
	panic(fmt.Sprintf("no token %v was given out", t))
}

// withdraw is the gateway's half of docs/safety.md 5: what is older on the line of
// something towards safe is never handed out again.
func (s *site) withdraw(j *job) {
	if !j.safe || s.rules == 0 {
		return
	}
	for _, o := range s.jobs {
		if o.line == j.line && !o.safe {
			o.withdrawn = true
		}
	}
}

// duplicate sends an old copy of anything once more, as a broker may.
func (s *site) duplicate() {
	if len(s.sent) == 0 || !s.fault(5) {
		return
	}
	in := *s.sent[s.rng.IntN(len(s.sent))]
	if !s.jobs[in.Seq-1].withdrawn {
		in.SentAt = s.gateway()
		s.answer(&in)
	}
}

// arrives looks at a message before the core has it, arrived at what it has made of it.
func (s *site) arrives(m wire.Message) {
	switch m := m.(type) {
	case *wire.Welcome:
		s.reached = s.reached || m.Session == s.session
	case *wire.Instruction:
		if !s.reached {
			return
		}
		s.offered[m.Token] = uint64(s.lives)
		s.retried(m.Seq)
		s.delivered[m.Seq] = max(s.delivered[m.Seq], m.Attempt)
		if s.jobs[m.Seq-1].safe && s.began[m.Token] == 0 && s.done[m.Token] == 0 && s.rules > 0 {
			s.missing = m
		}
	case *wire.Cancel:
		s.retried(m.Seq)
		s.cancelled[m.Seq] = true
	case *wire.Query:
		for _, r := range m.Refs {
			if s.reached {
				s.offered[r.Token] = uint64(s.lives)
			}
		}
	}
}

// retried says that no line is kept for an instruction any more.
func (s *site) retried(seq uint64) {
	if k := s.kept[s.jobs[seq-1].line]; k.seq == seq {
		delete(s.kept, s.jobs[seq-1].line)
	}
}

// arrived demands that what is towards safe was driven at once, unless that is settled:
// nothing waits for anything.
func (s *site) arrived(m wire.Message) {
	in := s.missing
	s.missing = nil
	if in == nil || s.began[in.Token] > 0 || s.t.Failed() || uint64(s.lives) != s.offered[in.Token] {
		return
	}
	for _, told := range s.told {
		if e := told; len(e) > 0 && s.endOf(e, in.Token) {
			return
		}
	}
	out := s.core.Step(s.now(), executor.Received{Message: &wire.Query{Refs: []wire.Ref{{Seq: in.Seq, Token: in.Token}}}})
	s.perform(out)
	for _, p := range out.Primary {
		if r, ok := p.(*wire.Report); ok && r.States[0].Status == wire.StatusQueued {
			s.fail("instruction %d waits, and is towards safe", in.Seq)
		}
	}
}

func (s *site) endOf(event []byte, t wire.Token) bool {
	m, err := wire.DecodeUplink(event)
	e, ok := m.(*wire.Event)
	return err == nil && ok && e.Token == t && e.Phase == wire.PhaseProcessed
}

// drive is what the owner of the pins does with something towards safe.
func (s *site) drive(w executor.Work) {
	m, _ := wire.DecodeMap(w.Args)
	on, _ := m["on"].(string)
	if j := s.jobOf(w.Token); !j.safe || !w.Towards {
		s.fail("instruction %d is driven before it is written down", w.Seq)
	}
	if w.Order < s.marks[on] {
		s.fail("instruction %d is driven, and %d has begun on %s", w.Seq, s.marks[on], on)
	}
	if w.Again {
		return
	}
	s.trace = append(s.trace, fmt.Sprintf("%v drive %d/%d", s.at, w.Seq, w.Attempt))
	if s.lives > 0 && s.fault(3) {
		s.start() // driven, and never written down
		return
	}
	s.began[w.Token]++
	s.marks[on] = w.Order
	delete(s.kept, on) // it makes void what is older
	s.drives[w.Token] = true
	s.running[w.Token] = []string{on}
}

// checkStart looks at what begins in its turn.
func (s *site) checkStart(w executor.Work, on string) {
	if w.Order < s.marks[on] && on != "" {
		s.fail("instruction %d begins, and %d has begun on %s", w.Seq, s.marks[on], on)
	}
	if on != "" {
		s.marks[on] = w.Order
	}
	if k, ok := s.kept[on]; ok && w.Order > k.seq && s.gateway() < k.until {
		s.fail("instruction %d begins on %s, which is kept for %d", w.Seq, on, k.seq)
	}
	if n := s.delivered[w.Seq]; w.Attempt < n {
		s.fail("attempt %d of instruction %d begins, and attempt %d has arrived", w.Attempt, w.Seq, n)
	}
	for t := range s.running {
		if j := s.jobOf(t); j.in.Seq == w.Seq {
			s.fail("two attempts of instruction %d at once", w.Seq)
		}
	}
	if s.rules > 0 && on != "" && s.offered[w.Token] != uint64(s.lives) {
		s.fail("instruction %d begins, and this life of the agent has not been offered it", w.Seq)
	}
	if !s.reached && s.gateway()-s.contact > 20_000 {
		s.fail("instruction %d begins %d ms after the gateway was heard", w.Seq, s.gateway()-s.contact)
	}
}

// checkEnd looks at what is told.
func (s *site) checkEnd(e *wire.Event) {
	j := s.jobOf(e.Token)
	in := j.in
	if e.Code == wire.CodeIO && in.Keep && in.Token == e.Token && s.marks[j.line] == e.Seq && j.line != "" && !s.cancelled[e.Seq] {
		s.kept[j.line] = kept{e.Seq, e.FinishedAt + wire.OrderWait.Milliseconds()}
	}
	if e.Code == wire.CodeExpired && (in.NotAfter == 0 || e.FinishedAt < in.NotAfter) {
		s.fail("instruction %d is told expired at %d, and is good until %d", e.Seq, e.FinishedAt, in.NotAfter)
	}
	if e.Code == wire.CodeResources || e.Code == wire.CodeBusy {
		s.fail("instruction %d is told %v", e.Seq, e.Code)
	}
}

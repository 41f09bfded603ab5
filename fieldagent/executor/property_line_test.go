package executor_test

import (
	"fmt"
	"slices"
	"strings"

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
	newest    map[uint64]uint8      // newest attempt of each instruction that has begun or ended
	offered   map[wire.Token]uint64 // the life that each token was offered in last
	sent      []*wire.Instruction
	reached   bool // the agent has been welcomed in this session
	contact   int64
	missing   *wire.Instruction // towards safe, and on its way to the core
	kept      map[uint64]kept   // by instruction
	voided    map[string]uint64 // by line: what is older never begins
	cancelled map[uint64]bool
}

// board is the line of what holds all of them.
const board = "board"

// lines are those that a job uses.
func (j *job) lines() []string {
	if j.line == "" {
		return nil
	}
	return strings.Split(j.line, ",")
}

// share reports whether two sets of lines meet.
func share(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	return slices.Contains(a, board) || slices.Contains(b, board) || slices.ContainsFunc(a, func(l string) bool { return slices.Contains(b, l) })
}

// mark is the highest number that has begun where lines are.
func (s *site) mark(lines []string) (m uint64) {
	for l, n := range s.marks {
		if share(lines, []string{l}) {
			m = max(m, n)
		}
	}
	return m
}

// kept is a line that the agent has said to have failed on, and keeps for the retry.
type kept struct {
	lines []string
	until int64
}

func newLine(seed uint64) line {
	l := line{marks: map[string]uint64{}, drives: map[wire.Token]bool{}, cut: map[wire.Token]bool{}, newest: map[uint64]uint8{}, offered: map[wire.Token]uint64{},
		kept: map[uint64]kept{}, cancelled: map[uint64]bool{}, voided: map[string]uint64{}}
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
		if share(o.lines(), j.lines()) && !o.safe && !o.reads {
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

// recall cancels what was withdrawn and waits at the agent.
func (s *site) recall() {
	for _, in := range s.sent {
		if _, waits := s.held[in.Token]; waits && s.jobs[in.Seq-1].withdrawn && s.chance(10) {
			s.answer(&wire.Cancel{Seq: in.Seq, Token: in.Token})
		}
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
	delete(s.kept, seq)
}

// arrived demands that what is towards safe was driven at once, unless that is settled:
// nothing waits for anything.
func (s *site) arrived(m wire.Message) {
	if m, ok := m.(*wire.Instruction); ok && s.rules > 0 && s.jobs[m.Seq-1].safe && s.reached && s.offered[m.Token] == uint64(s.lives) {
		for _, l := range s.jobs[m.Seq-1].lines() {
			s.voided[l] = max(s.voided[l], m.Seq)
		}
	}
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
	lines := s.jobOf(w.Token).lines()
	if j := s.jobOf(w.Token); !j.safe || !w.Towards {
		s.fail("instruction %d is driven before it is written down", w.Seq)
	}
	lines = slices.DeleteFunc(lines, func(l string) bool { return !slices.Contains(w.Lines, wire.LineOf(l)) })
	for _, l := range lines {
		if w.Order < s.marks[l] {
			s.fail("instruction %d is driven, and %d has begun on %s", w.Seq, s.marks[l], l)
		}
	}
	if len(lines) == 0 {
		s.fail("instruction %d drives nothing", w.Seq)
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
	for _, l := range lines {
		s.marks[l] = w.Order
	}
	for seq, k := range s.kept {
		if seq < w.Order && share(k.lines, lines) {
			delete(s.kept, seq) // it makes void what is older
		}
	}
	s.drives[w.Token] = true
	s.running[w.Token] = lines
}

// checkStart looks at what begins in its turn.
func (s *site) checkStart(w executor.Work, lines []string) {
	moves := len(lines) > 0 && !s.jobOf(w.Token).reads
	if m := s.mark(lines); moves && w.Order < m {
		s.fail("instruction %d begins, and %d has begun on %v", w.Seq, m, lines)
	}
	for _, l := range lines {
		if moves {
			s.marks[l] = w.Order
		}
	}
	for l, n := range s.voided {
		if moves && w.Order < n && share(lines, []string{l}) {
			s.fail("instruction %d begins on %v, and %d stands for it", w.Seq, lines, n)
		}
	}
	for seq, k := range s.kept {
		if moves && w.Order > seq && s.gateway() < k.until && share(k.lines, lines) {
			s.fail("instruction %d begins on %v, which is kept for %d", w.Seq, lines, seq)
		}
	}
	if n := s.newest[w.Seq]; w.Attempt < n {
		s.fail("attempt %d of instruction %d begins, and attempt %d has begun or ended", w.Attempt, w.Seq, n)
	}
	s.newest[w.Seq] = w.Attempt
	for t := range s.running {
		if j := s.jobOf(t); j.in.Seq == w.Seq {
			s.fail("two attempts of instruction %d at once", w.Seq)
		}
	}
	if s.rules > 0 && moves && s.offered[w.Token] != uint64(s.lives) {
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
	if !s.cancelled[e.Seq] { // one that is faster than its attempt does not say which one it is of
		s.newest[e.Seq] = max(s.newest[e.Seq], e.Attempt)
	}
	if e.Code == wire.CodeIO && in.Keep && in.Token == e.Token && s.mark(j.lines()) == e.Seq && !j.reads && !s.cancelled[e.Seq] {
		s.kept[e.Seq] = kept{j.lines(), e.FinishedAt + wire.OrderWait.Milliseconds()}
	}
	if e.Code == wire.CodeExpired && (in.NotAfter == 0 || e.FinishedAt < in.NotAfter) {
		s.fail("instruction %d is told expired at %d, and is good until %d", e.Seq, e.FinishedAt, in.NotAfter)
	}
	if e.Code == wire.CodeResources || e.Code == wire.CodeBusy {
		s.fail("instruction %d is told %v", e.Seq, e.Code)
	}
}

// checkCuts demands that what is towards safe ends what runs where it is driven.
func (s *site) checkCuts(out executor.Output) {
	for _, w := range out.Urgent {
		for tok, lines := range s.running {
			if slices.ContainsFunc(lines, func(l string) bool { return slices.Contains(w.Lines, wire.LineOf(l)) }) &&
				!s.drives[tok] && !s.cut[tok] && !s.jobOf(tok).reads {
				s.fail("%v runs on %v, and instruction %d is towards safe there", tok, lines, w.Seq)
			}
		}
	}
}

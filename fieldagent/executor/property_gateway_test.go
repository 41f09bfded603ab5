package executor_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// uplink is a message on its way to the gateway.
func (s *site) uplink(m wire.Message) {
	b, err := wire.Encode(m)
	if err != nil {
		s.fail("can't be sent: %v", err)
		return
	}
	if e, ok := m.(*wire.Event); ok {
		if before, ok := s.told[e.Number]; ok && !bytes.Equal(before, b) {
			s.fail("event %d is told in two ways", e.Number)
		}
		s.told[e.Number] = b
		if e.Number > s.last+uint64(executor.Window)*2 {
			s.fail("event %d is under way while the gateway has %d", e.Number, s.last)
		}
	}
	if s.fault(20) {
		return
	}
	m, err = wire.DecodeUplink(b)
	if err != nil {
		s.fail("can't be read: %v", err)
		return
	}
	switch m := m.(type) {
	case *wire.Hello:
		s.hear(m)
		if m.First > s.last+1 || m.Next < s.last+1 {
			s.fail("hello with events %d to %d, the gateway has %d", m.First, m.Next, s.last)
		}
		s.answer(&wire.Welcome{Session: m.Session, Epoch: 1, Now: s.gateway(), HeartbeatMs: 5000, Phases: wire.MaxPhase, Rules: s.rules, Through: s.last})
	case *wire.Event:
		gap := m.Number > s.last+1
		if m.Number == s.last+1 {
			s.last++
			s.accept(m)
		}
		s.answer(&wire.EventAck{Through: s.last, Gap: gap})
	case *wire.Digest:
		s.compare(m)
	}
}

// hear looks at what a hello says of the past.
func (s *site) hear(h *wire.Hello) {
	s.acked = h.First - 1
	now := [2]uint64{h.TopSeq, h.TopToken}
	if now[0] < s.seen[0] || now[1] < s.seen[1] {
		s.fail("has seen %v, then only %v", s.seen, now)
	}
	s.seen = now
	for tok := range s.began {
		if tok.Seq > h.TopToken {
			s.fail("has run token %d and seen %d", tok.Seq, h.TopToken)
		}
	}
	if h.TopSeq > uint64(len(s.jobs)) || h.TopToken > s.tokens() {
		s.fail("has seen %v, which was never given out", now)
	}
}

// compare holds a digest against what the gateway has, if neither is waiting for
// word from the other.
func (s *site) compare(d *wire.Digest) {
	if d.Next != s.last+1 || s.acked != s.last {
		return
	}
	s.digests++
	var refs []wire.Ref
	for _, r := range s.held {
		refs = append(refs, r)
	}
	if hash, count := wire.DigestOf(refs); hash != d.Hash || count != d.Count {
		s.fail("digest of %d, the gateway has heard of %d: %v", d.Count, count, refs)
	}
}

func (s *site) answer(m wire.Message) {
	if s.fault(20) {
		return
	}
	s.down = append(s.down, m)
	if s.fault(10) {
		s.down = append(s.down, m)
	}
}

// accept is the gateway taking an event.
func (s *site) accept(e *wire.Event) {
	if e.Phase == wire.PhaseLease {
		s.acceptLease(e)
		return
	}
	if e.Phase != wire.PhaseProcessed {
		s.held[e.Token] = wire.Ref{Seq: e.Seq, Token: e.Token}
		return
	}
	delete(s.held, e.Token)
	s.trace = append(s.trace, fmt.Sprintf("%v %d/%d %s", s.at, e.Seq, e.Attempt, e.Code))
	if before, ok := s.done[e.Token]; ok && before != e.Code {
		if e.Code == wire.CodeUnknown {
			return // it is forgotten: a copy of it is answered so, whatever became of it
		}
		s.fail("token %v ended as %s and as %s", e.Token, before, e.Code)
	}
	s.done[e.Token] = e.Code
	if m, err := wire.DecodeMap(e.Payload); err == nil && m["lease"] == true && !s.back[e.Token] {
		s.lent[e.Token] = true
	}
	s.checkEnd(e)
	if e.Code == wire.CodeExpired && s.began[e.Token] > 0 {
		s.fail("token %v expired and ran", e.Token)
	}
	for _, j := range s.jobs {
		if j.in.Token == e.Token {
			j.final, j.code = true, e.Code
		}
	}
}

// manage is the gateway's part: new instructions, resends, retries, cancels and
// questions.
func (s *site) manage() {
	if (!s.calm || s.busy) && s.chance(30) {
		s.submit()
	}
	if !s.up {
		return
	}
	s.duplicate()
	s.recall()
	for _, j := range s.jobs {
		if j.withdrawn {
			continue
		}
		if j.final {
			if j.code != wire.CodeOK && j.attempts < 3 && s.fault(2) {
				s.retry(j)
			}
			continue
		}
		if s.at-j.sentAt > 2*time.Second {
			j.sentAt = s.at
			in := *j.in
			in.SentAt = s.gateway()
			s.answer(&in)
		}
		if s.fault(1) {
			s.answer(&wire.Cancel{Seq: j.in.Seq, Token: j.in.Token})
		}
		if s.fault(1) {
			s.answer(&wire.Query{Refs: []wire.Ref{{Seq: j.in.Seq, Token: j.in.Token}}})
		}
		if s.fault(1) {
			s.retry(j) // it lost patience
		}
	}
}

func (s *site) submit() {
	seq := uint64(len(s.jobs) + 1)
	in := &wire.Instruction{Seq: seq, Key: wire.Key{Site: "s", Millis: s.gateway(), Seq: seq}.String(), Intent: "do",
		Priority: wire.Priority(s.rng.IntN(4))}
	j := &job{in: in}
	j.line = []string{"", "a", "b", "a", "b", "a,b", "nowhere", board}[s.rng.IntN(8)]
	args := map[string]any{"on": j.line}
	switch j.safe = j.line != "" && j.line != board && j.line != "nowhere" && s.chance(20); {
	case j.safe:
		args["safe"] = "yes"
	case j.line == board:
		args = map[string]any{"board": "yes"}
	case j.line != "nowhere" && s.chance(10):
		in.Intent, j.reads = "read", true
	}
	in.Args = encodeMap(s.t, args)
	in.Keep = s.rules > 0 && s.chance(50)
	if s.chance(30) {
		in.NotAfter = s.gateway() + int64(s.rng.IntN(5000))
	}
	s.withdraw(j)
	s.jobs = append(s.jobs, j)
	s.retry(j)
}

// retry begins a new attempt.
func (s *site) retry(j *job) {
	in := *j.in
	in.Attempt, in.Token = uint8(j.attempts+1), wire.Token{Shard: 1, Seq: s.tokens() + 1, Rand: 3}
	j.attempts++
	in.SentAt = s.gateway()
	j.in, j.final, j.sentAt = &in, false, s.at
	s.sent = append(s.sent, &in)
	if s.up {
		s.answer(&in)
	}
}

// tokens counts those that were given out.
func (s *site) tokens() (n uint64) {
	for _, o := range s.jobs {
		n += uint64(o.attempts)
	}
	return n
}

// settled reports whether the gateway knows the end of everything and nothing is
// under way.
func (s *site) settled() bool { return s.open() == "" }

func (s *site) open() string {
	if s.t.Failed() {
		return ""
	}
	for _, j := range s.jobs {
		if !j.final && !j.withdrawn {
			return fmt.Sprintf("instruction %d has no end", j.in.Seq)
		}
		if j.code == wire.CodeOK && s.began[j.in.Token] == 0 && j.attempts == 1 && !j.safe {
			return fmt.Sprintf("instruction %d is done but never ran", j.in.Seq)
		}
	}
	if len(s.held) > 0 {
		return fmt.Sprintf("the agent has %d that have not ended", len(s.held))
	}
	return s.openLease()
}

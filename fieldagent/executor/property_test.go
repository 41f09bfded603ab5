package executor_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

var seeds = flag.Uint64("seeds", 12, "runs of the property test")

// TestPromisesHoldThroughCrashesAndLoss lets a gateway that resends, retries,
// cancels and asks work with an agent over a network that loses, doubles and
// delays, while the agent crashes before, between and after its effects. Then the
// faults stop, and everything must settle.
func TestPromisesHoldThroughCrashesAndLoss(t *testing.T) {
	for seed := range *seeds {
		trace := play(t, seed)
		if t.Failed() {
			return
		}
		if seed%20 == 0 && !slices.Equal(trace, play(t, seed)) {
			t.Fatalf("seed %d does not repeat itself", seed)
		}
	}
}

// site is one run: an agent, its journal, a gateway and what lies between.
type site struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	calm bool

	core    *executor.Core
	journal [][]byte
	boot    time.Duration // time of the last start
	at      time.Duration
	wake    time.Duration
	up      bool
	session uint64
	lives   int

	// What really happened.
	began   map[wire.Token]int
	running map[wire.Token][]string // lines
	done    map[wire.Token]wire.Code
	told    map[uint64][]byte // event by number, as sent

	// The gateway.
	jobs     []*job
	last     uint64
	accepted int
	down     []wire.Message // to the agent
	trace    []string
}

type job struct {
	in       *wire.Instruction
	sentAt   time.Duration
	final    bool // the gateway has the end of the current attempt
	code     wire.Code
	attempts int
}

func play(t *testing.T, seed uint64) []string {
	s := &site{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 11)), began: map[wire.Token]int{},
		running: map[wire.Token][]string{}, done: map[wire.Token]wire.Code{}, told: map[uint64][]byte{}}
	s.start()
	for range 400 {
		s.move()
	}
	s.calm = true
	for i := 0; !s.settled(); i++ {
		if i > 5000 {
			s.fail("does not settle: %s", s.open())
			break
		}
		s.move()
	}
	return s.trace
}

func (s *site) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("seed %d at %v: %s", s.seed, s.at, fmt.Sprintf(format, args...))
}

func (s *site) chance(percent int) bool { return s.rng.IntN(100) < percent }

// fault is a chance that is none when it is calm.
func (s *site) fault(percent int) bool { return !s.calm && s.chance(percent) }

func (s *site) now() executor.Now {
	return executor.Now{Mono: s.at - s.boot, Wall: s.gateway(), WallOK: s.seed%3 == 0}
}

func (s *site) gateway() int64 { return wallAtStart + s.at.Milliseconds() }

// start starts the agent from its journal; the works of the last life are gone.
func (s *site) start() {
	s.boot, s.up, s.down = s.at, false, nil
	clear(s.running)
	cfg := config(3)
	cfg.Incarnation, cfg.MaxQueue, cfg.MaxKnown = 7, 20, 60
	core, out, err := executor.New(cfg, s.journal, s.now())
	if err != nil {
		s.fail("start: %v", err)
		s.t.FailNow()
	}
	s.core = core
	s.perform(out)
	s.lives++
}

func (s *site) step(in executor.Input) {
	if !s.t.Failed() {
		s.perform(s.core.Step(s.now(), in))
	}
}

// perform does what the core asks for, unless a crash comes first.
func (s *site) perform(out executor.Output) {
	s.wake = s.boot + out.Deadline
	if out.Deadline == executor.NoDeadline {
		s.wake = s.at + time.Hour
	}
	if out.Fatal != "" {
		s.fail("fatal: %s", out.Fatal)
	}
	if s.lives > 0 && s.fault(1) {
		s.start() // before the records are durable
		return
	}
	s.journal = append(s.journal, out.Records...)
	for _, w := range out.Start {
		if s.lives > 0 && s.fault(1) {
			s.start()
			return
		}
		s.begin(w)
	}
	for _, m := range out.Primary {
		if s.lives > 0 && s.fault(1) {
			s.start()
			return
		}
		s.uplink(m)
	}
	if s.fault(2) {
		s.journal = s.core.Snapshot()
	}
}

func (s *site) begin(w executor.Work) {
	s.trace = append(s.trace, fmt.Sprintf("%v start %d/%d", s.at, w.Seq, w.Attempt))
	s.began[w.Token]++
	if n := s.began[w.Token]; n > 1 {
		s.fail("token %v is run %d times", w.Token, n)
	}
	m, _ := wire.DecodeMap(w.Args)
	line, _ := m["on"].(string)
	for _, other := range s.running {
		if line != "" && slices.Contains(other, line) {
			s.fail("instruction %d runs beside another one on %s", w.Seq, line)
		}
	}
	s.running[w.Token] = []string{line}
	for _, j := range s.jobs {
		if j.in.Token == w.Token && j.in.NotAfter > 0 && s.gateway() > j.in.NotAfter {
			s.fail("instruction %d starts %d ms late", w.Seq, s.gateway()-j.in.NotAfter)
		}
	}
	if len(s.running) > 3 {
		s.fail("%d works at once", len(s.running))
	}
}

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
		if m.First > s.last+1 || m.Next < s.last+1 {
			s.fail("hello with events %d to %d, the gateway has %d", m.First, m.Next, s.last)
		}
		s.answer(&wire.Welcome{Session: m.Session, Epoch: 1, Now: s.gateway(), HeartbeatMs: 5000, Through: s.last})
	case *wire.Event:
		gap := m.Number > s.last+1
		if m.Number == s.last+1 {
			s.last++
			s.accept(m)
		}
		s.answer(&wire.EventAck{Through: s.last, Gap: gap})
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
	s.accepted++
	if e.Phase != wire.PhaseProcessed {
		return
	}
	s.trace = append(s.trace, fmt.Sprintf("%v %d/%d %s", s.at, e.Seq, e.Attempt, e.Code))
	if before, ok := s.done[e.Token]; ok && before != e.Code {
		s.fail("token %v ended as %s and as %s", e.Token, before, e.Code)
	}
	s.done[e.Token] = e.Code
	if e.Code == wire.CodeExpired && s.began[e.Token] > 0 {
		s.fail("token %v expired and ran", e.Token)
	}
	for _, j := range s.jobs {
		if j.in.Token == e.Token {
			j.final, j.code = true, e.Code
		}
	}
}

// move lets one thing happen.
func (s *site) move() {
	s.pass(time.Duration(s.rng.IntN(300)) * time.Millisecond)
	if !s.up {
		if s.calm || s.chance(30) {
			s.session++
			s.up, s.down = true, nil
			s.step(executor.Connected{Session: s.session})
		}
	} else if s.fault(3) {
		s.up, s.down = false, nil
		s.step(executor.Disconnected{})
	}
	for s.up && len(s.down) > 0 && !s.fault(20) {
		m := s.down[0]
		s.down = s.down[1:]
		s.step(executor.Received{Message: m})
	}
	s.endWork()
	s.manage()
	if s.fault(1) {
		s.start()
	}
}

// pass lets time pass, with the wake-ups that the core wants.
func (s *site) pass(d time.Duration) {
	end := s.at + d
	for i := 0; s.wake <= end; i++ {
		if i > 1000 {
			s.fail("the core wants to be woken all the time")
			s.t.FailNow()
		}
		s.at = max(s.at, s.wake)
		s.step(executor.Tick{})
	}
	s.at = end
}

func (s *site) endWork() {
	for _, tok := range sortedTokens(s.running) {
		if !s.chance(25) {
			continue
		}
		delete(s.running, tok)
		codes := []wire.Code{wire.CodeOK, wire.CodeOK, wire.CodeOK, wire.CodeIO, wire.CodeCancelled}
		s.step(executor.Finished{Token: tok, Result: executor.Result{Code: codes[s.rng.IntN(len(codes))]}})
	}
}

func sortedTokens(m map[wire.Token][]string) []wire.Token {
	var list []wire.Token
	for t := range m {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b wire.Token) int { return int(a.Seq) - int(b.Seq) })
	return list
}

// manage is the gateway's part: new instructions, resends, retries, cancels and
// questions.
func (s *site) manage() {
	if !s.calm && s.chance(30) {
		s.submit()
	}
	if !s.up {
		return
	}
	for _, j := range s.jobs {
		if j.final {
			if j.code != wire.CodeOK && j.attempts < 3 && s.fault(5) {
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
	if line := []string{"", "a", "b", "nowhere"}[s.rng.IntN(4)]; line != "" {
		in.Args = encodeMap(s.t, map[string]any{"on": line})
	}
	if s.chance(30) {
		in.NotAfter = s.gateway() + int64(s.rng.IntN(5000))
	}
	j := &job{in: in}
	s.jobs = append(s.jobs, j)
	s.retry(j)
}

// retry begins a new attempt.
func (s *site) retry(j *job) {
	tokens := 0
	for _, o := range s.jobs {
		tokens += o.attempts
	}
	in := *j.in
	j.attempts++
	in.Attempt, in.Token = uint8(j.attempts), wire.Token{Shard: 1, Seq: uint64(tokens + 1), Rand: 3}
	in.SentAt = s.gateway()
	j.in, j.final, j.sentAt = &in, false, s.at
	if s.up {
		s.answer(&in)
	}
}

// settled reports whether the gateway knows the end of everything and nothing is
// under way.
func (s *site) settled() bool { return s.open() == "" }

func (s *site) open() string {
	if s.t.Failed() {
		return ""
	}
	for _, j := range s.jobs {
		if !j.final {
			return fmt.Sprintf("instruction %d has no end", j.in.Seq)
		}
		if j.code == wire.CodeOK && s.began[j.in.Token] == 0 && j.attempts == 1 {
			return fmt.Sprintf("instruction %d is done but never ran", j.in.Seq)
		}
	}
	return ""
}

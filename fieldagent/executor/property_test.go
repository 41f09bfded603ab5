package executor_test

import (
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
	calm bool // no faults
	busy bool // but more work, new connections and orderly restarts

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
	seen    [2]uint64         // highest sequence and token of a hello

	leases
	line

	// The gateway.
	jobs    []*job
	last    uint64
	held    map[wire.Token]wire.Ref // it has heard of these and not of their end
	acked   uint64                  // the agent knows that it has the events up to this one
	digests int                     // that could be compared
	down    []wire.Message          // to the agent
	trace   []string
}

type job struct {
	in       *wire.Instruction
	sentAt   time.Duration
	final    bool // the gateway has the end of the current attempt
	code     wire.Code
	attempts int

	line            string // that it uses
	safe, withdrawn bool
	reads           bool
}

func play(t *testing.T, seed uint64) []string {
	s := &site{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 11)), began: map[wire.Token]int{},
		running: map[wire.Token][]string{}, done: map[wire.Token]wire.Code{}, told: map[uint64][]byte{}, held: map[wire.Token]wire.Ref{},
		leases: newLeases(), line: newLine(seed)}
	s.start()
	for range 400 {
		s.move()
	}
	s.calm, s.busy = true, true
	for range 100 {
		s.move()
		s.interrupt()
	}
	s.busy = false
	for i := 0; !s.settled(); i++ {
		if i > 5000 {
			s.fail("does not settle: %s", s.open())
			break
		}
		s.move()
	}
	// B9: at rest both hold the same, and a period brings the proof.
	before := s.digests
	s.move() // in case that it is not connected
	for range 2 * int(executor.DigestEvery/time.Second) {
		s.pass(time.Second)
		s.receive()
	}
	if s.digests == before || len(s.held) > 0 {
		s.fail("%d digests at rest, %d attempts held", s.digests-before, len(s.held))
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
	s.restarted()
	clear(s.running)
	clear(s.pins)
	cfg := config(3)
	cfg.Incarnation, cfg.MaxQueue, cfg.MaxKnown = 7, 20, 60
	cfg.Autonomy = 20 * time.Second
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
	lives := s.lives
	for _, w := range out.Urgent {
		if s.drive(w); s.lives != lives {
			return
		}
	}
	s.journal = append(s.journal, out.Records...)
	for _, w := range out.Start {
		if s.lives > 0 && s.fault(1) {
			s.start()
			return
		}
		s.begin(w)
	}
	if out.Fall != executor.FallNone {
		s.fall(out.Fall)
	}
	for _, t := range out.Abort {
		s.cut[t] = true
	}
	s.checkCuts(out)
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
	lines := s.jobOf(w.Token).lines()
	for tok, other := range s.running {
		if share(lines, other) {
			s.fail("instruction %d runs beside %v on %v", w.Seq, tok, lines)
		}
	}
	s.checkStart(w, lines)
	s.running[w.Token] = lines
	for _, j := range s.jobs {
		if j.in.Token == w.Token && j.in.NotAfter > 0 && s.gateway() > j.in.NotAfter {
			s.fail("instruction %d starts %d ms late", w.Seq, s.gateway()-j.in.NotAfter)
		}
	}
	if n := len(s.running) - s.driving(); n > 3 {
		s.fail("%d works at once", n)
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
		s.reached, s.contact = false, s.gateway()
	}
	s.receive()
	s.endWork()
	s.endLeases()
	s.manage()
	if s.fault(1) {
		s.start()
	}
}

// interrupt ends the connection, or the agent between two steps, while nothing is
// lost: so that there is much to compare.
func (s *site) interrupt() {
	switch {
	case s.chance(20):
		s.up, s.down = false, nil
		s.step(executor.Disconnected{})
		s.reached, s.contact = false, s.gateway()
	case s.chance(5):
		s.journal = s.core.Snapshot()
	case s.chance(5):
		s.start()
	}
}

// receive gives the agent what is on its way to it.
func (s *site) receive() {
	for s.up && len(s.down) > 0 && !s.fault(20) {
		m := s.down[0]
		s.down = s.down[1:]
		s.heard(m)
		s.arrives(m)
		s.step(executor.Received{Message: m})
		s.arrived(m)
	}
}

// heard follows what the agent knows of the gateway's progress.
func (s *site) heard(m wire.Message) {
	switch m := m.(type) {
	case *wire.EventAck:
		s.acked = max(s.acked, m.Through)
	case *wire.Welcome:
		if m.Session == s.session {
			s.acked = max(s.acked, m.Through)
		}
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
		lines := s.running[tok]
		delete(s.running, tok)
		if len(lines) == 1 && lines[0] != board && !s.drives[tok] && s.chance(40) {
			s.endLeased(tok, lines[0])
			continue
		}
		codes := []wire.Code{wire.CodeOK, wire.CodeOK, wire.CodeOK, wire.CodeIO, wire.CodeCancelled}
		if s.drives[tok] || s.cut[tok] {
			codes = []wire.Code{wire.CodeOK}
		}
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

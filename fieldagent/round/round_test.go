package round_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/journal"
	"github.com/apollo-11/apollo11/fieldagent/round"
	"github.com/apollo-11/apollo11/wire"
)

// wall is the Unix time in ms at which these tests begin.
const wall = int64(1_790_000_000_000)

// site is a core with a journal that takes its time, and hands that write down
// what they are given.
type site struct {
	t         *testing.T
	now       time.Duration
	core      *executor.Core
	performer *round.Performer
	takes     time.Duration // of a sync
	fails     error         // of the next append
	throws    bool          // somebody throws the LOCAL switch during the next append
	local     bool          // it is on
	line      bool          // all of them use one
	did       []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t}
	core, out, err := executor.New(executor.Config{Hello: wire.Hello{Short: wire.Short("n")}, Incarnation: 1,
		Check: func(intent string, _ wire.RawMap) executor.Verdict {
			v := executor.Verdict{Actuates: true}
			if s.line || intent == wire.IntentSafe {
				v.Lines, v.Towards = []wire.LineKey{1}, intent == wire.IntentSafe
			}
			return v
		}}, nil, s.clock())
	if err != nil {
		t.Fatal(err)
	}
	s.core, s.performer = core, round.New(core, s, s, s.clock, 0)
	s.perform(out)
	s.give(executor.Connected{Session: 1})
	s.give(executor.Received{Message: &wire.Welcome{Session: 1, Epoch: 1, Now: s.clock().Wall, HeartbeatMs: 600_000}})
	s.did = nil
	return s
}

func (s *site) clock() executor.Now {
	return executor.Now{Mono: s.now, Wall: wall + s.now.Milliseconds(), WallOK: true, Local: s.local}
}

// give collects a round from an input and performs it, and what follows.
func (s *site) give(list ...executor.Input) {
	first, rest := list[0], list[1:]
	s.perform(round.Collect(s.core, s.clock, first, func() (executor.Input, bool) {
		if len(rest) == 0 {
			return nil, false
		}
		in := rest[0]
		rest = rest[1:]
		return in, true
	}))
}

func (s *site) perform(out executor.Output) {
	late, err := s.performer.Perform(out)
	if err != nil {
		s.did = append(s.did, "died")
		return
	}
	if len(late) > 0 {
		s.give(executor.Unstarted{Tokens: late})
	}
}

func (s *site) deliver(seq uint64, good time.Duration) executor.Input {
	now := s.clock().Wall
	return executor.Received{Message: &wire.Instruction{Seq: seq, Key: wire.Key{Site: "s", Millis: now, Seq: seq}.String(),
		Token: wire.Token{Seq: seq}, Attempt: 1, Intent: wire.IntentGPIOWrite, SentAt: now, NotAfter: now + good.Milliseconds()}}
}

func (s *site) Append(...[]byte) error {
	s.now += s.takes
	s.local, s.throws = s.local || s.throws, false
	if s.fails != nil {
		return s.fails
	}
	s.did = append(s.did, "durable")
	return nil
}
func (s *site) Rewrite([][]byte) error { return s.Append() }
func (s *site) Size() int64            { return 0 }
func (s *site) Start(w executor.Work)  { s.did = append(s.did, fmt.Sprintf("start %d", w.Seq)) }
func (s *site) Abort(wire.Token)       { s.did = append(s.did, "abort") }
func (s *site) Note(executor.Note)     {}
func (s *site) Contact()               {}
func (s *site) EndLease(wire.Token)    { s.did = append(s.did, "end lease") }
func (s *site) Hold([]wire.LineKey)    { s.did = append(s.did, "hold") }
func (s *site) Fall(executor.Fall)     { s.did = append(s.did, "fall") }
func (s *site) Narrowband(a wire.CompactAck) {
	s.did = append(s.did, fmt.Sprintf("over narrowband %d: %v", a.Seq, a.Code))
}
func (s *site) Primary(m wire.Message) {
	if e, ok := m.(*wire.Event); ok {
		s.did = append(s.did, fmt.Sprintf("event %d of %d: %v %v started %v", e.Number, e.Seq, e.Phase, e.Code, e.StartedAt != 0))
	}
}

func (s *site) want(want ...string) {
	s.t.Helper()
	if !slices.Equal(s.did, want) {
		s.t.Errorf("did  %q\nwant %q", s.did, want)
	}
	s.did = nil
}

func TestNothingStartsBeforeItIsWrittenDown(t *testing.T) {
	s := newSite(t)
	s.give(s.deliver(1, time.Minute), s.deliver(2, time.Minute))
	s.want("durable", "start 1", "start 2")
}

func TestNothingHappensWhenItCannotBeWrittenDown(t *testing.T) {
	s := newSite(t)
	s.fails = errors.Join(journal.ErrDead, errors.New("no"))
	s.give(s.deliver(1, time.Minute))
	s.want("died")
}

func TestA9_WorkIsNotBegunWhenItsLimitPassedWhileItsStartWasWrittenDown(t *testing.T) {
	s := newSite(t)
	s.takes = 3 * time.Second
	s.give(s.deliver(1, 2*time.Second), s.deliver(2, 10*time.Second))
	s.takes = 0
	// The other one has just begun: that is told when it has taken a while.
	s.want("durable", "start 2", "durable", "event 1 of 1: processed expired started false")
	s.give(s.deliver(1, 2*time.Second)) // its token is spent: the event is told again
	s.want("durable", "event 1 of 1: processed expired started false", "event 2 of 2: started none started true")
	s.give(executor.Finished{Token: wire.Token{Seq: 2}, Result: executor.Result{Code: wire.CodeOK}})
	s.want("durable", "event 3 of 2: processed ok started true")
}

// A7: the loop has hung, and its deadline and the end of a work wait for it. The end comes
// first: the work is not given up.
func TestA7_ATickComesLast(t *testing.T) {
	s := newSite(t)
	s.give(s.deliver(1, time.Minute))
	s.now += time.Hour
	s.give(executor.Tick{}, executor.Finished{Token: wire.Token{Seq: 1}, Result: executor.Result{Code: wire.CodeOK}})
	s.want("durable", "start 1", "durable", "event 1 of 1: processed ok started true")
}

// C15: whoever throws the switch sees nothing move after it, however long the card
// takes over what was decided before.
func TestC15_WorkIsNotBegunWhenTheLocalSwitchWasThrownWhileItsStartWasWrittenDown(t *testing.T) {
	s := newSite(t)
	s.throws = true
	s.give(s.deliver(1, time.Minute))
	s.want("durable", "durable", "event 1 of 1: processed local started false")
	s.give(executor.Hand{Local: true}) // it is told behind that
	s.local = false
	s.give(executor.Hand{})
	s.give(s.deliver(2, time.Minute))
	s.want("durable", "start 2")
}

// A9, C15: what was not begun for both reasons has expired: that does not change.
func TestC15_ExpiredCountsMoreThanTheLocalSwitch(t *testing.T) {
	s := newSite(t)
	s.throws, s.takes = true, 3*time.Second
	s.give(s.deliver(1, 2*time.Second))
	s.want("durable", "durable", "event 1 of 1: processed expired started false")
}

func (s *site) off(seq uint64) executor.Input {
	in := s.deliver(seq, time.Minute).(executor.Received).Message.(*wire.Instruction)
	in.Intent = wire.IntentSafe
	return executor.Received{Message: in}
}

// D1: what is said over narrowband is durable as well. A cancel that is told as done,
// and forgotten by a power cut, would let the work begin.
func TestD1_NothingIsSaidOverNarrowbandBeforeItIsWrittenDown(t *testing.T) {
	s := newSite(t)
	s.give(executor.NarrowbandUp{})
	s.give(executor.ReceivedCompact{Frame: wire.CompactCancel{Seq: 7, Attempt: 1}})
	s.want("durable", "over narrowband 7: cancelled")
	s.give(s.deliver(8, time.Minute), executor.ReceivedCompact{Frame: wire.CompactQuery{Seq: 8, Attempt: 1}})
	s.want("durable", "start 8", "over narrowband 8: started")
	s.fails = errors.Join(journal.ErrDead, errors.New("no"))
	s.give(executor.ReceivedCompact{Frame: wire.CompactCancel{Seq: 9, Attempt: 1}})
	s.want("died")
}

// docs/safety.md 5: what is towards safe is driven before anything is written down,
// and also when nothing can be.
func TestTowardsSafeWaitsForNoDisk(t *testing.T) {
	s := newSite(t)
	s.give(s.deliver(1, time.Minute), s.off(2))
	s.want("start 2", "durable", "start 1")
	s.fails = errors.Join(journal.ErrDead, errors.New("no"))
	s.give(s.deliver(3, time.Minute), s.off(4))
	s.want("start 4", "died")
}

// What was decided in the same round before it, on the same line, is not begun behind
// it: it is older.
func TestNothingOlderBeginsBehindWhatIsTowardsSafe(t *testing.T) {
	s := newSite(t)
	s.line = true
	s.give(s.deliver(1, time.Minute), s.off(2))
	s.want("start 2", "durable", "abort", "durable", "event 1 of 1: processed cancelled started false")
}

// One step, one frame: a round stops collecting long before its records would need two.
func TestA16_OneStepIsOneFrame(t *testing.T) {
	s := newSite(t)
	var list []executor.Input
	for n := uint64(1); n <= 1000; n++ {
		list = append(list, s.deliver(n, time.Minute))
	}
	for len(list) > 0 {
		out := round.Collect(s.core, s.clock, list[0], func() (executor.Input, bool) {
			if list = list[1:]; len(list) == 0 {
				return nil, false
			}
			return list[0], true
		})
		if len(list) > 0 {
			list = list[1:]
		}
		bytes := 0
		for _, r := range out.Records {
			bytes += len(r) + 8
		}
		if bytes > journal.MaxBatch {
			t.Fatalf("%d bytes in a round", bytes)
		}
	}
}

// A7, A14: a round that takes in what waited while the loop hung says that the gateway is
// there as of its end: the last input may be the loss of the connection.
func TestA7_ContactIsAsOfTheEndOfARound(t *testing.T) {
	if contactAfterLoss(t) {
		t.Error("the gateway counts as heard by a word of before its loss")
	}
}

// contactAfterLoss says whether a round counts as contact that begins with a word of the
// gateway and ends with its loss.
func contactAfterLoss(t *testing.T) bool {
	s := newSite(t)
	rest := []executor.Input{executor.Disconnected{}}
	out := round.Collect(s.core, s.clock, s.deliver(1, time.Minute), func() (executor.Input, bool) {
		if len(rest) == 0 {
			return nil, false
		}
		in := rest[0]
		rest = nil
		return in, true
	})
	return out.Contact
}

// fullCard has no room for an append.
type fullCard struct {
	*site
	wrote [][]byte
	fails error
}

func (f *fullCard) Append(...[]byte) error { return journal.ErrFull }

func (f *fullCard) Rewrite(records [][]byte) error {
	if f.fails != nil {
		return f.fails
	}
	f.wrote = records
	return f.site.Rewrite(records)
}

// A card without room for an append takes the whole journal anew: nothing is done before
// that, and nothing at all if it fails.
func TestAFullCardIsWrittenAnew(t *testing.T) {
	for _, fails := range []error{nil, errors.New("no room at all")} {
		s := newSite(t)
		card := &fullCard{site: s, fails: fails}
		s.performer = round.New(s.core, card, s, s.clock, 0)
		s.give(s.deliver(1, time.Minute))
		if fails != nil {
			s.want("died")
			continue
		}
		s.want("durable", "start 1")
		if len(card.wrote) != len(s.core.Snapshot()) {
			t.Errorf("written were %d records, the core has %d", len(card.wrote), len(s.core.Snapshot()))
		}
	}
}

package round_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/round"
	"github.com/apollo-11/apollo11/wire"
)

// site is an engine with one node that has a lamp, and a log that the test settles.
type site struct {
	t     *testing.T
	eng   *engine.Engine
	ahead round.Ahead
	now   engine.Now
	jobs  uint64
	// reserved are the reservations by job, from 1.
	reserved []engine.Reserved
}

// card is a log on no disk at all.
type card struct{ s *site }

func (c card) Apply(r *engine.Records) (round.Pending, error) {
	if r.Reserved != nil {
		c.s.reserved[len(c.s.reserved)-1] = *r.Reserved
	}
	return nil, nil
}

func (card) Lookup(engine.Want) (round.Found, error) { return round.Found{}, nil }

func newSite(t *testing.T, reserve int) *site {
	return &site{t: t, now: engine.Now{Mono: time.Minute, Wall: 1_700_000_000_000},
		eng: engine.New(engine.Config{Reserve: reserve}, engine.Counters{Shard: 1, Epoch: 1}, rand.New(rand.NewPCG(1, 2)))}
}

func (s *site) wait(d time.Duration) {
	s.now.Mono, s.now.Wall = s.now.Mono+d, s.now.Wall+d.Milliseconds()
}

func (s *site) step(in engine.Input) { s.eng.Step(s.now, in) }

func (s *site) hello() {
	line := wire.LineOf("chip:1")
	s.step(&engine.Uplink{Node: "pump-1", Msg: &wire.Hello{Session: 1, Incarnation: 1, Short: wire.Short("pump-1"), First: 1, Next: 1,
		Clock: s.now.Wall, ClockSet: true, Rules: wire.NewestRules, Pins: []string{"lamp"},
		Traits: []wire.PinTraits{{Line: line, Flags: wire.PinOutput | wire.PinHasSafe}}}})
}

func (s *site) write(level uint64) {
	args, err := wire.EncodeMap(map[string]any{"pin": "lamp", "level": level}, wire.MaxArgsBytes)
	if err != nil {
		s.t.Fatal(err)
	}
	s.step(&engine.Submit{Spec: engine.Spec{Intent: wire.IntentGPIOWrite, Nodes: []string{"pump-1"}, Args: args}, Path: engine.PathHTTP})
}

// flush makes a job of what has collected.
func (s *site) flush() {
	s.t.Helper()
	s.reserved = append(s.reserved, engine.Reserved{})
	j, _, err := round.Flush(s.eng, card{s}, s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	s.ahead.Flushed(s.now.Mono, &j)
	s.jobs++
}

func (s *site) due() (seqs []uint64) {
	list, _ := s.ahead.Due(s.now.Mono)
	for _, u := range list {
		seqs = append(seqs, u.Msg.Seq)
	}
	return seqs
}

func (s *site) want(what string, want ...uint64) {
	s.t.Helper()
	got := s.due()
	if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
		s.t.Errorf("%s: %v go ahead, want %v", what, got, want)
	}
}

// safety.md 1, 5: an off goes ahead of a record that takes long, and an on does not; what
// is on disk in time needs no second message, and none leaves after it.
func TestOffGoesAheadOfASlowRecord(t *testing.T) {
	s := newSite(t, 100)
	s.hello()
	s.flush()
	s.ahead.Settled(1)
	s.write(1)
	s.write(0)
	s.flush()
	s.want("at once")
	s.wait(round.AheadAfter)
	s.want("after a while", 2)
	s.want("again")
	s.write(0)
	s.flush()
	s.ahead.Settled(3)
	s.wait(time.Minute)
	s.want("on disk")
}

// safety.md 1: nothing leaves under numbers that are not reserved on disk: neither in the
// first round of a log, nor beyond the block.
func TestOnlyReservedNumbersGoAhead(t *testing.T) {
	s := newSite(t, 4)
	s.hello()
	s.flush() // reserves up to 4, and is not on disk
	s.write(0)
	s.flush()
	s.wait(time.Minute)
	s.want("nothing is reserved on disk")
	s.ahead.Settled(1)
	s.want("the first block is", 1)
	s.write(1)
	s.write(1)
	s.write(1)
	s.write(0)
	s.flush() // reserves the next block
	s.wait(time.Minute)
	s.want("beyond the block")
	s.ahead.Settled(2)
	s.want("the job before it is on disk")
}

// safety.md 5: while the disk takes no more rounds the engine hands out what is towards
// safe, and keeps everything else for the next one. Its record is in that.
func TestEngineGoesOnWithoutRounds(t *testing.T) {
	s := newSite(t, 100)
	s.hello()
	s.flush()
	s.ahead.Settled(1)
	n := s.eng.Collected()
	s.write(1)
	s.write(0)
	if s.eng.Collected() <= n {
		t.Error("two commands collect nothing")
	}
	s.ahead.Take(s.now.Mono, s.eng.Urgent(s.now))
	s.wait(round.AheadAfter)
	s.want("while full", 2)
	j, _, err := round.Flush(s.eng, card{&site{reserved: make([]engine.Reserved, 1)}}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	if len(j.Effects.Urgent) != 0 {
		t.Errorf("%d go ahead twice", len(j.Effects.Urgent))
	}
	var sent []uint64
	for _, m := range j.Effects.Sends {
		if in, ok := m.Msg.(*wire.Instruction); ok {
			sent = append(sent, in.Seq)
		}
	}
	if len(sent) != 1 || sent[0] != 2 || len(j.Writes) != 2 {
		t.Errorf("sent %v, %d written", sent, len(j.Writes))
	}
}

// A heartbeat leads to nothing: the loop takes it however long the disk hangs.
func TestHeartbeatsCollectNothing(t *testing.T) {
	s := newSite(t, 100)
	s.hello()
	s.flush()
	n := s.eng.Collected()
	for range 1000 {
		s.wait(time.Second)
		s.step(&engine.Uplink{Node: "pump-1", Msg: &wire.Heartbeat{Session: 1, Clock: s.now.Wall, Next: 1}})
	}
	if m := s.eng.Collected(); m != n {
		t.Errorf("%d heartbeats collect %d things", 1000, m-n)
	}
}

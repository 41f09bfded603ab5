package gateway_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// clockwork is an engine whose two clocks the test moves.
type clockwork struct {
	t   *testing.T
	eng *engine.Engine
	now engine.Now
}

// at makes an engine at a moment, written as RFC 3339.
func at(t *testing.T, moment string) *clockwork {
	t.Helper()
	return &clockwork{t, engine.New(engine.Config{}, engine.Counters{Shard: 1, Epoch: 1}, rand.New(rand.NewPCG(1, 2))),
		engine.Now{Mono: time.Minute, Wall: unix(t, moment)}}
}

func unix(t *testing.T, moment string) int64 {
	t.Helper()
	m, err := time.Parse(time.RFC3339Nano, moment)
	if err != nil {
		t.Fatal(err)
	}
	return m.UnixMilli()
}

// quiet asks for a quiet period until a moment, and reports whether it is granted.
func (c *clockwork) quiet(until int64) bool {
	c.t.Helper()
	r := c.step(&engine.Operate{Action: engine.ActionQuietOn, Until: until, Actor: "ops", Note: "works on the mast", Reply: "caller"})
	if len(r.Effects.Replies) != 1 {
		c.t.Fatalf("%d replies", len(r.Effects.Replies))
	}
	reply := r.Effects.Replies[0]
	if reply.Refused != nil && (reply.Refused.Kind != engine.RefusedInvalid || reply.Refused.Hint == "") {
		c.t.Errorf("refused with %+v", reply.Refused)
	}
	if granted := reply.Done != nil; granted != c.eng.Quiet().On || granted != (r.Records.Quiet != nil) || granted != (len(r.Records.Audits) == 1) {
		c.t.Errorf("granted: %v, but quiet: %v, record %v, %d audit entries", granted, c.eng.Quiet().On, r.Records.Quiet, len(r.Records.Audits))
	}
	return reply.Done != nil
}

func (c *clockwork) step(inputs ...engine.Input) engine.Ready {
	for _, in := range inputs {
		c.eng.Step(c.now, in)
	}
	return c.eng.Ready(c.now)
}

// pass moves both clocks, and reports whether it is quiet then.
func (c *clockwork) pass(d time.Duration) bool {
	c.now.Mono += d
	c.now.Wall += d.Milliseconds()
	c.step()
	return c.eng.Quiet().On
}

// H5: what a quiet period may be. Its end lies after its beginning and within a
// week; both ends belong to what is allowed as far as they make sense.
func TestH5_EdgesOfAQuietPeriod(t *testing.T) {
	const start = "2026-03-01T12:00:00Z"
	for _, c := range []struct {
		name string
		ms   int64 // from the beginning to the end
		want bool
	}{
		{"end before start", -1, false},
		{"end equals start", 0, false},
		{"one millisecond", 1, true},
		{"24 hours", 24 * 3600 * 1000, true},
		{"a week", engine.MaxQuiet, true},
		{"a week and a millisecond", engine.MaxQuiet + 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := at(t, start)
			if got := w.quiet(w.now.Wall + c.ms); got != c.want {
				t.Fatalf("granted: %v, want %v", got, c.want)
			}
			if !c.want {
				return
			}
			length := time.Duration(c.ms) * time.Millisecond
			if length > time.Millisecond && !w.pass(length-time.Millisecond) {
				t.Error("it ended before its end")
			}
			if w.pass(2 * time.Millisecond) {
				t.Error("it goes on after its end")
			}
		})
	}
	w := at(t, start)
	if w.quiet(0) || w.quiet(-1) || w.quiet(1<<62) {
		t.Error("an end that is no time is granted")
	}
}

// H5: an end is a moment, not a time of day: midnight and the change to or from
// daylight time neither shorten nor lengthen the period.
func TestH5_QuietPeriodCrossesMidnightAndTheChangeOfTime(t *testing.T) {
	for _, c := range []struct {
		name, from, until string
		lasts             time.Duration
	}{
		{"midnight UTC", "2026-03-01T23:59:50Z", "2026-03-02T00:00:10Z", 20 * time.Second},
		{"midnight by the wall", "2026-03-01T23:30:00+01:00", "2026-03-02T00:30:00+01:00", time.Hour},
		{"New Year", "2026-12-31T22:00:00Z", "2027-01-01T06:00:00Z", 8 * time.Hour},
		{"29 February", "2028-02-28T12:00:00Z", "2028-03-01T12:00:00Z", 48 * time.Hour},
		{"into daylight time", "2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00", time.Hour},
		{"out of daylight time", "2026-10-25T01:30:00+02:00", "2026-10-25T03:30:00+01:00", 3 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := at(t, c.from)
			if !w.quiet(unix(t, c.until)) {
				t.Fatal("refused")
			}
			if !w.pass(c.lasts - time.Millisecond) {
				t.Error("it ended before its end")
			}
			if w.pass(2 * time.Millisecond) {
				t.Error("it goes on after its end")
			}
		})
	}
}

// H5: Unix time has no leap second; a clock that follows it repeats one. The
// period does not end early and not more than that second late, and it ends once.
func TestH5_QuietPeriodOverALeapSecond(t *testing.T) {
	w := at(t, "2016-12-31T23:59:50Z")
	if !w.quiet(unix(t, "2017-01-01T00:00:05Z")) {
		t.Fatal("refused")
	}
	w.pass(10*time.Second - time.Millisecond)
	w.now.Wall -= 1000 // 23:59:60 has the number of 23:59:59
	var ends int
	var lasted time.Duration
	for k := range 100 {
		w.now.Mono += 100 * time.Millisecond
		w.now.Wall += 100
		if r := w.step(); len(r.Records.Audits) > 0 {
			ends++
			lasted = 10*time.Second + time.Duration(k+1)*100*time.Millisecond
		}
	}
	if ends != 1 || lasted < 15*time.Second || lasted > 16200*time.Millisecond {
		t.Errorf("it ended %d times, after %v", ends, lasted)
	}
}

// H5, A8: what the window is for: a retry that falls due inside it waits for its
// end, over midnight, and then comes.
func TestH5_RetryWaitsForTheEndOfTheQuietPeriod(t *testing.T) {
	w := at(t, "2026-03-01T23:59:30Z")
	hello := &wire.Hello{Session: 1, Incarnation: 1, Short: wire.Short("pump-1"), First: 1, Next: 1, Clock: w.now.Wall, ClockSet: true}
	r := w.step(&engine.Uplink{Node: "pump-1", Msg: hello},
		&engine.Submit{Spec: engine.Spec{TaskID: "t", Intent: wire.IntentGPIORead, Nodes: []string{"pump-1"}}, Path: engine.PathHTTP})
	sent := instructions(r)
	if len(sent) != 1 {
		t.Fatalf("%d sends", len(sent))
	}
	if !w.quiet(unix(t, "2026-03-02T00:00:30Z")) {
		t.Fatal("refused")
	}
	w.step(&engine.Uplink{Node: "pump-1", Msg: &wire.Event{Number: 1, Seq: sent[0].Seq, Token: sent[0].Token, Attempt: 1,
		Phase: wire.PhaseProcessed, Code: wire.CodeBusy, ReceivedAt: w.now.Wall, StartedAt: w.now.Wall, FinishedAt: w.now.Wall}})
	var again []*wire.Instruction
	beat := func(d time.Duration) {
		for end := w.now.Mono + d; w.now.Mono < end; {
			w.now.Mono += time.Second
			w.now.Wall += 1000
			again = append(again, instructions(w.step(&engine.Uplink{Node: "pump-1", Msg: &wire.Heartbeat{Session: 1, Clock: w.now.Wall}}))...)
		}
	}
	beat(59 * time.Second)
	if len(again) != 0 {
		t.Fatalf("%d sends inside the quiet period", len(again))
	}
	beat(15 * time.Second)
	if len(again) == 0 || again[0].Attempt != 2 || again[0].Token == sent[0].Token {
		t.Errorf("after its end: %+v", again)
	}
}

// instructions are those that a round sends.
func instructions(r engine.Ready) (list []*wire.Instruction) {
	for _, s := range r.Effects.Sends {
		if m, ok := s.Msg.(*wire.Instruction); ok {
			list = append(list, m)
		}
	}
	return list
}

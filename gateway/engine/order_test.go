package engine_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// orderly is an agent that follows the rules: it takes so many, runs one a line at a
// time, and tells of room with each heartbeat.
type orderly struct {
	h       *harness
	room    int
	workers int
	queue   []*wire.Instruction
	running []*wire.Instruction
	ran     map[wire.LineKey][]uint64
	number  uint64
	most    int
}

func (a *orderly) uplink(m wire.Message) {
	a.h.log.step(a.h.eng, a.h.now, &engine.Uplink{Node: "pump-1", Msg: m})
}

func (a *orderly) event(m *wire.Instruction, p wire.Phase, code wire.Code) {
	a.number++
	a.uplink(&wire.Event{Number: a.number, Seq: m.Seq, Token: m.Token, Attempt: m.Attempt, Phase: p, Code: code, ReceivedAt: 1})
}

func (a *orderly) take(m *wire.Instruction) {
	if len(a.queue) >= a.room {
		a.uplink(&wire.Report{States: []wire.State{{Seq: m.Seq, Token: m.Token, Status: wire.StatusFull}}})
		return
	}
	a.queue = append(a.queue, m)
	a.most = max(a.most, len(a.queue))
	a.event(m, wire.PhaseReceived, wire.CodeNone)
}

// work ends what runs and starts the next ones.
func (a *orderly) work() {
	for _, m := range a.running {
		a.event(m, wire.PhaseProcessed, wire.CodeOK)
		a.ran[m.Lines[0]] = append(a.ran[m.Lines[0]], m.Seq)
	}
	a.running = nil
	for k := 0; k < len(a.queue) && len(a.running) < a.workers; {
		m := a.queue[k]
		if slices.ContainsFunc(a.running, func(o *wire.Instruction) bool { return o.Lines[0] == m.Lines[0] }) {
			k++
			continue
		}
		a.queue = slices.Delete(a.queue, k, k+1)
		a.running = append(a.running, m)
	}
}

// TestB26_TenThousandWaitingCommandsDrainInOrder lets a node come back to ten thousand
// commands, of one line and of many, with an agent that has little room: all are
// executed, in order at each line, none fails for want of room.
func TestB26_TenThousandWaitingCommandsDrainInOrder(t *testing.T) {
	for _, lines := range []int{1, 20} {
		t.Run(fmt.Sprintf("%d lines", lines), func(t *testing.T) {
			n := 10_000
			if raceDetector || testing.Short() {
				n = 1000
			}
			h := newHarness(t)
			h.cfg.DrainRate, h.cfg.DrainBurst = 1_000_000, 1000
			h.boot()
			a := &orderly{h: h, room: 2 + lines, workers: 2, ran: map[wire.LineKey][]uint64{}}
			hello := &wire.Hello{Session: 1, Incarnation: 1, Short: wire.Short("pump-1"), First: 1, Next: 1, Rules: wire.NewestRules}
			for k := range lines {
				p := fmt.Sprintf("p%02d", k)
				hello.Pins = append(hello.Pins, p)
				hello.Traits = append(hello.Traits, wire.PinTraits{Line: wire.LineOf("chip:" + p), Flags: wire.PinOutput})
			}
			for k := range n {
				args, err := wire.EncodeMap(wire.GPIOWrite{Pin: hello.Pins[k%lines], Level: k/lines%2 == 0}.Map(), wire.MaxArgsBytes)
				if err != nil {
					t.Fatal(err)
				}
				h.log.step(h.eng, h.now, &engine.Submit{Spec: engine.Spec{Intent: wire.IntentGPIOWrite, Args: args, Nodes: []string{"pump-1"},
					Priority: wire.Priority(1 + k%3)}})
			}
			a.uplink(hello)
			rounds := 0
			for ; rounds < 20*n && (rounds == 0 || h.eng.Open() > 0); rounds++ {
				r := h.eng.Ready(h.now)
				h.apply(&r)
				if rounds%2000 == 0 {
					if err := h.eng.Check(); err != nil {
						t.Fatal(err)
					}
				}
				h.pass(time.Millisecond)
				a.work()
				for _, s := range r.Effects.Sends {
					if m, ok := s.Msg.(*wire.Instruction); ok {
						a.take(m)
					}
				}
				if rounds%5 == 0 {
					a.uplink(&wire.Heartbeat{Session: 1, Room: uint32(a.room-len(a.queue)) + 1})
				}
			}
			r := h.eng.Ready(h.now)
			h.finish(&r)
			total := 0
			for k, ran := range a.ran {
				total += len(ran)
				if !slices.IsSorted(ran) {
					t.Errorf("line %x: not in order", k)
				}
			}
			for _, i := range h.log.insts {
				if i.State != engine.StateSucceeded || i.Attempt != 1 || i.Retries != 0 {
					t.Fatalf("instruction %d: %v after %d attempts, %d retries, %s", i.Seq, i.State, i.Attempt, i.Retries, i.Reason)
				}
			}
			if total != n {
				t.Errorf("%d of %d were executed in %d rounds", total, n, rounds)
			}
			t.Logf("%d rounds, at most %d waited in the agent", rounds, a.most)
		})
	}
}

// TestA20_TheTimeLimitIsResolvedAndSent demands that what an instruction is sent with
// is what the gateway waits for: one default, and room for what takes a known time.
func TestA20_TheTimeLimitIsResolvedAndSent(t *testing.T) {
	for _, c := range []struct {
		submit string
		want   time.Duration
	}{
		{"submit node=pump-1", time.Minute},
		{"submit node=pump-1 timeout=7s", 7 * time.Second},
		{"submit node=pump-1 intent=gpio.pulse width=3m", 190 * time.Second},
		{"submit node=pump-1 intent=valve.turn", time.Minute},
	} {
		h := newHarness(t)
		h.log.step(h.eng, h.now, h.input(parseCommand(t, "hello pump-1")))
		h.log.step(h.eng, h.now, h.input(parseCommand(t, c.submit)))
		r := h.eng.Ready(h.now)
		k := slices.IndexFunc(r.Effects.Sends, func(s engine.Send) bool { _, ok := instruction(s.Msg); return ok })
		if k < 0 {
			t.Fatalf("%s: not sent", c.submit)
		}
		m, _ := instruction(r.Effects.Sends[k].Msg)
		if got := time.Duration(m.TimeoutMs) * time.Millisecond; got != c.want {
			t.Errorf("%s: sent with %v, want %v", c.submit, got, c.want)
		}
	}
}

// TestB34_NoFloodUsesUpTheReserve fills the queue, then floods it with the same way to
// safe: one record, and room for the next node's.
func TestB34_NoFloodUsesUpTheReserve(t *testing.T) {
	h := newHarness(t)
	h.cfg.Capacity = 20
	h.boot()
	do := func(line string) engine.Reply {
		h.log.step(h.eng, h.now, h.input(parseCommand(t, line)))
		r := h.eng.Ready(h.now)
		h.finish(&r)
		return r.Effects.Replies[len(r.Effects.Replies)-1]
	}
	for range 20 {
		do("submit node=pump-1")
	}
	for range 3000 {
		if r := do("submit node=pump-1 intent=gpio.safe"); r.Accepted == nil {
			t.Fatalf("refused: %v", r.Refused)
		}
	}
	if r := do("submit node=pump-2 intent=gpio.safe"); r.Accepted == nil || r.Accepted.Existing {
		t.Errorf("the way to safe of another node: %+v, %v", r.Accepted, r.Refused)
	}
	seqs := slices.SortedFunc(func(yield func(engine.Instruction) bool) {
		for _, i := range h.log.insts {
			if i.Intent == wire.IntentSafe && !yield(i) {
				return
			}
		}
	}, func(a, b engine.Instruction) int { return cmp.Compare(a.Seq, b.Seq) })
	if len(seqs) != 2 || seqs[0].Same < 2048 || len(h.log.lines[seqs[0].Seq]) > 20 {
		t.Errorf("%d records, the first stands for %d and has %d entries", len(seqs), seqs[0].Same, len(h.log.lines[seqs[0].Seq]))
	}
}

// TestB25_NumbersAreNeverGivenOutTwice loses the latest records of a log, as a disk
// that lies about fsync does: the next process begins above all that was given out.
func TestB25_NumbersAreNeverGivenOutTwice(t *testing.T) {
	if given, again := numbersAfterLoss(t); again < given {
		t.Errorf("numbers go on with %d, up to %d had been given out", again, given-1)
	}
}

// numbersAfterLoss says which number comes next, and which one a process takes that
// starts on a log without the latest records.
func numbersAfterLoss(t *testing.T) (given, again uint64) {
	h := newHarness(t)
	h.cfg.Reserve = 100
	h.boot()
	do := func(line string) {
		h.log.step(h.eng, h.now, h.input(parseCommand(t, line)))
		r := h.eng.Ready(h.now)
		h.finish(&r)
	}
	do("hello pump-1")
	do("submit node=pump-1")
	old := h.log.clone()
	for range 50 {
		do("submit node=pump-1")
	}
	given = h.log.counters.NextSeq
	h.log = old
	h.boot()
	do("submit node=pump-1")
	return given, h.log.counters.NextSeq - 1
}

// TestA11_AnotherNameOfTheLine: without a pin map a line goes by more names than the
// hello tells (P1_11 for GPIO17). What names one of those waits for all that is older on
// the board, and what is newer for it, since nobody here knows which line it is. And the
// agent, who does, is believed when something newer has begun there.
func TestA11_AnotherNameOfTheLine(t *testing.T) {
	for _, names := range [][2]string{{"P1_11", "GPIO17"}, {"GPIO17", "P1_11"}, {"P1_11", "P1_12"}} {
		h := newHarness(t)
		h.block("hello a pins=GPIO17:-,GPIO18:-")
		if out := h.block(fmt.Sprintf("submit node=a pin=%s level=1\nsubmit node=a pin=%s level=0", names[0], names[1])); strings.Contains(out, "-> send a instruction 2 ") {
			t.Errorf("%v: the newer is not behind the older:\n%s", names, out)
		}
		if out := h.block("event a seq=1 received"); !strings.Contains(out, "-> send a instruction 2 ") {
			t.Errorf("%v: and does not go when that is received:\n%s", names, out)
		}
		h.block("event a seq=2 started")
		if out := h.block("event a seq=1 processed superseded"); strings.Contains(out, "order_lost") {
			t.Errorf("%v: not believed:\n%s", names, out)
		}
	}
	// What the hello tells of is as it was, and so is the way to safe.
	h := newHarness(t)
	h.block("hello a pins=lamp:0,GPIO18:-")
	out := h.block("submit node=a pin=lamp level=1\nsubmit node=a pin=GPIO18 level=1")
	if !strings.Contains(out, "-> send a instruction 1 ") || !strings.Contains(out, "-> send a instruction 2 ") {
		t.Errorf("one line waits for the other:\n%s", out)
	}
	h.block("submit node=a pin=nowhere level=1")
	if out := h.block("submit node=a intent=gpio.safe pin=lamp"); !strings.Contains(out, "-> send a instruction 4 ") || strings.Contains(out, "2 DISPATCHED -> CANCELLED") {
		t.Errorf("the way to safe:\n%s", out)
	}
}

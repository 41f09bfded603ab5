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

// Numbers of instructions and tokens are used up apart: the log of the harness demands that
// neither goes beyond what is reserved.
func TestB25_TokensAreReservedByThemselves(t *testing.T) {
	h := newHarness(t)
	h.cfg.Reserve = 10
	h.boot()
	h.block("hello pump-1\nsubmit node=pump-1 retry=100,1ms,1ms")
	for range 48 {
		h.block("event pump-1 seq=1 processed busy")
		h.block("advance 1s pump-1")
	}
	old := h.log.clone()
	for range 5 {
		h.block("event pump-1 seq=1 processed busy")
		h.block("advance 1s pump-1")
	}
	given := h.log.counters.NextToken
	if old.reserved == h.log.reserved { // what is lost is within the block
		h.log = old
		h.boot()
		h.block("submit node=pump-2\nhello pump-2")
		for _, i := range h.log.insts {
			if i.Node == "pump-2" && i.Token.Seq < given {
				t.Errorf("token %d is given out again, %d were", i.Token.Seq, given-1)
			}
		}
	} else {
		t.Errorf("reserved %+v, and before %+v: another number of rounds would show what is lost", h.log.reserved, old.reserved)
	}
	if c, r := h.log.counters, h.log.reserved; c.NextToken < 40 || c.NextToken > r.Token || c.NextSeq > r.Seq {
		t.Errorf("given out up to %+v, reserved %+v", c, r)
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

// What a node knows may be far above all numbers of this log (a new log, an old board):
// its own numbers go on from there. A way to safe comes behind what was commanded before
// it, whatever number that had got, also after a restart.
func TestB25_TheWayToSafeComesBehindANodesOwnNumbers(t *testing.T) {
	for _, restart := range []bool{false, true} {
		h := newHarness(t)
		h.block("hello pump-1 pins=valve:0 top=50000000,1\nsubmit node=pump-1 pin=valve level=1")
		h.block("event pump-1 seq=1 processed superseded")
		h.block("operate retry seq=1 yes\nadvance 1ms")
		h.block("event pump-1 seq=1 processed ok")
		on := h.log.insts[1]
		if on.State != engine.StateSucceeded || on.Order <= 50000000 {
			t.Fatalf("the on: %v, order %d", on.State, on.Order)
		}
		if restart {
			h.block("goodbye pump-1\nrestart")
			h.block("hello pump-1 pins=valve:0 top=50000000,2 next=3")
		}
		out := h.block("submit node=pump-1 pin=valve level=0")
		off := uint64(0)
		for _, i := range h.log.insts {
			if i.Seq > 1 {
				off = max(i.Seq, i.Order)
			}
		}
		if off <= on.Order {
			t.Errorf("restart %v: the off has number %d, the on %d: its agent ends it as superseded, and is believed\n%s", restart, off, on.Order, out)
		}
	}
}

// The same, where the older one waits: it is withdrawn by the newer, and never sent.
func TestB25_TheWayToSafeStandsForANodesOwnNumbers(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0 top=50000000,1\nsubmit node=pump-1 pin=valve level=1")
	h.block("event pump-1 seq=1 processed superseded\ngoodbye pump-1")
	h.block("operate retry seq=1 yes\nadvance 1s")
	h.block("restart")
	h.block("submit node=pump-1 pin=valve level=0")
	if out := h.block("hello pump-1 pins=valve:0 top=50000000,1 next=2"); strings.Contains(out, "instruction 1 ") && strings.Contains(out, "-> send pump-1 instruction 1 ") {
		t.Errorf("the on goes out behind its off:\n%s", out)
	}
	if i := h.log.insts[1]; i.By == 0 {
		t.Errorf("the on is %v, and nothing stands for it", i.State)
	}
}

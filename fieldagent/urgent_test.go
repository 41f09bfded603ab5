package fieldagent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// Past the loop each line has one slot, which the newest has, whatever comes in which
// order; and there is an end to them.
func TestUrgentSlotsAreOneALine(t *testing.T) {
	u := &urgent{wake: make(chan struct{}, 1)}
	a, b := []wire.LineKey{1}, []wire.LineKey{2}
	for _, order := range []uint64{5, 7, 6, 4} {
		u.put(slot{lines: a, order: order})
	}
	u.put(slot{lines: b, order: 1})
	u.put(slot{lines: a, order: 3, compact: true}) // somebody waits for another answer
	if len(u.slots) != 3 || u.slots[0].order != 7 || u.slots[1].order != 1 || u.slots[2].order != 3 {
		t.Errorf("%+v", u.slots)
	}
	for k := range wire.LineKey(2 * maxUrgent) {
		u.put(slot{lines: []wire.LineKey{100 + k}, order: 9})
	}
	if len(u.slots) != maxUrgent {
		t.Errorf("%d slots", len(u.slots))
	}
}

// hung is a rig whose loop is at its disk, with two outputs that are on.
func hung(t *testing.T) *rig {
	r := newRig(t, time.Minute, stays("lamp"), stays("valve"))
	r.send(1, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 1})
	r.send(2, wire.IntentGPIOWrite, map[string]any{"pin": "valve", "level": 1})
	time.Sleep(time.Second)
	r.card.slow.Store(int64(10 * time.Second))
	r.send(3, wire.IntentGPIORead, map[string]any{"pin": "local"})
	time.Sleep(time.Second)
	if r.sim.Level("lamp") != gpio.High || r.sim.Level("valve") != gpio.High {
		t.Fatal("they are not on")
	}
	return r
}

// Past the loop: the line that the gateway meant is driven as well, and nothing whose time
// is over.
func TestPastTheLoopItIsTheSameInstruction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hung(t)
		defer r.cancel()
		in := r.write("lamp")
		in.NotAfter = time.Now().Add(100 * time.Millisecond).UnixMilli() // before it is urgent
		in.Lines = []wire.LineKey{wire.LineOf("valve")}
		r.urg.instruction(in)
		time.Sleep(2 * time.Second)
		if r.sim.Level("lamp") != gpio.High || r.sim.Level("valve") != gpio.High {
			t.Error("it was driven after its time limit")
		}
		in.NotAfter = time.Now().Add(time.Minute).UnixMilli()
		r.urg.instruction(in)
		time.Sleep(2 * time.Second)
		if r.sim.Level("lamp") != gpio.Low || r.sim.Level("valve") != gpio.Low {
			t.Errorf("the lamp is %v, the valve, which the gateway meant, %v", r.sim.Level("lamp"), r.sim.Level("valve"))
		}
	})
}

// write is an off that the loop is not told of.
func (r *rig) write(pin string) *wire.Instruction {
	raw, err := wire.EncodeMap(wire.GPIOWrite{Pin: pin}.Map(), wire.MaxArgsBytes)
	if err != nil {
		r.t.Fatal(err)
	}
	return &wire.Instruction{Seq: 20, Token: wire.Token{Seq: 20}, Attempt: 1, Intent: wire.IntentGPIOWrite, Args: raw, SentAt: time.Now().UnixMilli()}
}

// safety.md 5: a compact frame drives, and what is older than its number may come after it.
func TestCompactFrameLeavesNoMarkAtTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hung(t)
		defer r.cancel()
		r.urg.frame(wire.CompactSafe{Seq: 1000, Line: wire.LineOf("valve").Hash()})
		time.Sleep(time.Second)
		if r.sim.Level("valve") != gpio.Low || r.sim.Level("lamp") != gpio.High {
			t.Error("the frame is for the valve alone")
		}
		time.Sleep(time.Minute)
		r.card.slow.Store(0)
		time.Sleep(time.Minute)
		r.send(21, wire.IntentGPIOWrite, map[string]any{"pin": "valve", "level": 1})
		time.Sleep(time.Second)
		if r.sim.Level("valve") != gpio.High {
			t.Error("the valve does not open any more: the frame has left a mark")
		}
	})
}

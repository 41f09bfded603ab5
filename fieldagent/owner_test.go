package fieldagent

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/round"
	"github.com/apollo-11/apollo11/wire"
)

// card is a journal whose syncs take as long as the test wants.
type card struct{ slow atomic.Int64 }

func (c *card) Append(...[]byte) error { time.Sleep(time.Duration(c.slow.Load())); return nil }
func (c *card) Rewrite([][]byte) error { return nil }
func (c *card) Size() int64            { return 0 }

// rig is a loop on real pins of a simulated board: all of an agent but its links and its
// disk.
type rig struct {
	t     *testing.T
	sim   *gpio.Sim
	pins  *gpio.Owner
	loop  *loop
	urg   *urgent
	card  card
	links *linked
	start time.Time

	mu  sync.Mutex
	got []wire.Message
	ack []wire.CompactAck

	quit   context.CancelFunc // asks the loop to stop
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func newRig(t *testing.T, autonomy time.Duration, pins ...gpio.PinConfig) *rig {
	t.Helper()
	r := &rig{t: t, start: time.Now()}
	names := []string{"local"}
	for _, p := range pins {
		names = append(names, p.Name)
	}
	var err error
	if r.sim, err = gpio.NewSim(gpio.SimOptions{Names: names}); err != nil {
		t.Fatal(err)
	}
	if r.pins, err = gpio.NewOwner(r.sim, append(pins, gpio.PinConfig{Name: "local", Mode: gpio.Input}), gpio.OwnerOptions{Autonomy: autonomy, Local: "local"}); err != nil {
		t.Fatal(err)
	}
	pinCtx, stopPins := context.WithCancel(context.Background())
	pinsDone := make(chan error, 1)
	go func() { pinsDone <- r.pins.Run(pinCtx) }()
	<-r.pins.Started()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	w, err := newWorks(r.pins, "test", Config{Data: t.TempDir()}, log)
	if err != nil {
		t.Fatal(err)
	}
	l := newLoop()
	r.loop = l
	l.journal, l.intents, l.log, l.pins = &r.card, w, log, r.pins
	o := &overseer{pins: r.pins, loop: l, log: log, told: tellPins(r.pins)}
	r.links = &linked{mono: func() time.Duration { return time.Since(r.start) }}
	l.linked = r.links
	l.now = r.links.clock(o.clock(func() executor.Now {
		return executor.Now{Mono: time.Since(r.start), Wall: time.Now().UnixMilli(), WallOK: true}
	}))
	r.links.up(round.Primary)
	w.late, w.left = l.late, l.left
	l.primary, l.narrowband = r.primary, r.narrow
	r.urg = newUrgent(w, l, log)
	core, out, err := executor.New(executor.Config{Hello: wire.Hello{Short: "abcdef", Pins: o.told.names, Traits: o.told.traits}, Incarnation: 1, Check: w.Check,
		Workers: 1, Autonomy: autonomy}, nil, l.now())
	if err != nil {
		t.Fatal(err)
	}
	l.core = core
	ctx, cancel := context.WithCancel(context.Background())
	links, stopLinks := context.WithCancel(context.Background())
	done := make(chan error, 1)
	l.stopPins = func() { r.ended.Go(func() { o.stop(links) }) }
	go func() { done <- l.run(ctx, out) }()
	r.ended.Go(func() { o.watch(links) })
	r.ended.Go(func() { o.ends(links) })
	r.ended.Go(func() { r.urg.run(links) })
	r.quit = cancel
	r.cancel = func() {
		r.card.slow.Store(0)
		cancel()
		<-done
		stopLinks()
		r.ended.Wait()
		stopPins()
		<-pinsDone
	}
	l.inputs <- executor.Connected{Session: 9}
	l.inputs <- executor.Received{Message: &wire.Welcome{Session: 9, Epoch: 1, Now: time.Now().UnixMilli(), HeartbeatMs: 600_000,
		Phases: wire.MaxPhase, Rules: wire.NewestRules}}
	return r
}

func (r *rig) primary(b []byte) bool {
	m, err := wire.DecodeUplink(b)
	if err != nil {
		r.t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, m)
	return true
}

func (r *rig) narrow(b []byte) bool {
	f, err := wire.DecodeCompact(b)
	if err != nil {
		r.t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ack = append(r.ack, f.(wire.CompactAck))
	return true
}

// send brings an instruction as the link does.
func (r *rig) send(seq uint64, intent string, args map[string]any) *wire.Instruction {
	r.t.Helper()
	return r.sendWith(seq, intent, args, func(*wire.Instruction) {})
}

// sendWith sends an instruction that has something more.
func (r *rig) sendWith(seq uint64, intent string, args map[string]any, more func(*wire.Instruction)) *wire.Instruction {
	r.t.Helper()
	raw, err := wire.EncodeMap(args, wire.MaxArgsBytes)
	if err != nil {
		r.t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	in := &wire.Instruction{Seq: seq, Key: wire.Key{Site: "s", Millis: now, Seq: seq}.String(), Token: wire.Token{Seq: seq},
		Attempt: 1, Intent: intent, Args: raw, SentAt: now, TimeoutMs: 3_600_000}
	more(in)
	r.urg.instruction(in)
	r.loop.offer(executor.Received{Message: in})
	return in
}

// ends lists how what an instruction has set has ended, as told.
func (r *rig) ends(seq uint64) (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.got {
		if e, ok := m.(*wire.Event); ok && e.Seq == seq && e.Phase == wire.PhaseLease {
			list = append(list, e.Lease.String())
		}
	}
	return list
}

// states lists what was reported of an instruction.
func (r *rig) states(seq uint64) (list []wire.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.got {
		if p, ok := m.(*wire.Report); ok {
			for _, s := range p.States {
				if s.Seq == seq {
					list = append(list, s.Status)
				}
			}
		}
	}
	return list
}

func falls(name string) gpio.PinConfig {
	off := gpio.Low
	return gpio.PinConfig{Name: name, Mode: gpio.Output, Safe: &off, OnLoss: gpio.FallSafe}
}

func stays(name string) gpio.PinConfig {
	c := falls(name)
	c.OnLoss = gpio.Hold
	return c
}

// A2: "off for two minutes" is a pulse of level 0; at its end the pin would be on. The
// gateway is lost meanwhile, and the pin has on_loss: safe.
func TestA2_InversePulseSwitchesNothingOnAfterTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Minute, falls("valve"))
		defer r.cancel()
		r.send(1, wire.IntentGPIOPulse, map[string]any{"pin": "valve", "level": 0, "width": "2m"})
		synctest.Wait()
		r.loop.inputs <- executor.Disconnected{} // and nobody comes back
		time.Sleep(time.Hour)                    // the board looks every second; on an emulated one that takes its time
		for _, a := range r.sim.Actuations() {
			if a.Level == gpio.High {
				t.Errorf("the gateway is lost, and %v after the start: %+v", time.Duration(a.At-r.start.UnixNano()), a)
			}
		}
	})
}

// A2: what is started within the window, and reaches the pins after it, because its
// record takes long, leaves nothing on; on one core too.
func TestA2_LossDuringASlowStartLeavesNothingOn(t *testing.T) {
	for _, procs := range []int{1, 0} {
		for range 3 {
			if procs > 0 { // a Raspberry Pi Zero has one core
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			}
			r := newRig(t, 600*time.Millisecond, falls("valve"), stays("lamp"))
			r.send(1, wire.IntentGPIOPulse, map[string]any{"pin": "lamp", "level": 1, "width": "500ms"})
			r.send(2, wire.IntentGPIOWrite, map[string]any{"pin": "valve", "level": 1})
			time.Sleep(20 * time.Millisecond)
			r.loop.inputs <- executor.Disconnected{}
			time.Sleep(400 * time.Millisecond) // its start is told meanwhile
			r.card.slow.Store(int64(200 * time.Millisecond))
			time.Sleep(1200 * time.Millisecond)
			if r.sim.Level("valve") == gpio.High { // a second after the end of the window
				t.Error("an output with on_loss: safe stays on while the gateway is lost")
			}
			r.cancel()
		}
	}
}

// A7: the card hangs over one sync; the outputs fall at their time all the same.
func TestA7_LossDoesNotWaitForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Minute, falls("valve"), stays("lamp"))
		defer r.cancel()
		r.send(1, wire.IntentGPIOWrite, map[string]any{"pin": "valve", "level": 1})
		r.send(2, wire.IntentGPIOPulse, map[string]any{"pin": "lamp", "level": 1, "width": "10s"})
		time.Sleep(5 * time.Second)
		r.loop.inputs <- executor.Disconnected{}
		synctest.Wait()
		if r.sim.Level("valve") != gpio.High {
			t.Fatal("the valve was not opened")
		}
		lost := time.Now()
		r.card.slow.Store(int64(20 * time.Minute)) // from the end of the pulse on
		for r.sim.Level("valve") == gpio.High && time.Since(lost) < time.Hour {
			time.Sleep(time.Second)
		}
		if fell := time.Since(lost); fell > 61*time.Second {
			t.Errorf("the valve falls %v after the loss of the gateway, the window is 1m0s", fell.Round(time.Second))
		}
	})
}

// safety.md 5: an off does not wait for a journal that hangs. It is told as driven and
// settles nothing; when the loop turns again it settles it.
func TestOffReachesThePinWhileTheJournalHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Minute, stays("lamp"), stays("valve"))
		defer r.cancel()
		r.send(1, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 1})
		r.send(2, wire.IntentGPIOWrite, map[string]any{"pin": "valve", "level": 1})
		time.Sleep(time.Second)
		r.card.slow.Store(int64(10 * time.Minute))
		r.send(3, wire.IntentGPIORead, map[string]any{"pin": "local"})
		time.Sleep(time.Second) // the loop is at its disk
		r.send(4, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 0})
		late := r.send(5, wire.IntentGPIOWrite, map[string]any{"pin": "valve", "level": 1})
		time.Sleep(time.Second)
		if r.sim.Level("lamp") != gpio.Low {
			t.Error("the lamp is on a second after its off")
		}
		if s := r.states(4); len(s) != 1 || s[0] != wire.StatusDriven {
			t.Errorf("told %v", s)
		}
		if s := r.states(late.Seq); len(s) != 0 {
			t.Errorf("of what is not towards safe was told %v", s)
		}
		// The compact frame goes the same way, and leaves no mark.
		r.urg.frame(wire.CompactSafe{Seq: 9, Line: wire.LineOf("valve").Hash()})
		time.Sleep(time.Second)
		if r.sim.Level("valve") != gpio.Low {
			t.Error("the valve is open after its compact frame")
		}
		r.urg.frame(wire.CompactSafe{Seq: 1})
		time.Sleep(time.Second)
		r.mu.Lock()
		if len(r.ack) != 2 || r.ack[0] != (wire.CompactAck{Seq: 9, Attempt: 1, Code: wire.CodeDriven}) || r.ack[1].Code != wire.CodeSuperseded {
			t.Errorf("acks %+v", r.ack)
		}
		r.mu.Unlock()
	})
}

// safety.md 6: a copy of a gpio.safe that comes after its release, while the journal
// hangs, drives once more and holds nothing.
func TestACopyPastTheLoopHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Minute, stays("lamp"))
		defer r.cancel()
		safe := r.send(1, wire.IntentSafe, nil)
		time.Sleep(time.Second)
		r.send(2, wire.IntentRelease, nil)
		time.Sleep(time.Second)
		r.card.slow.Store(int64(10 * time.Second))
		r.send(3, wire.IntentGPIORead, map[string]any{"pin": "local"})
		time.Sleep(time.Second) // the loop is at its disk
		r.urg.instruction(safe)
		r.loop.offer(executor.Received{Message: safe})
		time.Sleep(time.Second)
		r.card.slow.Store(0)
		time.Sleep(time.Minute)
		r.send(4, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 1})
		time.Sleep(time.Second)
		if r.sim.Level("lamp") != gpio.High {
			t.Error("the lamp is held at its safe level, and somebody has released it")
		}
	})
}

// safety.md 9: nothing reaches the pins past the loop while somebody works there.
func TestUrgentPathRespectsTheLocalSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Minute, stays("lamp"))
		defer r.cancel()
		r.sim.Drive("local", gpio.High)
		time.Sleep(time.Second)
		n := len(r.sim.Actuations())
		r.urg.frame(wire.CompactSafe{Seq: 9})
		time.Sleep(time.Second)
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.ack) != 1 || r.ack[0].Code != wire.CodeLocal || len(r.sim.Actuations()) != n {
			t.Errorf("acks %+v", r.ack)
		}
	})
}

// B27: a plain level that the board takes back by itself is told with its token.
func TestB27_PlainLevelThatTheBoardEndsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Minute, falls("valve"), stays("lamp"))
		defer r.cancel()
		r.send(1, wire.IntentGPIOWrite, map[string]any{"pin": "valve", "level": 1})
		r.send(2, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 1})
		synctest.Wait()
		r.loop.inputs <- executor.Disconnected{}
		time.Sleep(2 * time.Minute)
		r.loop.inputs <- executor.Connected{Session: 10}
		r.loop.inputs <- executor.Received{Message: &wire.Welcome{Session: 10, Epoch: 1, Now: time.Now().UnixMilli(), HeartbeatMs: 600_000,
			Phases: wire.MaxPhase, Rules: wire.NewestRules}}
		time.Sleep(time.Second)
		if e := r.ends(1); len(e) != 1 || e[0] != "loss" {
			t.Errorf("told %v", e)
		}
		if e := r.ends(2); len(e) != 0 || r.sim.Level("lamp") != gpio.High {
			t.Errorf("of the lamp was told %v", e)
		}
	})
}

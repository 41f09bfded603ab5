package explore

import (
	"math/rand/v2"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// A scene is a small trouble and the work that meets it, in the right order: what chance
// would bring together on one site of a thousand. In the profile scenes each board has
// one, and nothing else goes wrong.
type scene func(d *drawing, a *agent, at time.Duration)

// scenes are those that there are.
var scenes = []scene{(*drawing).lossAtBusyPins, (*drawing).limitAtBusyPins, (*drawing).behindLongPulse, (*drawing).oldWords, (*drawing).takenBack,
	(*drawing).keptLine, (*drawing).deafWatches, (*drawing).deafTurn, (*drawing).expiredOff, (*drawing).cancelInTheDark, (*drawing).cancelAhead, (*drawing).backlog, (*drawing).crowd,
	(*drawing).clonedCard, (*drawing).refusedBoard, (*drawing).quietFailures}

// rareScenes are those of the profile rare: so much must come together in them that the
// many scenes leave too few seeds for it.
var rareScenes = []scene{(*drawing).expiredOff}

// drawScenes draws the scenes of a site, from a stream of their own.
func drawScenes(w *world, others []step) []step {
	d := &drawing{w: w, r: w.stream("scenes"), number: 1}
	if w.profile.Scenes == 0 {
		return nil
	}
	for k := range others {
		d.number = max(d.number, others[k].number+1)
	}
	for _, a := range w.agents {
		if chance(d.r, w.profile.Scenes) {
			list := scenes
			if w.profile.rare {
				list = rareScenes
			}
			list[d.r.IntN(len(list))](d, a, between(d.r, 1_000, 6_000))
		}
	}
	return d.list
}

// add draws a step that is not a submission.
func (d *drawing) add(at time.Duration, k kind, a *agent, long time.Duration) *step {
	d.list = append(d.list, step{at: max(at, 0), kind: k, who: a.index, long: long, p: d.r.Float64()})
	return &d.list[len(d.list)-1]
}

// plainly takes the time limit and the retries off a submission.
func plainly(s *step) *step {
	s.spec.TTLMs, s.spec.Retry = 0, &engine.Retry{}
	return s
}

// lossAtBusyPins: an "on" has begun and waits for the owner of the pins when the gateway
// is lost for longer than the autonomy window.
func (d *drawing) lossAtBusyPins(a *agent, at time.Duration) {
	a.autonomy = between(d.r, 6_000, 9_000)
	d.add(at, handAway, a, a.autonomy+10*time.Second)
	d.add(at-800*time.Millisecond, boardBusy, a, a.autonomy+between(d.r, 2_600, 5_000))
	s := plainly(d.write(at-600*time.Millisecond, a.index, "L0", 1, 30_000))
	s.spec.TimeoutMs = 30_000
}

// limitAtBusyPins: the time limit passes while an "on" waits for the owner of the pins.
func (d *drawing) limitAtBusyPins(a *agent, at time.Duration) {
	for range 3 {
		d.add(at-100*time.Millisecond, boardBusy, a, between(d.r, 5_500, 8_000))
		s := plainly(d.write(at, a.index, guarded[d.r.IntN(3)], 1, 3_000))
		s.spec.TimeoutMs, s.spec.TTLMs = 30_000, between(d.r, 500, 2_500).Milliseconds()
		at += 9 * time.Second
	}
}

// behindLongPulse: what waits for a line that is free again after the end of the autonomy
// window.
func (d *drawing) behindLongPulse(a *agent, at time.Duration) {
	a.autonomy = between(d.r, 6_000, 9_000)
	d.add(at, handAway, a, a.autonomy+14*time.Second)
	plainly(d.pulse(at-700*time.Millisecond, a.index, "L2", 1, a.autonomy+between(d.r, 3_000, 6_000)))
	plainly(d.write(at-500*time.Millisecond, a.index, "L2", 1, 9_000))
	plainly(d.write(at-400*time.Millisecond, a.index, "P1", 1, 0))
}

// oldWords: the disk hangs, the gateway's words wait meanwhile, and the loss behind them.
func (d *drawing) oldWords(a *agent, at time.Duration) {
	a.autonomy = between(d.r, 8_000, 12_000)
	plainly(d.write(at-1500*time.Millisecond, a.index, "L0", 1, 40_000))
	d.add(at, agentHang, a, between(d.r, 1_700, 2_200)) // three times that
	for k := range 5 {
		plainly(d.submit(at+time.Duration(10+200*k)*time.Millisecond, a.index, wire.IntentGPIORead, map[string]any{"pin": "L1"}, 5*time.Second))
	}
	d.add(at+1200*time.Millisecond, handAway, a, a.autonomy+10*time.Second)
}

// takenBack: the autonomy window ends while a start is written down; it is taken back,
// and then the process dies.
func (d *drawing) takenBack(a *agent, at time.Duration) {
	a.autonomy = 6 * time.Second
	d.add(at, agentHang, a, 3_500*time.Millisecond)
	plainly(d.write(at+5*time.Millisecond, a.index, plain[d.r.IntN(4)], 1, 0))
	d.add(at+600*time.Millisecond, handAway, a, 20*time.Second)
	d.add(at+between(d.r, 12_000, 14_000), agentKill, a, 0)
}

// keptLine: what fails and is tried again, with newer work behind it on its line, and
// what is not tried again after all.
func (d *drawing) keptLine(a *agent, at time.Duration) {
	a.sickly = true
	for range 4 {
		pin := []string{"L2", "P0", "P1", "P2", "P3"}[d.r.IntN(5)]
		s := d.write(at, a.index, pin, 1, 0)
		s.spec.TTLMs, s.spec.Retry = 0, &engine.Retry{Max: 3, InitialMs: uint32(between(d.r, 2_000, 3_000).Milliseconds()), MaxMs: 3_000, Backoff: engine.BackoffFixed}
		if d.r.IntN(2) == 0 {
			s.spec.TTLMs = between(d.r, 1_200, 1_900).Milliseconds()
		}
		for range 2 {
			plainly(d.write(at+between(d.r, 5, 300), a.index, pin, uint64(d.r.IntN(2)), 0))
		}
		at += between(d.r, 5_000, 8_000)
	}
}

// deafWatches: watches that are given up, do not end, and are tried again.
func (d *drawing) deafWatches(a *agent, at time.Duration) {
	a.deaf = true
	for k := range 3 {
		s := d.submit(at+time.Duration(k)*3*time.Second, a.index, wire.IntentGPIOWatch, map[string]any{"pin": inputs[k%2], "for_ms": uint64(500), "every_ms": uint64(200)}, 700*time.Millisecond)
		s.spec.TTLMs, s.spec.Retry = 0, &engine.Retry{Max: 3, InitialMs: 200, MaxMs: 500}
	}
}

// deafTurn: work that is given up, does not end and holds the board, with more behind it.
func (d *drawing) deafTurn(a *agent, at time.Duration) {
	a.deaf = true
	plainly(d.submit(at, a.index, intentTurn, map[string]any{"pin": "P0"}, 900*time.Millisecond))
	for k := range 3 {
		plainly(d.write(at+time.Duration(1+k)*300*time.Millisecond, a.index, plain[k], 1, 0))
	}
}

// expiredOff: an "off" comes too late, behind an "on" that waits for its line; the cancel
// of that may get lost.
func (d *drawing) expiredOff(a *agent, at time.Duration) {
	a.link.drop, a.link.frail = 1e-9, 0.4
	d.add(at-900*time.Millisecond, narrowFlip, a, 0) // it has no other path
	for range 5 {
		pin := []string{"L0", "L2"}[d.r.IntN(2)]
		width := between(d.r, 2_900, 3_300)
		plainly(d.pulse(at, a.index, pin, 1, width))
		plainly(d.write(at+200*time.Millisecond, a.index, pin, 1, 4_000))
		d.add(at+1_200*time.Millisecond, linkHold, a, between(d.r, 1_300, 1_500))
		s := plainly(d.write(at+1_500*time.Millisecond, a.index, pin, 0, 0))
		s.spec.TTLMs = between(d.r, 300, 900).Milliseconds()
		at += 8 * time.Second
	}
}

// cancelInTheDark: somebody wants to stop what runs, and only the narrowband lives.
func (d *drawing) cancelInTheDark(a *agent, at time.Duration) {
	for range 2 {
		s := plainly(d.pulse(at, a.index, "L2", 1, between(d.r, 8_000, 12_000)))
		d.add(at+1_500*time.Millisecond, linkHole, a, 10*time.Second)
		d.add(at+between(d.r, 2_000, 3_000), opCancel, a, 0).number = s.number
		d.list[len(d.list)-1].who = 0
		at += 16 * time.Second
	}
}

// cancelAhead: the cancel comes over narrowband before what it is for.
func (d *drawing) cancelAhead(a *agent, at time.Duration) {
	for range 3 {
		d.add(at, linkHold, a, between(d.r, 4_000, 6_000))
		s := plainly(d.write(at+100*time.Millisecond, a.index, plain[d.r.IntN(4)], 1, 0))
		d.add(at+between(d.r, 600, 900), opCancel, a, 0).number = s.number
		d.list[len(d.list)-1].who = 0
		at += 9 * time.Second
	}
}

// backlog: many commands wait for a board whose cables are pulled.
func (d *drawing) backlog(a *agent, at time.Duration) {
	d.add(at, handAway, a, 12*time.Second)
	for range 30 {
		s := plainly(d.submit(at+between(d.r, 4_000, 11_000), a.index, wire.IntentGPIORead, map[string]any{"pin": plain[d.r.IntN(4)]}, 5*time.Second))
		s.p = 1 // by HTTP, for a session has few packet ids
	}
}

// crowd: many reads wait in the agent behind a long pulse.
func (d *drawing) crowd(a *agent, at time.Duration) {
	plainly(d.pulse(at, a.index, "P0", 1, between(d.r, 8_000, 12_000)))
	for range 90 {
		s := plainly(d.submit(at+between(d.r, 300, 5_000), a.index, wire.IntentGPIORead, map[string]any{"pin": "P0"}, 5*time.Second))
		s.p = 1
	}
}

// clonedCard: a copy of the board with the same memory takes the connection over, again
// and again.
func (d *drawing) clonedCard(a *agent, at time.Duration) {
	for k := range 3 {
		d.add(at+time.Duration(k)*between(d.r, 4_000, 6_000), cardClone, a, 0)
	}
}

// refusedBoard: a board with an output on is away until another one is believed in its
// place. It comes back, is refused, and has its narrowband.
func (d *drawing) refusedBoard(a *agent, at time.Duration) {
	a.autonomy = 20 * time.Second
	d.w.story = storyBoards
	d.w.span = max(d.w.span, 60*time.Second)
	plainly(d.write(at-900*time.Millisecond, a.index, "L0", 1, 70_000))
	d.add(at, handAway, a, 17_500*time.Millisecond)
	d.add(at+100*time.Millisecond, secondBoard, a, 60*time.Second)
}

// quietFailures: work fails while an operator wants quiet.
func (d *drawing) quietFailures(a *agent, at time.Duration) {
	a.sickly = true
	d.list = append(d.list, step{at: at, kind: opQuiet, long: between(d.r, 8_000, 15_000), p: 0.9})
	for k := range 8 {
		s := d.write(at+time.Duration(k)*300*time.Millisecond, a.index, plain[k%4], 1, 0)
		s.spec.TTLMs, s.spec.Retry = 0, &engine.Retry{Max: 3, InitialMs: 300, MaxMs: 3_000}
	}
}

// sicklyShare is the share of the writes that fail at a board of which that is known.
const sicklyShare = 0.6

// sickFate changes the fate of a write of a sickly board.
func sickFate(f fate, seed uint64, seq uint64, attempt uint8) fate {
	r := rand.New(rand.NewPCG(seed^seq, uint64(attempt)+991))
	if chance(r, sicklyShare) {
		f.code = []wire.Code{wire.CodeBusy, wire.CodeFailed, wire.CodeDependency}[r.IntN(3)]
		f.takes = between(r, 5, 900)
	}
	return f
}

// deafFor is by how much the watches and the work of a deaf board last longer than they
// should.
const deafFor = 20 * time.Second

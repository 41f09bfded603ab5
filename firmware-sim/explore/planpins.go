package explore

import (
	"math/rand/v2"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// leaseTasks is how many tasks for outputs a node gets in 45 s.
const leaseTasks = 2

const (
	// watchTasks is how many watches a node gets in 45 s.
	watchTasks = 1
	// crowd is the share of the sites at which a node gets more watches than may run.
	crowd      = 0.08
	crowdTasks = executor.MaxWatches + 6
)

// drawing draws submissions, each with the next number.
type drawing struct {
	w      *world
	r      *rand.Rand
	number int
	list   []step
}

// submit draws one submission.
func (d *drawing) submit(at time.Duration, node int, intent string, args map[string]any, timeout time.Duration) *step {
	r := d.r
	s := &engine.Spec{Intent: intent, Nodes: []string{nodeName(node)}, Priority: wire.Priority(r.IntN(4)), TimeoutMs: uint32(timeout.Milliseconds())}
	raw, err := wire.EncodeMap(args, wire.MaxArgsBytes)
	if err != nil {
		panic("bug: arguments of the simulation: " + err.Error())
	}
	if s.Args = raw; r.IntN(4) == 0 {
		s.TTLMs = between(r, 1_000, 20_000).Milliseconds()
	}
	if r.IntN(2) == 0 {
		s.Retry = &engine.Retry{Max: uint8(1 + r.IntN(3)), InitialMs: uint32(r.IntN(1_000)), MaxMs: 3_000}
	}
	d.list = append(d.list, step{at: at, kind: opSubmit, who: r.IntN(len(d.w.clients)), spec: s, number: d.number, p: r.Float64()})
	d.number++
	return &d.list[len(d.list)-1]
}

// write and pulse draw the usual submissions.
func (d *drawing) write(at time.Duration, node int, pin string, level uint64, ms uint64) *step {
	args := map[string]any{"pin": pin, "level": level}
	if ms > 0 {
		args["max_on_ms"] = ms
	}
	return d.submit(at, node, wire.IntentGPIOWrite, args, 5*time.Second)
}

func (d *drawing) pulse(at time.Duration, node int, pin string, level uint64, width time.Duration) *step {
	return d.submit(at, node, wire.IntentGPIOPulse, map[string]any{"pin": pin, "level": level, "width_ms": uint64(width.Milliseconds())}, width+5*time.Second)
}

// awayFrom is the level of a guarded pin that is not its safe one.
func awayFrom(pin string) uint64 {
	if pin == "L3" {
		return 0
	}
	return 1
}

// drawPins draws what happens at outputs, from a stream of its own. number is that
// of the next submission.
func drawPins(w *world, span time.Duration, number int) []step {
	d := &drawing{w: w, r: w.stream("plan of pins"), number: number}
	r := d.r
	for range max(1, int(float64(leaseTasks*len(w.agents))*span.Seconds()/45)) {
		at, node, pin := when(r, span), r.IntN(len(w.agents)), guarded[r.IntN(len(guarded))]
		switch r.IntN(10) {
		case 0, 1: // half of them towards the safe level, which end away from it
			d.pulse(at, node, pin, uint64(r.IntN(2)), drawWidth(r, pin))
		case 2, 3: // without a time
			d.write(at, node, pin, uint64(r.IntN(2)), 0)
		default:
			again, ms := 1, drawHold(r, pin)
			if r.IntN(4) == 0 {
				again += 1 + r.IntN(3) // somebody holds a handle
			}
			for range again {
				d.write(at, node, pin, awayFrom(pin), ms)
				at += between(r, 20, 3_000)
			}
		}
	}
	watch := func(at time.Duration, node, least, most int, every time.Duration) {
		span := between(r, least, most)
		d.submit(at, node, wire.IntentGPIOWatch, map[string]any{"pin": inputs[r.IntN(len(inputs))], "for_ms": uint64(span.Milliseconds()), "every_ms": uint64(every.Milliseconds())}, span+3*time.Second)
	}
	for range max(1, int(float64(watchTasks*len(w.agents))*span.Seconds()/45)) {
		watch(when(r, span), r.IntN(len(w.agents)), 500, 20_000, between(r, 100, 3_000))
	}
	if chance(r, crowd) {
		at, node := when(r, span/2), r.IntN(len(w.agents))
		for range crowdTasks {
			watch(at+between(r, 0, 2_000), node, 15_000, 25_000, between(r, 3_000, 8_000))
			d.list[len(d.list)-1].p = 1 // by HTTP, for a session has few packet ids
		}
		for range 4 {
			pin := guarded[r.IntN(len(guarded))]
			d.write(at+between(r, 2_000, 15_000), node, pin, awayFrom(pin), 1_000)
		}
	}
	if !chance(r, w.profile.Hands) {
		return d.list
	}
	for range 1 + r.IntN(3) {
		d.list = append(d.list, step{at: when(r, span), kind: handLocal, who: r.IntN(len(w.agents)), long: between(r, 500, 15_000), p: r.Float64()})
	}
	for range 1 + r.IntN(2) {
		s := step{at: when(r, span), kind: handAway, who: r.IntN(len(w.agents)), long: between(r, 8_000, 40_000)}
		d.list = append(d.list, s)
		d.write(max(0, s.at-between(r, 200, 3_000)), s.who, "L0", 1, uint64(between(r, 20_000, 40_000).Milliseconds()))
		// What waits behind a pulse begins about when the autonomy window ends.
		if window := w.agents[s.who].autonomy; window < s.long && r.IntN(2) == 0 {
			d.pulse(max(0, s.at-200*time.Millisecond), s.who, "L0", 1, (window - between(r, 0, 2_000)).Truncate(time.Millisecond))
			d.write(max(0, s.at-150*time.Millisecond), s.who, "L0", 1, uint64(between(r, 20_000, 40_000).Milliseconds()))
		}
	}
	return d.list
}

// drawWidth draws how long a pulse lasts: mostly what the map allows.
func drawWidth(r *rand.Rand, pin string) time.Duration {
	d := between(r, 1, 500)
	switch r.IntN(4) {
	case 0:
		d = between(r, 1_000, 12_000)
	case 1:
		d = between(r, 500, 3_000)
	}
	if pin == "L1" && r.IntN(8) > 0 {
		d = min(d, 5*time.Second)
	}
	return max(d.Truncate(time.Millisecond), time.Millisecond)
}

// drawHold draws for how long an output is to be away from its safe level, in ms:
// mostly what its map allows.
func drawHold(r *rand.Rand, pin string) uint64 {
	d := between(r, 1_000, 10_000)
	switch r.IntN(5) {
	case 0, 1:
		d = between(r, 10, 500)
	case 2:
		d = between(r, 10_000, 40_000)
	}
	if pin == "L1" && r.IntN(8) > 0 {
		d = min(d, 5*time.Second)
	}
	return uint64(d.Milliseconds())
}

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

// drawPins draws what happens at outputs, from a stream of its own. number is that
// of the next submission.
func drawPins(w *world, span time.Duration, number int) (list []step) {
	r := w.stream("plan of pins")
	submit := func(at time.Duration, node int, intent string, args map[string]any, timeout time.Duration) {
		args["n"] = uint64(number)
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
		list = append(list, step{at: at, kind: opSubmit, who: r.IntN(len(w.clients)), spec: s, number: number, p: r.Float64()})
		number++
	}
	for range max(1, int(float64(leaseTasks*len(w.agents))*span.Seconds()/45)) {
		at, node, o := when(r, span), r.IntN(len(w.agents)), &outputs[r.IntN(len(outputs))]
		switch r.IntN(10) {
		case 0:
			submit(at, node, wire.IntentGPIOPulse, map[string]any{"pin": o.name, "level": uint64(1)}, 2*time.Second)
		case 1, 2: // without a time
			submit(at, node, wire.IntentGPIOWrite, map[string]any{"pin": o.name, "level": uint64(r.IntN(2))}, 2*time.Second)
		default:
			again, ms := 1, drawHold(r, o)
			if r.IntN(4) == 0 {
				again += 1 + r.IntN(3) // somebody holds a handle
			}
			for range again {
				submit(at, node, wire.IntentGPIOWrite, map[string]any{"pin": o.name, "level": uint64(1), "max_on_ms": ms}, 2*time.Second)
				at += between(r, 20, 3_000)
			}
		}
	}
	watch := func(at time.Duration, node, least, most int, every time.Duration) {
		span := between(r, least, most)
		submit(at, node, wire.IntentGPIOWatch, map[string]any{"pin": inputs[r.IntN(len(inputs))], "for_ms": uint64(span.Milliseconds()), "every_ms": uint64(every.Milliseconds())}, span+3*time.Second)
	}
	for range max(1, int(float64(watchTasks*len(w.agents))*span.Seconds()/45)) {
		watch(when(r, span), r.IntN(len(w.agents)), 500, 20_000, between(r, 100, 3_000))
	}
	if chance(r, crowd) {
		at, node := when(r, span/2), r.IntN(len(w.agents))
		for range crowdTasks {
			watch(at+between(r, 0, 2_000), node, 15_000, 25_000, between(r, 3_000, 8_000))
			list[len(list)-1].p = 1 // by HTTP, for a session has few packet ids
		}
		for range 4 {
			submit(at+between(r, 2_000, 15_000), node, wire.IntentGPIOWrite, map[string]any{"pin": outputs[r.IntN(len(outputs))].name, "level": uint64(1), "max_on_ms": uint64(1_000)}, 2*time.Second)
		}
	}
	if !chance(r, w.profile.Hands) {
		return list
	}
	for range 1 + r.IntN(3) {
		list = append(list, step{at: when(r, span), kind: handLocal, who: r.IntN(len(w.agents)), long: between(r, 500, 15_000)})
	}
	for range 1 + r.IntN(2) {
		s := step{at: when(r, span), kind: handAway, who: r.IntN(len(w.agents)), long: between(r, 8_000, 40_000)}
		list = append(list, s)
		submit(max(0, s.at-between(r, 200, 3_000)), s.who, wire.IntentGPIOWrite, map[string]any{"pin": "L0", "level": uint64(1), "max_on_ms": uint64(between(r, 20_000, 40_000).Milliseconds())}, 2*time.Second)
	}
	return list
}

// inputs are those of every board.
var inputs = []string{"I0", "I1"}

// drawHold draws for how long an output is to be on, in ms: mostly what its map
// allows.
func drawHold(r *rand.Rand, o *output) uint64 {
	d := between(r, 1_000, 10_000)
	switch r.IntN(5) {
	case 0, 1:
		d = between(r, 10, 500)
	case 2:
		d = between(r, 10_000, 40_000)
	}
	if o.maxOn > 0 && r.IntN(8) > 0 {
		d = min(d, o.maxOn)
	}
	return uint64(d.Milliseconds())
}

package explore

import (
	"math/rand/v2"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// leaseTasks is how many tasks for outputs a node gets in 45 s.
const leaseTasks = 2

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
	return list
}

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

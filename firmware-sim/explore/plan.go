package explore

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// Sizes of a plan.
const (
	minSpan       = 30 * time.Second // of the faulty phase, drawn up to maxSpan
	maxSpan       = 60 * time.Second
	tasksPerSpan  = 14 // tasks of a site of any size, and
	tasksPerNode  = 3  // so many more for each node
	clientsOfSite = 2
	// faultGap is the mean time between two faults of one machine or link.
	faultGap = 12 * time.Second
	// maxFaults bounds the faults of a large site.
	maxFaults = 400
)

// clientCount is how many clients a site has.
func clientCount(nodes int) int { return clientsOfSite + nodes/20 }

// intentTurn is an intent that the gateway does not know, so that it must not be
// repeated when its outcome is unknown.
const intentTurn = "valve.turn"

// operations are what clients do beside submitting, by how often.
var operations = []kind{opRepeat, opRepeat, opChange, opCancel, opCancel, opCancel1, opCancel1, opGarbage,
	opRetry, opRetry, opRetry, opResolve, opQuiet, opDead}

// step is one thing that happens to the site. It is drawn before anything runs.
type step struct {
	at     time.Duration
	kind   kind
	who    int           // agent or client
	ref    int           // which of the known tasks
	long   time.Duration // how long a state lasts, or how far a clock jumps
	second time.Duration // how long until the machine is back
	p      float64       // decides details
	spec   *engine.Spec
	number int // of a submission, from 1; its arguments carry it
}

// drawSpan is the length of the faulty phase.
func drawSpan(r *rand.Rand) time.Duration {
	return minSpan + time.Duration(r.Int64N(int64(maxSpan-minSpan)))
}

// drawPlan draws the steps of a seed, in order of time.
func drawPlan(w *world, span time.Duration) []step {
	r := w.stream("plan")
	var list []step
	tasks := int(float64(tasksPerSpan+tasksPerNode*len(w.agents)) * span.Seconds() / 45)
	for n := range max(tasks, 1) {
		list = append(list, drawTask(w, r, span, n+1))
	}
	for range tasks / 2 {
		k := operations[r.IntN(len(operations))]
		list = append(list, step{at: when(r, span), kind: k, who: r.IntN(len(w.clients)), ref: r.IntN(1 << 20), long: drawLong(r), p: r.Float64()})
	}
	if w.profile.total > 0 {
		for range min(1+int(float64(len(w.agents)+1)*span.Seconds()/faultGap.Seconds()), maxFaults) {
			list = append(list, step{at: when(r, span), kind: w.profile.draw(r.IntN(w.profile.total)), who: r.IntN(len(w.agents)),
				long: drawLong(r), second: between(r, 50, 6000), p: r.Float64()})
		}
	}
	list = append(list, drawStory(w, span)...)
	list = append(list, drawPins(w, span, max(tasks, 1)+1)...)
	list = append(list, drawOrder(w, span, list)...)
	list = append(list, drawScenes(w, list)...)
	list = append(list, drawHangs(w, span, list)...)
	slices.SortStableFunc(list, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return list
}

func when(r *rand.Rand, span time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(span)))
}

// drawLong is mostly short and sometimes longer than any timeout.
func drawLong(r *rand.Rand) time.Duration {
	switch r.IntN(4) {
	case 0:
		return between(r, 5_000, 40_000)
	case 1:
		return between(r, 1_000, 10_000)
	}
	return between(r, 50, 3_000)
}

// drawTask draws a submission.
func drawTask(w *world, r *rand.Rand, span time.Duration, number int) step {
	s := &engine.Spec{Intent: []string{wire.IntentGPIOWrite, wire.IntentGPIOPulse, wire.IntentGPIORead, wire.IntentGPIOWrite, wire.IntentGPIOPulse, intentTurn}[r.IntN(6)],
		Priority: wire.Priority(r.IntN(4)), TimeoutMs: uint32(between(r, 500, 8_000).Milliseconds())}
	switch r.IntN(12) {
	case 0:
		s.Label = engine.Selector{Key: "row", Value: fmt.Sprint(r.IntN(2))}
	case 1:
		s.Nodes = []string{"ghost", nodeName(r.IntN(len(w.agents)))}
		s.TTLMs = between(r, 1_000, 20_000).Milliseconds()
	default:
		for range 1 + min(r.IntN(3), r.IntN(3)+1) {
			s.Nodes = append(s.Nodes, nodeName(r.IntN(len(w.agents))))
		}
	}
	slices.Sort(s.Nodes)
	s.Nodes = slices.Compact(s.Nodes)
	switch r.IntN(5) {
	case 0:
		s.TTLMs = between(r, 300, 5_000).Milliseconds()
	case 1:
		s.TTLMs = between(r, 2_000, 40_000).Milliseconds()
	}
	if r.IntN(2) == 0 {
		s.Retry = &engine.Retry{Max: uint8(r.IntN(4)), InitialMs: uint32(r.IntN(2_000)), MaxMs: 3_000, Backoff: engine.Backoff(r.IntN(2))}
	}
	if r.IntN(5) < 2 {
		s.TaskID = fmt.Sprintf("task-%d", number)
	}
	m := map[string]any{"pin": plain[r.IntN(len(plain))]}
	if r.IntN(25) == 0 {
		m["pin"] = "missing"
	}
	switch s.Intent {
	case wire.IntentGPIOWrite:
		m["level"] = uint64(r.IntN(2))
	case wire.IntentGPIOPulse:
		m["width_ms"] = uint64(between(r, 1, 300).Milliseconds())
	}
	args, err := wire.EncodeMap(m, wire.MaxArgsBytes)
	if err != nil {
		panic("bug: arguments of the simulation: " + err.Error())
	}
	s.Args = args
	at := when(r, span)
	if s.TTLMs == 0 && r.IntN(10) == 0 {
		s.NotAfter = start + (at + between(r, 0, 30_000)).Milliseconds()
	}
	return step{at: at, kind: opSubmit, who: r.IntN(len(w.clients)), spec: s, number: number, p: r.Float64()}
}

func nodeName(n int) string { return fmt.Sprintf("node-%03d", n+1) }

// String says what a step does, for the list of a minimal failure.
func (s step) String() string {
	t := fmt.Sprintf("%8.3fs %-14s", s.at.Seconds(), s.kind)
	switch {
	case s.kind == opSubmit:
		return t + fmt.Sprintf(" client %d: task %d, %s on %v%v", s.who, s.number, s.spec.Intent, s.spec.Nodes, label(s.spec.Label))
	case s.kind > faultKinds && s.kind < agentReload:
		return t + fmt.Sprintf(" client %d", s.who)
	}
	return t + fmt.Sprintf(" %s, for %v", nodeName(s.who), s.long.Round(time.Millisecond))
}

func label(s engine.Selector) string {
	if s.IsZero() {
		return ""
	}
	return s.Key + "=" + s.Value
}

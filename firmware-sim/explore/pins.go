package explore

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// output is what a board's pin map says of an output. All are safe when off.
type output struct {
	name   string
	onLoss bool          // it goes to its safe level when the gateway is lost
	maxOn  time.Duration // the longest time that it may be on, 0 for as long as it likes
}

// outputs are those of every board. The pins of the rest of the workload have no
// safe levels, so that nothing there depends on these.
var outputs = []output{{name: "L0", onLoss: true}, {name: "L1", maxOn: 5 * time.Second}, {name: "L2"}}

func outputOf(pin string) *output {
	for k := range outputs {
		if outputs[k].name == pin {
			return &outputs[k]
		}
	}
	return nil
}

const (
	// fallAgain is the time between two tries of a fall-back that does not work.
	fallAgain = 200 * time.Millisecond
	// endWay and resultWay bound how long the end of a lease, and the result of the
	// work that began it, take to the agent's loop: either may come first.
	endWay, resultWay = 5, 30 // ms
	// safeWithin bounds how long after a crash the service manager has the outputs
	// set to their safe levels.
	safeWithin = 1_000 // ms
)

// owner is the owner of a board's outputs, with the rules of fieldagent/gpio in
// virtual time: it waits for nobody, and ends leases whatever disk, loop and link do.
type owner struct {
	a     *agent
	rnd   *rand.Rand
	on    map[string]bool
	falls map[string]*fall
}

// fall is an output that will go to its safe level by itself.
type fall struct {
	due    time.Duration // mono of the board
	token  wire.Token    // of what set it
	why    wire.LeaseEnd // once it has worked
	lease  bool          // somebody waits for its end
	failed bool          // that it failed was told
	tries  int           // so many will fail
}

func newOwner(a *agent) *owner {
	return &owner{a: a, rnd: a.w.stream("pins " + a.tag), on: map[string]bool{}, falls: map[string]*fall{}}
}

// start is the start of the process: safe levels, before anything else.
func (o *owner) start() {
	o.falls = map[string]*fall{}
	o.allSafe("start")
	o.a.w.check.startedSafe(o.a)
}

// gone is the end of the process. Without power a resistor decides; an orderly end
// sets the safe levels; after a crash the lines stay as they were until the service
// manager has them set.
func (o *owner) gone(power, killed bool) {
	o.falls = map[string]*fall{}
	if power || !killed {
		o.allSafe("end")
		return
	}
	boots := o.a.boots
	o.a.w.after(between(o.rnd, 20, safeWithin), func() {
		if o.a.boots == boots && o.a.life == nil {
			o.allSafe("after a crash")
		}
	})
}

// allSafe drives the safe levels when no process holds leases.
func (o *owner) allSafe(when string) {
	for k := range outputs {
		o.drive(outputs[k].name, false, wire.Token{}, when)
	}
}

func (o *owner) drive(pin string, on bool, by wire.Token, why string) {
	if o.on[pin] != on {
		o.a.w.log(o.a.tag, "pin %s goes %v: %s", pin, onOff(on), why)
		o.a.w.mix("pin", uint64(o.a.index), by.Seq)
	}
	o.on[pin] = on
	o.a.w.check.moved(o.a, pin, on)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// set drives an output, for hold if that is not 0. One that is refused may have
// moved all the same: then what held before still holds, and otherwise it falls
// back as if the command had worked.
func (o *owner) set(t wire.Token, pin string, on bool, hold time.Duration, lease, refused bool) {
	next := &fall{due: o.a.clock.mono() + hold, token: t, why: wire.LeaseExpired, lease: lease, tries: tries(o.a.w.seed, t)}
	o.drive(pin, on, t, "command")
	o.a.w.check.commanded(o.a, pin, on, t, hold, refused)
	if refused {
		if next.lease = false; hold > 0 && o.falls[pin] == nil {
			o.arm(pin, next)
		}
		return
	}
	if hold == 0 && mutant.On(mutant.LeaseUnreplaced) {
		return
	}
	o.endFall(pin, wire.LeaseReplaced)
	if lease {
		o.a.w.check.leased(o.a, pin, t)
	}
	if hold > 0 {
		o.arm(pin, next)
	}
}

// tries is how often the fall-back of what a token set fails at first: mostly never.
func tries(seed uint64, t wire.Token) int {
	r := rand.New(rand.NewPCG(seed^t.Seq, uint64(t.Shard)+77))
	if r.IntN(20) > 0 {
		return 0
	}
	return 1 + r.IntN(4)
}

func (o *owner) arm(pin string, f *fall) {
	o.falls[pin] = f
	o.a.later(o.a.clock.truly(f.due), func() {
		if o.falls[pin] == f && o.a.clock.mono() >= f.due {
			o.fallBack(pin, f.why)
		}
	})
}

// endFall forgets a fall-back and tells whoever waits for the end of a lease.
func (o *owner) endFall(pin string, why wire.LeaseEnd) {
	f := o.falls[pin]
	if f == nil {
		return
	}
	delete(o.falls, pin)
	o.a.w.check.leaseOver(o.a, pin, f.token, why)
	if f.lease || f.failed || why == wire.LeaseExpired {
		o.tell(f.token, why)
	}
}

func (o *owner) tell(t wire.Token, why wire.LeaseEnd) {
	at := o.a.clock.mono()
	o.a.later(between(o.rnd, 0, endWay), func() {
		o.a.input(executor.LeaseEnded{Token: t, Why: why, Ago: o.a.clock.mono() - at})
	})
}

// fallBack drives the safe level. What does not work is tried again.
func (o *owner) fallBack(pin string, why wire.LeaseEnd) {
	f := o.falls[pin]
	if f != nil && f.tries > 0 {
		f.tries--
		o.a.w.check.stuck(o.a, pin, f.token)
		if !f.failed && (f.lease || f.why == wire.LeaseExpired) {
			f.failed = true
			o.tell(f.token, wire.LeaseFailed)
		}
		f.why, f.due = why, o.a.clock.mono()+fallAgain
		o.arm(pin, f)
		return
	}
	by := wire.Token{}
	if f != nil {
		by = f.token
	}
	o.a.w.check.fell(o.a, pin, by, why)
	o.drive(pin, false, by, why.String())
	o.endFall(pin, why)
}

// Fall implements round.Hands.
func (a *agent) Fall(executor.Fall) {
	a.later(between(a.pins.rnd, 0, endWay), func() {
		for _, p := range outputs {
			// The owner calls what the safe levels end replaced; the core knows better.
			a.pins.fallBack(p.name, wire.LeaseReplaced)
		}
	})
}

// Contact implements round.Hands.
func (a *agent) Contact() {}

// Hold implements round.Hands.
func (a *agent) Hold([]wire.LineKey) {}

// EndLease implements round.Hands.
func (a *agent) EndLease(wire.Token) {}

// request is what the arguments of an instruction ask of an output.
type request struct {
	output *output // nil for none of them
	on     bool
	maxOn  time.Duration // 0 for none
	span   time.Duration // of a watch
	every  time.Duration // between its reports
}

func requested(args wire.RawMap) (q request) {
	m, err := wire.DecodeMap(args)
	if err != nil {
		return q
	}
	ms := func(name string) time.Duration {
		n, _ := m[name].(uint64)
		return time.Duration(n) * time.Millisecond
	}
	pin, _ := m["pin"].(string)
	level, _ := m["level"].(uint64)
	return request{output: outputOf(pin), on: level == 1, maxOn: ms("max_on_ms"), span: ms("for_ms"), every: ms("every_ms")}
}

// hold is for how long a write is good, 0 for ever.
func (q *request) hold() time.Duration {
	switch {
	case !q.on:
		return 0
	case q.maxOn == 0:
		return q.output.maxOn
	}
	return q.maxOn
}

// fitsMap reports whether the pin map allows the time.
func (q *request) fitsMap() bool {
	return q.output == nil || !q.on || q.output.maxOn == 0 || q.maxOn <= q.output.maxOn
}

// pinFate is how a write or a pulse of an output ends if nobody interferes.
func pinFate(seed uint64, w executor.Work) (f fate) {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "pin %d %d %s", w.Seq, w.Attempt, w.Intent) // a hash has no errors
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	f = fate{takes: between(r, 1, 20), code: wire.CodeOK}
	switch r.IntN(12) {
	case 0:
		f.takes = between(r, 200, 4_000)
	case 1:
		f.code = wire.CodeIO
	case 2:
		f.code = wire.CodeUnknown // the owner has not answered
	}
	f.deaf = r.IntN(40) == 0
	return f
}

// act is what a work does at its output, and its result. A pulse is on from its
// start; see begin.
func (o *owner) act(x *work, q *request, code wire.Code) executor.Result {
	r := executor.Result{Code: code}
	hold := q.hold()
	switch {
	case x.Intent == wire.IntentGPIOPulse:
		o.set(x.Token, x.pin, false, 0, false, false)
	case code == wire.CodeOK, code == wire.CodeUnknown: // it was done, and nobody said so
		o.set(x.Token, x.pin, q.on, hold, hold > 0, false)
	case code == wire.CodeIO && chance(o.rnd, 0.5):
		o.set(x.Token, x.pin, q.on, hold, false, true)
	}
	if hold > 0 && (code == wire.CodeOK || code == wire.CodeUnknown) && x.Intent == wire.IntentGPIOWrite {
		r.Lease = &executor.Lease{Pin: x.pin}
	}
	if r.Lease == nil || code != wire.CodeOK {
		return r
	}
	payload, err := wire.EncodeMap(map[string]any{"pin": x.pin, "level": uint64(1), "max_on_ms": uint64(hold.Milliseconds()),
		"until_ms": uint64(max(x.At+(o.a.w.now-x.begun+hold).Milliseconds(), 1))}, wire.MaxPayloadBytes)
	if err != nil {
		panic("bug: a result of the simulation: " + err.Error())
	}
	r.Payload = payload
	return r
}

// begin is what a work does at its output when it begins.
func (o *owner) begin(x *work) {
	if x.Intent == wire.IntentGPIOPulse {
		o.set(x.Token, x.pin, true, outputOf(x.pin).maxOn, false, false)
	}
}

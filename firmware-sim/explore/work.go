package explore

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// errFull is what a full disk says.
var errFull = fmt.Errorf("made by the simulation: %w", syscall.ENOSPC)

// work is one execution at the pins.
type work struct {
	executor.Work
	pin   string
	begun time.Duration
	done  bool

	watching *watching // nil for what is no watch
}

// pinOf reads the pin of a work's arguments; empty if there is none.
func pinOf(args wire.RawMap) string {
	m, err := wire.DecodeMap(args)
	if err != nil {
		return ""
	}
	pin, _ := m["pin"].(string)
	return pin
}

// judge is the board's opinion on an instruction.
func judge(intent string, args wire.RawMap) executor.Verdict {
	switch intent {
	case wire.IntentGPIOWrite, wire.IntentGPIOPulse, wire.IntentGPIORead, wire.IntentGPIOWatch, intentTurn:
	default:
		return executor.Verdict{Code: wire.CodeUnknownIntent, Detail: intent}
	}
	pin := pinOf(args)
	if pin == "" || pin == "missing" {
		return executor.Verdict{Code: wire.CodeNoSuchPin, Detail: pin}
	}
	if intent == wire.IntentGPIOWatch {
		return executor.Verdict{Watch: true}
	}
	if q := requested(args); !q.fitsMap() {
		return executor.Verdict{Code: wire.CodeBadArgs, Detail: "max_on"}
	}
	return executor.Verdict{Lines: []wire.LineKey{wire.LineOf(pin)}, Actuates: intent != wire.IntentGPIORead}
}

// fate is how a work will end if nobody interferes.
type fate struct {
	takes time.Duration
	code  wire.Code
	deaf  bool // it does not heed its time limit or an abort
}

// fateOf depends on nothing but the seed and the attempt.
func fateOf(seed uint64, w executor.Work) fate {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %d %s", w.Seq, w.Attempt, w.Intent) // a hash has no errors
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	f := fate{takes: between(r, 1, 200), code: wire.CodeOK}
	switch r.IntN(10) {
	case 0, 1:
		f.takes = between(r, 300, 5_000)
	case 2:
		f.takes = between(r, 2_000, 40_000)
	}
	switch r.IntN(16) {
	case 0:
		f.code = wire.CodeBusy
	case 1:
		f.code = wire.CodeIO
	case 2:
		f.code = wire.CodeFailed
	case 3:
		f.code = wire.CodeDependency
	}
	f.deaf = r.IntN(40) == 0
	return f
}

// Start implements round.Hands.
func (a *agent) Start(w executor.Work) {
	x := &work{Work: w, pin: pinOf(w.Args), begun: a.w.now}
	a.w.mix("start", uint64(a.index), w.Token.Seq, w.Seq)
	a.w.log(a.tag, "starts %d attempt %d (%v): %s on %s", w.Seq, w.Attempt, w.Token, w.Intent, x.pin)
	a.w.check.started(a, x)
	a.works[w.Token] = x
	if a.copyRuns {
		a.copyCard()
	}
	q := requested(w.Args)
	if x.Intent == wire.IntentGPIOWatch {
		a.watch(x, q)
		return
	}
	a.lines[x.pin] = w.Token
	f := a.fate(x)
	if q.output != nil {
		a.pins.begin(x)
	}
	if f.takes > w.Timeout && !f.deaf {
		f.takes, f.code = w.Timeout, wire.CodeTimeout
	}
	a.later(f.takes, func() { a.finish(x, f.code) })
}

// fate is how a work will end if nobody interferes.
func (a *agent) fate(x *work) fate {
	if requested(x.Args).output != nil {
		return pinFate(a.w.seed, x.Work)
	}
	return fateOf(a.w.seed, x.Work)
}

// Abort implements round.Hands.
func (a *agent) Abort(t wire.Token) {
	x := a.works[t]
	if x == nil || x.watching == nil && a.fate(x).deaf {
		return
	}
	a.later(between(a.rnd, 1, 50), func() { a.finish(x, wire.CodeCancelled) })
}

func (a *agent) finish(x *work, code wire.Code) {
	if x.done {
		return
	}
	x.done = true
	delete(a.works, x.Token)
	if a.lines[x.pin] == x.Token {
		delete(a.lines, x.pin)
	}
	a.w.log(a.tag, "has done %d attempt %d: %v", x.Seq, x.Attempt, code)
	a.w.check.finished(a, x, code)
	if x.watching != nil {
		x.watching.look()
		a.input(executor.Finished{Token: x.Token, Result: executor.Result{Code: code, Payload: x.watching.payload()}})
		return
	}
	q := requested(x.Args)
	if q.output == nil {
		a.input(executor.Finished{Token: x.Token, Result: executor.Result{Code: code}})
		return
	}
	r := a.pins.act(x, &q, code)
	if r.Lease == nil {
		a.input(executor.Finished{Token: x.Token, Result: r})
		return
	}
	a.later(between(a.pins.rnd, 0, resultWay), func() { a.input(executor.Finished{Token: x.Token, Result: r}) })
}

// Primary implements round.Hands.
func (a *agent) Primary(m wire.Message) {
	a.w.check.says(a, m)
	if e, ok := m.(*wire.Event); ok && a.copyWaits && e.Phase == wire.PhaseReceived {
		a.copyCard()
	}
	b, err := wire.Encode(m)
	if err != nil {
		a.w.fail("wire", "a %T of %s cannot be encoded: %v", m, a.id, err)
		return
	}
	a.w.mixBytes("up", b)
	a.link.up(b)
}

// Narrowband implements round.Hands.
func (a *agent) Narrowband(ack wire.CompactAck) {
	a.w.check.whispers(a, ack)
	a.narrow.up(ack)
}

// Note implements round.Hands.
func (a *agent) Note(n executor.Note) {
	if n.Level != executor.LevelDebug {
		a.w.log(a.tag, "note: %s: %s (instruction %d, %v)", n.Text, n.Detail, n.Seq, n.Code)
	}
}

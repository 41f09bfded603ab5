package explore

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// errFull is what a full disk says.
var errFull = fmt.Errorf("made by the simulation: %w", syscall.ENOSPC)

// work is one execution at the pins.
type work struct {
	executor.Work
	act     wire.Act
	pin     string // the first that it names
	fate    fate
	frame   uint64 // of a compact frame towards safe: its number
	ahead   bool   // no frame: it goes ahead of its record at the gateway
	begun   time.Duration
	done    bool
	aborted bool
	pulsing bool // the owner has its pulse
	passed  bool // something newer towards safe has begun there while it ran: it keeps no line when it ends, even if that drove nothing

	watching *watching // nil for what is no watch
}

// owned reports whether it drives a pin by way of the owner.
func (x *work) owned() bool { return x.act.Sets }

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
	a.effects++
	x := &work{Work: w, begun: a.w.now}
	x.act, _ = wire.ParseAct(w.Intent, w.Args) // what can't be read is refused by judge
	if len(x.act.Pins) > 0 {
		x.pin = x.act.Pins[0]
	}
	a.w.mix("start", uint64(a.index), w.Token.Seq, w.Seq)
	a.w.log(a.tag, "starts %d attempt %d (%v): %s on %s, number %d, again %v", w.Seq, w.Attempt, w.Token, w.Intent, x.pin, w.Order, w.Again)
	a.w.check.started(a, x)
	if w.Again {
		a.input(executor.Finished{Token: x.Token, Result: a.driveSafe(x, wire.CodeOK), Again: true})
		return
	}
	a.works[w.Token] = x
	if a.copyRuns {
		a.copyCard()
	}
	switch {
	case x.act.Watch:
		a.watch(x)
		return
	case x.act.Release:
		a.pins.step(lines.Release{Lines: w.Lines})
		a.w.check.released(a, x)
		a.finish(x, executor.Result{Code: wire.CodeOK})
		return
	}
	if x.fate = fateOf(a.w.seed, w); x.owned() || x.Towards {
		x.fate = pinFate(a.w.seed, w)
		if a.sickly {
			x.fate = sickFate(x.fate, a.w.seed, w.Seq, w.Attempt)
		}
		x.fate.takes = max(x.fate.takes, a.busyUntil-a.w.now)
	} else if a.deaf {
		x.fate.takes, x.fate.deaf = x.fate.takes+deafFor, true
	}
	if x.Towards {
		if x.fate.code != wire.CodeIO && x.fate.code != wire.CodeUnknown {
			x.fate.code = wire.CodeOK
		}
		a.finish(x, a.driveSafe(x, x.fate.code))
		return
	}
	f := &x.fate
	if f.takes > w.Timeout && !f.deaf {
		f.takes, f.code = w.Timeout, wire.CodeTimeout
	}
	a.later(f.takes, func() {
		switch {
		case x.done:
		case x.owned():
			a.setPin(x)
		default:
			a.finish(x, executor.Result{Code: f.code})
		}
	})
}

// driveSafe drives the lines of something towards safe.
func (a *agent) driveSafe(x *work, code wire.Code) executor.Result {
	r := executor.Result{Code: wire.CodeNone}
	driven := false
	for _, l := range x.Lines {
		if p := a.pins.m.byLine[l]; p == nil || !p.hasSafe {
			continue
		}
		c, fate := a.pins.want(x, code, lines.Want{Line: l, Safe: true, Hold: x.Hold})
		driven = driven || fate == lines.Moved
		if c.Class() != wire.ClassSuccess && c != wire.CodeSuperseded || r.Code == wire.CodeNone {
			r.Code = c
		}
	}
	if driven && r.Code == wire.CodeSuperseded {
		r.Code = wire.CodeOK // what is newer elsewhere stands
	}
	if r.Code == wire.CodeNone {
		r.Code = wire.CodeUnsupported
	}
	return r
}

// setPin is a write or the beginning of a pulse.
func (a *agent) setPin(x *work) {
	switch x.fate.code {
	case wire.CodeOK, wire.CodeIO, wire.CodeUnknown:
	default: // it does not come to asking
		a.finish(x, executor.Result{Code: x.fate.code})
		return
	}
	o := a.pins
	p := o.m.byName[x.pin]
	if p == nil || len(x.Lines) != 1 || p.line != x.Lines[0] {
		a.finish(x, executor.Result{Code: wire.CodeMapChanged})
		return
	}
	hold := a.core.Clock().Left(a.now(), x.EndsBy, x.act.MaxOn)
	if x.act.MaxOn > 0 && hold < time.Millisecond && p.away(x.act.Level) {
		code := wire.CodeDependency // its lease may be over
		if a.core.Clock().Late(a.now(), x.NotAfter, true) {
			code = wire.CodeExpired
		}
		a.finish(x, executor.Result{Code: code})
		return
	}
	want := lines.Want{Line: p.line, Level: x.act.Level, For: hold}
	if !p.away(x.act.Level) {
		want.For = 0 // the safe level has no limit
	}
	if x.act.Pulse {
		o.lastID++
		want.Width, want.ID, want.For = x.act.Lasts, o.lastID, 0
		o.pulses[want.ID] = x
		x.pulsing = true
	}
	code, fate := o.want(x, x.fate.code, want)
	if x.act.Pulse {
		if fate == lines.Moved {
			return // its end comes from the owner
		}
		delete(o.pulses, want.ID)
		x.pulsing = false
	}
	r := executor.Result{Code: code}
	if fate == lines.Moved && p.away(x.act.Level) {
		if hold == 0 {
			hold = p.maxOn
		}
		r.Lease = &executor.Lease{Pin: p.name, Level: p.safe, Plain: hold == 0}
		a.w.check.leased(a, p, x, hold == 0)
		if hold > 0 && code == wire.CodeOK {
			r.Payload = leasePayload(p.name, p.away(true), hold, x.At+(a.w.now-x.begun+hold).Milliseconds())
		}
	}
	a.finish(x, r)
}

func leasePayload(pin string, high bool, hold time.Duration, until int64) wire.RawMap {
	level := uint64(0)
	if high {
		level = 1
	}
	b, err := wire.EncodeMap(map[string]any{"pin": pin, "level": level, "max_on_ms": uint64(hold.Milliseconds()), "until_ms": uint64(max(until, 1))}, wire.MaxPayloadBytes)
	if err != nil {
		panic("bug: a result of the simulation: " + err.Error())
	}
	return b
}

// Abort implements round.Hands.
func (a *agent) Abort(t wire.Token) {
	x := a.works[t]
	if x == nil || x.fate.deaf {
		return
	}
	x.aborted = true
	a.w.check.aborted(x)
	if x.pulsing {
		a.later(between(a.rnd, 1, 10), func() {
			if x.pulsing {
				a.pins.step(lines.Cancel{Cause: t.String()})
			}
		})
		return
	}
	a.later(between(a.rnd, 1, 50), func() {
		if !x.pulsing {
			a.finish(x, executor.Result{Code: wire.CodeCancelled})
		}
	})
}

func (a *agent) finish(x *work, r executor.Result) {
	if x.done {
		return
	}
	x.done = true
	a.w.log(a.tag, "has done %d attempt %d: %v", x.Seq, x.Attempt, r.Code)
	a.w.check.finished(a, x, r.Code)
	end := func() {
		delete(a.works, x.Token)
		a.input(executor.Finished{Token: x.Token, Result: r})
	}
	switch {
	case x.watching != nil:
		x.watching.look()
		r.Payload = x.watching.payload()
		end()
	case r.Lease != nil:
		a.later(between(a.pins.rnd, 0, resultWay), end)
	default:
		end()
	}
}

// Primary implements round.Hands.
func (a *agent) Primary(m wire.Message) {
	a.effects++
	a.w.check.says(a, m)
	if h, ok := m.(*wire.Hello); ok {
		if a.lastHello = h; a.lying > 0 {
			m = a.forged(h)
		}
	}
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
	a.effects++
	a.w.check.whispers(a, ack)
	a.narrow.up(ack)
}

// Note implements round.Hands.
func (a *agent) Note(n executor.Note) {
	if n.Level != executor.LevelDebug {
		a.w.log(a.tag, "note: %s: %s (instruction %d, %v)", n.Text, n.Detail, n.Seq, n.Code)
	}
}

package executor_test

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// bench is a core with a journal that takes everything at once, for what a script
// can't say.
type bench struct {
	t       *testing.T
	cfg     executor.Config
	core    *executor.Core
	journal [][]byte
	gateway int64 // its Unix ms when Mono was 0
	mono    time.Duration
	away    time.Duration // see executor.Now, as the next
	throws  uint64
	session uint64
	newest  uint64 // event that was sent
}

func newBench(t *testing.T, cfg executor.Config) *bench {
	t.Helper()
	b := &bench{t: t, cfg: cfg, gateway: wallAtStart}
	b.start()
	return b
}

// start is the next process, with the journal as it is.
func (b *bench) start() executor.Output {
	b.t.Helper()
	core, out, err := executor.New(b.cfg, b.journal, b.at())
	if err != nil {
		b.t.Fatal(err)
	}
	b.core = core
	b.journal = append(b.journal, out.Records...)
	return out
}

func (b *bench) at() executor.Now {
	return executor.Now{Mono: b.mono, Wall: wallAtStart + b.mono.Milliseconds(), WallOK: true, Away: b.away, Throws: b.throws}
}

func (b *bench) step(in executor.Input) executor.Output {
	out := b.core.Step(b.at(), in)
	b.journal = append(b.journal, out.Records...)
	for _, m := range out.Primary {
		if e, ok := m.(*wire.Event); ok {
			b.newest = max(b.newest, e.Number)
		}
	}
	return out
}

// ack acknowledges all events.
func (b *bench) ack() { b.receive(&wire.EventAck{Through: b.newest}) }

func (b *bench) receive(m wire.Message) executor.Output {
	return b.step(executor.Received{Message: m})
}

// welcome connects and is welcomed by a gateway that follows the rules.
func (b *bench) welcome(through uint64) executor.Output {
	b.session++
	b.step(executor.Connected{Session: b.session})
	return b.greet(&wire.Welcome{Through: through, Rules: wire.NewestRules})
}

func (b *bench) greet(w *wire.Welcome) executor.Output {
	w.Session, w.Now, w.HeartbeatMs, w.Phases = b.session, b.gateway+b.mono.Milliseconds(), 5000, wire.MaxPhase
	w.Epoch = max(w.Epoch, 1)
	return b.receive(w)
}

func token(n uint64) wire.Token { return wire.Token{Shard: 1, Seq: n, Rand: 1} }

// instruction is one that uses a line; more words make it what they say.
func (b *bench) instruction(seq uint64, on string, words ...string) *wire.Instruction {
	now := b.gateway + b.mono.Milliseconds()
	args := map[string]any{}
	if on != "" {
		args["on"] = on
	}
	for _, w := range words {
		args[w] = "yes"
	}
	return &wire.Instruction{Seq: seq, Key: wire.Key{Site: "s", Millis: now, Seq: seq}.String(), Token: token(seq), Attempt: 1,
		Intent: "do", SentAt: now, Args: encodeMap(b.t, args)}
}

func (b *bench) deliver(seq uint64, on string, words ...string) executor.Output {
	return b.receive(b.instruction(seq, on, words...))
}

func (b *bench) finish(seq uint64, code wire.Code) executor.Output {
	return b.step(executor.Finished{Token: token(seq), Result: executor.Result{Code: code}})
}

// ends are the results that an output tells, by instruction.
func ends(out executor.Output) map[uint64]wire.Code {
	m := map[uint64]wire.Code{}
	for _, p := range out.Primary {
		if e, ok := p.(*wire.Event); ok && e.Phase == wire.PhaseProcessed {
			m[e.Seq] = e.Code
		}
	}
	return m
}

// said is the first message of a kind in an output, nil for none.
func said[T wire.Message](out executor.Output) (m T) {
	for _, p := range out.Primary {
		if p, ok := p.(T); ok {
			return p
		}
	}
	return m
}

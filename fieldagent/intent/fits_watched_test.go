package intent_test

import (
	"context"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/wire"
)

// watched notes what an executor asks of the owner, and fails where it is told to.
type watched struct {
	*gpio.Owner
	mu                sync.Mutex // guards the rest: what outlives its execution asks whenever it likes
	drives            []gpio.Drive
	safes             []gpio.Safe
	released          []uint64 // the numbers
	pulses, listening int

	calls    int      // of all that is below
	returned bool     // the execution is over
	late     []string // what was called after that

	fails string // the method that does nothing but fail
	err   error
	asked int // how often
}

// call notes a call, and returns its failure.
func (w *watched) call(method string, note func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	note()
	w.calls++
	if w.returned {
		w.late = append(w.late, method)
	}
	if method != w.fails {
		return nil
	}
	w.asked++
	return w.err
}

func (w *watched) Get(ctx context.Context, pin string) (gpio.Level, error) {
	if err := w.call("Get", func() {}); err != nil {
		return gpio.Low, err
	}
	return w.Owner.Get(ctx, pin)
}
func (w *watched) Do(ctx context.Context, d gpio.Drive) error {
	if err := w.call("Do", func() { w.drives = append(w.drives, d) }); err != nil {
		return err
	}
	return w.Owner.Do(ctx, d)
}
func (w *watched) Pulse(ctx context.Context, d gpio.Drive, width time.Duration) (gpio.PulseEnd, error) {
	note := func() {
		w.drives = append(w.drives, d)
		w.pulses++
	}
	if err := w.call("Pulse", note); err != nil {
		return gpio.PulseEnd{}, err
	}
	return w.Owner.Pulse(ctx, d, width)
}
func (w *watched) Safe(ctx context.Context, s gpio.Safe) (gpio.SafeDone, error) {
	if err := w.call("Safe", func() { w.safes = append(w.safes, s) }); err != nil {
		return gpio.SafeDone{}, err
	}
	return w.Owner.Safe(ctx, s)
}
func (w *watched) Release(ctx context.Context, lines []wire.LineKey, order uint64) ([]string, error) {
	if err := w.call("Release", func() { w.released = append(w.released, order) }); err != nil {
		return nil, err
	}
	return w.Owner.Release(ctx, lines, order)
}
func (w *watched) Watch(ctx context.Context, pin string) (<-chan gpio.Edge, error) {
	if err := w.call("Watch", func() { w.listening++ }); err != nil {
		return nil, err
	}
	return w.Owner.Watch(ctx, pin)
}

// plant makes a wrong executor of a right one; nil is for none.
type plant func(pins intent.Pins, right intent.Executor) intent.Executor

// registry is what is built in, the intent of the play with what is planted.
func (p *play) registry(wrong plant) *intent.Registry {
	list := intent.BuiltIn(intent.Board{Pins: p.w})
	for i := range list {
		if wrong != nil && list[i].Name == p.d.Name {
			list[i].Executor = wrong(p.w, list[i].Executor)
		}
	}
	return newRegistry(p.t, list)
}

// planted is an executor with a fault.
type planted struct {
	intent.Executor
	run   func(context.Context, intent.Request) intent.Result
	check func(wire.Args) *intent.Result
}

func (p planted) Run(ctx context.Context, r intent.Request) intent.Result {
	if p.run == nil {
		return p.Executor.Run(ctx, r)
	}
	return p.run(ctx, r)
}

func (p planted) Check(a wire.Args) *intent.Result {
	if p.check == nil {
		return p.Executor.Check(a)
	}
	return p.check(a)
}

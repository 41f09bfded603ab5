package fieldagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

const (
	// handPause is the time between two looks at the LOCAL switch and at outputs that
	// somebody else has changed: soon enough for whoever has just turned the switco.
	handPause = 250 * time.Millisecond
	// fallTries and fallPause are how often, and how far apart, the owner of the pins
	// is asked to let outputs fall if it does not answer. What it has taken on it
	// tries again by itself.
	fallTries = 30
	fallPause = time.Second
)

// overseer tells the loop what happens at the board without an instruction: what
// people do there, and ends of leases.
type overseer struct {
	pins *gpio.Owner
	loop *loop
	log  *slog.Logger
	// local is the input that says that somebody works by hand, empty for none.
	local string
	// thrown is the switch as it was last read. The loop may be busy with its disk
	// when it is told; what it starts then looks here.
	thrown atomic.Bool
	bad    limited
}

// isLocal reads the LOCAL switco.
func (o *overseer) isLocal(ctx context.Context) (bool, error) {
	if o.local == "" {
		return false, nil
	}
	level, err := o.pins.Get(ctx, o.local)
	if err != nil {
		return false, fmt.Errorf("local_switch %s: %w", o.local, err)
	}
	return bool(level), nil
}

// watch tells the loop whenever the switch or a foreign output changes, until ctx
// ends. A switch that cannot be read stays as it was.
func (o *overseer) watch(ctx context.Context, local bool) {
	last := executor.Hand{Local: local}
	ticker := time.NewTicker(handPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := executor.Hand{Local: last.Local, Foreign: o.foreign()}
		if l, err := o.isLocal(ctx); err == nil {
			now.Local = l
			o.thrown.Store(l)
		} else if ctx.Err() == nil {
			o.bad.log(o.log, "the LOCAL switch can't be read; it counts as it was", err)
		}
		if now.Local != last.Local || !slices.Equal(now.Foreign, last.Foreign) {
			o.loop.give(ctx, now)
			last = now
		}
	}
}

// foreign lists the outputs that somebody else has changed, by name.
func (o *overseer) foreign() []wire.Foreign {
	var list []wire.Foreign
	for _, f := range o.pins.Foreign() {
		if wire.CheckPin(f.Pin) == nil && len(list) < wire.MaxForeign {
			list = append(list, wire.Foreign{Pin: f.Pin, Commanded: levelNumber(f.Commanded), Found: levelNumber(f.Found)})
		}
	}
	slices.SortFunc(list, func(a, b wire.Foreign) int {
		if a.Pin < b.Pin {
			return -1
		}
		return 1
	})
	return list
}

func levelNumber(l gpio.Level) uint8 {
	if l {
		return 1
	}
	return 0
}

// ends tells the loop of leases that have ended, until ctx ends. What is not told by
// then is told at the next start.
func (o *overseer) ends(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-o.pins.LeaseEnds():
			if !ok {
				return
			}
			t, err := wire.ParseToken(e.Cause)
			if err != nil {
				continue // no instruction began it
			}
			o.loop.give(ctx, executor.LeaseEnded{Token: t, Why: leaseEnd(e.Why), Ago: time.Since(e.At)})
		}
	}
}

func leaseEnd(why gpio.EndWhy) wire.LeaseEnd {
	switch why {
	case gpio.EndExpired:
		return wire.LeaseExpired
	case gpio.EndReplaced:
		return wire.LeaseReplaced
	case gpio.EndLoss:
		return wire.LeaseLoss
	case gpio.EndStopped:
		return wire.LeaseStopped
	}
	return wire.LeaseFailed
}

// clock adds to a time whether the LOCAL switch is on.
func (o *overseer) clock(now func() executor.Now) func() executor.Now {
	return func() executor.Now {
		t := now()
		t.Local = o.thrown.Load()
		return t
	}
}

// fall lets outputs go to their safe levels. It asks again if nothing was done,
// because the owner of the pins was stuck.
func (o *overseer) fall(ctx context.Context, why executor.Fall) {
	for range fallTries {
		var err error
		if why == executor.FallLoss {
			err = o.pins.Loss(ctx)
		} else {
			err = o.pins.Safe(ctx, gpio.CauseStop)
		}
		if err == nil {
			return
		}
		o.log.Error("outputs do not go to their safe levels", "err", err)
		if !errors.Is(err, gpio.ErrNotDone) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(fallPause):
		}
	}
}

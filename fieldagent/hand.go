package fieldagent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

const (
	// handPause is the time between two looks at outputs that somebody else has changed,
	// and between two tries to tell a loop that has no room.
	handPause = gpio.HandPause
	// fallTries and fallPause are how often, and how far apart, the owner of the pins
	// is asked to let outputs fall if it does not answer. What it has taken on it
	// tries again by itself.
	fallTries = 30
	fallPause = time.Second
)

// overseer tells the loop what happens at the board without an instruction: what
// people do there, how the outputs stand, and ends that the board has made.
type overseer struct {
	pins *gpio.Owner
	loop *loop
	log  *slog.Logger
	// told is what the core was told of the pins at the start.
	told pinsTold
}

// pinsTold is what the gateway knows of the pins.
type pinsTold struct {
	names  []string
	traits []wire.PinTraits
}

// tellPins lists the pins that the gateway is told of.
func tellPins(pins *gpio.Owner) (t pinsTold) {
	for _, p := range pins.Names() {
		if wire.CheckPin(p) == nil && len(t.names) < maxPinsTold {
			t.names = append(t.names, p)
		}
	}
	t.traits = pins.Traits(t.names)
	return t
}

// same reports whether nothing but levels differs.
func (t pinsTold) same(o pinsTold) bool {
	const levels = wire.PinCommanded | wire.PinHigh | wire.PinHeld
	return slices.Equal(t.names, o.names) && slices.EqualFunc(t.traits, o.traits, func(a, b wire.PinTraits) bool {
		a.Flags, b.Flags = a.Flags&^levels, b.Flags&^levels
		return a == b
	})
}

// levels packs how these pins stand.
func (t pinsTold) levels(pins *gpio.Owner) []byte {
	now := pins.Levels()
	list := make([]wire.Level, 0, len(t.names))
	for _, n := range t.names {
		list = append(list, now[n])
	}
	return wire.PackLevels(list)
}

// watch tells the loop whenever something changes, until ctx ends. The loop may be
// busy with its disk for long: then the newest waits here, and nothing else does.
func (o *overseer) watch(ctx context.Context) {
	hand := executor.Hand{Local: o.pins.Hands() == lines.HandsOn}
	hands, told, levels := o.pins.Hands(), o.told, []byte(nil)
	missing := 0
	ticker := time.NewTicker(handPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-o.pins.Changed():
		}
		if h := o.pins.Hands(); h != hands {
			if hands = h; h == lines.HandsUnknown {
				o.log.Error("the LOCAL switch can't be read: nothing leaves its safe level until it can")
			}
		}
		if m := o.pins.Missing(); len(m) != missing {
			missing = len(m)
			o.lacks()
		}
		if now := tellPins(o.pins); !now.same(told) && o.loop.offer(executor.Pins{Names: now.names, Traits: now.traits}) {
			told, levels = now, nil
		}
		if now := told.levels(o.pins); !slices.Equal(now, levels) && o.loop.offer(executor.Levels{Levels: now}) {
			levels = now
		}
		now := executor.Hand{Local: hands == lines.HandsOn, Foreign: o.foreign()}
		if (now.Local != hand.Local || !slices.Equal(now.Foreign, hand.Foreign)) && o.loop.offer(now) {
			hand = now
		}
	}
}

// lacks logs the pins that somebody else has.
func (o *overseer) lacks() {
	missing := o.pins.Missing()
	if len(missing) == 0 {
		o.log.Info("all pins of the map can be had again")
	}
	for name, err := range missing {
		o.log.Warn("somebody else has a pin of the map: it is not driven until it is free", "pin", name, "err", err)
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

// ends tells the loop of levels that have ended, until ctx ends. What is not told by
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
			in := executor.LeaseEnded{Token: t, Why: e.Why, Ago: time.Since(e.At)}
			if e.Why != wire.LeaseFailed {
				level := bool(e.Level)
				in.Level = &level
			}
			o.loop.give(ctx, in)
		}
	}
}

// clock adds to a time whether the LOCAL switch is on, and how often it was thrown.
func (o *overseer) clock(now func() executor.Now) func() executor.Now {
	return func() executor.Now {
		t := now()
		t.Local, t.Throws = o.pins.Hands() == lines.HandsOn, o.pins.Throws()
		return t
	}
}

// stop lets all outputs go to their safe levels. It asks again if nothing was done,
// because the owner of the pins was stuck.
func (o *overseer) stop(ctx context.Context) {
	for range fallTries {
		err := o.pins.Stop(ctx)
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

package gpio

import (
	"time"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// HandPause is the time between two looks at the LOCAL switch: soon enough for whoever
// has just turned it. It is also read right before a pin moves.
const HandPause = 250 * time.Millisecond

// Hands says how the LOCAL switch stood when it was last read.
func (o *Owner) Hands() lines.Hands { return o.view.Load().hands }

// Throws is how often it has been found thrown since the start.
func (o *Owner) Throws() uint64 { return o.view.Load().throws }

// mindHands reads the switch if it is time.
func (o *Owner) mindHands(now time.Time) {
	if o.opts.Local == "" || now.Before(o.handAt) {
		return
	}
	o.handAt = now.Add(HandPause)
	o.readHands()
}

// readHands reads the switch and tells the core. One that can't be read stays on if it
// was, because somebody may work there; and if it was off, nothing leaves a safe level
// until it can be read again.
func (o *Owner) readHands() {
	if o.opts.Local == "" {
		return
	}
	was, is := o.view.Load().hands, lines.HandsOff
	switch on, err := o.readSwitch(); {
	case err != nil && was == lines.HandsOn, err == nil && on == High:
		is = lines.HandsOn
	case err != nil:
		is = lines.HandsUnknown
	}
	if is == was {
		return
	}
	in := lines.Local{Hands: is}
	if is == lines.HandsOn {
		in.Read = o.actuals()
	}
	o.step(in)
	v := *o.view.Load()
	if v.hands = is; is == lines.HandsOn {
		v.throws++
	}
	o.view.Store(&v)
	o.signal()
}

func (o *Owner) readSwitch() (Level, error) {
	_, key, err := o.pins.Load().resolve(o.board, o.opts.Local, Input)
	if err != nil {
		return Low, err
	}
	p, err := o.pin(key, Input)
	if err != nil {
		return Low, err
	}
	level, err := p.Get()
	if gone := o.dropIfGone(p, err); gone != nil {
		return Low, gone
	}
	return level, err
}

// actuals reads what outputs really have, where the board can tell.
func (o *Owner) actuals() map[wire.LineKey]bool {
	read := map[wire.LineKey]bool{}
	for key, p := range o.open {
		if a := p.actual(); a != nil {
			if level, err := a.Actual(); err == nil {
				read[wire.LineOf(key)] = bool(level)
			}
		}
	}
	return read
}

package gpio

import (
	"errors"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// maxEnds is how many ends wait to be taken; if nobody takes them the oldest are
// dropped.
const maxEnds = 1024

// LeaseEnd says that a level which somebody asked for has ended: a lease, a level that
// stays, a pulse that nobody waits for any more.
type LeaseEnd struct {
	Pin   string
	Line  wire.LineKey
	Cause string // of the level
	// Level is what was driven; with LeaseFailed, the level that the pin may still
	// have, and with LeaseHand the one that it was found to have.
	Level Level
	At    time.Time
	// Why has it ended. LeaseFailed means that the pin should have another level and
	// that setting it did not work. It is tried again every 200 ms, and when it works
	// another end with the real reason follows.
	Why wire.LeaseEnd
}

// LeaseEnds delivers the ends of levels. It is closed when Run has ended.
func (o *Owner) LeaseEnds() <-chan LeaseEnd { return o.ends }

// step gives an input to the core and does what it decides.
func (o *Owner) step(in lines.Input) lines.Output {
	var reopened []wire.LineKey
	out := lines.Play(o.core, o.now, in, func(d lines.Drive) lines.Fate {
		o.moved = true
		fate, anew := o.perform(d)
		if anew && fate != lines.Moved {
			reopened = append(reopened, d.Line)
		}
		return fate
	})
	o.deadline = out.Deadline
	o.tell(out.Ends)
	for _, key := range reopened {
		o.step(lines.Reopened{Line: key})
	}
	return out
}

// perform drives a line. anew says that it had to be opened for that, at its safe
// level.
func (o *Owner) perform(d lines.Drive) (fate lines.Fate, anew bool) {
	key := o.keyOf(d.Line)
	anew = o.open[key] == nil
	p, err := o.pin(key, Output)
	fate = lines.Unmoved
	if err == nil {
		err = o.drive(p, Level(d.Level), causeOf(d))
		fate = fateOf(err)
	}
	if others := d.Why == lines.WhyStop && o.missing[key] != nil; err != nil && o.driveErr == nil && !others {
		o.driveErr = err
	}
	return fate, anew && err == nil
}

// keyOf is the board's name of a line.
func (o *Owner) keyOf(line wire.LineKey) string {
	if key, ok := o.pins.Load().byLine[line]; ok {
		return key
	}
	key, ok := o.unmapped[line]
	if !ok {
		panic("bug: a line that the map does not have")
	}
	return key
}

func fateOf(err error) lines.Fate {
	if err == nil {
		return lines.Moved
	}
	for _, certain := range []error{ErrNotDone, ErrBusy, ErrUnsupported, ErrNoSuchPin, ErrNotPermitted} {
		if errors.Is(err, certain) && !errors.Is(err, ErrUnknown) {
			return lines.Unmoved
		}
	}
	return lines.Doubtful
}

// causeOf is what the trace says of a drive.
func causeOf(d lines.Drive) string {
	switch d.Why {
	case lines.WhyExpired:
		if d.Cause == "" {
			return CauseLease + CauseReload // a limit that came with a new map
		}
		return CauseLease + d.Cause
	case lines.WhyLoss:
		return CauseLoss
	case lines.WhyLocal:
		return CauseLocal
	case lines.WhyStop:
		return CauseStop
	case lines.WhyReload:
		return CauseReload
	case lines.WhyStart:
		return CauseStart
	case lines.WhySafe:
		return CauseOwed
	case lines.WhyPartner:
		return CausePartner
	}
	return d.Cause
}

// tell never waits: whoever waits for a pulse has room for its ends, and if nobody
// takes the others, the oldest are dropped.
func (o *Owner) tell(ends []lines.End) {
	for _, e := range ends {
		if to := o.waiting[e.ID]; to != nil {
			if e.Why != wire.LeaseFailed {
				delete(o.waiting, e.ID)
			}
			to <- e // at most one that failed, and the last
			continue
		}
		o.tellEnd(LeaseEnd{Pin: o.pins.Load().shown(o.keyOf(e.Line)), Line: e.Line, Cause: e.Cause, Level: Level(e.Level),
			At: time.Now().Add(e.At - o.now()), Why: e.Why})
	}
}

func (o *Owner) tellEnd(e LeaseEnd) {
	for {
		select {
		case o.ends <- e:
			return
		default:
		}
		select {
		case <-o.ends:
		default:
		}
	}
}

// stopSafe drives all safe levels for the last time.
func (o *Owner) stopSafe() error {
	o.take()
	o.driveErr = nil
	o.step(lines.Stop{})
	if o.driveErr == nil {
		return nil
	}
	return errors.Join(errors.New("pins at stop: not all are safe"), o.driveErr)
}

package gpio

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Limits of leases.
const (
	// fallPause is the time between two tries of a fall-back that does not work.
	fallPause = 200 * time.Millisecond
	// maxEnds is how many ends of leases wait to be taken; if nobody takes them
	// the oldest are dropped.
	maxEnds = 1024
)

// EndWhy is why a lease has ended.
type EndWhy uint8

// The reasons.
const (
	EndExpired  EndWhy = iota + 1 // its time was over; the pin has its safe level
	EndReplaced                   // a later command for the pin took its place
	EndLoss                       // the gateway was lost; the pin has its safe level
	EndStopped                    // the agent has stopped; the pin has its safe level
	// EndFailed means that the pin should have its safe level and that setting it
	// did not work. It is tried again every 200 ms, and when it works another end
	// with the real reason follows.
	EndFailed
)

// String returns the reason in a word.
func (w EndWhy) String() string {
	switch w {
	case EndExpired:
		return "expired"
	case EndReplaced:
		return "replaced"
	case EndLoss:
		return "loss"
	case EndStopped:
		return "stopped"
	case EndFailed:
		return "failed"
	}
	return fmt.Sprintf("end %d", uint8(w))
}

// LeaseEnd says that a lease has ended. It is also sent when a pin that was set
// without a lease came to the end of its max_on.
type LeaseEnd struct {
	Pin   string
	Cause string    // of the lease
	Level Level     // of the pin now; with EndFailed, the level that it may still have
	At    time.Time // when
	Why   EndWhy
}

// fall is a pin that will go to its safe level by itself: a lease, a level that
// max_on limits, or a fall-back that did not work yet.
type fall struct {
	due    time.Time
	level  Level  // what the pin has until then
	cause  string // of that level
	trace  string // the cause of the fall-back, for the trace
	why    EndWhy // once it has worked
	lease  bool   // somebody waits for its end
	failed bool   // EndFailed was told
}

// Lease sets a pin for a time that begins now, and then to its safe level. It
// needs a pin with a safe level. The end never depends on anybody else: it comes
// at its time, when the owner stops, or when Loss is called for the pin. A later
// Set or Lease of the pin that works replaces the lease, without an edge if the
// level stays. The errors are those of Set.
func (o *Owner) Lease(ctx context.Context, name string, level Level, hold time.Duration, cause string) error {
	_, err := o.ask(ctx, "lease "+name, func() (Level, error) {
		m := o.pins.Load()
		_, key, err := m.resolve(o.board, name, Output)
		if err != nil {
			return Low, err
		}
		if err := mayLease(m.byKey[key], name, level, hold); err != nil {
			return Low, err
		}
		return level, o.set(key, level, cause, hold, true)
	})
	return err
}

func mayLease(c PinConfig, name string, level Level, hold time.Duration) error {
	switch {
	case c.Safe == nil:
		return fmt.Errorf("%w: give pin %s a safe level in agent.yaml", ErrUnsupported, name)
	case hold < MinHold || hold > MaxHold:
		return fmt.Errorf("%w: a lease of %v is out of range: give it %v to %v", ErrUnsupported, hold, MinHold, MaxHold)
	case c.MaxOn > 0 && hold > c.MaxOn && level != *c.Safe:
		return fmt.Errorf("%w: %v is longer than max_on %v of pin %s", ErrUnsupported, hold, c.MaxOn, name)
	}
	return nil
}

// limit is how long a pin may have a level that is set without a lease, 0 for as
// long as it likes.
func (o *Owner) limit(key string, level Level) time.Duration {
	if c := o.pins.Load().byKey[key]; c.Safe != nil && level != *c.Safe {
		return c.MaxOn
	}
	return 0
}

// set drives a pin and keeps in mind when it has to fall back, if hold is not 0.
func (o *Owner) set(key string, level Level, cause string, hold time.Duration, lease bool) error {
	begun := time.Now() // a slow pin does not make its time longer
	p, err := o.pin(key, Output)
	if err != nil {
		return err // nothing has moved
	}
	next := &fall{due: begun.Add(hold), level: level, cause: cause, trace: CauseLease + cause, why: EndExpired, lease: lease}
	if err := o.drive(p, level, cause); err != nil {
		// It may have moved all the same. What held before still holds, otherwise it
		// falls back as if the command had worked; nobody waits for that.
		if next.lease = false; hold > 0 && o.falls[key] == nil {
			o.falls[key] = next
		}
		return err
	}
	o.endFall(key, level, EndReplaced)
	if hold > 0 {
		o.falls[key] = next
	}
	return nil
}

// endFall forgets a fall-back and tells whoever waits for the end of a lease.
func (o *Owner) endFall(key string, level Level, why EndWhy) {
	f := o.falls[key]
	if f == nil {
		return
	}
	delete(o.falls, key)
	if f.lease || f.failed || why == EndExpired {
		o.tell(LeaseEnd{Pin: o.pins.Load().shown(key), Cause: f.cause, Level: level, At: time.Now(), Why: why})
	}
}

// tell never waits: if nobody takes the ends, the oldest are dropped.
func (o *Owner) tell(e LeaseEnd) {
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

// LeaseEnds delivers the ends of leases. It is closed when Run has ended.
func (o *Owner) LeaseEnds() <-chan LeaseEnd { return o.ends }

// fallBack drives pins to their safe levels now. What does not work is tried
// again, and all errors are returned.
func (o *Owner) fallBack(keys []string, trace string, why EndWhy) error {
	var errs []error
	for _, key := range keys {
		if err := o.safe(key, trace); err != nil {
			errs = append(errs, err)
			o.postpone(key, trace, why)
			continue
		}
		o.endFall(key, *o.pins.Load().byKey[key].Safe, why)
	}
	return errors.Join(errs...)
}

// postpone notes a fall-back that did not work, and tells it the first time if
// somebody waits for the end of that level.
func (o *Owner) postpone(key, trace string, why EndWhy) {
	f := o.falls[key]
	if f == nil {
		f = &fall{cause: trace, level: !*o.pins.Load().byKey[key].Safe}
		o.falls[key] = f
	}
	if !f.failed && (f.lease || f.why == EndExpired) {
		f.failed = true
		o.tell(LeaseEnd{Pin: o.pins.Load().shown(key), Cause: f.cause, Level: f.level, At: time.Now(), Why: EndFailed})
	}
	f.trace, f.why, f.due = trace, why, time.Now().Add(fallPause)
}

// due drives the pins whose time is over, and reads outputs back.
func (o *Owner) due() {
	now := time.Now()
	for _, key := range slices.Sorted(maps.Keys(o.falls)) {
		if f := o.falls[key]; !f.due.After(now) {
			// An error is kept as EndFailed and the pin tried again.
			_ = o.fallBack([]string{key}, f.trace, f.why)
		}
	}
	o.lookBack(now)
}

// next is the time until due has something to do.
func (o *Owner) next() time.Duration {
	now := time.Now()
	wait := time.Hour // once in a while does no harm
	for _, f := range o.falls {
		wait = min(wait, f.due.Sub(now))
	}
	if o.looks() {
		wait = min(wait, o.lookAt.Sub(now))
	}
	return max(wait, 0)
}

// stopSafe drives all safe levels for the last time.
func (o *Owner) stopSafe() error {
	var errs []error
	for _, key := range o.withSafe() {
		why, level := EndStopped, *o.pins.Load().byKey[key].Safe
		if err := o.safe(key, CauseStop); err != nil {
			errs = append(errs, err)
			why = EndFailed
			if f := o.falls[key]; f != nil {
				level = f.level
			}
		}
		o.endFall(key, level, why)
	}
	return errors.Join(errs...)
}

package executor_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// held is a lease as the owner of the pins has it.
type heldLease struct {
	token  wire.Token
	until  time.Duration
	failed bool
}

// leases is the part of a site that knows of leases: what the owner of the pins has,
// and what the gateway has been told.
type leases struct {
	pins map[string]heldLease // by pin; a restart sets them all safe
	lent map[wire.Token]bool  // the gateway knows the result and not the end
	back map[wire.Token]bool  // it knows the end
}

func newLeases() leases {
	return leases{pins: map[string]heldLease{}, lent: map[wire.Token]bool{}, back: map[wire.Token]bool{}}
}

// endLeased ends work that has set its pin for a time. The owner of the pins is a
// goroutine of its own: what it tells may come before the result or behind it.
func (s *site) endLeased(tok wire.Token, pin string) {
	life := s.lives
	before, replaced := s.pins[pin]
	late := s.chance(50)
	tell := func() {
		if replaced && s.lives == life {
			s.step(executor.LeaseEnded{Token: before.token, Why: wire.LeaseReplaced})
		}
	}
	s.pins[pin] = heldLease{token: tok, until: s.at + time.Duration(s.rng.IntN(30_000))*time.Millisecond}
	if !late {
		tell()
	}
	early := s.chance(10) && s.lives == life
	if early {
		delete(s.pins, pin)
		s.step(executor.LeaseEnded{Token: tok, Why: wire.LeaseExpired})
	}
	if s.lives != life {
		return
	}
	payload, err := wire.EncodeMap(map[string]any{"lease": true}, wire.MaxPayloadBytes)
	if err != nil {
		s.fail("payload: %v", err)
	}
	s.step(executor.Finished{Token: tok, Result: executor.Result{Code: wire.CodeOK, Payload: payload, Lease: &executor.Lease{Pin: pin}}})
	if late {
		tell()
	}
}

// endLeases ends the leases whose time is over. Now and then that fails at first.
func (s *site) endLeases() {
	for _, pin := range slices.Sorted(maps.Keys(s.pins)) {
		l, ok := s.pins[pin]
		if !ok || s.at < l.until {
			continue
		}
		if !l.failed && s.fault(10) {
			l.failed, l.until = true, s.at+time.Second
			s.pins[pin] = l
			s.step(executor.LeaseEnded{Token: l.token, Why: wire.LeaseFailed})
			continue
		}
		delete(s.pins, pin)
		s.step(executor.LeaseEnded{Token: l.token, Why: wire.LeaseExpired})
	}
}

// fall sets all pins to their safe levels.
func (s *site) fall(f executor.Fall) {
	why := wire.LeaseReplaced
	if f == executor.FallLoss { // gone
		why = wire.LeaseLoss
	}
	for _, pin := range slices.Sorted(maps.Keys(s.pins)) {
		l, ok := s.pins[pin]
		if !ok {
			return // a crash has set them all
		}
		delete(s.pins, pin)
		s.step(executor.LeaseEnded{Token: l.token, Why: why})
	}
}

// acceptLease is the gateway taking the end of a lease: after the result, and once.
func (s *site) acceptLease(e *wire.Event) {
	s.trace = append(s.trace, fmt.Sprintf("%v %d/%d lease %s", s.at, e.Seq, e.Attempt, e.Lease))
	switch {
	case s.back[e.Token]:
		s.fail("the lease of token %v ends a second time, %s", e.Token, e.Lease)
	case !s.lent[e.Token]:
		s.fail("the lease of token %v ends (%s), and nobody knows of it", e.Token, e.Lease)
	case e.Lease == wire.LeaseFailed:
	default:
		delete(s.lent, e.Token)
		s.back[e.Token] = true
	}
}

// openLease says whose end is still to be told, empty for nobody's.
func (s *site) openLease() string {
	if len(s.lent) > 0 || len(s.pins) > 0 || s.core.Leases() > 0 {
		return fmt.Sprintf("leases: %d at the gateway, %d at the pins, %d in the core", len(s.lent), len(s.pins), s.core.Leases())
	}
	return ""
}

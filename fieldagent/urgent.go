package fieldagent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

const (
	// urgentAfter is how long the loop has to take something towards safe. Beyond that
	// it is stuck, at its disk, and the pins do not wait for it: at the pin within a
	// second (docs/safety.md).
	urgentAfter = 300 * time.Millisecond
	// maxUrgent bounds what waits: a slot for each line, and some for what names all.
	maxUrgent = gpio.MaxPins + 8
	// urgentAgain and urgentTries are how far apart, and how often, the owner of the pins
	// is asked if it is stuck itself.
	urgentAgain = time.Second
	urgentTries = 60
	// causeUrgent comes before the token in the trace: whoever counts what a token has
	// moved counts what was written down.
	causeUrgent = "safe:urgent:"
)

// urgent brings what is towards safe to the owner of the pins when the loop does not:
// then the journal hangs. The loop gets the same message and settles it when it can.
// A compact frame towards safe comes this way only, as it is never written down. Nothing
// is held this way: it may be a copy of what somebody has released since, which the loop
// knows, and nothing new begins before that turns.
type urgent struct {
	works *works
	late  func(notAfter int64, towards bool) bool
	log   *slog.Logger
	// The two paths, as the loop has them.
	primary, narrowband func([]byte) bool

	wake chan struct{} // holds one
	mu   sync.Mutex    // guards the rest
	// slots are at most one a line, the newest.
	slots []slot
	// ahead is what was driven ahead of an instruction that has not come yet.
	ahead []wire.State
}

// slot is something to drive.
type slot struct {
	due   time.Time
	lines []wire.LineKey // nil for all
	order uint64
	// An instruction, or else a compact frame.
	seq      uint64
	token    wire.Token
	notAfter int64
	compact  bool
	ahead    bool // a wire.SafeNow: its instruction follows
	tries    int
}

func newUrgent(w *works, l *loop, log *slog.Logger) *urgent {
	u := &urgent{works: w, late: l.late, log: log, primary: func(b []byte) bool { return l.primary(b) },
		narrowband: func(b []byte) bool { return l.narrowband(b) }, wake: make(chan struct{}, 1)}
	l.taken = u.taken
	return u
}

// instruction takes one that has just come, if it is towards safe.
func (u *urgent) instruction(in *wire.Instruction) {
	u.came(in.Token)
	act, err := wire.ParseAct(in.Intent, in.Args)
	if err != nil || !act.Towards(u.works.safe) {
		return
	}
	s := slot{due: time.Now().Add(urgentAfter), order: in.Order, seq: in.Seq, token: in.Token, notAfter: in.NotAfter}
	if s.order == 0 {
		s.order = in.Seq
	}
	if len(act.Pins) > 0 {
		s.lines = append(u.works.lines(act.Pins), in.Lines...) // what the gateway meant as well
	}
	u.put(s)
}

// frame takes a compact one.
func (u *urgent) frame(f wire.CompactSafe) {
	s := slot{due: time.Now(), order: f.Seq, seq: f.Seq, compact: true}
	if f.Line != 0 {
		s.lines = []wire.LineKey{}
		for _, k := range u.works.lines(u.works.pins.Names()) {
			if k.Hash() == f.Line {
				s.lines = append(s.lines, k)
			}
		}
	}
	u.put(s)
}

// put adds a slot. It takes the place of an older one of the same lines; one that is older
// itself finds no place.
func (u *urgent) put(s slot) {
	same := func(o slot) bool {
		return o.compact == s.compact && o.ahead == s.ahead && slices.Equal(o.lines, s.lines)
	}
	u.mu.Lock()
	if !slices.ContainsFunc(u.slots, func(o slot) bool { return same(o) && o.order > s.order }) {
		if u.slots = slices.DeleteFunc(u.slots, same); len(u.slots) < maxUrgent {
			u.slots = append(u.slots, s)
		}
	}
	u.mu.Unlock()
	u.call()
}

func (u *urgent) call() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// taken notes that the loop has something: it begins what is towards safe before it
// writes anything down.
func (u *urgent) taken(in executor.Input) {
	r, ok := in.(executor.Received)
	if !ok {
		return
	}
	m, ok := r.Message.(*wire.Instruction)
	if !ok {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.slots = slices.DeleteFunc(u.slots, func(s slot) bool { return !s.compact && s.token == m.Token })
}

// run drives what is due, until ctx ends.
func (u *urgent) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.wake:
		case <-timer.C:
		}
		for {
			s, wait, ok := u.next()
			if !ok {
				timer.Reset(wait)
				break
			}
			u.drive(ctx, s)
		}
	}
}

// next takes the slot that is due, or says how long there will be none.
func (u *urgent) next() (s slot, wait time.Duration, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	wait = time.Hour
	for i, s := range u.slots {
		if wait = min(wait, time.Until(s.due)); wait <= 0 {
			u.slots = slices.Delete(u.slots, i, i+1)
			return s, 0, true
		}
	}
	return s, wait, false
}

// drive has the owner of the pins drive what a slot names, and says so.
func (u *urgent) drive(ctx context.Context, s slot) {
	q := gpio.Safe{Lines: s.lines, Cause: causeUrgent + s.token.String(), Order: s.order, Unmarked: s.compact || s.ahead, Ahead: s.ahead,
		Check: func() error {
			if u.late(s.notAfter, true) {
				return gpio.ErrLate
			}
			return nil
		}}
	if s.compact {
		q.Cause = causeUrgent + "narrowband"
	}
	done, err := u.works.pins.Safe(ctx, q)
	refused := errors.Is(err, gpio.ErrLocal) || errors.Is(err, gpio.ErrSuperseded) || errors.Is(err, gpio.ErrLate)
	if s.tries++; errors.Is(err, gpio.ErrNotDone) && !refused && ctx.Err() == nil && s.tries < urgentTries {
		s.due = time.Now().Add(urgentAgain)
		u.put(s)
		return
	}
	if err != nil {
		u.log.Warn("what is towards safe was not driven past the loop", "instruction", s.seq, "pins", done.Pins, "err", err)
	} else {
		u.log.Info("driven to the safe level past the loop", "instruction", s.seq, "pins", done.Pins)
	}
	if s.compact {
		b, bad := wire.CompactAck{Seq: s.seq, Attempt: 1, Code: safeCode(err)}.Encode()
		if bad == nil {
			u.narrowband(b)
		}
		return
	}
	if err != nil {
		return // what becomes of it the loop will tell
	}
	st := wire.State{Seq: s.seq, Token: s.token, Status: wire.StatusDriven}
	if s.ahead {
		u.remember(st)
	}
	u.tell(st)
}

// safeCode is how an attempt to drive safe levels is told in a compact frame.
func safeCode(err error) wire.Code {
	for _, c := range []struct {
		is   error
		code wire.Code
	}{
		{gpio.ErrUnknown, wire.CodeUnknown}, {gpio.ErrLocal, wire.CodeLocal}, {gpio.ErrSuperseded, wire.CodeSuperseded},
		{gpio.ErrUnsupported, wire.CodeUnsupported}, {gpio.ErrNoSuchPin, wire.CodeNoSuchPin}, {gpio.ErrBusy, wire.CodeBusy}, {gpio.ErrIO, wire.CodeIO},
	} {
		if errors.Is(err, c.is) {
			return c.code
		}
	}
	if err != nil {
		return wire.CodeDependency
	}
	return wire.CodeDriven
}

package trial

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

const (
	// settleLimit bounds the wait for the end of everything once a trial stops being
	// hard: the slowest way there is an execution whose end was lost, 70 s and three
	// questions.
	settleLimit = 3 * time.Minute
	// actuationSlack is how long after the decision to start a pin may move: the
	// decision is synced to the agent's disk in between.
	actuationSlack = 2 * time.Second
	// maxFaults bounds the list of what is wrong.
	maxFaults = 20
)

// States, as the API writes them.
const (
	succeeded = "SUCCEEDED"
	timedOut  = "TIMEOUT"
)

// Tally is what became of the commands of a trial.
type Tally struct {
	Name         string        `json:"name"`
	Rounds       int           `json:"rounds"`       // kills, or cuts of the link
	Submitted    int           `json:"submitted"`    // commands that may have left the client
	Acknowledged int           `json:"acknowledged"` // whose receipt the client has read
	Taken        int           `json:"taken"`        // that the log has
	Executed     int           `json:"executed"`     // that moved a pin
	Confirmed    int           `json:"confirmed"`    // whose success the gateway knows
	Expired      int           `json:"expired"`      // never started, their time had passed
	Unknown      int           `json:"unknown"`      // outcome unknown, said so, left to an operator
	Retried      int           `json:"retried"`      // that needed another attempt
	Duplicated   int           `json:"duplicated"`   // tokens that acted more than once
	Lost         int           `json:"lost"`         // acknowledged, and not in the log or not settled
	Late         int           `json:"late"`         // started after their time limit
	False        int           `json:"false"`        // state and pin disagree
	Took         time.Duration `json:"took_ns"`
	Faults       []string      `json:"faults,omitempty"` // the first of what is wrong
}

// OK reports whether nothing was lost, done twice, late, or told falsely.
func (t *Tally) OK() bool { return t.Duplicated+t.Lost+t.Late+t.False == 0 }

func (t *Tally) fault(count *int, format string, args ...any) {
	*count++
	if len(t.Faults) < maxFaults {
		t.Faults = append(t.Faults, fmt.Sprintf(format, args...))
	}
}

// book is what clients remember of what they sent.
type book struct {
	mu    sync.Mutex
	order []string
	acked map[string]bool
}

func newBook() *book { return &book{acked: map[string]bool{}} }

func (b *book) sent(ids ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.order = append(b.order, ids...)
}

func (b *book) received(ids ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		b.acked[id] = true
	}
}

func (b *book) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.order)
}

// Account is one command: what the client and the log say of it.
type Account struct {
	ID      string
	Acked   bool                  // the client has read the receipt
	Found   bool                  // the log has it
	Settled bool                  // nothing more happens by itself
	End     scada.InstructionView // its only instruction
	Tokens  []string              // of all its attempts, by the timeline

	acted map[string]int // actuations by token
}

// settle waits for the end of every command and compares log and pins.
func (t *Tally) settle(ctx context.Context, s *rig.Site, b *book, nodes []string) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	var all []*Account
	for _, id := range b.order {
		a := &Account{ID: id, Acked: b.acked[id]}
		if err := a.read(ctx, s); err != nil {
			return err
		}
		all = append(all, a)
	}
	moves := map[string][]gpio.Actuation{}
	for _, n := range nodes {
		acts, err := s.Actuations(n)
		if err != nil {
			return err
		}
		moves[n] = acts
	}
	return t.Weigh(all, moves)
}

// read waits for the end of a command, and reads it.
func (a *Account) read(ctx context.Context, s *rig.Site) error {
	var task rig.Task
	err := rig.Await(ctx, settleLimit, "command "+a.ID+" settled", func() (bool, error) {
		var err error
		task, a.Found, err = s.Task(ctx, a.ID)
		return err == nil && (!a.Found || task.Settled), err
	})
	switch {
	case err != nil && !a.Found:
		return err // the gateway does not answer
	case !a.Found:
		return nil
	case len(task.Instructions) != 1:
		return fmt.Errorf("command %s has %d instructions, want 1", a.ID, len(task.Instructions))
	}
	a.Settled, a.End = task.Settled, task.Instructions[0]
	// The limit may be over; what has been found so far is still to be read.
	entries, err := s.Timeline(context.WithoutCancel(ctx), a.End.Seq)
	for _, e := range entries {
		if e.Token != "" && e.What != "refused" && !slices.Contains(a.Tokens, e.Token) {
			a.Tokens = append(a.Tokens, e.Token)
		}
	}
	return err
}

// Weigh holds every command against what the pins of each node did. The error is
// about times that cannot be read.
func (t *Tally) Weigh(all []*Account, moves map[string][]gpio.Actuation) error {
	owner := map[string]*Account{}
	for _, a := range all {
		a.acted = map[string]int{}
		for _, token := range a.Tokens {
			owner[token] = a
		}
	}
	for _, n := range slices.Sorted(maps.Keys(moves)) {
		for _, act := range moves[n] {
			a := owner[act.Cause]
			if a == nil || a.End.Node != n {
				t.fault(&t.False, "%s was moved by %s, which no instruction for it accounts for", n, act.Cause)
				continue
			}
			a.acted[act.Cause]++
			if err := t.inTime(a, act.At); err != nil {
				return err
			}
		}
	}
	for _, a := range all {
		t.Submitted++
		if a.Acked {
			t.Acknowledged++
		}
		switch {
		case !a.Found && a.Acked:
			t.fault(&t.Lost, "%s was acknowledged and is not in the log", a.ID)
		case !a.Found:
		default:
			t.Taken++
			t.judge(a)
		}
	}
	return nil
}

// inTime looks at an actuation of an instruction with a time limit.
func (t *Tally) inTime(a *Account, at int64) error {
	if a.End.NotAfter == "" {
		return nil
	}
	limit, err := time.Parse(time.RFC3339, a.End.NotAfter)
	if err != nil {
		return err
	}
	if over := time.Unix(0, at).Sub(limit); over > actuationSlack {
		t.fault(&t.Late, "%s moved a pin %v after its time limit", a.ID, over)
		return nil
	}
	if a.End.Started == "" {
		return nil
	}
	began, err := time.Parse(time.RFC3339, a.End.Started)
	if err == nil && began.After(limit) {
		t.fault(&t.Late, "%s was started %v after its time limit", a.ID, began.Sub(limit))
	}
	return err
}

// judge holds an instruction's state against its actuations.
func (t *Tally) judge(a *Account) {
	whole := 1
	if a.End.Intent == wire.IntentGPIOPulse {
		whole = 2 // on and off
	}
	acted, attempts := 0, 0
	for _, token := range a.Tokens {
		n := a.acted[token]
		acted += n
		if n > 0 {
			attempts++
		}
		if n > whole {
			t.fault(&t.Duplicated, "%s: the token %s moved a pin %d times, want %d at most", a.ID, token, n, whole)
		}
	}
	if whole > 1 && attempts > 1 {
		t.fault(&t.Duplicated, "%s must not be repeated and was done by %d attempts", a.ID, attempts)
	}
	if acted > 0 {
		t.Executed++
	}
	if a.End.Attempt > 1 {
		t.Retried++
	}
	i := &a.End
	switch {
	case !a.Settled:
		t.fault(&t.Lost, "%s is %s for ever", a.ID, i.State)
	case i.State == succeeded:
		t.Confirmed++
		earlier := strings.Contains(i.Detail, "has done it already")
		if got := a.acted[i.Token]; got < whole && !(earlier && acted > 0) {
			t.fault(&t.False, "%s is %s by %s, which moved a pin %d times, want %d", a.ID, i.State, i.Token, got, whole)
		}
	case i.State == timedOut && i.OutcomeUnknown && i.Operator:
		t.Unknown++
	case i.State == timedOut && i.Reason == "expired":
		t.Expired++
		if acted > 0 {
			t.fault(&t.False, "%s is expired, which means that it never ran, and it moved a pin %d times", a.ID, acted)
		}
	default:
		t.fault(&t.False, "%s ended as %s %s (%s): nothing in this trial can lead there", a.ID, i.State, i.Reason, i.Detail)
	}
}

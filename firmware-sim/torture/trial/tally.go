package trial

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/scada"
)

const (
	// settleLimit bounds the wait for the end of everything once a trial stops being
	// hard: the slowest way there is an execution whose end was lost, 70 s and three
	// questions.
	settleLimit = 3 * time.Minute
	// actuationSlack is how long after its limit a pin may move: the owner of the pins
	// looks at the limit right before (A15). The rest is this machine, which may give the
	// processor to somebody else in between.
	actuationSlack = 250 * time.Millisecond
	// maxFaults bounds the list of what is wrong.
	maxFaults = 20
)

// States, as the API writes them.
const (
	succeeded = "SUCCEEDED"
	timedOut  = "TIMEOUT"
	cancelled = "CANCELLED"
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
	Superseded   int           `json:"superseded"`   // ended because something newer for the line stands for them
	Retried      int           `json:"retried"`      // that needed another attempt
	Duplicated   int           `json:"duplicated"`   // tokens that acted more than once
	Lost         int           `json:"lost"`         // acknowledged, and not in the log or not settled
	Late         int           `json:"late"`         // started after their time limit
	Overtaken    int           `json:"overtaken"`    // moved a pin after something newer had, or amid its pulse
	False        int           `json:"false"`        // state and pin disagree
	Took         time.Duration `json:"took_ns"`
	Faults       []string      `json:"faults,omitempty"` // the first of what is wrong
}

// OK reports whether nothing was lost, done twice, late, out of order, or told falsely.
func (t *Tally) OK() bool { return t.Duplicated+t.Lost+t.Late+t.Overtaken+t.False == 0 }

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

	acted   map[string]int // actuations by token
	towards bool           // it only brings its line to the safe level
	newer   []*Account     // of its line
}

// line is the one line that it is for.
func (a *Account) line() string { return fmt.Sprint(a.End.Node, " ", a.End.Args["pin"]) }

// moved is how often it moved its pin.
func (a *Account) moved() (n int) {
	for _, k := range a.acted {
		n += k
	}
	return n
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
	return t.Weigh(all, moves, safeNodes(nodes))
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

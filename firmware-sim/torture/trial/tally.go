package trial

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

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

// account is one instruction: what the log says and what the pins did.
type account struct {
	id     string
	end    scada.InstructionView
	tokens map[string]int // actuations by token, of every attempt
}

// settle waits for the end of every command and compares log and pins.
func (t *Tally) settle(ctx context.Context, s *rig.Site, b *book, nodes []string) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	byToken := map[string]*account{}
	var all []*account
	t.Submitted, t.Acknowledged = len(b.order), len(b.acked)
	for _, id := range b.order {
		a, err := t.end(ctx, s, id, b.acked[id])
		if err != nil {
			return err
		}
		if a == nil {
			continue
		}
		t.Taken++
		all = append(all, a)
		for token := range a.tokens {
			byToken[token] = a
		}
	}
	if err := t.pins(s, nodes, byToken); err != nil {
		return err
	}
	for _, a := range all {
		t.judge(a)
	}
	return nil
}

// end waits for the end of a command; nil when the log does not have it.
func (t *Tally) end(ctx context.Context, s *rig.Site, id string, acked bool) (*account, error) {
	var task rig.Task
	found := false
	err := rig.Await(ctx, settleLimit, "command "+id+" settled", func() (bool, error) {
		var err error
		task, found, err = s.Task(ctx, id)
		return err == nil && (!found || task.Settled), err
	})
	switch {
	case err != nil && !found:
		return nil, err
	case err != nil:
		t.fault(&t.Lost, "%s is %s for ever", id, task.State)
		return nil, nil
	case !found && acked:
		t.fault(&t.Lost, "%s was acknowledged and is not in the log", id)
		return nil, nil
	case !found:
		return nil, nil
	case len(task.Instructions) != 1:
		return nil, fmt.Errorf("command %s has %d instructions, want 1", id, len(task.Instructions))
	}
	a := &account{id: id, end: task.Instructions[0], tokens: map[string]int{}}
	entries, err := s.Timeline(ctx, a.end.Seq)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Token != "" && e.What != "refused" {
			a.tokens[e.Token] += 0
		}
	}
	return a, nil
}

// pins reads what the boards did.
func (t *Tally) pins(s *rig.Site, nodes []string, byToken map[string]*account) error {
	for _, n := range nodes {
		acts, err := s.Actuations(n)
		if err != nil {
			return err
		}
		for _, act := range acts {
			a := byToken[act.Cause]
			if a == nil || a.end.Node != n {
				t.fault(&t.False, "%s was moved by %s, which no instruction for it accounts for", n, act.Cause)
				continue
			}
			a.tokens[act.Cause]++
			if err := t.inTime(a, act.At); err != nil {
				return err
			}
		}
	}
	return nil
}

// inTime looks at the first actuation of an attempt.
func (t *Tally) inTime(a *account, at int64) error {
	if a.end.NotAfter == "" {
		return nil
	}
	limit, err := time.Parse(time.RFC3339, a.end.NotAfter)
	if err != nil {
		return err
	}
	if over := time.Unix(0, at).Sub(limit); over > actuationSlack {
		t.fault(&t.Late, "%s moved a pin %v after its time limit", a.id, over)
	}
	if a.end.Started == "" {
		return nil
	}
	began, err := time.Parse(time.RFC3339, a.end.Started)
	if err == nil && began.After(limit) {
		t.fault(&t.Late, "%s was started %v after its time limit", a.id, began.Sub(limit))
	}
	return err
}

// judge holds an instruction's state against its actuations.
func (t *Tally) judge(a *account) {
	whole := 1
	if a.end.Intent == wire.IntentGPIOPulse {
		whole = 2 // on and off
	}
	acted := 0
	for token, n := range a.tokens {
		acted += n
		if n > whole {
			t.fault(&t.Duplicated, "%s: the token %s moved a pin %d times, want %d at most", a.id, token, n, whole)
		}
	}
	if acted > 0 {
		t.Executed++
	}
	if a.end.Attempt > 1 {
		t.Retried++
	}
	i := &a.end
	switch {
	case i.State == succeeded:
		t.Confirmed++
		earlier := strings.Contains(i.Detail, "has done it already")
		if got := a.tokens[i.Token]; got != whole && !(earlier && acted > 0) {
			t.fault(&t.False, "%s is %s by %s, which moved a pin %d times, want %d", a.id, i.State, i.Token, got, whole)
		}
	case i.State == timedOut && i.OutcomeUnknown && i.Operator:
		t.Unknown++
	case i.State == timedOut && i.Reason == "expired":
		t.Expired++
		if acted > 0 {
			t.fault(&t.False, "%s is expired, which means that it never ran, and it moved a pin %d times", a.id, acted)
		}
	default:
		t.fault(&t.False, "%s ended as %s %s (%s): nothing in this trial can lead there", a.id, i.State, i.Reason, i.Detail)
	}
}

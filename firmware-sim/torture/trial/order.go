package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

// orderLength is how many commands for one line a round of Order sends.
const orderLength = 8

// orderPin is the name of that line's pin, with a safe level and without.
const orderPin = "valve-1"

// orderLine is that line, and orderNames are two of its names on a board without a map.
const orderLine = "GPIO17"

var orderNames = [2]string{orderLine, "P1_11"}

// OrderCase says what happens while commands for one line are on their way. The line
// is a pin of a pin map.
type OrderCase struct {
	Name string
	// Safe gives the output the safe level 0.
	Safe bool
	// Pulses sends pulses instead of writes that alternate.
	Pulses bool
	// Mixed gives the commands the three priorities in turn.
	Mixed bool
	// Kill is the program that is killed in the middle: "agent", "gateway", or none.
	Kill string
	// Dark makes the primary path a black hole for a moment, so that both paths take
	// part.
	Dark bool
	// Retry has an operator try again what ended unknown, if the gateway lets him.
	Retry bool
	// Names takes two names of the line in turn, on a board without a pin map: the
	// gateway knows only one of them.
	Names bool
}

// OrderCases are those of the trial.
var OrderCases = []OrderCase{
	{Name: "agent killed", Kill: "agent"},
	{Name: "agent killed, safe level", Safe: true, Kill: "agent"},
	{Name: "priorities, agent killed", Mixed: true, Kill: "agent"},
	{Name: "priorities, safe level, agent killed", Mixed: true, Safe: true, Kill: "agent"},
	{Name: "gateway killed", Kill: "gateway"},
	{Name: "gateway killed, safe level", Safe: true, Kill: "gateway"},
	{Name: "priorities, safe, gateway killed", Mixed: true, Safe: true, Kill: "gateway"},
	{Name: "primary path dead", Dark: true},
	{Name: "primary path dead, safe level", Safe: true, Dark: true, Mixed: true},
	{Name: "primary path dead, agent killed", Dark: true, Kill: "agent"},
	{Name: "primary dead, safe, agent killed", Dark: true, Safe: true, Kill: "agent"},
	{Name: "an operator retries, agent killed", Kill: "agent", Retry: true},
	{Name: "an operator retries, safe level", Safe: true, Kill: "agent", Retry: true},
	{Name: "pulses, agent killed", Pulses: true, Kill: "agent"},
	{Name: "pulses, safe level, agent killed", Pulses: true, Safe: true, Kill: "agent"},
	{Name: "pulses, gateway killed", Pulses: true, Kill: "gateway", Safe: true},
	{Name: "pulses, priorities, primary dead", Pulses: true, Dark: true, Mixed: true},
	{Name: "pulses, an operator retries", Pulses: true, Kill: "agent", Retry: true},
	{Name: "two names of the line, agent killed", Names: true, Kill: "agent"},
	{Name: "two names, gateway killed", Names: true, Kill: "gateway", Mixed: true},
	{Name: "two names, primary path dead", Names: true, Dark: true},
}

// OrderResult is what became of the commands for one line.
type OrderResult struct {
	Name     string `json:"name"`
	Rounds   int    `json:"rounds"`
	Commands int    `json:"commands"`
	Met      int    `json:"met"`      // rounds in which the fault has met one of them
	Executed int    `json:"executed"` // that moved the pin
	// Superseded were not begun because a newer one stands for them; Unknown ended
	// with an unknown outcome, and said so.
	Superseded int `json:"superseded"`
	Unknown    int `json:"unknown"`
	Retried    int `json:"retried"` // by an operator
	// Overtaken commands moved the pin after a newer one had, or amid its pulse; Missing
	// were neither executed nor stood for; Twice were done again by one attempt, or by two
	// if they are pulses; False is what the pin did by nobody's order, or other than was
	// told; in WrongEnd rounds the last level does not stand. They must be 0.
	Overtaken int           `json:"overtaken"`
	Missing   int           `json:"missing"`
	Twice     int           `json:"twice"`
	False     int           `json:"false"`
	WrongEnd  int           `json:"wrong_end"`
	Took      time.Duration `json:"took_ns"`
	Faults    []string      `json:"faults,omitempty"` // the first of what is wrong
}

// OK reports whether the order of submission held.
func (r *OrderResult) OK() bool { return r.Overtaken+r.Missing+r.Twice+r.False+r.WrongEnd == 0 }

func (r *OrderResult) fault(count *int, format string, args ...any) {
	*count++
	if len(r.Faults) < maxFaults {
		r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
	}
}

// ordersAtOnce are how many cases are played at a time: what takes time is waiting.
const ordersAtOnce = 4

// Orders plays all cases, some at a time. What was found of the others is returned with
// the error of one.
func Orders(ctx context.Context, u Setup, rounds int) ([]OrderResult, error) {
	list, errs := make([]OrderResult, len(OrderCases)), make([]error, len(OrderCases))
	turns := make(chan struct{}, ordersAtOnce)
	var playing sync.WaitGroup
	var done atomic.Int64
	for k, c := range OrderCases {
		playing.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			v := u
			v.Dir = filepath.Join(u.Dir, fmt.Sprint(k))
			v.Seed += uint64(k)
			v.Progress = func(string, ...any) { u.Progress("order: %d of %d rounds", done.Add(1), rounds*len(OrderCases)) }
			list[k].Name = c.Name
			if errs[k] = os.Mkdir(v.Dir, 0o700); errs[k] != nil {
				return
			}
			if list[k], errs[k] = Order(ctx, v, c, rounds); errs[k] != nil {
				errs[k] = fmt.Errorf("%s: %w", c.Name, errs[k])
			}
		})
	}
	playing.Wait()
	return list, errors.Join(errs...)
}

// Order sends eight commands for one line, again and again, with a fault at a random
// moment in the middle of each eight, and holds what the pin did against the order in
// which they were submitted (A11, docs/safety.md).
func Order(ctx context.Context, u Setup, c OrderCase, rounds int) (r OrderResult, err error) {
	r.Name, r.Rounds = c.Name, rounds
	began := time.Now()
	s, err := rig.NewSite(ctx, u.Bin, u.Dir, rig.Options{})
	if err != nil {
		return r, err
	}
	defer s.Close()
	t := &orderTrial{c: c, s: s, u: u, rnd: u.rnd(), r: &r, of: map[string]turn{}}
	defer t.close()
	if err := t.begin(ctx); err != nil {
		return r, err
	}
	for k := range rounds {
		if err := t.round(ctx, k); err != nil {
			return r, fmt.Errorf("round %d: %w", k+1, err)
		}
		u.Progress("order, %s: %d of %d rounds", c.Name, k+1, rounds)
	}
	r.Took = time.Since(began)
	return r, nil
}

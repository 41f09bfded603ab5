package trial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/scada"
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
	{Name: "primary path dead", Dark: true},
	{Name: "primary path dead, safe level", Safe: true, Dark: true, Mixed: true},
	{Name: "pulses, an operator retries, agent killed", Pulses: true, Kill: "agent", Retry: true},
	{Name: "pulses, agent killed", Pulses: true, Kill: "agent"},
	{Name: "pulses, gateway killed", Pulses: true, Kill: "gateway", Safe: true},
	{Name: "two names of the line, agent killed", Names: true, Kill: "agent"},
	{Name: "two names of the line, gateway killed", Names: true, Kill: "gateway", Mixed: true},
	{Name: "two names of the line, primary dead", Names: true, Dark: true},
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

// orderTrial is a trial under way.
type orderTrial struct {
	c     OrderCase
	s     *rig.Site
	u     Setup
	rnd   *rand.Rand
	r     *OrderResult
	proxy *rig.Proxy
	agent *rig.Process
	seen  int             // actuations of earlier rounds
	of    map[string]turn // by token
	next  int             // number of the next command
}

// turn is a submission of a command: a retry by hand is another one.
type turn struct {
	n int // in the order of submission
	o *ordered
}

const orderNode = "pump-1"

func (t *orderTrial) close() {
	if t.proxy != nil {
		t.proxy.Close()
	}
}

func (t *orderTrial) begin(ctx context.Context) error {
	var err error
	if t.proxy, err = rig.NewProxy(t.s.Door().MQTT); err != nil {
		return err
	}
	return t.startAgent(ctx)
}

func (t *orderTrial) startAgent(ctx context.Context) error {
	args, safe := []string{"--config", filepath.Join(t.u.Dir, "agent.yaml")}, ""
	if t.c.Names {
		args = nil
	}
	if t.c.Safe {
		safe = ", safe: 0"
	}
	text := fmt.Sprintf("pins:\n  - {name: %s, line: GPIO17, direction: out%s}\n", orderPin, safe)
	if err := os.WriteFile(filepath.Join(t.u.Dir, "agent.yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	var err error
	if t.agent, err = t.s.StartAgent(orderNode, rig.Door{MQTT: t.proxy.Addr(), Narrowband: t.s.Door().Narrowband}, args...); err != nil {
		return err
	}
	if _, err = t.s.AwaitNode(ctx, orderNode, scada.PresenceOnline); err != nil {
		return fmt.Errorf("%w\n%s", err, t.agent.Output())
	}
	return nil
}

// ordered is one command of a round.
type ordered struct {
	id    string
	level bool
	end   scada.InstructionView
	n     int            // its latest turn
	acted map[string]int // by token
	again bool           // an operator has tried it again
}

func (t *orderTrial) round(ctx context.Context, round int) error {
	list := make([]*ordered, orderLength)
	for k := range list {
		list[k] = &ordered{id: fmt.Sprintf("order-%d-%d", round, k), level: (k+round)%2 == 0, acted: map[string]int{}}
	}
	if err := t.submit(ctx, list); err != nil {
		return err
	}
	if err := t.read(ctx, list); err != nil {
		return err
	}
	if t.c.Retry {
		if err := t.retry(ctx, list); err != nil {
			return err
		}
	}
	acts, err := t.s.Actuations(orderNode)
	if err != nil {
		return err
	}
	t.judge(round, list, acts[t.seen:])
	t.seen = len(acts)
	return nil
}

// submit sends the commands a little apart, with the fault in the middle.
func (t *orderTrial) submit(ctx context.Context, list []*ordered) error {
	// Every other round all eight come as fast as they are acknowledged, and the fault
	// as soon.
	apart, at := t.rnd.IntN(2)*40, time.Duration(t.rnd.IntN(50))*time.Millisecond
	if apart > 0 {
		at = time.Duration(t.rnd.IntN(200)) * time.Millisecond
	}
	dark := time.Duration(300+t.rnd.IntN(1500)) * time.Millisecond
	hit := make(chan error, 1)
	go func() {
		if err := rig.Pause(ctx, at); err != nil {
			hit <- err
			return
		}
		hit <- t.hit(ctx, dark)
	}()
	var errs []error
	for k, o := range list {
		if err := t.send(ctx, o, k); err != nil {
			errs = append(errs, err)
			break
		}
		if err := rig.Pause(ctx, time.Duration(t.rnd.IntN(apart+1))*time.Millisecond); err != nil {
			errs = append(errs, err)
			break
		}
	}
	return errors.Join(append(errs, <-hit)...)
}

// hit is the fault of the round; dark is how long a black hole lasts.
func (t *orderTrial) hit(ctx context.Context, dark time.Duration) error {
	switch {
	case t.c.Kill == "agent":
		t.agent.Kill()
		return t.startAgent(ctx)
	case t.c.Kill == "gateway":
		t.s.KillGateway()
		_, err := t.s.StartGateway(ctx)
		return err
	case t.c.Dark:
		t.proxy.Hold(rig.Up, rig.Down)
		err := rig.Pause(ctx, dark)
		t.proxy.Mend()
		return err
	}
	return nil
}

// send submits one command and, whatever becomes of the gateway, does not go on
// before it is acknowledged: what comes next is newer.
func (t *orderTrial) send(ctx context.Context, o *ordered, k int) error {
	pin := orderPin
	if t.c.Names {
		pin = orderNames[k%2]
	}
	more := t.priority(k)
	if !t.c.Retry { // else nothing is left to decide
		more += often
	}
	doc := fmt.Sprintf(`{"task_id":%q,"intent":"gpio.write","node":%q,"args":{"pin":%q,"level":%t}%s}`, o.id, orderNode, pin, o.level, more)
	if t.c.Pulses {
		doc = fmt.Sprintf(`{"task_id":%q,"intent":"gpio.pulse","node":%q,"args":{"pin":%q,"width":"30ms"}%s}`, o.id, orderNode, pin, more)
	}
	return rig.Await(ctx, rig.Patience, o.id+" acknowledged", func() (bool, error) {
		c, err := t.s.Client(ctx, "scada-order")
		if err != nil {
			return false, err
		}
		defer c.Close()
		acked, err := c.Submit(rig.TaskTopic, doc)
		return acked == 1, err
	})
}

func (t *orderTrial) priority(k int) string {
	if !t.c.Mixed {
		return ""
	}
	return fmt.Sprintf(`,"priority":%q`, []string{"normal", "high", "low"}[k%3])
}

// read waits for the ends, and notes which tokens are whose.
func (t *orderTrial) read(ctx context.Context, list []*ordered) error {
	for _, o := range list {
		a := &Account{ID: o.id}
		if err := a.read(ctx, t.s); err != nil {
			return err
		}
		if !a.Found || !a.Settled {
			return fmt.Errorf("command %s: found %t, settled %t", o.id, a.Found, a.Settled)
		}
		o.end = a.End
		for _, token := range a.Tokens {
			if _, ok := t.of[token]; !ok {
				t.of[token] = turn{t.next, o}
			}
		}
		o.n = t.next
		t.next++
	}
	return nil
}

// retry has an operator try the unknown ones again, oldest first. Each counts as
// submitted anew. The gateway may say that something newer stands for it.
func (t *orderTrial) retry(ctx context.Context, list []*ordered) error {
	for _, o := range list {
		if !o.end.OutcomeUnknown {
			continue
		}
		body, status, err := t.s.Ask(ctx, http.MethodPost, "/v1/instructions/"+o.end.Instruction+"/retry", `{"accept_unknown":true}`)
		switch {
		case err != nil:
			return err
		case status == http.StatusConflict && !o.end.Operator:
			continue
		case status/100 != 2:
			return fmt.Errorf("retry of %s: status %d: %s", o.id, status, body)
		}
		if err := t.read(ctx, []*ordered{o}); err != nil {
			return err
		}
		o.again = true
		t.r.Retried++
	}
	return nil
}

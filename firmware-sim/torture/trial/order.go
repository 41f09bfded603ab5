package trial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// orderLength is how many commands for one line a round of Order sends.
const orderLength = 8

// orderPin is the name of that line's pin, with a safe level and without.
const orderPin = "valve-1"

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
	// Retry has an operator try again what ended unknown.
	Retry bool
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
	{Name: "operator retries", Kill: "agent", Safe: true, Retry: true},
	{Name: "pulses, agent killed", Pulses: true, Kill: "agent"},
	{Name: "pulses, gateway killed", Pulses: true, Kill: "gateway", Safe: true},
}

// OrderResult is what became of the commands for one line.
type OrderResult struct {
	Name     string `json:"name"`
	Rounds   int    `json:"rounds"`
	Commands int    `json:"commands"`
	Executed int    `json:"executed"` // that moved the pin
	// Superseded were not begun because a newer one stands for them; Unknown ended
	// with an unknown outcome, and said so.
	Superseded int `json:"superseded"`
	Unknown    int `json:"unknown"`
	// Overtaken commands moved the pin after a newer one had; Missing were neither
	// executed nor stood for; in WrongEnd rounds the last level does not stand. They
	// must be 0.
	Overtaken int           `json:"overtaken"`
	Missing   int           `json:"missing"`
	WrongEnd  int           `json:"wrong_end"`
	Took      time.Duration `json:"took_ns"`
	Faults    []string      `json:"faults,omitempty"` // the first of what is wrong
}

// OK reports whether the order of submission held.
func (r *OrderResult) OK() bool { return r.Overtaken+r.Missing+r.WrongEnd == 0 }

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
	t := &orderTrial{c: c, s: s, u: u, rnd: u.rnd(), r: &r, of: map[string]int{}}
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
	seen  int            // actuations of earlier rounds
	of    map[string]int // by token: the number of its command, in order of submission
	next  int            // number of the next command
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
	safe := ""
	if t.c.Safe {
		safe = ", safe: 0"
	}
	config := filepath.Join(t.u.Dir, "agent.yaml")
	text := fmt.Sprintf("pins:\n  - {name: %s, line: GPIO17, direction: out%s}\n", orderPin, safe)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	var err error
	if t.agent, err = t.s.StartAgent(orderNode, rig.Door{MQTT: t.proxy.Addr(), Narrowband: t.s.Door().Narrowband}, "--config", config); err != nil {
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
	acted bool
}

func (t *orderTrial) round(ctx context.Context, round int) error {
	list := make([]*ordered, orderLength)
	for k := range list {
		list[k] = &ordered{id: fmt.Sprintf("order-%d-%d", round, k), level: (k+round)%2 == 0}
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
	hit := make(chan error, 1)
	go func() {
		if err := rig.Pause(ctx, at); err != nil {
			hit <- err
			return
		}
		hit <- t.hit(ctx)
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

// hit is the fault of the round.
func (t *orderTrial) hit(ctx context.Context) error {
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
		err := rig.Pause(ctx, time.Duration(300+t.rnd.IntN(1500))*time.Millisecond)
		t.proxy.Mend()
		return err
	}
	return nil
}

// send submits one command and, whatever becomes of the gateway, does not go on
// before it is acknowledged: what comes next is newer.
func (t *orderTrial) send(ctx context.Context, o *ordered, k int) error {
	doc := fmt.Sprintf(`{"task_id":%q,"intent":"gpio.write","node":%q,"args":{"pin":%q,"level":%t}%s%s}`, o.id, orderNode, orderPin, o.level, t.priority(k), often)
	if t.c.Pulses {
		doc = fmt.Sprintf(`{"task_id":%q,"intent":"gpio.pulse","node":%q,"args":{"pin":%q,"width":"30ms"}%s%s}`, o.id, orderNode, orderPin, t.priority(k), often)
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
				t.of[token] = t.next
			}
		}
		t.next++
	}
	return nil
}

// retry has an operator try the unknown ones again, oldest first. Each counts as
// submitted anew.
func (t *orderTrial) retry(ctx context.Context, list []*ordered) error {
	for _, o := range list {
		if !o.end.Operator || !o.end.OutcomeUnknown {
			continue
		}
		if err := t.s.Retry(ctx, o.end.Instruction); err != nil {
			return err
		}
		if err := t.read(ctx, []*ordered{o}); err != nil {
			return err
		}
	}
	return nil
}

// judge holds the pin's moves of a round against the order of submission.
func (t *orderTrial) judge(round int, list []*ordered, acts []gpio.Actuation) {
	r := t.r
	first := t.next - len(list)
	newest := -1
	var last gpio.Actuation
	for _, a := range acts {
		if a.Pin != "GPIO17" {
			continue
		}
		last = a
		n, ok := t.of[a.Cause]
		if !ok {
			continue // the owner's own
		}
		if n < newest {
			r.fault(&r.Overtaken, "round %d: command %d moved the pin after command %d", round, n-first, newest-first)
		}
		newest = max(newest, n)
		if k := n - first; k >= 0 && k < len(list) {
			list[k].acted = true
		}
	}
	missing := 0
	for k, o := range list {
		r.Commands++
		switch {
		case o.acted:
			r.Executed++
		case o.end.Reason == "superseded":
			r.Superseded++
		}
		if o.end.OutcomeUnknown {
			r.Unknown++
		}
		if o.acted {
			continue
		}
		told := o.end.OutcomeUnknown || o.end.Reason == "superseded"
		if t.c.Safe && !t.c.Pulses {
			// An on may be stood for by an off; an off only by a newer one.
			newerOff := slices.ContainsFunc(list[k+1:], func(n *ordered) bool { return !n.level })
			if !told || !newerOff && !o.level {
				r.fault(&r.Missing, "round %d: command %d (%t) moved nothing: %s %s (%s)", round, k, o.level, o.end.State, o.end.Reason, o.end.Detail)
			}
			continue
		}
		if missing++; missing > 1 || !told {
			r.fault(&r.Missing, "round %d: command %d moved nothing: %s %s (%s)", round, k, o.end.State, o.end.Reason, o.end.Detail)
		}
	}
	t.judgeEnd(round, list, last)
}

// judgeEnd wants that the last level stands.
func (t *orderTrial) judgeEnd(round int, list []*ordered, last gpio.Actuation) {
	if t.c.Pulses {
		if bool(last.Level) {
			t.r.fault(&t.r.WrongEnd, "round %d: the line is high after the last pulse, by %s", round, last.Cause)
		}
		return
	}
	end := list[len(list)-1]
	if t.c.Safe && strings.HasPrefix(last.Cause, "safe:") {
		return // the agent was started again after it: safe, and told so
	}
	if bool(last.Level) != end.level && !t.c.Retry {
		t.r.fault(&t.r.WrongEnd, "round %d: the pin is %s by %s, the last command said %t and is %s %s", round, last.Level, last.Cause, end.level, end.end.State, end.end.Reason)
	}
}

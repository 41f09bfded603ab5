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
	if err := t.launchAgent(); err != nil {
		return err
	}
	return back(ctx, t.s, t.agent, orderNode)
}

// launchAgent starts it and waits for nothing.
func (t *orderTrial) launchAgent() (err error) {
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
	t.agent, err = t.s.StartAgent(orderNode, rig.Door{MQTT: t.proxy.Addr(), Narrowband: t.s.Door().Narrowband}, args...)
	return err
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

// submit sends the commands, with the fault in the middle: all at once, as fast as each
// is acknowledged, or a little apart.
func (t *orderTrial) submit(ctx context.Context, list []*ordered) error {
	way := t.rnd.IntN(3)
	at, apart := time.Duration(t.rnd.IntN(50))*time.Millisecond, 0
	if way == 2 {
		at, apart = time.Duration(t.rnd.IntN(200))*time.Millisecond, 40
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
	var err error
	if way == 0 {
		var docs []string
		for k, o := range list {
			docs = append(docs, t.document(o, k))
		}
		err = t.send(ctx, docs)
	}
	for k := 0; k < len(list) && way > 0 && err == nil; k++ {
		if err = t.send(ctx, []string{t.document(list[k], k)}); err == nil {
			err = rig.Pause(ctx, time.Duration(t.rnd.IntN(apart+1))*time.Millisecond)
		}
	}
	return errors.Join(err, <-hit)
}

// hit is the fault of the round; dark is how long a black hole lasts.
func (t *orderTrial) hit(ctx context.Context, dark time.Duration) error {
	switch {
	case t.c.Kill == "agent" && t.c.Dark:
		t.proxy.Hold(rig.Up, rig.Down)
		t.agent.Kill()
		err := errors.Join(t.launchAgent(), rig.Pause(ctx, dark))
		t.proxy.Mend()
		if err != nil {
			return err
		}
		return back(ctx, t.s, t.agent, orderNode)
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

// document is the task of a command.
func (t *orderTrial) document(o *ordered, k int) string {
	pin := orderPin
	if t.c.Names {
		pin = orderNames[k%2]
	}
	more := t.priority(k)
	if t.c.Retry {
		more += never
	} else { // nothing is left to decide
		more += often
	}
	if t.c.Pulses {
		return fmt.Sprintf(`{"task_id":%q,"intent":"gpio.pulse","node":%q,"args":{"pin":%q,"width":"30ms"}%s}`, o.id, orderNode, pin, more)
	}
	return fmt.Sprintf(`{"task_id":%q,"intent":"gpio.write","node":%q,"args":{"pin":%q,"level":%t}%s}`, o.id, orderNode, pin, o.level, more)
}

// never is a policy that leaves all to an operator.
const never = `,"retry_policy":{"max_retries":0}`

// send submits documents in their order over one connection. Whatever becomes of the
// gateway, it does not return before all are acknowledged: what comes next is newer, and
// what is sent again is what comes after the last one that was acknowledged.
func (t *orderTrial) send(ctx context.Context, docs []string) error {
	return rig.Await(ctx, rig.Patience, "commands acknowledged", func() (bool, error) {
		c, err := t.s.Client(ctx, "scada-order")
		if err != nil {
			return false, err
		}
		defer c.Close()
		acked, err := c.Submit(rig.TaskTopic, docs...)
		docs = docs[acked:]
		return len(docs) == 0, err
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

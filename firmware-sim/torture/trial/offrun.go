package trial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

// offTrial is one off a second under way.
type offTrial struct {
	s      *rig.Site
	u      Setup
	main   *rig.Proxy
	narrow *rig.Proxy
	card   *rig.Card // nil where none can be made: noCard says why
	noCard error
	args   []string
	drains int // commands of a backlog

	starts sync.Mutex // held while the agent is killed and started, or the gateway is
	agent  *rig.Process

	mu     sync.Mutex // guards the rest
	lit    chan struct{}
	held   map[*rig.Proxy]int
	active []int  // the kinds of trouble that play
	blind  []span // when the board could not be reached or did not run
	alarms []span // when safe_undelivered stood
	offs   []off
	number int // of names
}

// span is a time, by this machine's clock.
type span struct{ from, to time.Time }

// off is one that was acknowledged.
type off struct {
	id    string
	pin   int
	sent  time.Time // for the first time
	at    time.Time // acknowledged
	until time.Time // when the next on for the pin was sent
	kinds []int     // of trouble that played
}

func (t *offTrial) close() (err error) {
	if t.s != nil {
		if t.card != nil {
			err = t.card.Thaw() // a process whose card hangs can't be killed
		}
		t.s.Close()
	}
	for _, p := range []*rig.Proxy{t.main, t.narrow} {
		if p != nil {
			p.Close()
		}
	}
	if t.card != nil {
		err = errors.Join(err, t.card.Close())
	}
	return err
}

// startAgent starts it, again after a kill, and waits until it is welcomed.
func (t *offTrial) startAgent(ctx context.Context) error {
	var err error
	if t.agent, err = t.s.StartAgent(orderNode, rig.Door{MQTT: t.main.Addr(), Narrowband: t.narrow.Addr()}, t.args...); err != nil {
		return err
	}
	return back(ctx, t.s, t.agent, orderNode)
}

// blinded notes a time in which the board could not be reached or did not run.
func (t *offTrial) blinded(from time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blind = append(t.blind, span{from, time.Now()})
}

// hold makes lines dead until mend has been called as often.
func (t *offTrial) hold(list ...*rig.Proxy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range list {
		t.held[p]++
		p.Hold(rig.Up, rig.Down)
	}
}

func (t *offTrial) mend(list ...*rig.Proxy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range list {
		if t.held[p]--; t.held[p] == 0 {
			p.Mend()
		}
	}
}

// name is one that was not used before.
func (t *offTrial) name(what string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.number++
	return fmt.Sprintf("%s-%d", what, t.number)
}

// switchOn switches all outputs on.
func (t *offTrial) switchOn(ctx context.Context) error {
	for pin := range offPins {
		if err := t.command(ctx, fmt.Sprintf("first-%d", pin), pin, 1); err != nil {
			return err
		}
	}
	return rig.Await(ctx, rig.Patience, "all outputs on", func() (bool, error) {
		acts, err := t.s.Actuations(orderNode)
		on := map[string]bool{}
		for _, a := range acts {
			on[a.Pin] = bool(a.Level)
		}
		n := 0
		for _, high := range on {
			if high {
				n++
			}
		}
		return n == offPins, err
	})
}

// goThrough sends offs until all turns of trouble are over.
func (t *offTrial) goThrough(ctx context.Context, length time.Duration, turns []troubleTurn) error {
	outer := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var others sync.WaitGroup
	var sent, told error
	others.Go(func() {
		if sent = t.send(ctx, length); sent != nil {
			stop() // else it would be seen after all turns
		}
	})
	others.Go(func() { told = t.watch(ctx) })
	each, began := length/time.Duration(len(turns)), time.Now()
	var err error
	for k, turn := range turns {
		if err == nil && ctx.Err() == nil {
			// What came last may have taken longer.
			err = t.turn(ctx, k, turn, max(time.Until(began.Add(time.Duration(k+1)*each)), each/2))
		}
	}
	stop()
	others.Wait()
	return errors.Join(outer.Err(), err, sent, told)
}

// turn plays some kinds of trouble at a time.
func (t *offTrial) turn(ctx context.Context, number int, turn troubleTurn, length time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, length)
	defer stop()
	errs := make([]error, len(turn))
	var playing sync.WaitGroup
	for k, kind := range turn {
		playing.Go(func() {
			t.mu.Lock()
			t.active = append(t.active, kind)
			t.mu.Unlock()
			rnd := rand.New(rand.NewPCG(t.u.Seed, uint64(1000*number+kind)))
			if err := troubles[kind].play(t, ctx, rnd, length); err != nil {
				errs[k] = fmt.Errorf("%s: %w", troubles[kind].name, err)
			}
			t.mu.Lock()
			t.active = slices.DeleteFunc(t.active, func(a int) bool { return a == kind })
			t.mu.Unlock()
		})
	}
	playing.Wait()
	return errors.Join(errs...)
}

// playing are the kinds of trouble that there are.
func (t *offTrial) playing() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.active)
}

func names(kinds []int) string {
	if len(kinds) == 0 {
		return "between two turns"
	}
	var list []string
	for _, k := range kinds {
		list = append(list, troubles[k].name)
	}
	return strings.Join(list, " + ")
}

// send sends an on and an off each second until ctx ends.
func (t *offTrial) send(ctx context.Context, length time.Duration) error {
	rnd := rand.New(rand.NewPCG(t.u.Seed, 12))
	next := time.Now()
	waits := [offPins]bool{} // the on comes right before the off
	for n := 0; ; n++ {
		if err := rig.Pause(ctx, time.Until(next)); err != nil {
			return nil // its time is over
		}
		next = next.Add(offEvery)
		if now := time.Now(); next.Before(now) {
			next = now // the gateway was away
		}
		if last := (n + offPins - 1) % offPins; n > 0 {
			if waits[last] = rnd.IntN(2) == 0; !waits[last] {
				t.on(ctx, n, last)
			}
		}
		pin := n % offPins
		if waits[pin] {
			t.on(ctx, n, pin)
		}
		if err := rig.Pause(ctx, onFor/2); err != nil {
			return nil // its time is over
		}
		t.mu.Lock()
		close(t.lit)
		t.lit = make(chan struct{})
		t.mu.Unlock()
		if err := rig.Pause(ctx, onFor/2); err != nil {
			return nil // its time is over
		}
		o := off{id: fmt.Sprintf("off-%d", n), pin: pin, sent: time.Now(), kinds: t.playing()}
		err := rig.Await(ctx, rig.Patience, o.id+" acknowledged", func() (bool, error) {
			err := t.command(ctx, o.id, pin, 0)
			return err == nil, err
		})
		if ctx.Err() != nil {
			return nil // its time is over
		}
		if err != nil {
			return err
		}
		o.at = time.Now()
		t.mu.Lock()
		t.offs = append(t.offs, o)
		t.mu.Unlock()
		t.u.Progress("one off a second: %d of about %.0f, %s", n+1, length.Seconds(), names(o.kinds))
	}
}

// on sends one for an output. It may be refused: at 90 % of the capacity, for example.
func (t *offTrial) on(ctx context.Context, n, pin int) {
	t.mu.Lock()
	for k := range t.offs {
		if o := &t.offs[k]; o.pin == pin && o.until.IsZero() {
			o.until = time.Now()
		}
	}
	t.mu.Unlock()
	_ = t.command(ctx, fmt.Sprintf("on-%d-%d", pin, n), pin, 1)
}

func (t *offTrial) command(ctx context.Context, id string, pin, level int) error {
	c, err := t.s.Client(ctx, "scada-offs")
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Submit(rig.TaskTopic, fmt.Sprintf(`{"task_id":%q,"intent":"gpio.write","node":%q,"args":{"pin":"valve-%d","level":%d},"priority":"high"}`, id, orderNode, pin, level))
	return err
}

// safeUndelivered is the alarm that something towards safe has not reached its node.
const safeUndelivered = "safe_undelivered"

// watch notes when the alarm stands that something towards safe has not arrived.
func (t *offTrial) watch(ctx context.Context) error {
	const every = 100 * time.Millisecond
	standing := false
	for rig.Pause(ctx, every) == nil {
		list, err := t.s.Alarms(ctx)
		if err != nil {
			standing = false // the gateway is away
			continue
		}
		k := slices.IndexFunc(list, func(a rig.Alarm) bool { return a.Alarm == safeUndelivered && a.Subject == orderNode })
		if k < 0 {
			standing = false
			continue
		}
		t.mu.Lock()
		if !standing {
			raised, err := time.Parse(time.RFC3339, list[k].Raised)
			if err != nil {
				t.mu.Unlock()
				return err
			}
			t.alarms = append(t.alarms, span{raised, time.Now()})
		}
		t.alarms[len(t.alarms)-1].to = time.Now()
		t.mu.Unlock()
		standing = true
	}
	return nil
}

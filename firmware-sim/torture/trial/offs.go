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
	"sync"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

const (
	// OffLimit is how long an output may stay on after its off was acknowledged, beyond
	// the time in which the board could not be reached or did not run (docs/safety.md).
	// Where only the narrowband is left, the wait for a word on the primary path is in it.
	OffLimit = time.Second
	// tellLimit is how long after a trial the ends of all its offs are waited for.
	tellLimit = 40 * time.Second
	offPins   = 4
	// onFor is how long before its off an on is sent at least. Of two one comes three
	// seconds before: then its output is on when trouble comes that lets nothing through.
	onFor = 300 * time.Millisecond
	// leastOffs is how many offs there are before one must have found its output on.
	leastOffs = 8
	// offEvery is the time between two offs.
	offEvery = time.Second
)

// OffsResult is what became of one off a second in one kind of trouble.
type OffsResult struct {
	Name string `json:"name"`
	Offs int    `json:"offs"` // acknowledged
	// Met is how many found their output on; Struck how many of them had to do with a
	// time in which the board could not be reached or did not run.
	Met    int `json:"met"`
	Struck int `json:"struck"`
	// On is how long outputs stayed on after their off was acknowledged, without what
	// is excused; Blind the longest that was.
	On    Spread        `json:"on"`
	Blind time.Duration `json:"blind_ns"`
	// Late took longer than the limit; Risen outputs went on again by something older;
	// Untold did not end as driven or stood for by a newer off of the output; Idle is 1 if
	// none of many found its output on, which is no trial. They must be 0.
	Late    int      `json:"late"`
	Risen   int      `json:"risen"`
	Untold  int      `json:"untold"`
	Idle    int      `json:"idle"`
	Skipped string   `json:"skipped,omitempty"`
	Faults  []string `json:"faults,omitempty"`
}

// OK reports whether every off was in time and stood.
func (r *OffsResult) OK() bool { return r.Late+r.Risen+r.Untold+r.Idle == 0 }

func (r *OffsResult) fault(count *int, format string, args ...any) {
	*count++
	if len(r.Faults) < maxFaults {
		r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
	}
}

// trouble is one kind of it. prepare, if any, comes before the first off and after the
// first ons; play makes it until ctx ends; everything is well again when it returns.
type trouble struct {
	name    string
	play    func(*offTrial, context.Context) error
	prepare func(*offTrial, context.Context) error
}

var troubles = []trouble{
	{name: "none", play: (*offTrial).idle},
	{name: "agent killed", play: (*offTrial).agentKills},
	{name: "gateway killed", play: (*offTrial).gatewayKills},
	{name: "both paths held", play: (*offTrial).cuts},
	{name: "primary path a black hole", play: (*offTrial).darkness},
	{name: "busy workers, full window", prepare: (*offTrial).crowd, play: (*offTrial).idle},
	{name: fullQueue, prepare: (*offTrial).fill, play: (*offTrial).idle},
	{name: "quiet period", play: (*offTrial).quiet},
	{name: "drain of 10,000", play: (*offTrial).drain},
	{name: "hanging card", play: (*offTrial).hang},
}

// fullQueue needs a small gateway.
const fullQueue = "90 % of the capacity"

// offTrial is one kind of trouble under way.
type offTrial struct {
	s      *rig.Site
	u      Setup
	rnd    *rand.Rand
	main   *rig.Proxy
	narrow *rig.Proxy
	agent  *rig.Process
	args   []string
	drains int // commands of a backlog

	lit chan struct{} // holds one: an on has been sent a moment ago, its off comes soon

	mu    sync.Mutex
	blind []span // when the board could not be reached or did not run
	offs  []off
}

// span is a time, by this machine's clock.
type span struct{ from, to time.Time }

// off is one that was acknowledged.
type off struct {
	id    string
	pin   int
	at    time.Time
	until time.Time // when the next on for the pin was sent
}

// OffsOptions say how Offs goes on.
type OffsOptions struct {
	Each   time.Duration // how long one kind of trouble lasts
	Drains int           // commands of the backlog of a node that comes back
	Only   string        // plays the kinds of trouble whose names contain it; empty for all
}

// Offs sends one off a second through every kind of trouble. A moment before it an on
// is sent.
func Offs(ctx context.Context, u Setup, o OffsOptions) (list []OffsResult, err error) {
	for k, of := range troubles {
		if !strings.Contains(of.name, o.Only) {
			continue
		}
		v := u
		v.Dir = filepath.Join(u.Dir, fmt.Sprint("offs-", k))
		if err := os.Mkdir(v.Dir, 0o700); err != nil {
			return list, err
		}
		r, err := offsIn(ctx, v, of, o.Each, o.Drains)
		list = append(list, r)
		if err != nil {
			return list, fmt.Errorf("%s: %w", of.name, err)
		}
	}
	return list, nil
}

func offsIn(ctx context.Context, u Setup, of trouble, each time.Duration, drains int) (r OffsResult, err error) {
	r.Name = of.name
	var args []string
	if of.name == fullQueue {
		args = []string{"--config", filepath.Join(u.Dir, "gateway.yaml")}
		if err := os.WriteFile(args[1], []byte(fmt.Sprintf("capacity: %d\n", smallCapacity)), 0o600); err != nil {
			return r, err
		}
	}
	s, err := rig.NewSite(ctx, u.Bin, u.Dir, rig.Options{Args: args})
	if err != nil {
		return r, err
	}
	defer s.Close()
	t := &offTrial{s: s, u: u, rnd: u.rnd(), drains: drains, lit: make(chan struct{}, 1)}
	defer t.close()
	if err := t.begin(ctx); err != nil {
		return r, err
	}
	if err := t.switchOn(ctx); err != nil {
		return r, err
	}
	if of.prepare != nil {
		if err := of.prepare(t, ctx); err != nil {
			return r, err
		}
	}
	playing, stop := context.WithTimeout(ctx, each)
	defer stop()
	played := make(chan error, 1)
	go func() { played <- of.play(t, playing) }()
	err = t.send(playing, u, of)
	stop()
	err = errors.Join(err, <-played)
	var missing *noTrouble
	if errors.As(err, &missing) {
		r.Skipped = missing.Error()
		return r, nil
	}
	if err != nil {
		return r, err
	}
	return r, t.judge(ctx, &r)
}

// noTrouble says that a kind of trouble can't be made here.
type noTrouble struct{ error }

func (t *offTrial) close() {
	for _, p := range []*rig.Proxy{t.main, t.narrow} {
		if p != nil {
			p.Close()
		}
	}
}

func (t *offTrial) begin(ctx context.Context) error {
	var err error
	if t.main, err = rig.NewProxy(t.s.Door().MQTT); err != nil {
		return err
	}
	if t.narrow, err = rig.NewProxy(t.s.Door().Narrowband); err != nil {
		return err
	}
	text := "pins:\n"
	for k := range offPins {
		text += fmt.Sprintf("  - {name: valve-%d, line: GPIO%d, direction: out, safe: 0}\n", k, k)
	}
	for k := offPins; k < offPins+otherPins; k++ {
		text += fmt.Sprintf("  - {name: other-%d, line: GPIO%d, direction: out}\n", k, k)
	}
	config := filepath.Join(t.u.Dir, "agent.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	t.args = []string{"--config", config}
	return t.startAgent(ctx)
}

const otherPins = 20

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

// send sends an on and an off each second until ctx ends.
func (t *offTrial) send(ctx context.Context, u Setup, of trouble) error {
	rnd := rand.New(rand.NewPCG(u.Seed, 12))
	next := time.Now()
	waits := [offPins]bool{} // the on comes right before the off
	on := func(n, pin int) {
		t.mu.Lock()
		for k := range t.offs {
			if o := &t.offs[k]; o.pin == pin && o.until.IsZero() {
				o.until = time.Now()
			}
		}
		t.mu.Unlock()
		// It is refused at 90 % of the capacity, for example.
		_ = t.command(ctx, fmt.Sprintf("on-%d-%d", pin, n), pin, 1)
	}
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
				on(n, last)
			}
		}
		pin := n % offPins
		if waits[pin] {
			on(n, pin)
		}
		if err := rig.Pause(ctx, onFor/2); err != nil {
			return nil // its time is over
		}
		select {
		case t.lit <- struct{}{}:
		default:
		}
		if err := rig.Pause(ctx, onFor/2); err != nil {
			return nil // its time is over
		}
		id := fmt.Sprintf("off-%d", n)
		err := rig.Await(ctx, rig.Patience, id+" acknowledged", func() (bool, error) {
			err := t.command(ctx, id, pin, 0)
			return err == nil, err
		})
		if ctx.Err() != nil {
			return nil // its time is over
		}
		if err != nil {
			return err
		}
		t.mu.Lock()
		t.offs = append(t.offs, off{id: id, pin: pin, at: time.Now()})
		t.mu.Unlock()
		u.Progress("one off a second, %s: %d", of.name, n+1)
	}
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

// judge holds the pins' moves against the offs.
func (t *offTrial) judge(ctx context.Context, r *OffsResult) error {
	acts, err := t.s.Actuations(orderNode)
	if err != nil {
		return err
	}
	var on []time.Duration
	told, cancel := context.WithTimeout(ctx, tellLimit)
	defer cancel()
	for k, o := range t.offs {
		r.Offs++
		if o.until.IsZero() {
			o.until = time.Now()
		}
		high, blind := t.stayedOn(r, acts, o)
		r.Blind = max(r.Blind, blind)
		if high+blind > 0 {
			r.Met++
			if blind > 0 {
				r.Struck++
			}
			on = append(on, high)
		}
		if high > OffLimit {
			r.fault(&r.Late, "%s: valve-%d stayed on for %v, and for %v more while its board could not be reached", o.id, o.pin, high.Round(time.Millisecond), blind.Round(time.Millisecond))
		}
		a := &Account{ID: o.id}
		if err := a.read(told, t.s); err != nil && told.Err() == nil {
			return err
		}
		superseded := a.End.Reason == "superseded" && slices.ContainsFunc(t.offs[k+1:], func(n off) bool { return n.pin == o.pin })
		if !a.Found || !a.Settled || a.End.State != succeeded && !superseded {
			r.fault(&r.Untold, "%s: found %t, settled %t: %s %s (%s)", o.id, a.Found, a.Settled, a.End.State, a.End.Reason, a.End.Detail)
		}
	}
	r.On = NewSpread(on)
	if r.Offs >= leastOffs && r.Met == 0 {
		r.fault(&r.Idle, "none of %d offs has found its output on", r.Offs)
	}
	return nil
}

// stayedOn is how long an output was on after its off by something older, and how much
// of that is excused.
func (t *offTrial) stayedOn(r *OffsResult, acts []gpio.Actuation, o off) (high, blind time.Duration) {
	name, level := fmt.Sprintf("GPIO%d", o.pin), gpio.Low
	since := o.at
	fell := false
	add := func(to time.Time) {
		if level == gpio.High && to.After(since) {
			out := t.excused(since, to)
			blind += out
			high += to.Sub(since) - out
		}
	}
	for _, a := range acts {
		at := time.Unix(0, a.At)
		if a.Pin != name {
			continue
		}
		if at.After(o.until) {
			break
		}
		if at.After(o.at) {
			add(at)
			since = at
			if a.Level == gpio.High && fell {
				r.fault(&r.Risen, "%s: valve-%d went on again %v after its off, by %s", o.id, o.pin, at.Sub(o.at).Round(time.Millisecond), a.Cause)
			}
			fell = fell || a.Level == gpio.Low
		}
		level = a.Level
	}
	add(o.until)
	return high, blind
}

// excused is how much of a time the board could not be reached or did not run.
func (t *offTrial) excused(from, to time.Time) (d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.blind {
		lo, hi := b.from, b.to
		if lo.Before(from) {
			lo = from
		}
		if hi.After(to) {
			hi = to
		}
		if hi.After(lo) {
			d += hi.Sub(lo)
		}
	}
	return min(d, to.Sub(from))
}

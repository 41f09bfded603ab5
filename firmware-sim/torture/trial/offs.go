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

	"github.com/apollo-11/apollo11/fieldagent"
	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

const (
	// OffLimit is how long after it was acknowledged an off is at the pin at the latest,
	// beyond the time in which the board could not be reached or did not run
	// (docs/safety.md). Where only the narrowband is left, the wait for a word on the
	// primary path is in it.
	OffLimit = time.Second
	// AlarmLimit is how long after it the alarm stands at the latest if it has not arrived:
	// the rule says 5 s, the rest is this machine and how often is looked.
	AlarmLimit = 6 * time.Second

	offPins   = 4
	otherPins = 20
	// offEvery is the time between two offs.
	offEvery = time.Second
	// onFor is how long before its off an on is sent at least. Of two one comes three
	// seconds before: then its output is on when trouble comes that lets nothing through.
	onFor = 300 * time.Millisecond

	// offTurns is how often each kind of trouble is begun: twice together with the next
	// kind of the list, and twice with the third after it.
	offTurns = 4
	// drainRate is how many a second of a backlog go out: at ten minutes one of 10,000 is
	// there for the two turns that follow each other.
	drainRate = 200
	mostDrain = 10_000
	// roomBeside is the gateway's room beside a backlog.
	roomBeside = 4000
)

// OffsOptions say how Offs goes on.
type OffsOptions struct {
	// For is how long all of it takes.
	For time.Duration
	// Only plays the kinds of trouble whose names contain it; empty for all.
	Only string
}

// trouble is one kind of it. play makes it until ctx ends, length from now; everything
// is well again when it returns. It may be played together with any other kind.
type trouble struct {
	name string
	play func(t *offTrial, ctx context.Context, rnd *rand.Rand, length time.Duration) error
}

// cardTrouble needs a card that can hang.
const cardTrouble = "hanging card"

var troubles = []trouble{
	{"agent killed", (*offTrial).agentKills},
	{"gateway killed", (*offTrial).gatewayKills},
	{"both paths held", (*offTrial).cuts},
	{"primary path a black hole", (*offTrial).darkness},
	{"two long pulses, two workers", (*offTrial).longPulses},
	{"full queue, busy workers", (*offTrial).crowd},
	{"90 % of the capacity", (*offTrial).fill},
	{"quiet period", (*offTrial).quiet},
	{"drain of a backlog", (*offTrial).drain},
	{cardTrouble, (*offTrial).hang},
}

// Troubles are the names of all kinds of trouble.
func Troubles() (list []string) {
	for _, of := range troubles {
		list = append(list, of.name)
	}
	return list
}

// HasTrouble reports whether a kind of trouble has this in its name.
func HasTrouble(part string) bool {
	return slices.ContainsFunc(Troubles(), func(name string) bool { return strings.Contains(name, part) })
}

// troubleTurn is some kinds of trouble at a time.
type troubleTurn []int

// plan puts the kinds of trouble together, so that each comes offTurns times, two at a
// time and not always the same two. One alone is played alone.
func plan(kinds []int) (turns []troubleTurn) {
	if len(kinds) == 1 {
		return []troubleTurn{kinds}
	}
	for _, apart := range [offTurns / 2]int{1, 3} {
		for k := range kinds {
			other := kinds[(k+apart)%len(kinds)]
			if other == kinds[k] {
				other = kinds[(k+1)%len(kinds)]
			}
			turns = append(turns, troubleTurn{kinds[k], other})
		}
	}
	return turns
}

// Offs sends one off a second, a moment after an on for the same output, while one kind
// of trouble after the other comes, two at a time. Only what can't be made here is left
// out, and said.
func Offs(ctx context.Context, u Setup, o OffsOptions) (r OffsResult, err error) {
	began := time.Now()
	var kinds []int
	for k, of := range troubles {
		if strings.Contains(of.name, o.Only) {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return r, fmt.Errorf("no kind of trouble has %q in its name", o.Only)
	}
	t, err := newOffTrial(ctx, u, o.For)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if t.card == nil {
		r.Skipped = append(r.Skipped, cardTrouble+": "+t.noCard.Error())
		if kinds = without(kinds, cardTrouble); len(kinds) == 0 {
			return r, nil
		}
	}
	if err := t.switchOn(ctx); err != nil {
		return r, err
	}
	if err := t.goThrough(ctx, o.For, plan(kinds)); err != nil {
		return r, err
	}
	err = t.judge(ctx, &r, kinds)
	r.Took = time.Since(began)
	return r, err
}

func without(kinds []int, name string) (rest []int) {
	for _, k := range kinds {
		if troubles[k].name != name {
			rest = append(rest, k)
		}
	}
	return rest
}

// newOffTrial starts a gateway and an agent with two workers, whose journal is on a card
// that can be made to hang if this machine allows that.
func newOffTrial(ctx context.Context, u Setup, length time.Duration) (t *offTrial, err error) {
	turns := len(troubles) * offTurns / 2
	t = &offTrial{u: u, held: map[*rig.Proxy]int{}, lit: make(chan struct{}), drains: min(mostDrain, max(int(2*length.Seconds())/turns*drainRate, 200))}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if t.card, t.noCard = rig.NewCard(ctx, u.Dir); t.noCard != nil && os.Getenv("CI") == "true" && os.Geteuid() == 0 {
		return t, t.noCard
	}
	gateway, agent := filepath.Join(u.Dir, "gateway.yaml"), filepath.Join(u.Dir, "agent.yaml")
	settings := fmt.Sprintf("capacity: %d\ndelivery:\n  drain_rate: %d\n", t.drains+roomBeside, drainRate)
	pins := "pins:\n"
	for k := range offPins {
		pins += fmt.Sprintf("  - {name: valve-%d, line: GPIO%d, direction: out, safe: 0}\n", k, k)
	}
	for k := offPins; k < offPins+otherPins; k++ {
		pins += fmt.Sprintf("  - {name: other-%d, line: GPIO%d, direction: out}\n", k, k)
	}
	if err = errors.Join(os.WriteFile(gateway, []byte(settings), 0o600), os.WriteFile(agent, []byte(pins), 0o600)); err != nil {
		return t, err
	}
	if t.s, err = rig.NewSite(ctx, u.Bin, u.Dir, rig.Options{Args: []string{"--config", gateway}}); err != nil {
		return t, err
	}
	if t.main, err = rig.NewProxy(t.s.Door().MQTT); err != nil {
		return t, err
	}
	if t.narrow, err = rig.NewProxy(t.s.Door().Narrowband); err != nil {
		return t, err
	}
	t.args = []string{"--config", agent, "--workers", "2"}
	if t.card != nil {
		// But for the levels of the simulated pins, which real ones keep by themselves.
		data := filepath.Join(t.card.Dir(), "agent")
		t.args = append(t.args, "--data", data)
		if err = errors.Join(os.Mkdir(data, 0o700), os.Symlink(filepath.Join(u.Dir, "levels"), filepath.Join(data, fieldagent.LevelsFile))); err != nil {
			return t, err
		}
	}
	return t, t.startAgent(ctx)
}

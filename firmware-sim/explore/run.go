package explore

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"
)

// Limits of Options.
const (
	MaxNodes     = 1000
	DefaultNodes = 3
	MaxSpan      = 24 * time.Hour
	// pebbleEvery is how often the real store is used: every so many seeds.
	pebbleEvery = 32
)

// Store chooses the gateway's disk.
type Store string

// The disks.
const (
	StoreAuto   Store = ""       // in memory, the real one for one seed in 32
	StoreMemory Store = "memory" // in memory
	StorePebble Store = "pebble" // the real one, on a file system in memory
)

// Options say which site to play.
type Options struct {
	Seed    uint64
	Nodes   int           // 0 is DefaultNodes
	Profile string        // name of a profile; empty is all
	Span    time.Duration // of the faulty phase; 0 is drawn, 30 s to 60 s
	Store   Store
	Skip    []int     // steps of the plan that are left out
	Trace   io.Writer // nil for no trace

	watch func(w *world, k int) // tests look at each step of the plan
}

func (o Options) pebble() bool {
	return o.Store == StorePebble || o.Store == StoreAuto && o.Seed%pebbleEvery == 0
}

// Result is what came of a run.
type Result struct {
	Options   Options
	Violation *Violation // nil when every rule held
	Counts    Counts
	Hash      uint64        // of everything that happened: two runs of a seed have the same
	Virtual   time.Duration // how long the site lived
	Span      time.Duration // of the faulty phase
	Steps     int           // of the plan, with those left out
	Plan      []string      // the steps that were played, of a run with a violation
}

// Run plays one seed. The error is about the options; a broken rule is in the
// result.
func Run(o Options) (Result, error) {
	o, p, err := o.fill()
	if err != nil {
		return Result{}, err
	}
	w := newWorld(o, p)
	w.guarded()
	r := Result{Options: o, Violation: w.violation, Counts: w.counts, Hash: w.hash, Virtual: w.now, Span: w.span, Steps: len(w.plan)}
	if w.violation != nil {
		for k := range w.plan {
			if !w.skip[k] && w.plan[k].at <= w.violation.At {
				r.Plan = append(r.Plan, fmt.Sprintf("%4d %v", k, w.plan[k]))
			}
		}
	}
	return r, nil
}

// guarded plays the world; a panic in it is a broken rule like any other.
func (w *world) guarded() {
	defer func() {
		if p := recover(); p != nil {
			w.fail("panic", "%v\n%s", p, debug.Stack())
		}
	}()
	w.run()
	if err := w.gateway.disk.close(); err != nil {
		w.fail("log", "the gateway's store cannot be closed: %v", err)
	}
}

func (o Options) fill() (Options, Profile, error) {
	if o.Nodes == 0 {
		o.Nodes = DefaultNodes
	}
	if o.Profile == "" {
		o.Profile = "all"
	}
	p, err := profileOf(o.Profile)
	switch {
	case err != nil:
		return o, p, err
	case o.Nodes < 1 || o.Nodes > MaxNodes:
		return o, p, fmt.Errorf("%d nodes, allowed are 1 to %d", o.Nodes, MaxNodes)
	case o.Span < 0 || o.Span > MaxSpan:
		return o, p, fmt.Errorf("a faulty phase of %v, allowed is up to %v", o.Span, MaxSpan)
	case o.Store != StoreAuto && o.Store != StoreMemory && o.Store != StorePebble:
		return o, p, fmt.Errorf("store %q is not known; there are memory and pebble", o.Store)
	}
	return o, p, nil
}

// Replay is the command that plays the same run with its trace.
func (r Result) Replay() string {
	o := r.Options
	s := fmt.Sprintf("go run ./firmware-sim/explore/cmd --seeds %d --nodes %d --faults %s", o.Seed, o.Nodes, o.Profile)
	if o.Span != 0 {
		s += fmt.Sprintf(" --span %v", o.Span)
	}
	if o.Store != StoreAuto {
		s += " --store " + string(o.Store)
	}
	if len(o.Skip) > 0 {
		s += " --skip " + ranges(o.Skip)
	}
	return s + " --trace"
}

// ranges writes a sorted list of numbers as 1-3,7.
func ranges(list []int) string {
	var parts []string
	for k := 0; k < len(list); {
		end := k
		for end+1 < len(list) && list[end+1] == list[end]+1 {
			end++
		}
		if end == k {
			parts = append(parts, fmt.Sprint(list[k]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", list[k], list[end]))
		}
		k = end + 1
	}
	return strings.Join(parts, ",")
}

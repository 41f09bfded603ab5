package explore

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Campaign plays many seeds. It is the only part of this package that looks at a
// real clock and starts goroutines: each seed is played by one of them alone.
type Campaign struct {
	Options            // Seed is ignored
	First, Last uint64 // seeds, both included; Last 0 is without end
	Jobs        int    // seeds at a time, at least 1
	// TwiceEvery is how often a seed is played twice to compare the traces: 1 is
	// always, 0 never.
	TwiceEvery uint64
	// Quick leaves a failing run as large as it is.
	Quick bool
	// Progress, if not nil, is called now and then.
	Progress func(Summary)
}

// progressEvery is how often Progress is called.
const progressEvery = 2 * time.Second

// Summary is what came of a campaign so far.
type Summary struct {
	Seeds   uint64
	Counts  Counts
	Virtual time.Duration
	Took    time.Duration
	Failure *Failure // nil when every rule held
}

// Failure is the failing run with the lowest seed, made small.
type Failure struct {
	First Result   // as it was found
	Small Result   // with as few steps as were needed
	Trace []string // the end of the small run's trace
}

// campaign is a Campaign under way.
type campaign struct {
	Campaign
	began time.Time

	mu      sync.Mutex
	next    uint64
	sum     Summary
	failing *Result
	err     error
	told    time.Time
}

// Run plays the seeds until they are through, the context ends or a rule breaks.
func (c Campaign) Run(ctx context.Context) (Summary, error) {
	k := &campaign{Campaign: c, began: time.Now(), next: c.First}
	k.told = k.began
	var group sync.WaitGroup
	for range max(c.Jobs, 1) {
		group.Go(func() {
			for ctx.Err() == nil {
				seed, ok := k.take()
				if !ok {
					return
				}
				k.play(seed)
			}
		})
	}
	group.Wait()
	k.sum.Took = time.Since(k.began)
	if k.err != nil || k.failing == nil {
		return k.sum, k.err
	}
	if k.Quick {
		k.sum.Failure = &Failure{First: *k.failing, Small: *k.failing}
		return k.sum, nil
	}
	f, err := explain(*k.failing)
	k.sum.Failure = f
	return k.sum, err
}

func (k *campaign) take() (uint64, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failing != nil || k.err != nil || k.Last != 0 && k.next > k.Last {
		return 0, false
	}
	k.next++
	return k.next - 1, true
}

func (k *campaign) play(seed uint64) {
	o := k.Options
	o.Seed = seed
	r, err := Run(o)
	if err == nil && r.Violation == nil && k.TwiceEvery > 0 && seed%k.TwiceEvery == 0 {
		var again Result
		if again, err = Run(o); again.Hash != r.Hash {
			r.Violation = &Violation{Rule: "determinism", Text: fmt.Sprintf("two runs of the seed differ: %x, %x", r.Hash, again.Hash)}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.err = err
		return
	}
	k.sum.Seeds++
	k.sum.Counts.Add(&r.Counts)
	k.sum.Virtual += r.Virtual
	if r.Violation != nil && (k.failing == nil || seed < k.failing.Options.Seed) {
		k.failing = &r
	}
	if now := time.Now(); k.Progress != nil && now.Sub(k.told) >= progressEvery {
		k.told = now
		k.sum.Took = now.Sub(k.began)
		k.Progress(k.sum)
	}
}

// explain makes a failing run small and reads the end of its trace.
func explain(r Result) (*Failure, error) {
	f := &Failure{First: r, Small: r}
	if r.Violation.Rule == "determinism" {
		return f, nil
	}
	var err error
	if f.Small, err = Shrink(r, shrinkTries); err != nil {
		return f, err
	}
	var b bytes.Buffer
	o := f.Small.Options
	o.Trace = &b
	if _, err := Run(o); err != nil {
		return f, err
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	f.Trace = lines[max(0, len(lines)-traceTail):]
	return f, nil
}

// String tells a person what broke and how to see it again.
func (f *Failure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d breaks the rule %v\n", f.First.Options.Seed, f.First.Violation)
	if len(f.Trace) > 0 {
		fmt.Fprintf(&b, "\nwith %d of its %d steps it still does: %v\n\n%s\n\nthe end of the trace:\n%s\n",
			len(f.Small.Plan), f.First.Steps, f.Small.Violation, strings.Join(f.Small.Plan, "\n"), strings.Join(f.Trace, "\n"))
	}
	fmt.Fprintf(&b, "\nto see all of it:\n  %s\n", f.Small.Replay())
	return b.String()
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/explore"
	"github.com/apollo-11/apollo11/wire"
)

// Exit codes.
const (
	exitClean  = 0 // every rule held
	exitBroken = 1 // a rule broke
	exitUsage  = 2 // the arguments make no sense
)

// twiceEvery is how often a seed is played twice, to show that it decides
// everything.
const twiceEvery = 16

// maxSkip bounds the numbers of one --skip.
const maxSkip = 100_000

type flags struct {
	campaign explore.Campaign
	limit    time.Duration
	json     bool
	trace    bool
}

// run is the command. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitClean
	}
	if err != nil {
		say(stderr, "explore: %v; see explore --help", err)
		return exitUsage
	}
	if f.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.limit)
		defer cancel()
	}
	c := f.campaign
	switch {
	case f.trace:
		c.Trace, c.Jobs, c.TwiceEvery = stdout, 1, 0
	default:
		c.Progress = func(s explore.Summary) { say(stderr, "explore: %s", line(s)) }
	}
	sum, err := c.Run(ctx)
	if err != nil {
		say(stderr, "explore: %v", err)
		return exitUsage
	}
	if f.json {
		err = tellJSON(stdout, c, sum)
	} else {
		tell(stdout, c, sum)
	}
	if err != nil || sum.Failure != nil {
		return exitBroken
	}
	return exitClean
}

// say writes a line for a person. Where nobody can be told of an error, there is
// nothing to do about one.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }

func parse(args []string, stderr io.Writer) (flags, error) {
	f := flags{}
	c := &f.campaign
	set := flag.NewFlagSet("explore", flag.ContinueOnError)
	set.SetOutput(stderr)
	var names []string
	for _, p := range explore.Profiles() {
		names = append(names, p.Name)
	}
	seeds := set.String("seeds", "1-100", "seeds to play: `A-B`, one, or A- without end")
	set.IntVar(&c.Nodes, "nodes", explore.DefaultNodes, "agents of the site")
	set.StringVar(&c.Profile, "faults", "all", "profile: "+strings.Join(names, ", "))
	set.DurationVar(&f.limit, "for", 0, "stop after this much real time; 0 is when the seeds are through")
	set.DurationVar(&c.Span, "span", 0, "virtual length of the faulty phase; 0 lets the seed decide")
	store := set.String("store", "", "the gateway's store: memory, pebble; empty is memory and the real one for one seed in 32")
	skip := set.String("skip", "", "steps of the plan to leave out: `1-3,7`")
	out := set.String("o", "text", "output: text, json")
	set.BoolVar(&f.trace, "trace", false, "write down everything that happens")
	set.IntVar(&c.Jobs, "jobs", runtime.GOMAXPROCS(0), "seeds at a time")
	plantFlag(set)
	if err := set.Parse(args); err != nil {
		return f, err
	}
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	if set.NArg() > 0 {
		note(fmt.Errorf("unexpected argument %q", set.Arg(0)))
	}
	var err error
	c.First, c.Last, err = parseSeeds(*seeds)
	note(err)
	c.Skip, err = parseSkip(*skip)
	note(err)
	c.Store, c.TwiceEvery, f.json = explore.Store(*store), twiceEvery, *out == "json"
	if *out != "json" && *out != "text" {
		note(fmt.Errorf("output %q is not known; there are text and json", *out))
	}
	if c.Jobs < 1 {
		note(fmt.Errorf("%d jobs, at least 1 is needed", c.Jobs))
	}
	if c.Last == 0 && f.limit == 0 {
		note(fmt.Errorf("seeds %s have no end; give one, or a time with --for", *seeds))
	}
	return f, errors.Join(errs...)
}

func parseSeeds(s string) (first, last uint64, err error) {
	a, b, span := strings.Cut(s, "-")
	bad := fmt.Errorf("seeds %q: write A-B, one number, or A-; numbers begin with 1", s)
	if first, err = strconv.ParseUint(a, 10, 63); err != nil || first == 0 {
		return 0, 0, bad
	}
	switch {
	case !span:
		return first, first, nil
	case b == "":
		return first, 0, nil
	}
	if last, err = strconv.ParseUint(b, 10, 63); err != nil || last < first {
		return 0, 0, bad
	}
	return first, last, nil
}

func parseSkip(s string) (list []int, err error) {
	if s == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		a, b, span := strings.Cut(part, "-")
		if !span {
			b = a
		}
		from, err1 := strconv.Atoi(a)
		to, err2 := strconv.Atoi(b)
		if err1 != nil || err2 != nil || from < 0 || to < from || to-from > maxSkip || len(list) > maxSkip {
			return nil, fmt.Errorf("skip %q: write numbers and ranges, as in 1-3,7", s)
		}
		for n := from; n <= to; n++ {
			list = append(list, n)
		}
	}
	return list, nil
}

// line sums up in one line.
func line(s explore.Summary) string {
	each := time.Duration(0)
	if s.Seeds > 0 {
		each = s.Took / time.Duration(s.Seeds)
	}
	return fmt.Sprintf("%d seeds, %d instructions, %d executed, %d confirmed, %d duplicates, %v (%v a seed)",
		s.Seeds, s.Counts.Instructions, s.Counts.Executed, s.Counts.Confirmed, s.Counts.Duplicates,
		s.Took.Round(100*time.Millisecond), each.Round(100*time.Microsecond))
}

func tell(w io.Writer, c explore.Campaign, s explore.Summary) {
	say(w, "profile %s, %d nodes: %s", c.Profile, c.Nodes, line(s))
	n := &s.Counts
	say(w, "%d of %d attempts (%.2f %%) confirmed by the third compensation round; status unknown for at most %v for 99 %% of them",
		n.InThree, n.Attempts, 100*float64(n.InThree)/float64(max(n.Attempts, 1)), n.Windows.Within(0.99))
	if n.Unnoticed > 0 {
		say(w, "%d tokens executed again after an older card was put in and nobody could notice", n.Unnoticed)
	}
	e := &n.LeaseEnds
	say(w, "%d leases, told were %d expired, %d replaced, %d loss, %d stopped, %d restart; %d edges told; %d refused by LOCAL switches",
		n.Leases, e[wire.LeaseExpired], e[wire.LeaseReplaced], e[wire.LeaseLoss], e[wire.LeaseStopped], e[wire.LeaseRestart], n.Edges, n.ByHand)
	if n.Ahead > 0 {
		say(w, "%d orders towards safe went ahead of their record at the gateway, %d of them were told by their nodes after the record was lost", n.Ahead, n.AheadLost)
	}
	say(w, "%d tasks submitted, %d faults, %d steps, %v of virtual time", s.Counts.Submitted, s.Counts.Faults, s.Counts.Steps, s.Virtual.Round(time.Second))
	if s.Failure != nil {
		say(w, "\n%v", s.Failure)
	}
}

// document is the summary as JSON.
type document struct {
	Profile      string  `json:"profile"`
	Nodes        int     `json:"nodes"`
	First        uint64  `json:"first_seed"`
	Seeds        uint64  `json:"seeds"`
	Tasks        int     `json:"tasks"`
	Instructions int     `json:"instructions"`
	Executed     int     `json:"executed"`
	Confirmed    int     `json:"confirmed"`
	Duplicates   int     `json:"duplicates"`
	Faults       int     `json:"faults"`
	Attempts     int     `json:"attempts"`
	InThree      int     `json:"confirmed_in_three_rounds"`
	UnknownP99MS int64   `json:"status_unknown_p99_ms"`
	VirtualS     float64 `json:"virtual_s"`
	TookS        float64 `json:"took_s"`
	Failure      *broken `json:"failure"`
}

type broken struct {
	Seed   uint64   `json:"seed"`
	Rule   string   `json:"rule"`
	Text   string   `json:"text"`
	Plan   []string `json:"plan"`
	Trace  []string `json:"trace"`
	Replay string   `json:"replay"`
}

func tellJSON(w io.Writer, c explore.Campaign, s explore.Summary) error {
	n := &s.Counts
	d := document{Profile: c.Profile, Nodes: c.Nodes, First: c.First, Seeds: s.Seeds, Tasks: n.Submitted, Instructions: n.Instructions,
		Attempts: n.Attempts, InThree: n.InThree, UnknownP99MS: n.Windows.Within(0.99).Milliseconds(),
		Executed: n.Executed, Confirmed: n.Confirmed, Duplicates: n.Duplicates, Faults: n.Faults, VirtualS: s.Virtual.Seconds(), TookS: s.Took.Seconds()}
	if f := s.Failure; f != nil {
		d.Failure = &broken{f.First.Options.Seed, f.First.Violation.Rule, f.First.Violation.Text, f.Small.Plan, f.Trace, f.Small.Replay()}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

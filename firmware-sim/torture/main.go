package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/trial"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx))
}

// options are the command line.
type options struct {
	only    map[string]bool
	sizes   sizes
	trouble string
	loss    int
	limit   time.Duration
	seed    uint64
	format  string
	plot    string
}

// partNames are the parts in the order in which they run.
var partNames = [...]string{"gateway", "agents", "link", "window", "leave", "restart", "outage", "order", "offs", "drain"}

func parse() (o options, err error) {
	only := flag.String("only", strings.Join(partNames[:], ","), "the parts to run")
	rounds := flag.Int("rounds", 0, "rounds of each part that has rounds: of eight commands in each case of order, kills of gateway and of agents, cuts of link (default: see sizes below)")
	offs := flag.Duration("for", 0, "how long offs goes on (default: see sizes below)")
	commands := flag.Int("commands", 0, "how many commands wait in drain (default: see sizes below)")
	short := flag.Bool("short", false, "about two minutes of everything")
	long := flag.Bool("long", false, "about an hour of everything: the sizes that are promised")
	flag.StringVar(&o.trouble, "trouble", "", "in offs, play only the kinds of trouble whose names contain this")
	flag.IntVar(&o.loss, "loss", 30, "packets lost on the link in each direction, in percent")
	flag.DurationVar(&o.limit, "limit", 2*time.Hour, "the longest that everything may take")
	flag.Uint64Var(&o.seed, "seed", 0, "decides when things happen; without it chance does")
	flag.StringVar(&o.format, "o", "text", "text or json")
	flag.StringVar(&o.plot, "plot", "", "only draw the end of an outage into this file (SVG)")
	flag.Usage = usage
	flag.Parse()
	o.only = map[string]bool{}
	for _, name := range strings.Split(*only, ",") {
		if !slices.Contains(partNames[:], name) {
			return o, fmt.Errorf("part %q is not known; there are %s", name, strings.Join(partNames[:], ", "))
		}
		o.only[name] = true
	}
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case flag.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: everything is given by flags", flag.Arg(0))
	case *short && *long:
		return o, errors.New("short and long exclude each other")
	case given["rounds"] && *rounds < 1, given["for"] && *offs < time.Second, given["commands"] && *commands < 100:
		return o, errors.New("rounds must be 1 at least, for 1s, commands 100")
	case o.loss < 0 || o.loss > 90 || o.limit <= 0:
		return o, errors.New("limit must be positive, loss 0 to 90")
	case o.format != "text" && o.format != "json":
		return o, fmt.Errorf("format %q is not known; there are text and json", o.format)
	case o.trouble != "" && !trial.HasTrouble(o.trouble):
		return o, fmt.Errorf("no kind of trouble has %q in its name; there are %s", o.trouble, strings.Join(trial.Troubles(), ", "))
	}
	if !given["seed"] {
		o.seed = rand.Uint64()
	}
	o.sizes = usual
	if *short {
		o.sizes = little
	}
	if *long {
		o.sizes = promised
	}
	o.sizes.override(*rounds, *offs, *commands)
	return o, nil
}

func run(ctx context.Context) int {
	o, err := parse()
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		return 2
	}
	if o.plot != "" {
		if err := plot(o.plot); err != nil {
			fmt.Fprintln(os.Stderr, "torture:", err)
			return 1
		}
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "apollo-torture-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // scratch
	began := time.Now()
	r := torture(ctx, o, dir)
	r.Took = time.Since(began)
	if err := r.write(os.Stdout, o.format); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		return 1
	}
	if !r.OK {
		return 1
	}
	return 0
}

package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx))
}

// options are the command line.
type options struct {
	only    map[string]bool
	rounds  int
	orders  int
	offs    time.Duration
	trouble string
	cuts    int
	loss    int
	limit   time.Duration
	seed    uint64
	format  string
	plot    string
	short   bool
}

// partNames are the parts in the order in which they run.
var partNames = [...]string{"gateway", "agents", "link", "window", "leave", "restart", "outage", "order", "offs", "drain"}

func parse() (o options, err error) {
	only := flag.String("only", strings.Join(partNames[:], ","), "the parts to run")
	flag.IntVar(&o.rounds, "rounds", 50, "kills of the gateway, and of agents")
	flag.IntVar(&o.orders, "orders", 200, "rounds of eight commands for one line, in each of its cases")
	flag.DurationVar(&o.offs, "offs", time.Minute, "how long one off a second goes through each kind of trouble")
	flag.StringVar(&o.trouble, "trouble", "", "of one off a second, play only the kinds of trouble whose names contain this")
	flag.IntVar(&o.cuts, "cuts", 10, "cuts of the link")
	flag.IntVar(&o.loss, "loss", 30, "packets lost on the link in each direction, in percent")
	flag.DurationVar(&o.limit, "limit", 30*time.Minute, "the longest that everything may take")
	flag.Uint64Var(&o.seed, "seed", rand.Uint64(), "decides when things happen")
	flag.StringVar(&o.format, "o", "text", "text or json")
	flag.StringVar(&o.plot, "plot", "", "only draw the end of an outage into this file (SVG)")
	flag.BoolVar(&o.short, "short", false, "a tenth of everything")
	flag.Parse()
	o.only = map[string]bool{}
	for _, name := range strings.Split(*only, ",") {
		o.only[name] = true
	}
	for name := range o.only {
		if !strings.Contains(","+strings.Join(partNames[:], ",")+",", ","+name+",") {
			return o, fmt.Errorf("part %q is not known; there are %s", name, strings.Join(partNames[:], ", "))
		}
	}
	if o.short {
		o.rounds, o.cuts, o.offs, o.orders = max(o.rounds/10, 1), max(o.cuts/5, 1), max(o.offs/5, time.Second), max(o.orders/20, 1)
	}
	switch {
	case flag.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: everything is given by flags", flag.Arg(0))
	case o.rounds < 1 || o.orders < 1 || o.offs < time.Second || o.cuts < 1 || o.loss < 0 || o.loss > 90 || o.limit <= 0:
		return o, fmt.Errorf("rounds, orders, offs, cuts and limit must be positive, loss 0 to 90")
	case o.format != "text" && o.format != "json":
		return o, fmt.Errorf("format %q is not known; there are text and json", o.format)
	}
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

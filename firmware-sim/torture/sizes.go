package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/trial"
)

// sizes are how much of each part is run.
type sizes struct {
	kills    int           // of the gateway, and of agents
	cuts     int           // of the link
	windows  int           // black holes of each kind
	leaves   int           // agents that stop, and that crash
	hangs    int           // that hang: 15 s each
	finished []int         // logs of which a gateway restarts, by what has ended in them
	restarts int           // of each log
	losses   int           // commands of which a third is lost, in virtual time
	orders   int           // rounds of eight commands for one line, in each case
	offs     time.Duration // with one off a second
	backlog  int           // commands of which the node comes back
}

// usual is what `make torture` takes, little a look whether all parts run, and promised
// what docs/performance.md says of the rule.
var (
	usual = sizes{kills: 30, cuts: 4, windows: 4, leaves: 5, hangs: 1, finished: []int{1_000, 90_000}, restarts: 3, losses: 10_000,
		orders: 20, offs: 3 * time.Minute, backlog: 6_000}
	little = sizes{kills: 4, cuts: 1, windows: 1, leaves: 1, hangs: 1, finished: []int{1_000}, restarts: 1, losses: 2_000,
		orders: 2, offs: 40 * time.Second, backlog: 500}
	promised = sizes{kills: 100, cuts: 10, windows: 12, leaves: 10, hangs: 3, finished: []int{1_000, 10_000, 90_000}, restarts: 5, losses: 10_000,
		orders: 200, offs: 10 * time.Minute, backlog: 10_000}
)

// override takes what was given; 0 was not.
func (s *sizes) override(rounds int, offs time.Duration, commands int) {
	if rounds > 0 {
		s.kills, s.cuts, s.orders = rounds, rounds, rounds
	}
	if offs > 0 {
		s.offs = offs
	}
	if commands > 0 {
		s.backlog = commands
	}
}

// partHelp says of each part what it is, and its size.
var partHelp = map[string]struct {
	what string
	size func(sizes) string
}{
	"gateway": {"the gateway is killed and started again under load", func(s sizes) string { return fmt.Sprintf("%d kills", s.kills) }},
	"agents":  {"agents are killed and started again under load", func(s sizes) string { return fmt.Sprintf("%d kills", s.kills) }},
	"link":    {"the link loses packets and is cut (root, iproute2, nftables)", func(s sizes) string { return fmt.Sprintf("%d cuts", s.cuts) }},
	"window":  {"how long a state is unknown while the primary path is dead", func(s sizes) string { return fmt.Sprintf("%d rounds", s.windows) }},
	"leave":   {"how soon the work of a stopped, crashed or hanging agent is free", func(s sizes) string { return fmt.Sprintf("%d, %d hang", s.leaves, s.hangs) }},
	"restart": {"how long a gateway with a long log takes to its first dispatch", func(s sizes) string { return fmt.Sprintf("%d logs, %d each", 3*len(s.finished), s.restarts) }},
	"outage":  {"the end of an outage, and messages lost, in virtual time", func(s sizes) string { return fmt.Sprintf("%d commands", s.losses) }},
	"order": {fmt.Sprintf("eight commands for one line and a fault amid them, %d cases", len(trial.OrderCases)),
		func(s sizes) string { return fmt.Sprintf("%d rounds", s.orders) }},
	"offs":  {"one off a second through two kinds of trouble at a time", func(s sizes) string { return s.offs.String() }},
	"drain": {"a backlog for a slow board, undisturbed and with a kill", func(s sizes) string { return fmt.Sprintf("%d commands", s.backlog) }},
}

// usage is the help.
func usage() {
	w := os.Stderr
	if len(os.Args) == 2 && strings.HasSuffix(os.Args[1], "help") {
		w = os.Stdout
	}
	fmt.Fprint(w, `torture is hard on the real programs, and counts what became of every command.

	go run ./firmware-sim/torture                               everything
	go run ./firmware-sim/torture -only order -rounds 200       one part, of this size
	go run ./firmware-sim/torture -only offs -for 10m
	go run ./firmware-sim/torture -only drain -commands 10000

Exit codes: 0 all limits hold, 1 one does not or a trial could not be run, 2 wrong usage.

Flags:
`)
	flag.CommandLine.SetOutput(w)
	flag.PrintDefaults()
	fmt.Fprintln(w, "\nParts, and their sizes: usual, with -short and with -long:")
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, name := range partNames {
		h := partHelp[name]
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", name, h.what, h.size(usual), h.size(little), h.size(promised))
	}
	_ = t.Flush() // to a terminal
	fmt.Fprintf(w, "\nKinds of trouble in offs: %s.\n", strings.Join(trial.Troubles(), ", "))
}

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx))
}

func run(ctx context.Context) int {
	rounds := flag.Int("rounds", 3, "rounds; each measures everything once, in turn")
	only := flag.String("only", "enqueue,latency,throughput", "what to measure")
	length := flag.Duration("length", 2*time.Second, "length of one rate measure")
	count := flag.Int("count", 1000, "commands of one latency measure")
	dir := flag.String("dir", "", "directory on the disk to measure (default: a temporary one)")
	format := flag.String("o", "text", "text or json")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 || *count < 10 || *format != "text" && *format != "json" {
		fmt.Fprintln(os.Stderr, "bench: wrong usage; see -help")
		return 2
	}
	base, err := os.MkdirTemp(*dir, "apollo-bench-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(base) }()
	r := newResults()
	for k := range *rounds {
		for _, m := range []struct {
			name string
			run  func() error
		}{
			{"enqueue", func() error { return enqueue(ctx, base, *length, r) }},
			{"latency", func() error { return latency(ctx, base, *count, r) }},
			{"throughput", func() error { return throughput(ctx, base, *length, r) }},
		} {
			if !slices.Contains(strings.Split(*only, ","), m.name) {
				continue
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", k+1, *rounds, m.name)
			if err := m.run(); err != nil {
				fmt.Fprintf(os.Stderr, "bench: %s: %v\n", m.name, err)
				return 1
			}
		}
	}
	if *format == "json" {
		if err := r.json(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			return 1
		}
		return 0
	}
	r.print(os.Stdout)
	return 0
}

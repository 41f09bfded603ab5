package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/apollo-11/apollo11/fieldagent"
	"github.com/apollo-11/apollo11/firmware-sim/fleet"
	"github.com/apollo-11/apollo11/gateway"
)

// durableSteps is how many times one command waits for a disk on its way: the
// submission and the result at the gateway, the start and the result at the
// agent.
const durableSteps = 4

// latency is T3, T4 and T5: one command in flight over the whole path with a
// real agent, against the same path without any log (a fleet node and a gateway
// that forgets), in units of f per durable step.
func latency(ctx context.Context, dir string, n int, r *results) error {
	sub, err := os.MkdirTemp(dir, "latency-")
	if err != nil {
		return err
	}
	floor, err := syncTimes(sub, 2*time.Second)
	if err != nil {
		return err
	}
	rawAck, rawEnd, err := bare(ctx, sub, n)
	if err != nil {
		return fmt.Errorf("without a log: %w", err)
	}
	ack, end, err := whole(ctx, sub, n)
	if err != nil {
		return fmt.Errorf("whole path: %w", err)
	}
	more, err := syncTimes(sub, 2*time.Second)
	if err != nil {
		return err
	}
	floor = append(floor, more...)
	f, f99 := quantile(floor, 0.5), quantile(floor, 0.99)
	r.time("f: fdatasync of a 256-byte append, p50", f)
	r.time("f99: the same, p99", f99)
	r.time("without any log, publish to settled, p50", quantile(rawEnd, 0.5))
	r.time("whole path, publish to settled, p50", quantile(end, 0.5))
	r.time("whole path, publish to settled, p99", quantile(end, 0.99))
	r.time("publish to PUBACK without a log, p50", quantile(rawAck, 0.5))
	r.time("publish to PUBACK, p50", quantile(ack, 0.5))
	steps := float64(quantile(end, 0.5)-quantile(rawEnd, 0.5)) / float64(f) / durableSteps
	r.ratio("T3 latency, p50: f per durable step", steps, aim{least: 2.5, aim: 1.5, lower: true})
	tail := float64(quantile(end, 0.99)-quantile(rawEnd, 0.99)) / float64(f99)
	r.ratio("T4 latency, p99: f99 for all steps", tail, aim{least: 5, aim: 4, lower: true})
	puback := float64(quantile(ack, 0.5)-quantile(rawAck, 0.5)) / float64(f)
	r.ratio("T5 publish to PUBACK, p50: f", puback, aim{least: 2.5, aim: 1.5, lower: true})
	return os.RemoveAll(sub)
}

// bare is the path without a log at either end.
func bare(ctx context.Context, dir string, n int) (acks, ends []time.Duration, err error) {
	s, err := startSite(ctx, filepath.Join(dir, "bare"), noLog{})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = first(err, s.close()) }()
	fl, err := fleet.Start(ctx, fleet.Options{Addr: s.g.Addr("mqtt").String(), Site: "default", Count: 1})
	if err != nil {
		return nil, nil, err
	}
	defer fl.Stop()
	return measure(s, fleet.Name(0), n)
}

// whole is the path as it is sold: a gateway with its log and an agent with its
// journal and simulated pins.
func whole(ctx context.Context, dir string, n int) (acks, ends []time.Duration, err error) {
	s, err := startSite(ctx, filepath.Join(dir, "whole"), nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = first(err, s.close()) }()
	cfg := fieldagent.DefaultConfig()
	cfg.Gateway = "tcp://" + s.g.Addr("mqtt").String()
	cfg.Narrowband = "tcp://" + s.g.Addr("narrowband").String()
	cfg.Node, cfg.GPIO, cfg.Data = "bench-agent", "sim", filepath.Join(dir, "agent")
	lg := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	a, err := fieldagent.New(cfg, "bench", lg)
	if err != nil {
		return nil, nil, err
	}
	actx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- a.Run(actx) }()
	defer func() { stop(); err = first(err, <-ended) }()
	return measure(s, "bench-agent", n)
}

func measure(s *site, node string, n int) (acks, ends []time.Duration, err error) {
	sc, err := dialScada(s.g.Addr("mqtt").String(), true)
	if err != nil {
		return nil, nil, err
	}
	defer sc.close()
	if _, _, err := sc.latencies(node, min(50, n)); err != nil { // warm up
		return nil, nil, err
	}
	return sc.latencies(node, n)
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// T6 by the design: one SCADA connection, 100 nodes, 256 commands in flight.
const (
	throughputNodes  = 100
	throughputWindow = 256
)

// throughput is T6: commands per second with one SCADA connection, against the
// same gateway without a log.
func throughput(ctx context.Context, dir string, d time.Duration, r *results) error {
	sub, err := os.MkdirTemp(dir, "throughput-")
	if err != nil {
		return err
	}
	free, err := commands(ctx, filepath.Join(sub, "free"), noLog{}, d)
	if err != nil {
		return fmt.Errorf("without a log: %w", err)
	}
	full, err := commands(ctx, filepath.Join(sub, "full"), nil, d)
	if err != nil {
		return fmt.Errorf("with the log: %w", err)
	}
	r.rate("T6 commands, 1 SCADA connection, 100 nodes: no log", free)
	r.rate("T6 commands, 1 SCADA connection, 100 nodes: gateway", full)
	r.ratio("T6 commands/s, of the same gateway without a log", full/free, aim{least: 0.6, aim: 0.85})
	return os.RemoveAll(sub)
}

func commands(ctx context.Context, dir string, log gateway.Log, d time.Duration) (rate float64, err error) {
	s, err := startSite(ctx, dir, log)
	if err != nil {
		return 0, err
	}
	defer func() { err = first(err, s.close()) }()
	fl, err := fleet.Start(ctx, fleet.Options{Addr: s.g.Addr("mqtt").String(), Site: "default", Count: throughputNodes})
	if err != nil {
		return 0, err
	}
	defer fl.Stop()
	sc, err := dialScada(s.g.Addr("mqtt").String(), true)
	if err != nil {
		return 0, err
	}
	defer sc.close()
	return sc.throughput(ctx, throughputNodes, throughputWindow, d)
}

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// enqueueWriters are the numbers of concurrent submitters of T1.
var enqueueWriters = []int{1, 16, 64, 256}

// enqueue is T1: durable submissions per second into the engine, against the
// disk's own bound for as many writers and against bare Pebble with three keys.
func enqueue(ctx context.Context, dir string, d time.Duration, r *results) error {
	args, err := wire.EncodeMap(wire.GPIOWrite{Pin: "GPIO17", Level: true}.Map(), wire.MaxArgsBytes)
	if err != nil {
		return err
	}
	for _, n := range enqueueWriters {
		sub, err := os.MkdirTemp(dir, "enqueue-")
		if err != nil {
			return err
		}
		bound, err := groupBound(sub, n, d)
		if err != nil {
			return fmt.Errorf("group-commit bound: %w", err)
		}
		bare, err := pebbleRate(sub, n, d)
		if err != nil {
			return fmt.Errorf("bare pebble: %w", err)
		}
		s, err := startSite(ctx, sub, nil)
		if err != nil {
			return err
		}
		rate, err := writers(n, d, func(int, int) error {
			spec := engine.Spec{Intent: wire.IntentGPIOWrite, Args: args, Nodes: []string{"away"}}
			reply, err := s.g.Submit(ctx, spec, engine.Source{Via: "bench", Actor: "bench"})
			if err == nil && reply.Accepted == nil {
				err = reply.Refused
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		if err := s.close(); err != nil {
			return err
		}
		r.rate(fmt.Sprintf("T1 enqueue, %d writers: bound", n), bound)
		r.rate(fmt.Sprintf("T1 enqueue, %d writers: bare Pebble", n), bare)
		r.rate(fmt.Sprintf("T1 enqueue, %d writers: gateway", n), rate)
		r.ratio(fmt.Sprintf("T1 enqueue, %3d writers, of the bound", n), rate/bound, aim{least: pick(n, 0.3), aim: 0.8})
		r.ratio(fmt.Sprintf("T1 enqueue, %3d writers, of bare Pebble", n), rate/bare, aim{least: 0.95, aim: 1})
		if err := os.RemoveAll(filepath.Clean(sub)); err != nil {
			return err
		}
	}
	return nil
}

// pick is the least that is accepted of the bound: less at 256 writers, where
// the bound is memory speed rather than the disk's.
func pick(n int, at256 float64) float64 {
	if n >= 256 {
		return at256
	}
	return 0.6
}

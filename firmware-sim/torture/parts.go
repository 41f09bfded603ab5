package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/outage"
	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/firmware-sim/torture/trial"
)

// work runs the parts one after the other.
type work struct {
	o options
	r report
}

// torture runs what was asked for.
func torture(ctx context.Context, o options, dir string) *report {
	w := &work{o: o}
	w.r.Seed, w.r.OK = o.seed, true
	fmt.Fprintf(os.Stderr, "seed %d\n", o.seed)
	bin, err := rig.Build(ctx, dir)
	if err != nil {
		w.failed("build", err)
		return &w.r
	}
	for k, part := range []func(context.Context, trial.Setup) error{w.gateway, w.agents, w.link, w.window, w.leave, w.restart, w.outage, w.order, w.offs, w.drain} {
		name := partNames[k]
		if !o.only[name] {
			continue
		}
		if ctx.Err() != nil {
			w.failed(name, fmt.Errorf("not begun, the time or the patience is over: %w", context.Cause(ctx)))
			continue
		}
		own, began := filepath.Join(dir, name), time.Now()
		err := os.Mkdir(own, 0o700)
		if err == nil {
			err = part(ctx, trial.Setup{Bin: bin, Dir: own, Seed: o.seed, Progress: progress()})
		}
		if err != nil {
			w.failed(name, err)
		}
		w.r.Parts = append(w.r.Parts, partTook{name, time.Since(began)})
	}
	return &w.r
}

func (w *work) failed(part string, err error) {
	w.r.OK = false
	w.r.Failures = append(w.r.Failures, part+": "+err.Error())
	fmt.Fprintf(os.Stderr, "%s: %v\n", part, err)
}

// progress prints at most a line a second. It may be called by several goroutines.
func progress() func(string, ...any) {
	var mu sync.Mutex
	var last time.Time
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) > time.Second {
			last = now
			fmt.Fprintf(os.Stderr, format+"\n", args...)
		}
	}
}

func (w *work) ok(ok bool) { w.r.OK = w.r.OK && ok }

func (w *work) gateway(ctx context.Context, u trial.Setup) error {
	r, err := trial.GatewayKills(ctx, u, w.o.sizes.kills)
	w.r.Tallies = append(w.r.Tallies, tallied{r.Tally, &r.Restart})
	w.ok(r.OK())
	return err
}

func (w *work) agents(ctx context.Context, u trial.Setup) error {
	r, err := trial.AgentKills(ctx, u, w.o.sizes.kills)
	w.r.Tallies = append(w.r.Tallies, tallied{r.Tally, &r.Restart})
	w.ok(r.OK())
	return err
}

func (w *work) link(ctx context.Context, u trial.Setup) error {
	if err := rig.Missing(ctx); err != nil {
		if os.Getenv("CI") == "true" {
			return err
		}
		w.r.Skipped = append(w.r.Skipped, "link: "+err.Error())
		return nil
	}
	r, err := trial.LossyLink(ctx, u, w.o.sizes.cuts, w.o.loss)
	w.r.Tallies = append(w.r.Tallies, tallied{r.Tally, nil})
	w.ok(r.OK())
	return err
}

// Numbers of the nodes in the part window, and of commands at once.
const (
	windowLanes = 6
	windowBurst = 4
)

func (w *work) window(ctx context.Context, u trial.Setup) error {
	var errs []error
	for k, of := range []struct {
		c     trial.Case
		burst int
	}{{trial.Before, 1}, {trial.Into, 1}, {trial.Into, windowBurst}} {
		v := u
		v.Dir = filepath.Join(u.Dir, fmt.Sprint(k))
		r, err := trial.Window(ctx, v, of.c, max(w.o.sizes.windows/of.burst, 1), windowLanes, of.burst)
		if err == nil {
			w.r.Windows = append(w.r.Windows, r)
			w.ok(r.OK())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (w *work) leave(ctx context.Context, u trial.Setup) error {
	r, err := trial.Leave(ctx, u, w.o.sizes.leaves, w.o.sizes.hangs)
	if err == nil {
		w.r.Leave = &r
		w.ok(r.OK())
	}
	return err
}

// restart goes through a grid of logs; the limit is that of the largest.
func (w *work) restart(ctx context.Context, u trial.Setup) error {
	for _, finished := range w.o.sizes.finished {
		for _, unfinished := range []int{1, 1_000, 10_000} {
			v := u
			v.Dir = filepath.Join(u.Dir, fmt.Sprintf("%d-%d", finished, unfinished))
			r, err := trial.Restart(ctx, v, trial.LogSize{Finished: finished, Unfinished: unfinished}, w.o.sizes.restarts)
			if err != nil {
				return err
			}
			w.r.Restarts = append(w.r.Restarts, r)
			w.ok(r.OK())
		}
	}
	return nil
}

func (w *work) outage(ctx context.Context, u trial.Setup) error {
	u.Progress("an hour without nodes, in virtual time")
	d := outage.Drain(outage.DefaultDrain())
	w.r.Drain = &d.Summary
	w.ok(d.Summary.OK())
	for _, narrow := range []bool{true, false} {
		l := outage.Loss(outage.LossOptions{Seed: w.o.seed, Nodes: 20, Commands: w.o.sizes.losses, Share: 0.3, Narrowband: narrow})
		w.r.Losses = append(w.r.Losses, l)
		w.ok(l.OK())
	}
	return ctx.Err()
}

// order plays its cases, so often that a rare moment is met.
func (w *work) order(ctx context.Context, u trial.Setup) error {
	list, err := trial.Orders(ctx, u, w.o.sizes.orders)
	w.r.Orders = list
	for _, r := range list {
		w.ok(r.OK())
	}
	return err
}

func (w *work) offs(ctx context.Context, u trial.Setup) error {
	r, err := trial.Offs(ctx, u, trial.OffsOptions{For: w.o.sizes.offs, Only: w.o.trouble})
	if err == nil {
		w.r.Offs = &r
		w.ok(r.OK())
	}
	return err
}

func (w *work) drain(ctx context.Context, u trial.Setup) error {
	r, err := trial.Drain(ctx, u, w.o.sizes.backlog)
	if err == nil {
		w.r.Backlog = &r
		w.ok(r.OK())
	}
	return err
}

// plot draws the drain, always the same.
func plot(file string) error {
	return os.WriteFile(file, outage.Drain(outage.DefaultDrain()).SVG(), 0o644)
}

package executor_test

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// A7: the card takes half a minute over the record of a start. The time of the work
// counts from when it begins, and not from before: it would be given up at once, with an
// outcome that nobody knows.
func TestA7_TheTimeOfWorkCountsFromItsBegin(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	in := b.instruction(1, "a")
	in.TimeoutMs = 1_000
	if out := b.receive(in); len(out.Start) != 1 {
		t.Fatalf("starts %v", out.Start)
	}
	b.mono += 30 * time.Second
	if b.core.TooLate(b.at(), token(1)) {
		t.Fatal("it has no limit, and is too late")
	}
	if out := b.step(executor.Tick{}); len(ends(out)) != 0 || len(out.Abort) != 0 {
		t.Errorf("given up as it begins: ends %v, aborts %v", ends(out), out.Abort)
	}
	b.mono += time.Second + executor.OverdueAfter
	if out := b.step(executor.Tick{}); len(ends(out)) != 1 || len(out.Abort) != 1 {
		t.Errorf("not given up when its time is over: ends %v, aborts %v", ends(out), out.Abort)
	}
}

// A7: a loop that has hung over its disk finds the end of a work behind something else.
// It is not given up before that was looked at.
func TestA7_WhatHasEndedWhileTheLoopHungIsNotGivenUp(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	in := b.instruction(1, "a")
	in.TimeoutMs = 1_000
	b.receive(in)
	b.mono += 30 * time.Second
	if out := b.step(executor.Hand{}); len(ends(out)) != 0 {
		t.Errorf("given up before its end was looked at: %v", ends(out))
	}
	if list := ends(b.finish(1, wire.CodeOK)); len(list) != 1 || list[1] != wire.CodeOK {
		t.Errorf("ends %v", list)
	}
}

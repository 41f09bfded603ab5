package round

import (
	"errors"
	"fmt"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/journal"
	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Limits of a round.
const (
	// maxInputs and maxBytes bound what is decided before one sync. What is towards
	// safe waits for no more than that.
	maxInputs = 256
	maxBytes  = 64 << 10
	// The journal is rewritten when it is larger than both.
	rewriteBytes  = 4 << 20
	rewriteFactor = 4
	// rewriteRetry is how much the journal grows before a rewrite that found no
	// room is tried again.
	rewriteRetry = 1 << 20
	// recordHead is more than what the journal adds to a record.
	recordHead = 8
)

// Recorder is the part of the journal that a round needs.
type Recorder interface {
	Append(records ...[]byte) error
	Rewrite(records [][]byte) error
	Size() int64
}

// Hands carry out what was decided. None of them blocks.
type Hands interface {
	// Contact tells the owner of the pins that the gateway works with this agent.
	Contact()
	// Start begins the execution of an attempt.
	Start(executor.Work)
	// Abort stops one that runs.
	Abort(wire.Token)
	// EndLease ends the lease of one that has ended, at the safe level.
	EndLease(wire.Token)
	// Hold tells the owner of the pins which lines the gateway has held.
	Hold([]wire.LineKey)
	// Fall sets outputs to their safe levels.
	Fall(executor.Fall)
	// Primary and Narrowband send on the two paths. They may lose it.
	Primary(wire.Message)
	Narrowband(wire.CompactAck)
	// Note is a line for the log.
	Note(executor.Note)
}

// Collect steps the core for an input and for everything that waits behind it,
// as far as one sync may carry it. next returns false when nothing waits. A tick comes
// last: what has waited while the loop hung may have ended what seems overdue.
func Collect(core *executor.Core, now func() executor.Now, in executor.Input, next func() (executor.Input, bool)) executor.Output {
	var all executor.Output
	bytes := 0
	_, tick := in.(executor.Tick)
	if tick {
		if first, more := next(); more {
			in = first
		} else {
			tick = false
		}
	}
	for n := 1; ; n++ {
		out := core.Step(now(), in)
		for _, r := range out.Records {
			bytes += len(r)
		}
		join(&all, out)
		if n >= maxInputs || bytes >= maxBytes || out.Stopped || out.Fatal != "" {
			return all
		}
		more := false
		if in, more = next(); more {
			continue
		}
		if !tick {
			return all
		}
		in, tick = executor.Tick{}, false
	}
}

// join adds a later output to all. Each kind keeps its order, and the kinds keep
// theirs.
func join(all *executor.Output, out executor.Output) {
	// As of the last step: what waited while the loop hung may begin with words of a
	// gateway that is gone by now, and end with the loss of its connection.
	all.Contact = out.Contact || all.Contact && mutant.On(mutant.ContactStale)
	all.Urgent = append(all.Urgent, out.Urgent...)
	all.Records = append(all.Records, out.Records...)
	all.Start = append(all.Start, out.Start...)
	all.Abort = append(all.Abort, out.Abort...)
	all.EndLease = append(all.EndLease, out.EndLease...)
	all.Hold = append(all.Hold, out.Hold...)
	all.Fall = max(all.Fall, out.Fall)
	all.Primary = append(all.Primary, out.Primary...)
	all.Narrowband = append(all.Narrowband, out.Narrowband...)
	all.Notes = append(all.Notes, out.Notes...)
	all.Deadline, all.Stopped, all.Fatal = out.Deadline, out.Stopped, out.Fatal
}

// Performer carries out what a core decides. It belongs to the core's goroutine.
type Performer struct {
	core      *executor.Core
	journal   Recorder
	hands     Hands
	now       func() executor.Now
	least     int64 // no smaller journal is rewritten
	rewriteAt int64
}

// New returns a performer for a core and its journal, which is rewritten when it
// is larger than rewriteAt bytes and four times what it needs; 0 means 4 MiB.
func New(core *executor.Core, j Recorder, h Hands, now func() executor.Now, rewriteAt int64) *Performer {
	if rewriteAt == 0 {
		rewriteAt = rewriteBytes
	}
	return &Performer{core: core, journal: j, hands: h, now: now, least: rewriteAt, rewriteAt: rewriteAt}
}

// Perform does what the core decided, in the order that the core's package
// documents: nothing happens before the records are durable, but what is towards
// safe. late are the works that it did not begin; if there are any, they are the
// core's next input.
func (p *Performer) Perform(out executor.Output) (late []wire.Token, err error) {
	if out.Contact {
		p.hands.Contact()
	}
	for _, w := range out.Urgent {
		p.hands.Start(w)
	}
	if mutant.On(mutant.ActsFirst) {
		p.act(out)
		out = executor.Output{Records: out.Records, Fatal: out.Fatal}
	}
	if mutant.On(mutant.NarrowbandFirst) {
		for _, a := range out.Narrowband {
			p.hands.Narrowband(a)
		}
		out.Narrowband = nil
	}
	if err := p.keep(out.Records); err != nil {
		return nil, fmt.Errorf("the agent stops, because it can't write down what it does: %w", err)
	}
	late = p.act(out)
	if out.Fatal != "" {
		return late, errors.New(out.Fatal)
	}
	return late, nil
}

func (p *Performer) act(out executor.Output) (late []wire.Token) {
	for _, w := range out.Start {
		if p.core.TooLate(p.now(), w.Token) {
			late = append(late, w.Token)
			continue
		}
		p.hands.Start(w)
	}
	for _, t := range out.Abort {
		p.hands.Abort(t)
	}
	for _, t := range out.EndLease {
		p.hands.EndLease(t)
	}
	if len(out.Hold) > 0 {
		p.hands.Hold(out.Hold)
	}
	if out.Fall != executor.FallNone {
		p.hands.Fall(out.Fall)
	}
	for _, m := range out.Primary {
		p.hands.Primary(m)
	}
	for _, a := range out.Narrowband {
		p.hands.Narrowband(a)
	}
	for _, n := range out.Notes {
		p.hands.Note(n)
	}
	return late
}

// keep makes records durable. The core's state contains them already, so a
// rewrite is as good as an append.
//
// The records of one step are one frame, which a power cut leaves whole or not at
// all, unless they are larger than MaxBatch less maxBytes. That a step can only be
// when it ends or tells very much at once (a full queue of an old copy, of another
// log, of the largest arguments); the core orders such records so that with any
// number of the first of them the journal is one to begin from.
func (p *Performer) keep(records [][]byte) error {
	for len(records) > 0 {
		n, bytes := 0, 0
		for n < len(records) && bytes+len(records[n])+recordHead <= journal.MaxBatch {
			bytes += len(records[n]) + recordHead
			n++
		}
		err := p.journal.Append(records[:n]...)
		if errors.Is(err, journal.ErrFull) {
			return p.journal.Rewrite(p.core.Snapshot())
		}
		if err != nil && !mutant.On(mutant.ErrorSwallowed) {
			return err
		}
		records = records[n:]
	}
	return p.shorten()
}

// shorten rewrites the journal when most of it is of no use any more.
func (p *Performer) shorten() error {
	size := p.journal.Size()
	if size <= p.rewriteAt {
		return nil
	}
	err := p.journal.Rewrite(p.core.Snapshot())
	if errors.Is(err, journal.ErrDead) {
		return err
	}
	if err != nil {
		p.rewriteAt = size + rewriteRetry
		p.hands.Note(executor.Note{Level: executor.LevelWarn, Text: "journal not shortened", Detail: fmt.Sprintf("%d bytes: %v", size, err)})
		return nil
	}
	p.rewriteAt = max(p.least, rewriteFactor*p.journal.Size())
	p.hands.Note(executor.Note{Text: "journal shortened", Detail: fmt.Sprintf("%d bytes, from %d", p.journal.Size(), size)})
	return nil
}

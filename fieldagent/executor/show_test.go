package executor_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// show performs an output on the world's journal and prints it, one line an
// effect, each with the time:
//
//	drive SEQ/ATTEMPT      what is towards safe, before it is written down
//	keep N records         start, abort SEQ/ATTEMPT
//	-> a message on the primary path
//	~> a frame on the narrowband path
//	log: what is worth a warning
func (w *world) show(out executor.Output) {
	w.deadline = out.Deadline
	w.journal = append(w.journal, out.Records...)
	line := func(format string, args ...any) {
		fmt.Fprintf(&w.out, "%-7s %s\n", short(w.uptime+w.mono), fmt.Sprintf(format, args...))
	}
	for _, s := range out.Urgent {
		line("drive %d/%d%s", s.Seq, s.Attempt, map[bool]string{true: " again"}[s.Again])
	}
	if n := len(out.Records); n > 0 {
		line("keep %d", n)
	}
	for _, s := range out.Start {
		line("start %d/%d", s.Seq, s.Attempt)
	}
	for _, t := range out.Abort {
		line("abort token %d", t.Seq)
	}
	for _, t := range out.EndLease {
		line("end the lease of token %d", t.Seq)
	}
	if len(out.Hold) > 0 {
		line("hold %d lines", len(out.Hold))
	}
	switch out.Fall {
	case executor.FallStop:
		line("fall: all outputs that have a safe level")
	}
	for _, m := range out.Primary {
		if _, err := wire.Encode(m); err != nil {
			w.t.Errorf("can't be sent: %v", err)
		}
		line("-> %s", w.message(m))
	}
	for _, a := range out.Narrowband {
		if _, err := a.Encode(); err != nil {
			w.t.Errorf("can't be sent: %v", err)
		}
		line("~> %d/%d %s", a.Seq, a.Attempt, a.Code)
	}
	for _, n := range out.Notes {
		if n.Level == executor.LevelWarn {
			line("log: %s: %s", n.Text, n.Detail)
		}
	}
	if out.Stopped {
		line("stopped")
	}
	if out.Fatal != "" {
		line("fatal: %s", out.Fatal)
	}
}

func (w *world) message(m wire.Message) string {
	var s strings.Builder
	switch m := m.(type) {
	case *wire.Hello:
		fmt.Fprintf(&s, "hello session %d, life %d, events %d to %d", m.Session, m.Incarnation-76, m.First, m.Next)
		if m.TopSeq > 0 {
			fmt.Fprintf(&s, ", seen %d and token %d", m.TopSeq, m.TopToken)
		}
		if off := time.Duration(m.Clock-w.gateway()) * time.Millisecond; off != 0 || !m.ClockSet {
			fmt.Fprintf(&s, ", clock %s, set: %v", w.clock(m.Clock), m.ClockSet)
		}
	case *wire.Event:
		w.newest = max(w.newest, m.Number)
		fmt.Fprintf(&s, "event %d: %d/%d %s", m.Number, m.Seq, m.Attempt, m.Phase)
		if m.Phase == wire.PhaseProcessed {
			fmt.Fprintf(&s, " %s", m.Code)
		}
		if m.Phase == wire.PhaseLease {
			fmt.Fprintf(&s, " %s", m.Lease)
		}
		if p, err := wire.DecodeMap(m.Payload); err != nil {
			w.t.Error(err)
		} else if m.Payload != nil {
			fmt.Fprintf(&s, " %v", p)
		}
		if m.Phase == wire.PhaseProgress && m.Payload == nil {
			fmt.Fprintf(&s, " %d %%", m.Percent)
		}
		fmt.Fprintf(&s, " (%s %s %s)", w.at(m.ReceivedAt), w.at(m.StartedAt), w.at(m.FinishedAt))
		if m.Detail != "" {
			fmt.Fprintf(&s, " %s", m.Detail)
		}
	case *wire.Heartbeat:
		fmt.Fprintf(&s, "heartbeat: %d running, %d queued, through %d", len(m.Running), m.Queued, m.Through)
		if m.Local {
			s.WriteString(", local")
		}
		for _, f := range m.Foreign {
			fmt.Fprintf(&s, ", %s is %d instead of %d", f.Pin, f.Found, f.Commanded)
		}
		if m.Clock != w.gateway() {
			fmt.Fprintf(&s, ", clock %s", w.clock(m.Clock))
		}
	case *wire.Digest:
		fmt.Fprintf(&s, "digest of %d, next event %d", m.Count, m.Next)
	case *wire.Report:
		s.WriteString("report:")
		for _, st := range m.States {
			fmt.Fprintf(&s, " %d token %d %s", st.Seq, st.Token.Seq, statusName(st.Status))
			if st.Status == wire.StatusDone {
				fmt.Fprintf(&s, " %s", st.Code)
			}
		}
	case *wire.Goodbye:
		s.WriteString("goodbye")
		for _, r := range m.Unstarted {
			fmt.Fprintf(&s, ", unstarted %d", r.Seq)
		}
	default:
		fmt.Fprintf(&s, "%T", m)
	}
	return s.String()
}

// clock prints how far an agent's time is from the true one.
func (w *world) clock(ms int64) string {
	if ms < wallAtStart/2 {
		return "of 1970"
	}
	d := time.Duration(ms-w.gateway()) * time.Millisecond
	if d < 0 {
		return short(d)
	}
	return "+" + short(d)
}

// at prints a time of an event as seconds since the first start.
func (w *world) at(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return short(time.Duration(ms-wallAtStart) * time.Millisecond)
}

func short(d time.Duration) string { return d.Round(time.Millisecond).String() }

func statusName(s wire.Status) string {
	switch s {
	case wire.StatusNever:
		return "never"
	case wire.StatusQueued:
		return "queued"
	case wire.StatusRunning:
		return "running"
	case wire.StatusFull:
		return "full"
	case wire.StatusDriven:
		return "driven"
	}
	return "done"
}

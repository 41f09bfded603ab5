package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/outage"
	"github.com/apollo-11/apollo11/firmware-sim/torture/trial"
)

// tallied is a tally with the time of its restarts.
type tallied struct {
	trial.Tally
	Restart *trial.Spread `json:"restart,omitempty"`
}

// partTook is how long a part took.
type partTook struct {
	Name string        `json:"name"`
	Took time.Duration `json:"took_ns"`
}

// report is everything that was found.
type report struct {
	Seed     uint64                `json:"seed"`
	OK       bool                  `json:"ok"`
	Took     time.Duration         `json:"took_ns"`
	Tallies  []tallied             `json:"tallies,omitempty"`
	Windows  []trial.WindowResult  `json:"windows,omitempty"`
	Leave    *trial.LeaveResult    `json:"leave,omitempty"`
	Restarts []trial.RestartResult `json:"restarts,omitempty"`
	Drain    *outage.DrainSummary  `json:"drain,omitempty"`
	Losses   []outage.LossResult   `json:"losses,omitempty"`
	Orders   []trial.OrderResult   `json:"orders,omitempty"`
	Offs     *trial.OffsResult     `json:"offs,omitempty"`
	Backlog  *trial.DrainResult    `json:"backlog,omitempty"`
	Parts    []partTook            `json:"parts,omitempty"`
	Skipped  []string              `json:"skipped,omitempty"`
	Failures []string              `json:"failures,omitempty"`
}

func (r *report) write(w io.Writer, format string) error {
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	p := &printer{w: w}
	p.tallies(r.Tallies)
	p.windows(r.Windows)
	p.leave(r.Leave)
	p.restarts(r.Restarts)
	p.outages(r.Drain, r.Losses)
	p.orders(r.Orders)
	p.offs(r.Offs)
	p.backlog(r.Backlog)
	for _, s := range r.Skipped {
		p.line("\nleft out: %s", s)
	}
	for _, f := range r.Failures {
		p.line("\nFAILED: %s", f)
	}
	if len(r.Parts) > 1 {
		var list []string
		for _, t := range r.Parts {
			list = append(list, fmt.Sprintf("%s %.0f s", t.Name, t.Took.Seconds()))
		}
		p.line("\n%s", strings.Join(list, ", "))
	}
	verdict := "nothing lost, nothing twice, nothing late; all limits hold"
	if !r.OK {
		verdict = "NOT as promised, see above"
	}
	p.line("\n%s (seed %d, %v)", verdict, r.Seed, r.Took.Round(time.Second))
	return p.err
}

// printer writes lines and remembers the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format+"\n", args...); p.err == nil {
		p.err = err
	}
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAILED"
}

func ms(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d.Microseconds())/1000) }

func (p *printer) tallies(list []tallied) {
	if len(list) == 0 {
		return
	}
	p.line("\n%-15s %6s %9s %6s %8s %9s %7s %7s %10s %7s | %5s %4s %4s %9s %5s | %6s  %s", "trial", "rounds", "submitted", "acked",
		"executed", "confirmed", "expired", "unknown", "superseded", "retried", "twice", "lost", "late", "overtaken", "false", "time", "")
	for _, t := range list {
		p.line("%-15s %6d %9d %6d %8d %9d %7d %7d %10d %7d | %5d %4d %4d %9d %5d | %4.0f s  %s", t.Name, t.Rounds, t.Submitted, t.Acknowledged,
			t.Executed, t.Confirmed, t.Expired, t.Unknown, t.Superseded, t.Retried, t.Duplicated, t.Lost, t.Late, t.Overtaken, t.False, t.Took.Seconds(), verdict(t.OK()))
		for _, f := range t.Faults {
			p.line("    %s", f)
		}
	}
	for _, t := range list {
		if t.Restart != nil && t.Restart.Count > 0 {
			p.line("%-15s back after %s (median), %s at most", t.Name, ms(t.Restart.Median), ms(t.Restart.Most))
		}
	}
}

func (p *printer) windows(list []trial.WindowResult) {
	if len(list) == 0 {
		return
	}
	p.line("\n%-28s %5s %8s %8s %8s %8s  %-16s", "state unknown, path dead", "count", "least", "median", "p99", "most", "histogram's p99")
	for _, r := range list {
		s := r.Window
		what := "command " + string(r.Case)
		if r.Burst > 1 {
			what = fmt.Sprintf("%d at once %s", r.Burst, r.Case)
		}
		p.line("%-28s %5d %8s %8s %8s %8s  <= %-13s  %s", what, s.Count, ms(s.Least), ms(s.Median), ms(s.P99), ms(s.Most),
			fmt.Sprintf("%g s", r.P99Bucket), verdict(r.OK()))
	}
}

func (p *printer) leave(r *trial.LeaveResult) {
	if r == nil {
		return
	}
	p.line("\n%-40s %5s %8s %8s   %s", "an agent leaves", "count", "median", "most", "limit")
	for _, l := range []struct {
		name  string
		s     trial.Spread
		limit time.Duration
	}{
		{"stopped: its waiting work queued again", r.Stop, trial.StopLimit},
		{"killed: its node offline", r.Crash, trial.CrashLimit},
		{"hangs: its node offline", r.Hang, trial.HangLimit},
	} {
		p.line("%-40s %5d %8s %8s   %v  %s", l.name, l.s.Count, ms(l.s.Median), ms(l.s.Most), l.limit, verdict(l.s.Most < l.limit))
	}
}

func (p *printer) restarts(list []trial.RestartResult) {
	if len(list) == 0 {
		return
	}
	p.line("\n%10s %11s %9s   %-26s %12s", "finished", "unfinished", "on disk", "start to first dispatch,", "processor")
	p.line("%10s %11s %9s   %-26s %12s", "", "", "", "median and most", "time, median")
	for _, r := range list {
		p.line("%10d %11d %5.0f MiB   %10s %10s      %12s  %s", r.Finished, r.Unfinished, r.DiskMiB, ms(r.Dispatch.Median), ms(r.Dispatch.Most),
			ms(r.CPU.Median), verdict(r.OK()))
	}
}

func (p *printer) outages(d *outage.DrainSummary, losses []outage.LossResult) {
	if d != nil {
		p.line("\nafter an hour's outage %d commands for %d nodes went out in %v: %d in the first second, %d/s after that at most; urgent first: %v  %s",
			d.Commands, d.Nodes, d.Took.Round(time.Second), d.FirstSecond, d.MostLater, d.Ordered, verdict(d.OK()))
	}
	for _, l := range losses {
		p.line("%s", l.String()+"  "+verdict(l.OK()))
	}
}

func (p *printer) orders(list []trial.OrderResult) {
	if len(list) == 0 {
		return
	}
	p.line("\n%-38s %6s %8s %8s %10s %7s %5s | %9s %7s %5s %5s %9s | %6s", "order at a line", "rounds", "commands", "executed", "superseded", "unknown", "met", "overtaken", "missing", "twice", "false", "wrong end", "time")
	for _, r := range list {
		p.line("%-38s %6d %8d %8d %10d %7d %5d | %9d %7d %5d %5d %9d | %4.0f s  %s", r.Name, r.Rounds, r.Commands, r.Executed, r.Superseded, r.Unknown,
			r.Met, r.Overtaken, r.Missing, r.Twice, r.False, r.WrongEnd, r.Took.Seconds(), verdict(r.OK()))
		for _, f := range r.Faults {
			p.line("    %s", f)
		}
	}
}

func (p *printer) offs(r *trial.OffsResult) {
	if r == nil {
		return
	}
	p.line("\n%-30s %5s %8s %7s %8s %8s %5s %7s %8s %8s | %4s %4s %5s %6s", "one off a second", "offs", "found on", "in time", "median", "most", "away", "alarmed", "longest", "alarm",
		"late", "mute", "risen", "untold")
	for _, c := range append([]trial.OffsCount{r.All}, r.Kinds...) {
		p.line("%-30s %5d %8d %7d %8s %8s %5d %7d %8s %8s | %4d %4d %5d %6d  %s", c.Name, c.Offs, c.Met, c.InTime, ms(c.Reach.Median), ms(c.Reach.Most), c.Away, c.Alarmed,
			ms(c.Longest), ms(c.Alarm), c.Late, c.Mute, c.Risen, c.Untold, verdict(c.OK()))
	}
	for _, s := range r.Skipped {
		p.line("left out: %s", s)
	}
	for _, f := range r.Faults {
		p.line("    %s", f)
	}
}

func (p *printer) backlog(r *trial.DrainResult) {
	if r == nil {
		return
	}
	p.line("\n%d commands for %d lines of one slow board: %.0f/s, with a kill of its agent in the middle %.0f/s, which is %.2f (at least %.2f of a large one), after %v without a move; "+
		"%d without room, %d wrong, %d overtaken, %d twice, %d superseded and %d unknown by the kill  %s", r.Commands, r.Lines, r.Undisturbed, r.Killed,
		r.Ratio, trial.DrainRatio, r.Gap.Round(time.Millisecond), r.NoRoom, r.Wrong, r.Overtaken, r.Twice, r.Superseded, r.Unknown, verdict(r.OK()))
	for _, f := range r.Faults {
		p.line("    %s", f)
	}
}

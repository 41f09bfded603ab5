package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// writer builds the readable form of what an engine does. Times are seconds
// since the start of the script; tokens are #sequence, their random part is left
// out.
type writer struct {
	strings.Builder
	base int64 // Unix ms that is shown as 0
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *writer) at(ms int64) string { return fmt.Sprintf("%.3fs", float64(ms-w.base)/1000) }

func token(t wire.Token) string {
	if t.IsZero() {
		return "-"
	}
	return fmt.Sprintf("#%d", t.Seq)
}

// opt writes k=v when v is not the zero value.
func opt[T comparable](k string, v T) string {
	var zero T
	if v == zero {
		return ""
	}
	return fmt.Sprintf(" %s=%v", k, v)
}

func fields(m wire.RawMap) string {
	if m == nil {
		return ""
	}
	v, err := wire.DecodeMap(m)
	if err != nil {
		return err.Error()
	}
	parts := make([]string, 0, len(v))
	for _, k := range slices.Sorted(maps.Keys(v)) {
		parts = append(parts, fmt.Sprintf("%s:%v", k, v[k]))
	}
	return strings.Join(parts, ",")
}

func (w *writer) ready(r *engine.Ready, now engine.Now) {
	w.records(&r.Records)
	w.effects(&r.Effects)
	if r.Deadline != 0 {
		w.line("wake in %.3fs", (r.Deadline - now.Mono).Seconds())
	}
}

func (w *writer) records(r *engine.Records) {
	for _, t := range r.Tasks {
		w.line("task %s first=%d count=%d from=%s", t.ID, t.First, t.Count, t.Source.Actor)
	}
	for _, i := range r.Instructions {
		w.write(&i)
	}
	for _, first := range r.Opened {
		w.line("opened %d", first)
	}
	for _, first := range r.Closed {
		w.line("closed %d", first)
	}
	for _, n := range r.Nodes {
		w.line("node %s incarnation=%d", n.ID, n.Incarnation)
	}
	for _, c := range r.Cursors {
		w.line("cursor %s %d/%d", c.Node, c.Incarnation, c.Last)
	}
	for _, m := range r.Marks {
		w.line("mark %s/%d is %s", m.Client, m.PacketID, m.TaskID)
	}
	for _, d := range r.DeadLetters {
		w.line("dead letter %d %s from %s: %s (%d bytes)", d.Number, d.Kind, d.From, d.Reason, len(d.Raw))
	}
	for _, n := range r.Dropped {
		w.line("dead letter %d is forgotten", n)
	}
	for _, a := range r.Audits {
		w.line("%s", w.audit(a))
	}
	if q := r.Quiet; q != nil && q.On {
		w.line("quiet from %s until %s by %s: %s", w.at(q.Since), w.at(q.Until), q.By, q.Reason)
	} else if q != nil {
		w.line("quiet off")
	}
	for _, h := range r.Holds {
		w.line("hold %s all=%v pins=%v except=%v", h.Node, h.All, h.Pins, h.Except)
	}
	if v := r.Reserved; v != nil {
		w.line("reserved up to %d, #%d", v.Seq, v.Token)
	}
	if m := r.Moved; m != nil {
		w.line("the counters were moved by %d in all", m.Sum)
	}
}

func (w *writer) audit(a engine.Audit) string {
	return fmt.Sprintf("audit %d %s %s by %s (%s)", a.Number, w.at(a.At), a.Action, a.Actor, a.Path) +
		opt("on", a.Subject) + opt("note", a.Note)
}

func (w *writer) write(x *engine.Write) {
	i := &x.Instruction
	w.line("%s%s%s", w.instruction(i), opt("node", i.Node), [...]string{"", ", into the queue", ", out of the queue"}[x.Queue])
	for _, e := range x.Entries {
		step := e.From.String() + ">" + e.To.String()
		if e.From == e.To {
			step = e.To.String()
		}
		s := fmt.Sprintf("    %s %s %s a%d %s %s", w.at(e.At), e.What, step, e.Attempt, token(e.Token), e.Path)
		s += opt("by", e.Actor) + opt("event", e.Event)
		if e.Code != wire.CodeNone {
			s += " code=" + e.Code.String()
		}
		if e.AgentAt != 0 {
			s += " agent=" + w.at(e.AgentAt)
		}
		if e.DurationMs != 0 {
			s += fmt.Sprintf(" took=%dms", e.DurationMs)
		}
		if e.Implied {
			s += " implied"
		}
		if e.Detail != "" {
			s += fmt.Sprintf(" %q", e.Detail)
		}
		w.line("%s", s)
	}
}

// instruction is one line of an instruction's whole state.
func (w *writer) instruction(i *engine.Instruction) string {
	s := fmt.Sprintf("instruction %d v%d %v", i.Seq, i.Version, i.State)
	s += opt("reason", i.Reason)
	if i.Attempt != 0 {
		s += fmt.Sprintf(" a%d %s sends=%d", i.Attempt, token(i.Token), i.Sends)
	}
	if i.Code != wire.CodeNone {
		s += " code=" + i.Code.String()
	}
	if i.Path != engine.PathNone {
		s += " path=" + i.Path.String()
	}
	for _, t := range []struct {
		name string
		at   int64
	}{{"received", i.ReceivedAt}, {"started", i.StartedAt}, {"finished", i.FinishedAt}, {"retry", i.RetryAt}} {
		if t.at != 0 {
			s += " " + t.name + "=" + w.at(t.at)
		}
	}
	s += opt("retries", i.Retries) + opt("payload", fields(i.Payload)) + opt("cancel_by", i.CancelBy) + opt("order", i.Order) + opt("by", i.By) + opt("same", i.Same)
	if i.Begun && i.By != 0 {
		s += " begun"
	}
	if l := i.Lease; l != nil {
		s += " lease=" + l.Pin
		if l.Until != 0 {
			s += " until=" + w.at(l.Until)
		}
		if l.End != 0 {
			s += " ended=" + w.at(l.EndedAt) + "," + l.End.String()
		}
	}
	s += opt("progress", i.Progress) + opt("unlisted", i.Unlisted)
	if i.Operator {
		s += " operator"
	}
	return s
}

func (w *writer) effects(f *engine.Effects) {
	for _, r := range f.Replies {
		w.line("-> reply %v", reply(r))
	}
	for _, s := range f.Sends {
		w.line("-> send %s %s", s.Node, w.message(s.Msg))
	}
	for _, s := range f.Statuses {
		state, counts := engine.Summarize(s.Instructions)
		versions := make([]string, 0, len(s.Instructions))
		for _, i := range s.Instructions {
			versions = append(versions, fmt.Sprintf("v%d", i.Version))
		}
		total := 0
		for _, c := range counts {
			total += c
		}
		text := strings.Join(versions, " ")
		if len(versions) > 5 {
			text = strings.Join(versions[:5], " ") + " ..."
		}
		w.line("-> status %s %v of %d %s", s.Task.ID, state, total, text)
	}
	for _, n := range f.Nodes {
		w.line("-> node %s", node(n))
	}
	for _, a := range f.Alarms {
		verb := "cleared"
		if a.Raised {
			verb = "raised"
		}
		w.line("-> alarm %s %s %s %s", verb, a.Kind, a.Subject, a.Text)
	}
	for _, p := range f.Pins {
		if p.Lease != nil {
			w.line("-> pin %s/%s of %s lease %s", p.Node, p.Pin, p.Task, p.Lease.End)
		} else {
			w.line("-> pin %s/%s of %s edges %v", p.Node, p.Pin, p.Task, fields(p.Edges))
		}
	}
	for _, c := range f.Compacts {
		w.line("-> narrowband %s %s", c.Short, frame(c.Frame))
	}
	for _, c := range f.Confirms {
		if c.Window != 0 { // in most scripts the answer comes at once
			w.line("-> known by %s after %v", c.Path, c.Window.Round(time.Millisecond))
		}
	}
}

func node(n engine.NodeState) string {
	s := n.Node.ID + " offline"
	if n.Online {
		s = n.Node.ID + " online"
	}
	if n.Reason != "" {
		s += fmt.Sprintf(" (%s)", n.Reason)
	}
	s += fmt.Sprintf(" queued=%d flying=%d running=%d", n.Queued, n.Flying, n.Running)
	if n.Local {
		s += " local"
	}
	for _, l := range n.Levels {
		s += fmt.Sprintf(" %s=%d", l.Pin, l.Level)
		if l.Expected != 0 {
			s += fmt.Sprintf("(expected %d)", l.Expected)
		}
	}
	if n.Twin {
		s += " twin"
	}
	for _, f := range n.Foreign {
		s += " foreign=" + f.Pin
	}
	return s
}

func reply(r engine.Reply) string {
	if _, ok := r.To.(string); !ok {
		r.To = "client" // a function's address is no part of a trace
	}
	switch {
	case r.Accepted != nil:
		a := r.Accepted
		s := fmt.Sprintf("%v accepted %s on %d nodes", r.To, a.TaskID, len(a.Nodes))
		if a.Existing {
			s += ", existing"
		}
		for _, warning := range a.Warnings {
			s += "; warning: " + warning
		}
		if a.SupersededCount > 0 {
			s += fmt.Sprintf("; stands for %d: %s", a.SupersededCount, strings.Join(a.Superseded, " "))
		}
		return s
	case r.Cancelled != nil:
		c := r.Cancelled
		return fmt.Sprintf("%v cancel %s: done %d, asked %d, final %d", r.To, c.TaskID, c.Done, c.Asked, c.Final)
	}
	if r.Done != nil {
		return fmt.Sprintf("%v done %s%s: %s", r.To, r.Done.Action, opt("on", r.Done.Subject), r.Done.Text)
	}
	return fmt.Sprintf("%v refused (%d): %v", r.To, r.Refused.Kind, r.Refused)
}

func frame(f engine.CompactFrame) string {
	switch f := f.(type) {
	case wire.CompactQuery:
		return fmt.Sprintf("query %d a%d", f.Seq, f.Attempt)
	case wire.CompactCancel:
		return fmt.Sprintf("cancel %d a%d", f.Seq, f.Attempt)
	case wire.CompactSafe:
		return fmt.Sprintf("safe %d line=%04x", f.Seq, f.Line)
	}
	return fmt.Sprintf("%T", f)
}

func (w *writer) message(m wire.Message) string {
	switch m := m.(type) {
	case *wire.Instruction:
		s := fmt.Sprintf("instruction %d a%d %s %s", m.Seq, m.Attempt, token(m.Token), m.Intent)
		if m.NotAfter != 0 {
			s += " not_after=" + w.at(m.NotAfter)
		}
		s += opt("order", m.Order)
		if m.Keep {
			s += " keep"
		}
		if m.Throws == wire.ThrownSince {
			s += " thrown"
		} else {
			s += opt("throws", m.Throws)
		}
		if m.EndsBy != 0 {
			s += " ends_by=" + w.at(m.EndsBy)
		}
		return s + opt("resend", m.Resend) + opt("through", m.Through)
	case *wire.Release:
		return fmt.Sprintf("release %d", m.Seq)
	case *wire.Cancel:
		return fmt.Sprintf("cancel %d %s %q", m.Seq, token(m.Token), m.Reason) + opt("through", m.Through)
	case *wire.Query:
		s := "query"
		for _, r := range m.Refs {
			s += fmt.Sprintf(" %d%s", r.Seq, token(r.Token))
		}
		return s + opt("through", m.Through)
	case *wire.Welcome:
		return fmt.Sprintf("welcome session=%d through=%d", m.Session, m.Through) + opt("refused", m.Refused) + opt("holds", len(m.Holds))
	case *wire.EventAck:
		s := fmt.Sprintf("event_ack through=%d", m.Through)
		if m.Gap {
			s += " gap"
		}
		return s
	}
	return fmt.Sprintf("%T", m)
}

// seconds prints a duration for a heading.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

package api

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

// maxScan bounds how many tasks one request looks at when it filters by state:
// the client goes on with the next page, and no request reads the whole log.
const maxScan = 2000

// readAtOnce is how many tasks are taken from the log together: each may have a
// thousand instructions of about a kilobyte.
const readAtOnce = 25

// taskID reads the id in the path. false: it was answered.
func (d *door) taskID(w http.ResponseWriter, r *http.Request) (string, bool) {
	id := r.PathValue("task_id")
	if err := wire.CheckTaskID(id); err != nil {
		d.bad(w, r, "task_id", err.Error(), "")
		return "", false
	}
	return id, true
}

// list is GET /v1/tasks.
func (d *door) list(w http.ResponseWriter, r *http.Request) {
	q, ok := d.query(w, r, "limit", "before", "state")
	if !ok {
		return
	}
	limit, ok := d.number(w, r, q, "limit", defaultLimit, 1, maxLimit)
	if !ok {
		return
	}
	before, ok := d.number(w, r, q, "before", 0, 0, math.MaxInt64)
	if !ok {
		return
	}
	want := q.Get("state")
	if _, known := engine.ParseState(want); !known && q.Has("state") {
		d.bad(w, r, "state", fmt.Sprintf("is %q, not a state", clip(want)),
			"states are PENDING, DISPATCHED, RUNNING, SUCCEEDED, FAILED, RETRYING, CANCELLED, TIMEOUT")
		return
	}
	out, err := d.page(r.Context(), before, int(limit), want)
	if err != nil {
		d.unread(w, r, err)
		return
	}
	send(w, http.StatusOK, out)
}

// page collects tasks in a state (empty: in any) until it has limit of them
// or has looked at maxScan.
func (d *door) page(ctx context.Context, before uint64, limit int, want string) (TaskList, error) {
	out := TaskList{Tasks: []scada.TaskView{}, Next: before}
	for scanned := 0; scanned < maxScan; {
		some, next, err := d.r.Tasks(ctx, out.Next, readAtOnce)
		if err != nil {
			return TaskList{}, err
		}
		for _, t := range some {
			if len(out.Tasks) == limit {
				return out, nil // Next is the last one looked at
			}
			if v := scada.NewTaskView(d.o.Site, t.Task, t.Instructions, false); want == "" || v.State == want {
				out.Tasks = append(out.Tasks, v)
			}
			out.Next = t.Task.First
		}
		out.Next = next
		scanned += len(some)
		if next == 0 || len(some) == 0 || len(out.Tasks) == limit {
			break
		}
	}
	return out, nil
}

// task is GET /v1/tasks/{task_id}.
func (d *door) task(w http.ResponseWriter, r *http.Request) {
	if _, ok := d.query(w, r); !ok {
		return
	}
	id, ok := d.taskID(w, r)
	if !ok {
		return
	}
	t, found, err := d.r.Task(r.Context(), id)
	switch {
	case err != nil:
		d.unread(w, r, err)
	case !found:
		d.missing(w, r, "task "+id, "see the list of tasks at /v1/tasks")
	default:
		v := scada.NewTaskView(d.o.Site, t.Task, t.Instructions, true)
		if err := d.waits(r, &v); err != nil {
			d.unread(w, r, err)
			return
		}
		send(w, http.StatusOK, v)
	}
}

// waits adds what unfinished instructions wait for.
func (d *door) waits(r *http.Request, v *scada.TaskView) error {
	var open []uint64
	for _, in := range v.Instructions {
		if !in.Settled {
			open = append(open, in.Seq)
		}
	}
	if len(open) == 0 {
		return nil
	}
	list, err := d.b.Waits(r.Context(), open)
	for k := range v.Instructions {
		v.Instructions[k].Waits = list[v.Instructions[k].Seq]
	}
	return err
}

func (d *door) missing(w http.ResponseWriter, r *http.Request, what, hint string) {
	d.fail(w, r, http.StatusNotFound, Fault{Code: "not_found", Message: what + " is not known", Hint: hint})
}

// timeline is GET /v1/instructions/{instruction}/timeline.
func (d *door) timeline(w http.ResponseWriter, r *http.Request) {
	if _, ok := d.query(w, r); !ok {
		return
	}
	in, entries, ok := d.instruction(w, r)
	if !ok {
		return
	}
	out := Timeline{Instruction: scada.NewInstructionView(d.o.Site, in), Entries: make([]scada.EntryView, len(entries))}
	for k, e := range entries {
		out.Entries[k] = scada.NewEntryView(in.Node, e)
	}
	send(w, http.StatusOK, out)
}

// instruction reads the instruction that the path names, by its id or by its
// sequence number, with its history. false: it was answered.
func (d *door) instruction(w http.ResponseWriter, r *http.Request) (engine.Instruction, []engine.Entry, bool) {
	text := r.PathValue("instruction")
	seq, err := strconv.ParseUint(text, 10, 64)
	whole := err == nil
	if !whole {
		key, err := wire.ParseKey(text)
		if err != nil {
			d.bad(w, r, "instruction", err.Error(), "give an instruction id in full, or its sequence number")
			return engine.Instruction{}, nil, false
		}
		seq = key.Seq
	}
	in, entries, found, err := d.r.Timeline(r.Context(), seq)
	if err != nil {
		d.unread(w, r, err)
		return in, nil, false
	}
	// The sequence alone may belong to an instruction of another site or log.
	if !found || !whole && in.Key(d.o.Site) != text {
		d.missing(w, r, "instruction "+text, "see the instructions of a task at /v1/tasks/{task_id}")
		return in, nil, false
	}
	return in, entries, true
}

// after reads the parameters of a list in rising order. false: it was answered.
func (d *door) after(w http.ResponseWriter, r *http.Request, q url.Values) (after uint64, limit int, ok bool) {
	n, ok := d.number(w, r, q, "limit", defaultLimit, 1, maxLimit)
	if !ok {
		return 0, 0, false
	}
	after, ok = d.number(w, r, q, "after", 0, 0, math.MaxInt64)
	return after, int(n), ok
}

// queue is GET /v1/queue.
func (d *door) queue(w http.ResponseWriter, r *http.Request) {
	q, ok := d.query(w, r, "limit", "after")
	if !ok {
		return
	}
	after, limit, ok := d.after(w, r, q)
	if !ok {
		return
	}
	list, next, err := d.r.Queue(r.Context(), after, limit)
	if err != nil {
		d.unread(w, r, err)
		return
	}
	out := Queue{Instructions: make([]scada.InstructionView, len(list)), Next: next}
	for k, in := range list {
		out.Instructions[k] = scada.NewInstructionView(d.o.Site, in)
	}
	send(w, http.StatusOK, out)
}

// nodes is GET /v1/nodes.
func (d *door) nodes(w http.ResponseWriter, r *http.Request) {
	if _, ok := d.query(w, r); !ok {
		return
	}
	list, err := d.b.Nodes(r.Context())
	if err != nil {
		d.unread(w, r, err)
		return
	}
	out := NodeList{Nodes: make([]scada.NodeView, len(list))}
	for k, n := range list {
		out.Nodes[k] = d.nodeView(n)
	}
	send(w, http.StatusOK, out)
}

// node is GET /v1/nodes/{node}.
func (d *door) node(w http.ResponseWriter, r *http.Request) {
	if _, ok := d.query(w, r); !ok {
		return
	}
	id := r.PathValue("node")
	if err := wire.CheckNode(id); err != nil {
		d.bad(w, r, "node", err.Error(), "")
		return
	}
	list, err := d.b.Nodes(r.Context())
	if err != nil {
		d.unread(w, r, err)
		return
	}
	for _, n := range list {
		if n.Node.ID == id {
			d.nodeDetail(w, r, n)
			return
		}
	}
	d.missing(w, r, "node "+id, "a node is known once it has connected; see /v1/nodes")
}

func (d *door) nodeView(n engine.NodeState) scada.NodeView {
	return scada.NewNodeView(n.Node, scada.PresenceOf(n), d.o.Now().UnixMilli())
}

// nodeDetail answers with a node and the alarms that speak of it.
func (d *door) nodeDetail(w http.ResponseWriter, r *http.Request, n engine.NodeState) {
	standing, recent, err := d.b.Alarms(r.Context())
	if err != nil {
		d.unread(w, r, err)
		return
	}
	about := func(a engine.Alarm) bool {
		return a.Subject == n.Node.ID || n.Node.Short != "" && a.Subject == n.Node.Short
	}
	send(w, http.StatusOK, NodeDetail{NodeView: d.nodeView(n), InFlight: n.Flying,
		Standing: alarmList(standing, about), Recent: alarmList(recent, about)})
}

// alarms is GET /v1/alarms.
func (d *door) alarms(w http.ResponseWriter, r *http.Request) {
	if _, ok := d.query(w, r); !ok {
		return
	}
	standing, recent, err := d.b.Alarms(r.Context())
	if err != nil {
		d.unread(w, r, err)
		return
	}
	all := func(engine.Alarm) bool { return true }
	send(w, http.StatusOK, Alarms{Standing: alarmList(standing, all), Recent: alarmList(recent, all)})
}

func alarmList(list []engine.Alarm, keep func(engine.Alarm) bool) []Alarm {
	out := []Alarm{}
	for _, a := range list {
		if keep(a) {
			out = append(out, Alarm{Alarm: a.Kind, Subject: a.Subject, Detail: a.Text, Raised: stamp(a.At)})
		}
	}
	return out
}

package api

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"unicode/utf8"

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
		send(w, http.StatusOK, scada.NewTaskView(d.o.Site, t.Task, t.Instructions, true))
	}
}

func (d *door) missing(w http.ResponseWriter, r *http.Request, what, hint string) {
	d.fail(w, r, http.StatusNotFound, Fault{Code: "not_found", Message: what + " is not known", Hint: hint})
}

// timeline is GET /v1/instructions/{instruction}/timeline.
func (d *door) timeline(w http.ResponseWriter, r *http.Request) {
	if _, ok := d.query(w, r); !ok {
		return
	}
	text := r.PathValue("instruction")
	seq, err := strconv.ParseUint(text, 10, 64)
	whole := err == nil
	if !whole {
		key, err := wire.ParseKey(text)
		if err != nil {
			d.bad(w, r, "instruction", err.Error(), "give an instruction id in full, or its sequence number")
			return
		}
		seq = key.Seq
	}
	in, entries, found, err := d.r.Timeline(r.Context(), seq)
	if err != nil {
		d.unread(w, r, err)
		return
	}
	// The sequence alone may belong to an instruction of another site or log.
	if !found || !whole && in.Key(d.o.Site) != text {
		d.missing(w, r, "instruction "+text, "see the instructions of a task at /v1/tasks/{task_id}")
		return
	}
	out := Timeline{Instruction: scada.NewInstructionView(d.o.Site, in), Entries: make([]scada.EntryView, len(entries))}
	for k, e := range entries {
		out.Entries[k] = scada.NewEntryView(in.Node, e)
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
			send(w, http.StatusOK, d.nodeView(n))
			return
		}
	}
	d.missing(w, r, "node "+id, "a node is known once it has connected; see /v1/nodes")
}

func (d *door) nodeView(n engine.NodeState) scada.NodeView {
	return scada.NewNodeView(n.Node, scada.PresenceOf(n), d.o.Now().UnixMilli())
}

// deadLetters is GET /v1/deadletters.
func (d *door) deadLetters(w http.ResponseWriter, r *http.Request) {
	q, ok := d.query(w, r, "limit", "after")
	if !ok {
		return
	}
	limit, ok := d.number(w, r, q, "limit", defaultLimit, 1, maxLimit)
	if !ok {
		return
	}
	after, ok := d.number(w, r, q, "after", 0, 0, math.MaxInt64)
	if !ok {
		return
	}
	list, err := d.r.DeadLetters(r.Context(), after, int(limit))
	if err != nil {
		d.unread(w, r, err)
		return
	}
	out := DeadLetterList{DeadLetters: make([]DeadLetter, len(list))}
	for k, x := range list {
		out.DeadLetters[k] = DeadLetter{Number: x.Number, Time: stamp(x.At), Kind: x.Kind, From: x.From, Reason: x.Reason, Raw: x.Raw}
		if utf8.Valid(x.Raw) {
			out.DeadLetters[k].Text = string(x.Raw)
		}
	}
	if len(list) == int(limit) {
		out.Next = list[len(list)-1].Number
	}
	send(w, http.StatusOK, out)
}

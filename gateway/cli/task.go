package cli

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/scada"
)

func statusCommand() *command {
	return &command{
		name:  "task status",
		short: "show a task, or follow it to its end",
		usage: "task status ID [--watch]",
		long: `
Exit code 0 when the task could be shown. With --watch, exit code 1 unless it
ended SUCCEEDED.`,
		examples: []string{"apollo task status demo-1", "apollo task status --task-id demo-1 --watch", "apollo task status demo-1 -o json"},
		words:    1,
		flags: func(fs *flag.FlagSet) run {
			id := fs.String("task-id", "", "the task `ID`, if not given as a word")
			watch := fs.Bool("watch", false, "show each step until the task has ended")
			return func(ctx context.Context, a *app, words []string) error {
				id, err := oneID(*id, words, "task status")
				if err != nil {
					return err
				}
				if *watch {
					return a.follow(ctx, id, 0)
				}
				var v scada.TaskView
				raw, err := a.client.get(ctx, "/v1/tasks/"+url.PathEscape(id), &v)
				if err != nil {
					return a.client.explain(err)
				}
				if a.output == "json" {
					return printJSON(a.out, raw)
				}
				return showTask(a, v)
			}
		},
	}
}

// oneID takes the id from its flag or from the words.
func oneID(flag string, words []string, name string) (string, error) {
	switch {
	case flag != "" && len(words) > 0:
		return "", misuse("the id is given twice: %s and %s", flag, words[0])
	case flag != "":
		return flag, nil
	case len(words) > 0 && words[0] != "":
		return words[0], nil
	}
	return "", misuse("which one? the id is missing").hint("usage: apollo %s ID", name).hint("apollo task list shows them")
}

func showTask(a *app, v scada.TaskView) error {
	var t table
	field := func(name, value string) {
		if value != "" {
			t.add(cell{text: name}, cell{text: value})
		}
	}
	field("task", visible(v.TaskID))
	t.add(cell{text: "state"}, stateCell(v.State))
	field("intent", visible(v.Intent))
	field("args", inline(v.Args))
	field("targets", target(v))
	by := ""
	if v.Actor != "" {
		by = " by " + v.Actor
	}
	field("submitted", moment(v.Created)+visible(by+" via "+v.Via))
	field("updated", moment(v.Updated))
	field("ttl", visible(v.TTL))
	field("not after", moment(v.NotAfter))
	if len(v.Instructions) > 0 && v.Instructions[0].TimeoutMs != 0 {
		// What the gateway has resolved it to: the task need not say it.
		field("limit", (time.Duration(v.Instructions[0].TimeoutMs)*time.Millisecond).String()+" an execution")
	}
	field("priority", visible(v.Priority))
	keys := make([]string, 0, len(v.Metadata))
	for k := range v.Metadata {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		field("metadata", visible(k+"="+v.Metadata[k]))
	}
	field("trace", visible(v.TraceID))
	if err := t.write(a); err != nil {
		return err
	}
	a.print("\n")
	var ins table
	ins.head("NODE", "STATE", "TRY", "CODE", "PATH", "INSTRUCTION", "RESULT")
	for _, in := range v.Instructions {
		row := plain(in.Node, in.State, number(in.Attempt), in.Code, in.Path, in.Instruction, "")
		row[1], row[6] = stateCell(in.State), cell{text: outcome(in)}
		ins.add(row...)
	}
	return ins.write(a)
}

// outcome is what there is to say about an instruction at its present state.
func outcome(in scada.InstructionView) string {
	parts := []string{}
	if in.Reason != "" && in.Reason != in.Code && !strings.EqualFold(in.Reason, in.State) {
		parts = append(parts, visible(in.Reason)) // not what stands beside it anyhow
	}
	if in.Detail != "" {
		parts = append(parts, visible(in.Detail))
	}
	if in.RetryAt != "" && !in.Settled {
		parts = append(parts, "next attempt at "+clock(in.RetryAt))
	}
	if in.Percent != 0 && !in.Settled {
		parts = append(parts, fmt.Sprintf("%d %%", in.Percent))
	}
	if in.Waits != "" {
		parts = append(parts, visible(in.Waits))
	}
	if in.CancelBy != "" && !in.Settled {
		parts = append(parts, "cancellation asked by "+visible(in.CancelBy))
	}
	if l := in.Lease; l != nil {
		parts = append(parts, leaseText(l))
	}
	if r := inline(in.Result); r != "" {
		parts = append(parts, r)
	}
	if in.Operator {
		parts = append(parts, "waits for an operator")
	}
	return strings.Join(parts, "; ")
}

// leaseText says how an output stands that was set for a limited time.
func leaseText(l *scada.LeaseView) string {
	switch {
	case l.End == "":
		return visible(fmt.Sprintf("lease of %s until %s", l.Pin, clock(l.Until)))
	case l.Open:
		return visible(fmt.Sprintf("lease of %s is over, and the pin could not be set to its safe level", l.Pin))
	}
	return visible(fmt.Sprintf("lease of %s ended %s (%s)", l.Pin, clock(l.Ended), l.End))
}

// number is a count that is left out when it is 0.
func number(n uint8) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

// target says on which nodes a task runs.
func target(v scada.TaskView) string {
	const most = 3
	switch {
	case v.Selector != nil:
		return visible(fmt.Sprintf("%s=%s (%s)", v.Selector.Key, v.Selector.Value, count(v.Count, "node")))
	case len(v.Nodes) <= most:
		return visible(strings.Join(v.Nodes, ", "))
	}
	return visible(fmt.Sprintf("%s and %d more", strings.Join(v.Nodes[:most], ", "), len(v.Nodes)-most))
}

func listCommand() *command {
	return &command{
		name:     "task list",
		short:    "list tasks, the newest first",
		usage:    "task list [--state S] [--limit N]",
		examples: []string{"apollo task list", "apollo task list --state FAILED --limit 10", "apollo task list -o json"},
		flags: func(fs *flag.FlagSet) run {
			state := fs.String("state", "", "only tasks in this `STATE`, for example RUNNING")
			limit := fs.Int("limit", 20, "show at most `N` tasks, up to 500")
			before := fs.Uint64("before", 0, "go on after a page, with the `N` that it names")
			return func(ctx context.Context, a *app, _ []string) error {
				q := url.Values{"limit": {strconv.Itoa(*limit)}}
				if *state != "" {
					q.Set("state", strings.ToUpper(*state))
				}
				if *before != 0 {
					q.Set("before", strconv.FormatUint(*before, 10))
				}
				var v api.TaskList
				raw, err := a.client.get(ctx, "/v1/tasks?"+q.Encode(), &v)
				if err != nil {
					return a.client.explain(err)
				}
				if a.output == "json" {
					return printJSON(a.out, raw)
				}
				return listTasks(a, v, *state)
			}
		},
	}
}

func listTasks(a *app, v api.TaskList, state string) error {
	if len(v.Tasks) > 0 {
		var t table
		t.head("TASK", "STATE", "INTENT", "TARGETS", "SUBMITTED", "UPDATED", "BY")
		for _, x := range v.Tasks {
			row := plain(x.TaskID, x.State, x.Intent, "", "", "", x.Actor)
			row[1] = stateCell(x.State)
			row[3], row[4], row[5] = cell{text: target(x)}, cell{text: shortMoment(x.Created)}, cell{text: shortMoment(x.Updated)}
			t.add(row...)
		}
		if err := t.write(a); err != nil {
			return err
		}
	}
	more := fmt.Sprintf("apollo task list --before %d", v.Next)
	if state != "" {
		more += " --state " + visible(state)
	}
	switch {
	case v.Next != 0:
		a.say("there are older ones: %s\n", more)
	case len(v.Tasks) == 0:
		a.say("no tasks\n")
	}
	return nil
}

func cancelCommand() *command {
	return &command{
		name:  "task cancel",
		short: "cancel a task",
		usage: "task cancel ID [--reason TEXT]",
		long: `
What no agent has yet is cancelled at once; what may be running is stopped by its
agent, if it is not faster. Exit code 0 when the cancellation is on disk.`,
		examples: []string{"apollo task cancel demo-1 --reason 'valve is being repaired'"},
		words:    1,
		flags: func(fs *flag.FlagSet) run {
			id := fs.String("task-id", "", "the task `ID`, if not given as a word")
			reason := fs.String("reason", "", "why, a `TEXT` for the timeline")
			return func(ctx context.Context, a *app, words []string) error {
				id, err := oneID(*id, words, "task cancel")
				if err != nil {
					return err
				}
				return cancelTask(ctx, a, id, *reason)
			}
		},
	}
}

func cancelTask(ctx context.Context, a *app, id, reason string) error {
	if err := isText("--reason", reason); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"reason": reason})
	if err != nil {
		return fmt.Errorf("reason of the cancellation: %w", err)
	}
	var v api.Cancelled
	header := http.Header{"Content-Type": {"application/json"}}
	raw, err := a.client.call(ctx, http.MethodPost, "/v1/tasks/"+url.PathEscape(id)+"/cancel", header, body, &v)
	if err != nil {
		return a.client.explain(err)
	}
	if a.output == "json" {
		return printJSON(a.out, raw)
	}
	a.print("task %s: %d cancelled, %d asked of their agents, %d had ended\n", visible(v.TaskID), v.Cancelled, v.Asked, v.Final)
	if v.Asked > 0 {
		a.say("see what comes of it: apollo task status %s --watch\n", visible(v.TaskID))
	}
	return nil
}

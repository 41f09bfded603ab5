package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/api/apitest"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

// site is a gateway in memory with the real engine and agents that behave.
type site struct {
	*apitest.Gateway
	t *testing.T
}

func newSite(t *testing.T) *site { return &site{apitest.New(engine.Config{}), t} }

// write submits a gpio.write of level 1.
func (s *site) write(id, node string) { s.t.Helper(); s.writePin(id, node, "GPIO17") }

func (s *site) writePin(id, node, pin string) {
	s.t.Helper()
	args, err := wire.EncodeMap(map[string]any{"pin": pin, "level": uint64(1)}, wire.MaxArgsBytes)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := s.Submit(s.t.Context(), engine.Spec{TaskID: id, Intent: wire.IntentGPIOWrite, Args: args, Nodes: []string{node}},
		engine.Source{Via: "http", Actor: "ops"})
	if err != nil || r.Accepted == nil {
		s.t.Fatalf("submit %s: %v, %+v", id, err, r.Refused)
	}
}

func (s *site) task(id string) engine.TaskState {
	s.t.Helper()
	state, ok, err := s.Task(s.t.Context(), id)
	if err != nil || !ok {
		s.t.Fatalf("task %s: %v, %v", id, ok, err)
	}
	return state
}

func (s *site) only(id string) engine.Instruction { s.t.Helper(); return s.task(id).Instructions[0] }

func (s *site) timeline(id string) []engine.Entry {
	s.t.Helper()
	_, entries, ok, err := s.Timeline(s.t.Context(), s.only(id).Seq)
	if err != nil || !ok {
		s.t.Fatalf("timeline of %s: %v, %v", id, ok, err)
	}
	return entries
}

func (s *site) node(id string) engine.NodeState {
	s.t.Helper()
	list, err := s.Nodes(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, n := range list {
		if n.Node.ID == id {
			return n
		}
	}
	s.t.Fatalf("node %s is not known", id)
	return engine.NodeState{}
}

// pass lets time pass in steps of a heartbeat, which these nodes send.
func (s *site) pass(d time.Duration, beating ...string) {
	for end := s.Now().Add(d); s.Now().Before(end); {
		s.Advance(5 * time.Second)
		for _, n := range beating {
			s.beat(n)
		}
	}
}

// beat is a heartbeat in the session that Connect begins.
func (s *site) beat(node string) {
	s.Input(&engine.Uplink{Node: node, Msg: &wire.Heartbeat{Session: 7, Clock: s.Now().UnixMilli()}})
}

// F1: a quarter of an hour without a command, with heartbeats only. The first
// command to each node is sent once and done, and nobody was taken for dead.
func TestF1_FirstCommandAfterAQuietQuarterOfAnHour(t *testing.T) {
	s := newSite(t)
	var nodes []string
	for k := range 20 {
		nodes = append(nodes, fmt.Sprintf("pump-%d", k+1))
		s.Connect(nodes[k], nil, apitest.Behaviour{})
	}
	since := s.node("pump-1").Since
	s.pass(15*time.Minute, nodes...)
	for _, n := range nodes {
		s.write("first-"+n, n)
		if i := s.only("first-" + n); i.State != engine.StateSucceeded || i.Sends != 1 || i.Attempt != 1 {
			t.Errorf("%s: %v after %d sends in attempt %d", n, i.State, i.Sends, i.Attempt)
		}
	}
	if n := s.node("pump-1"); !n.Online || n.Since != since {
		t.Errorf("pump-1 did not stay online: %+v", n)
	}
}

// F1: a quarter of an hour without any word: the nodes are offline. What is asked
// of them meanwhile waits, and goes out with the first word of each.
func TestF1_FirstCommandAfterAQuarterOfAnHourWithoutAWord(t *testing.T) {
	s := newSite(t)
	nodes := []string{"pump-1", "pump-2", "pump-3"}
	for _, n := range nodes {
		s.Connect(n, nil, apitest.Behaviour{})
	}
	s.pass(15 * time.Minute)
	for _, n := range nodes {
		s.write("first-"+n, n)
		if i := s.only("first-" + n); s.node(n).Online || i.State != engine.StatePending || i.Sends != 0 {
			t.Errorf("%s: online %v, %v after %d sends", n, s.node(n).Online, i.State, i.Sends)
		}
	}
	for _, n := range nodes {
		s.beat(n)
		if i := s.only("first-" + n); i.State != engine.StateSucceeded || i.Sends != 1 {
			t.Errorf("%s: %v after %d sends", n, i.State, i.Sends)
		}
	}
}

// F12: from the submission to the end no document shows a level of the pin that
// its agent has not told. What is wished for stands with the arguments only, what
// is not known yet is shown as pending, and what was read back is shown as it is,
// also when it is not what was wished for.
func TestF12_NoLevelIsShownThatTheAgentHasNotTold(t *testing.T) {
	const wished, told = 1, 0
	s := newSite(t)
	s.Connect("pump-1", nil, apitest.Behaviour{Hold: true, Payload: map[string]any{"pin": "GPIO17", "level": uint64(told)}})
	s.Connect("pump-2", nil, apitest.Behaviour{Silent: true})
	s.write("held", "pump-1")
	s.write("silent", "pump-2")
	s.write("away", "pump-3")
	s.Connect("pump-4", nil, apitest.Behaviour{Silent: true})
	s.write("compact", "pump-4")
	s.Input(&engine.Compact{Short: wire.Short("pump-4"), Ack: wire.CompactAck{Seq: s.only("compact").Seq, Attempt: 1, Code: wire.CodeOK}})
	for id, want := range map[string]engine.State{"held": engine.StateRunning, "silent": engine.StateDispatched,
		"away": engine.StatePending, "compact": engine.StateSucceeded} {
		if i := s.only(id); i.State != want {
			t.Errorf("%s: %v, want %v", id, i.State, want)
		}
		s.showsNoLevel(id)
	}
	s.Finish("pump-1")
	in := s.only("held")
	status := scada.NewStatus("default", s.task("held").Task, []engine.Instruction{in})
	view := scada.NewInstructionView("default", in)
	if fmt.Sprint(status.Result["level"]) != fmt.Sprint(told) || fmt.Sprint(view.Result["level"]) != fmt.Sprint(told) {
		t.Errorf("the agent has told %d: status %v, view %v", told, status.Result, view.Result)
	}
	if fmt.Sprint(view.Args["level"]) != fmt.Sprint(wished) {
		t.Errorf("the wish is %v", view.Args)
	}
	// Given up without a word of the agent: unknown, not the wish.
	s.pass(10*time.Minute, "pump-2")
	if i := s.only("silent"); i.State != engine.StateTimeout || !i.OutcomeUnknown() {
		t.Errorf("silent: %v", i.State)
	}
	s.showsNoLevel("silent")
}

// showsNoLevel looks through everything that is published and served of a task.
func (s *site) showsNoLevel(id string) {
	s.t.Helper()
	state := s.task(id)
	docs := []scada.Document{scada.NewStatus("default", state.Task, state.Instructions)}
	nodes, err := s.Nodes(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, n := range nodes {
		docs = append(docs, scada.NewNodeView(n.Node, scada.PresenceOf(n), 1))
	}
	view := scada.NewTaskView("default", state.Task, state.Instructions, true)
	view.Args = nil // the wish, marked as such
	for k := range view.Instructions {
		view.Instructions[k].Args = nil
	}
	docs = append(docs, view)
	for _, e := range s.timeline(id) {
		docs = append(docs, scada.NewEntryView(state.Instructions[0].Node, e))
	}
	for _, d := range docs {
		b, err := scada.Marshal(d)
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.Contains(string(b), `"level"`) || strings.Contains(string(b), `"result"`) {
			s.t.Errorf("%s, %v: %T shows %s", id, state.Instructions[0].State, d, b)
		}
	}
}

// E15: on the narrowband path nobody acknowledges anything. The gateway asks after
// each silent instruction a bounded number of times, the one at the head does not
// keep those behind it from being asked after, and each that is given up is told
// of: in its timeline and in the operator queue.
func TestE15_SilentHeadOfTheNarrowbandDoesNotHoldUpTheNext(t *testing.T) {
	const n = 10
	s := newSite(t)
	s.Connect("pump-1", nil, apitest.Behaviour{Silent: true})
	s.Input(&engine.NarrowbandUp{Short: wire.Short("pump-1"), Up: true})
	for k := range n {
		s.writePin(fmt.Sprintf("t-%d", k), "pump-1", fmt.Sprintf("GPIO%d", k)) // one line would go one after the other
	}
	asked := func(k int) (times int) {
		for _, e := range s.timeline(fmt.Sprintf("t-%d", k)) {
			if e.What == engine.WhatQueried && e.Path == engine.PathNarrowband {
				times++
			}
		}
		return times
	}
	for range 100 { // ten seconds
		s.Advance(100 * time.Millisecond)
	}
	s.beat("pump-1")
	for k := range n {
		if asked(k) == 0 {
			t.Errorf("number %d was not asked after within ten seconds", k)
		}
	}
	// The last one answers: it is settled whatever those before it do.
	last := fmt.Sprintf("t-%d", n-1)
	s.Input(&engine.Compact{Short: wire.Short("pump-1"), Ack: wire.CompactAck{Seq: s.only(last).Seq, Attempt: 1, Code: wire.CodeOK}})
	if i := s.only(last); i.State != engine.StateSucceeded || i.Path != engine.PathNarrowband {
		t.Errorf("the last one: %v by %v", i.State, i.Path)
	}
	s.pass(15*time.Minute, "pump-1")
	queue, _, err := s.Queue(t.Context(), 0, n)
	if err != nil || len(queue) != n-1 {
		t.Fatalf("%d of %d in the operator queue, %v", len(queue), n-1, err)
	}
	for k, i := range queue {
		entries := s.timeline(i.Task)
		end := entries[len(entries)-1]
		if end.What != engine.WhatTimeout || end.To != engine.StateTimeout || end.Detail == "" || i.Reason != engine.ReasonUnconfirmed {
			t.Errorf("%s ends with %v: %q, reason %s", i.Task, end.What, end.Detail, i.Reason)
		}
		// Three questions an attempt each time that it is sent, which is bounded too.
		if times := asked(k); times < 3 || times > 3*int(i.Sends) {
			t.Errorf("%s was asked after %d times in %d sends", i.Task, times, i.Sends)
		}
	}
}

package broker

import (
	"fmt"
	"strings"

	"github.com/apollo-11/apollo11/wire"
)

// Role says what a client may do.
type Role uint8

const (
	// Operator submits tasks and reads their status.
	Operator Role = iota + 1
	// Agent executes for one node.
	Agent
	// NarrowbandAgent sends the compact acks of one node.
	NarrowbandAgent

	roles = int(NarrowbandAgent) + 1
)

// String returns the role's name as used in the users file.
func (r Role) String() string {
	switch r {
	case Operator:
		return "operator"
	case Agent:
		return "agent"
	case NarrowbandAgent:
		return "narrowband"
	}
	return "none"
}

// Client ids of agents.
const (
	agentPrefix      = "agent/"
	narrowbandPrefix = "nb/"
)

// rights are what one client may do. All strings are built at CONNECT.
type rights struct {
	role   Role
	write  string // the only topic it may publish on; operators: beside the safe topics
	read   string // agents: the only topic it may read; operators: its reply topic
	topics *topics
}

func newRights(t *topics, role Role, clientID, node string) rights {
	r := rights{role: role, topics: t}
	switch role {
	case Agent:
		r.write, r.read = t.Evt(node), t.Cmd(node)
	case NarrowbandAgent:
		r.write, r.read = wire.NarrowbandUp(node), wire.NarrowbandDown(node)
	case Operator:
		r.write, r.read = t.task, t.Reply(clientID)
	}
	return r
}

// mayWrite reports whether the client may publish on topic.
func (r rights) mayWrite(topic string) bool {
	return topic == r.write || r.role == Operator && r.topics.isSafe(topic)
}

// whereTo says where the client may publish, for whoever has published elsewhere.
func (r rights) whereTo() string {
	if r.role == Operator {
		return fmt.Sprintf("%s, or on %sNODE or %[2]sNODE/PIN to drive outputs to their safe levels", r.write, r.topics.safe)
	}
	return r.write
}

// mayRead reports whether a message on topic may be delivered to the client.
// It runs for each delivery and allocates nothing.
func (r rights) mayRead(topic string) bool {
	if r.role != Operator {
		return topic == r.read
	}
	t := r.topics
	switch {
	case topic == t.alarm, topic == r.read, t.status.has(topic), t.state.has(topic), t.isPin(topic):
		return true
	case topic == t.task, t.isSafe(topic):
		return true // nothing is ever delivered there
	case strings.HasPrefix(topic, r.read) && topic[len(r.read)] == '/':
		return true
	}
	return !reserved(topic)
}

// maySubscribe reports whether the filter can match anything that the client
// may read. A wider filter than that is fine: deliveries are checked one by
// one. An operator may also name the task topic and the safe topics, because HMI
// tools subscribe to what they write; nothing is ever delivered there.
func (r rights) maySubscribe(filter string) bool {
	if !validFilter(filter) || dollar(filter) {
		return false
	}
	if r.role != Operator {
		return overlaps(filter, r.read)
	}
	t := r.topics
	switch {
	case !reserved(filter), overlaps(filter, t.task), overlaps(filter, t.alarm), overlaps(filter, t.safes):
		return true
	case overlaps(filter, t.statuses), overlaps(filter, t.nodes), overlaps(filter, t.pins):
		return true
	}
	return overlaps(filter, r.read) || overlaps(filter, r.read+"/#")
}

// mayRespond reports whether the broker publishes a client's answer on the
// response topic that the client asked for: below its own reply topic, or
// outside of everything that means something to the system.
func (r rights) mayRespond(topic string) bool {
	if !validTopic(topic) {
		return false
	}
	return topic == r.read || strings.HasPrefix(topic, r.read+"/") || !reserved(topic)
}

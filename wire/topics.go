package wire

import (
	"strings"
)

// Root is the first level of every primary topic.
const Root = "apollo"

// Topics of one site. The narrowband topics carry no site: each gateway has a
// listener of its own for them and every byte there is dear.
type Topics struct{ site string }

// NewTopics returns the topics of a site. It returns an error for a site name
// that cannot stand in a topic.
func NewTopics(site string) (Topics, error) {
	if err := CheckSite(site); err != nil {
		return Topics{}, err
	}
	return Topics{site}, nil
}

// Site is the site's name.
func (t Topics) Site() string { return t.site }

func (t Topics) join(rest string) string { return Root + "/" + t.site + "/" + rest }

// Cmd carries Instruction, Cancel, Query, Welcome, EventAck and Release to a node.
func (t Topics) Cmd(node string) string { return t.join("cmd/" + node) }

// Evt carries Hello, Event, Heartbeat, Report, Digest and Goodbye from a node.
func (t Topics) Evt(node string) string { return t.join("evt/" + node) }

// Task takes JSON tasks from SCADA clients.
func (t Topics) Task() string { return t.join("task") }

// Safe has the outputs of a node driven to their safe levels and held there, or one
// of them: whatever is published on it, nothing at all included. pin may be empty.
func (t Topics) Safe(node, pin string) string {
	if pin == "" {
		return t.join("safe/" + node)
	}
	return t.join("safe/" + node + "/" + pin)
}

// SafeTarget takes the Arg of a TopicSafe apart; pin is empty for all outputs.
func SafeTarget(arg string) (node, pin string) {
	node, pin, _ = strings.Cut(arg, "/")
	return node, pin
}

// TaskStatus carries the JSON status of a task.
func (t Topics) TaskStatus(taskID string) string { return t.join("task/" + taskID + "/status") }

// NodeState carries the JSON state of a node, retained.
func (t Topics) NodeState(node string) string { return t.join("node/" + node + "/state") }

// NodePin carries what happens at a pin of a node: edges that a watch reports and
// ends of leases, as JSON, not retained.
func (t Topics) NodePin(node, pin string) string { return t.join("node/" + node + "/pin/" + pin) }

// Alarm carries JSON alarms, raised and cleared.
func (t Topics) Alarm() string { return t.join("alarm") }

// Reply carries answers to one MQTT client, for protocol versions that cannot
// carry a reason in the acknowledgement.
func (t Topics) Reply(clientID string) string { return t.join("reply/" + EscapeLevel(clientID)) }

// NarrowbandUp carries CompactAck from a node, by short id.
func NarrowbandUp(short string) string { return "n/" + short }

// NarrowbandDown carries CompactQuery, CompactCancel and CompactSafe to a node, by
// short id.
func NarrowbandDown(short string) string { return "d/" + short }

// EscapeLevel makes any client id a single topic level: characters that mean
// something in topics (/ + # $ %), control characters and non-ASCII bytes become
// %XX.
func EscapeLevel(s string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c <= ' ' || c >= 0x7f, c == '/', c == '+', c == '#', c == '$', c == '%':
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// TopicKind says what a topic is for.
type TopicKind uint8

const (
	TopicOther          TopicKind = iota // not one of ours
	TopicCmd                             // Arg is the node
	TopicEvt                             // Arg is the node
	TopicTask                            // no Arg
	TopicTaskStatus                      // Arg is the task id
	TopicNodeState                       // Arg is the node
	TopicNodePin                         // Arg is the node
	TopicAlarm                           // no Arg
	TopicReply                           // Arg is the escaped client id
	TopicNarrowbandUp                    // Arg is the short id
	TopicNarrowbandDown                  // Arg is the short id
	TopicSafe                            // Arg is the node, or node/pin: see SafeTarget
)

// Parse tells what a concrete topic (no wildcards) is for. A topic whose
// argument is not a well-formed name is TopicOther.
func (t Topics) Parse(topic string) (kind TopicKind, arg string) {
	if len(topic) > 2 && topic[1] == '/' {
		switch {
		case topic[0] == 'n' && CheckShort(topic[2:]) == nil:
			return TopicNarrowbandUp, topic[2:]
		case topic[0] == 'd' && CheckShort(topic[2:]) == nil:
			return TopicNarrowbandDown, topic[2:]
		}
	}
	rest, ok := strings.CutPrefix(topic, Root+"/")
	if !ok {
		return TopicOther, ""
	}
	if rest, ok = strings.CutPrefix(rest, t.site+"/"); !ok {
		return TopicOther, ""
	}
	switch rest {
	case "task":
		return TopicTask, ""
	case "alarm":
		return TopicAlarm, ""
	}
	head, tail, _ := strings.Cut(rest, "/")
	switch head {
	case "cmd":
		if CheckNode(tail) == nil {
			return TopicCmd, tail
		}
	case "evt":
		if CheckNode(tail) == nil {
			return TopicEvt, tail
		}
	case "safe":
		node, pin, one := strings.Cut(tail, "/")
		if CheckNode(node) == nil && (!one || CheckPin(pin) == nil) {
			return TopicSafe, tail
		}
	case "task":
		if id, ok := strings.CutSuffix(tail, "/status"); ok && CheckTaskID(id) == nil {
			return TopicTaskStatus, id
		}
	case "node":
		if node, ok := strings.CutSuffix(tail, "/state"); ok && CheckNode(node) == nil {
			return TopicNodeState, node
		}
		if node, pin, ok := strings.Cut(tail, "/pin/"); ok && CheckNode(node) == nil && CheckPin(pin) == nil {
			return TopicNodePin, node
		}
	case "reply":
		// Nothing may be left to escape but the percent signs of the escapes.
		bare := strings.ReplaceAll(tail, "%", "")
		if tail != "" && EscapeLevel(bare) == bare {
			return TopicReply, tail
		}
	}
	return TopicOther, ""
}

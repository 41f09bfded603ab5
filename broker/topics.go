package broker

import (
	"strings"
	"unicode/utf8"

	"github.com/apollo-11/apollo11/wire"
)

// topics are the names of one site. They are built once, so that the check of
// each delivery needs no allocation.
type topics struct {
	wire.Topics
	task, alarm     string
	status, state   affix  // of the status and state topics, around their one level
	statuses, nodes string // as filters
	pins            string // likewise
	safe            string // what all safe topics begin with
	safes           string // as a filter
}

// affix is what stands around the level that varies.
type affix struct{ prefix, suffix string }

// anyLevel is the filter level for the level that varies.
const anyLevel = "+"

func newTopics(site string) (topics, error) {
	w, err := wire.NewTopics(site)
	if err != nil {
		return topics{}, err
	}
	t := topics{Topics: w, task: w.Task(), alarm: w.Alarm(), statuses: w.TaskStatus(anyLevel), nodes: w.NodeState(anyLevel),
		pins: w.NodePin(anyLevel, anyLevel)}
	t.safe = strings.TrimSuffix(w.Safe(anyLevel, ""), anyLevel)
	t.safes = t.safe + "#"
	t.status.prefix, t.status.suffix, _ = strings.Cut(t.statuses, anyLevel)
	t.state.prefix, t.state.suffix, _ = strings.Cut(t.nodes, anyLevel)
	return t, nil
}

// has reports whether topic is one level between prefix and suffix.
func (a affix) has(topic string) bool {
	rest, ok := strings.CutPrefix(topic, a.prefix)
	if !ok {
		return false
	}
	level, ok := strings.CutSuffix(rest, a.suffix)
	return ok && level != "" && !strings.Contains(level, "/")
}

// isPin reports whether topic is that of one pin of one node.
func (t *topics) isPin(topic string) bool {
	rest, ok := strings.CutPrefix(topic, t.state.prefix)
	if !ok {
		return false
	}
	node, pin, ok := strings.Cut(rest, "/pin/")
	return ok && node != "" && pin != "" && !strings.Contains(node, "/") && !strings.Contains(pin, "/")
}

// isSafe reports whether a publish on topic asks for a way to safe.
func (t *topics) isSafe(topic string) bool {
	if !strings.HasPrefix(topic, t.safe) {
		return false
	}
	kind, _ := t.Parse(topic)
	return kind == wire.TopicSafe
}

// reserved reports whether the topic or filter belongs to the system: ours,
// the narrowband ones and everything that begins with '$'.
func reserved(topic string) bool {
	first, _, _ := strings.Cut(topic, "/")
	switch first {
	case wire.Root, "n", "d":
		return true
	}
	return dollar(topic)
}

// validTopic reports whether a message may be published on topic at all.
func validTopic(topic string) bool {
	return topic != "" && utf8.ValidString(topic) && !strings.ContainsAny(topic, "+#\x00")
}

// validFilter reports whether filter is well formed by the MQTT rules: '#'
// only as the last level, '+' only as a whole level.
func validFilter(filter string) bool {
	if filter == "" || !utf8.ValidString(filter) || strings.ContainsRune(filter, 0) {
		return false
	}
	for rest, more := filter, true; more; {
		var level string
		level, rest, more = strings.Cut(rest, "/")
		if strings.Contains(level, "#") && (level != "#" || more) {
			return false
		}
		if strings.Contains(level, "+") && level != "+" {
			return false
		}
	}
	return true
}

// overlaps reports whether a topic exists that both filters match. A wildcard
// in the first level does not match a level that begins with '$'.
func overlaps(a, b string) bool {
	for first := true; ; first = false {
		levelA, restA, moreA := strings.Cut(a, "/")
		levelB, restB, moreB := strings.Cut(b, "/")
		if first && (dollar(levelA) && wild(levelB) || dollar(levelB) && wild(levelA)) {
			return false
		}
		if levelA == "#" || levelB == "#" {
			return true
		}
		if levelA != levelB && levelA != "+" && levelB != "+" {
			return false
		}
		switch {
		case !moreA && !moreB:
			return true
		case !moreA:
			return restB == "#" // "a/#" also matches "a"
		case !moreB:
			return restA == "#"
		}
		a, b = restA, restB
	}
}

func dollar(level string) bool { return strings.HasPrefix(level, "$") }
func wild(level string) bool   { return level == "+" || level == "#" }

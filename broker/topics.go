package broker

import (
	"strings"
	"unicode/utf8"
)

// topics are the names of one site. They are built once, so that the check of
// each delivery needs no allocation.
type topics struct {
	task  string // apollo/<site>/task
	tasks string // apollo/<site>/task/, continued by <task id>/status
	nodes string // apollo/<site>/node/, continued by <node>/state
	alarm string // apollo/<site>/alarm
	cmd   string // apollo/<site>/cmd/
	evt   string // apollo/<site>/evt/
	reply string // apollo/<site>/reply/
}

const (
	uplinkShort   = "n/"
	downlinkShort = "d/"

	statusSuffix = "/status"
	stateSuffix  = "/state"

	// maxName bounds the names of sites, nodes and short ids: they are topic
	// levels, file names and log keys.
	maxName = 64
)

func newTopics(site string) topics {
	root := "apollo/" + site + "/"
	return topics{
		task:  root + "task",
		tasks: root + "task/",
		nodes: root + "node/",
		alarm: root + "alarm",
		cmd:   root + "cmd/",
		evt:   root + "evt/",
		reply: root + "reply/",
	}
}

// validName reports whether s may name a site, a node or a short id.
func validName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case (c == '.' || c == '_' || c == '-') && i > 0:
		default:
			return false
		}
	}
	return true
}

// reserved reports whether the topic or filter belongs to the system: ours,
// the narrowband ones and everything that begins with '$'.
func reserved(topic string) bool {
	return topic == "apollo" || strings.HasPrefix(topic, "apollo/") ||
		topic == "n" || strings.HasPrefix(topic, uplinkShort) ||
		topic == "d" || strings.HasPrefix(topic, downlinkShort) ||
		strings.HasPrefix(topic, "$")
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

package scada

import "strings"

// maxTypos is how many single-character slips a suggestion may be away.
const maxTypos = 2

// suggest finds the known name that was probably meant, empty for none.
func suggest(name string, known []string) string {
	const longest = 40 // no known name is longer; bounds the work
	if len(name) > longest {
		return ""
	}
	flat := flatten(name)
	best, bestAt := "", maxTypos+1
	for _, k := range known {
		d := distance(flat, flatten(k))
		// A short name must keep at least half of its characters.
		if d < bestAt && 2*d <= len(flat) {
			best, bestAt = k, d
		}
	}
	return best
}

// flatten makes taskId, task-id and TASK_ID the same.
func flatten(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
}

// distance counts insertions, deletions, replacements and swaps of neighbours.
func distance(a, b string) int {
	prev2 := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	cur := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}

// meaning maps the names that other tools use to ours, empty for none.
func meaning(name string) string {
	switch flatten(name) {
	case "cmd", "command", "method", "action", "verb", "op", "operation":
		return "intent"
	case "params", "parameters", "arguments", "payload", "data":
		return "args"
	case "id", "uuid", "requestid", "messageid", "msgid", "correlationid":
		return "task_id"
	case "nodeid", "device", "deviceid", "target", "agent":
		return "node"
	case "devices", "targets":
		return "nodes"
	case "selector":
		return "target_selector"
	case "retry", "retries":
		return "retry_policy"
	case "expires", "expiry", "deadline", "expirationtime", "validuntil":
		return "not_after"
	case "meta", "tags", "labels":
		return "metadata"
	case "trace", "traceparent":
		return "trace_id"
	}
	return ""
}

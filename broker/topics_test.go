package broker

import "testing"

// overlaps is checked against matches over all topics of a small alphabet: two
// filters overlap exactly when some topic matches both.
func TestOverlapsAgreesWithMatching(t *testing.T) {
	levels := []string{"a", "$", ""}
	var topics []string
	grow := []string{"a", "$", ""}
	for range 3 {
		topics = append(topics, grow...)
		var next []string
		for _, g := range grow {
			for _, l := range levels {
				next = append(next, g+"/"+l)
			}
		}
		grow = next
	}
	filterLevels := append([]string{"+"}, levels[:2]...)
	filters := []string{"#"}
	grow = filterLevels
	for range 3 {
		filters = append(filters, grow...)
		var next []string
		for _, g := range grow {
			filters = append(filters, g+"/#")
			for _, l := range filterLevels {
				next = append(next, g+"/"+l)
			}
		}
		grow = next
	}
	for _, a := range filters {
		for _, b := range filters {
			want := false
			for _, topic := range topics {
				if matches(a, topic) && matches(b, topic) {
					want = true
					break
				}
			}
			// Filters longer than the longest topic can overlap beyond it.
			if got := overlaps(a, b); got != want && want {
				t.Fatalf("overlaps(%q, %q) = %t, but a topic matches both", a, b, got)
			} else if got != want && depth(a) <= 3 && depth(b) <= 3 {
				t.Fatalf("overlaps(%q, %q) = %t, but no topic matches both", a, b, got)
			}
			if overlaps(a, b) != overlaps(b, a) {
				t.Fatalf("overlaps(%q, %q) is not symmetric", a, b)
			}
		}
	}
}

func depth(s string) int {
	n := 1
	for _, c := range s {
		if c == '/' {
			n++
		}
	}
	return n
}

// matches is the plain MQTT matching rule, written as an oracle.
func matches(filter, topic string) bool {
	f, t := split(filter), split(topic)
	if t[0] != "" && t[0][0] == '$' && (f[0] == "+" || f[0] == "#") {
		return false
	}
	for i := 0; ; i++ {
		switch {
		case i < len(f) && f[i] == "#":
			return true
		case i == len(f) || i == len(t):
			return i == len(f) && i == len(t) || i == len(t) && i == len(f)-1 && f[i] == "#"
		case f[i] != "+" && f[i] != t[i]:
			return false
		}
	}
}

func split(s string) []string {
	out := []string{""}
	for _, c := range s {
		if c == '/' {
			out = append(out, "")
		} else {
			out[len(out)-1] += string(c)
		}
	}
	return out
}

func TestValidFilter(t *testing.T) {
	for filter, want := range map[string]bool{
		"a": true, "#": true, "+": true, "a/#": true, "+/a/+": true, "/": true, "a//b": true,
		"": false, "a#": false, "#/a": false, "a/#/b": false, "a+": false, "+a/b": false, "a\x00": false, "\xff": false,
	} {
		if got := validFilter(filter); got != want {
			t.Errorf("validFilter(%q) = %t", filter, got)
		}
	}
}

// The check of a delivery runs for each message and subscriber.
func TestDeliveryCheckAllocatesNothing(t *testing.T) {
	names, err := newTopics("default")
	if err != nil {
		t.Fatal(err)
	}
	r := newRights(&names, Operator, "hmi", "")
	topics := []string{"apollo/default/task/t1/status", "apollo/default/cmd/x", "apollo/default/reply/hmi", "x/y"}
	if n := testing.AllocsPerRun(100, func() {
		for _, topic := range topics {
			r.mayRead(topic)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

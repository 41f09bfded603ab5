package engine_test

import (
	"strings"
	"testing"
)

// TestTheWordThatALineIsNotKeptIsSentAgain at the next welcome: it may have been lost with
// the connection, and what is newer would wait the rest of the minute (docs/safety.md 4).
func TestTheWordThatALineIsNotKeptIsSentAgain(t *testing.T) {
	const setup = "hello a pins=lamp:-\nsubmit node=a pin=lamp retry=3,30s,30s"
	const again = "goodbye a lost\nhello a pins=lamp:-"
	for name, c := range map[string]struct {
		blocks []string
		want   bool
	}{
		"lost with the connection":    {[]string{"cancel seq=1", again}, true},
		"said while the node is away": {[]string{"goodbye a lost", "cancel seq=1", "hello a pins=lamp:-"}, true},
		"and once more":               {[]string{"cancel seq=1", again, again}, true},
		"the agent's minute is over":  {[]string{"cancel seq=1", "advance 61s a", again}, false},
		"it is tried again by hand":   {[]string{"advance 31s a", "event a seq=1 processed interrupted", "operate retry seq=1 yes", again}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.block(setup)
			h.block("event a seq=1 processed busy")
			out := ""
			for _, b := range c.blocks {
				out = h.block(b)
			}
			if got := strings.Contains(out, "-> send a release 1"); got != c.want {
				t.Errorf("told again: %v\n%s", got, out)
			}
		})
	}
}

package engine_test

import (
	"strings"
	"testing"
)

// TestWhatAFrameHasDrivenIsNotSaidToBeUnexecuted when its time limit passes: the alarm and
// the timeline say what is known, before and after a restart of the gateway.
func TestWhatAFrameHasDrivenIsNotSaidToBeUnexecuted(t *testing.T) {
	const away = "hello a pins=valve:0\ngoodbye a lost"
	const off = "narrowband a up\nsubmit node=a pin=valve level=0 ttl=20s"
	for name, c := range map[string]struct {
		blocks []string
		says   string // the alarm, "" for none
		not    string
	}{
		"driven, never sent":               {[]string{away, off, "advance 2s", "compact a driven seq=1 attempt=1", "advance 30s"}, "", "not executed"},
		"driven, and the gateway restarts": {[]string{away, off, "advance 2s", "compact a driven seq=1 attempt=1", "restart", "advance 30s"}, "", "not executed"},
		"a frame that nobody answered":     {[]string{away, off, "advance 30s"}, "whether it was executed is not known", "not executed"},
		"driven, and then told as expired": {[]string{"hello a pins=valve:0", off, "report a seq=1 driven", "event a seq=1 processed expired"}, "driven to its safe level", "not executed"},
		"sent, and not answered":           {[]string{"hello a pins=valve:0\nsubmit node=a pin=valve level=0 ttl=20s", "advance 60s"}, "whether it was executed is not known", "not executed"},
		"nothing reached it":               {[]string{away, "submit node=a pin=valve level=0 ttl=20s", "advance 30s"}, "was not executed", "driven"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			out := ""
			for _, b := range c.blocks {
				out = h.block(b)
			}
			if !strings.Contains(out, "TIMEOUT") || strings.Contains(out, c.not) {
				t.Errorf("%s", out)
			}
			if has := strings.Contains(out, "alarm raised safe_expired"); has != (c.says != "") || !strings.Contains(out, c.says) {
				t.Errorf("the alarm says:\n%s", out)
			}
		})
	}
}

package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/cli"
)

// "no alarms" is said where nothing is listed, and nowhere else.
func TestAlarmsSayWhatIsListed(t *testing.T) {
	one := []api.Alarm{{Alarm: "output_ended", Subject: "pump-1"}}
	for name, c := range map[string]struct {
		v    api.Alarms
		says string
		rows int // with the heads
	}{
		"nothing":           {api.Alarms{}, "no alarms\n", 0},
		"what happened":     {api.Alarms{Recent: one}, "no alarm stands now; what happened:\n", 2},
		"what stands":       {api.Alarms{Standing: one}, "", 2},
		"both, and a space": {api.Alarms{Standing: one, Recent: one}, "", 5},
	} {
		var out, errs bytes.Buffer
		if err := cli.ListAlarms(&out, &errs, c.v); err != nil || errs.String() != c.says || strings.Count(out.String(), "\n") != c.rows {
			t.Errorf("%s: %v, %q, on standard output\n%s", name, err, errs.String(), out.String())
		}
	}
}

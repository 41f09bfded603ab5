package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// play runs the command and returns its exit code and outputs.
func play(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, &out, &err)
	return code, out.String(), err.String()
}

func TestSeedsThatHold(t *testing.T) {
	code, out, _ := play(t, "--seeds", "1-3", "--nodes", "2", "--faults", "calm")
	if code != exitClean || !strings.Contains(out, "3 seeds") || !strings.Contains(out, "0 duplicates") || strings.Contains(out, "breaks") {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestJSON(t *testing.T) {
	code, out, _ := play(t, "--seeds", "7", "-o", "json")
	var d document
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != exitClean {
		t.Fatalf("exit %d, %v: %s", code, err, out)
	}
	if d.Seeds != 1 || d.First != 7 || d.Profile != "all" || d.Instructions == 0 || d.Failure != nil {
		t.Errorf("%+v", d)
	}
}

func TestTraceIsWritten(t *testing.T) {
	code, out, _ := play(t, "--seeds", "2", "--faults", "power", "--skip", "0,2-4", "--trace")
	if code != exitClean || !strings.Contains(out, "the faults stop") || strings.Contains(out, "plan      3: ") || !strings.Contains(out, "plan      5: ") {
		t.Errorf("exit %d: %.2000s", code, out)
	}
}

func TestTimeIsALimit(t *testing.T) {
	if code, out, _ := play(t, "--seeds", "1-", "--for", "300ms", "--jobs", "1"); code != exitClean || strings.HasPrefix(out, "0 seeds") {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestBadArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"unexpected argument": {"now"}, "numbers begin with 1": {"--seeds", "0"}, "write A-B": {"--seeds", "9-3"}, `seeds "x"`: {"--seeds", "x"},
		"no end": {"--seeds", "5-"}, `profile "nice"`: {"--faults", "nice"}, "0 jobs": {"--jobs", "0"}, `output "xml"`: {"-o", "xml"},
		"nodes, allowed": {"--nodes", "100000"}, `skip "1-"`: {"--skip", "1-"}, "not defined": {"--colour"}, `store "tape"`: {"--store", "tape"},
	} {
		code, out, err := play(t, args...)
		if code != exitUsage || out != "" || !strings.Contains(err, want) {
			t.Errorf("%q: exit %d, %q, wanted %q", args, code, err, want)
		}
	}
}

func TestHelp(t *testing.T) {
	if code, _, err := play(t, "--help"); code != exitClean || !strings.Contains(err, "lossy") {
		t.Errorf("exit %d: %s", code, err)
	}
}

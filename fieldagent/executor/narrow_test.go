package executor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
)

// E15: nothing that is said on the narrowband path is ever acknowledged there. A
// long row of results must get through it all the same: what stands at its head
// is repeated less and less, and does not keep what stands behind it from being
// told. When the primary path is back each result is told there, once for all.
func TestE15_UnacknowledgedHeadDoesNotJamTheNarrowband(t *testing.T) {
	const n = 1000
	w := &world{t: t, deadline: executor.NoDeadline}
	for _, line := range []string{"start workers=4 queue=2000", "connect", "welcome", "narrowband up"} {
		w.command(line)
	}
	for seq := range n {
		w.command(fmt.Sprintf("deliver %d", seq+1))
		w.command(fmt.Sprintf("finish %d", seq+1))
	}
	w.command("disconnect")
	w.out.Reset()
	// Ten frames a second: everything has been told once after n/10 seconds.
	w.command("wait " + (2 * n * executor.NarrowbandGap).String())
	told := framesBySeq(t, w.out.String())
	if len(told) != n {
		t.Errorf("%d of %d results were told", len(told), n)
	}
	for seq, at := range told {
		if first := time.Duration(slices.Min(at)) * time.Millisecond; first > n*executor.NarrowbandGap+executor.HedgeAfter {
			t.Fatalf("result %d was told after %v only", seq, first)
		}
	}
	w.out.Reset()
	w.command("wait 10m")
	for seq, at := range framesBySeq(t, w.out.String()) {
		if limit := int(10*time.Minute/executor.HedgeMost) + 1; len(at) > limit {
			t.Fatalf("result %d was repeated %d times in ten minutes, at most %d are due", seq, len(at), limit)
		}
	}

	w.out.Reset()
	for _, line := range []string{"connect", "welcome"} {
		w.command(line)
	}
	for range n/executor.Window + 1 {
		w.command("ack")
	}
	if events := strings.Count(w.out.String(), "processed ok"); events != n {
		t.Errorf("%d results on the primary path, want %d", events, n)
	}
	w.out.Reset()
	w.command("wait 10m")
	if more := framesBySeq(t, w.out.String()); len(more) != 0 {
		t.Errorf("still told on the narrowband path after the acknowledgement: %d", len(more))
	}
}

// framesBySeq reads when, in ms, each instruction was told of on the narrowband
// path.
func framesBySeq(t *testing.T, out string) map[int][]int {
	t.Helper()
	told := map[int][]int{}
	for line := range strings.Lines(out) {
		at, what, _ := strings.Cut(line, " ")
		what = strings.TrimSpace(what)
		if !strings.HasPrefix(what, "~> ") {
			continue
		}
		var seq, attempt int
		if _, err := fmt.Sscanf(what, "~> %d/%d", &seq, &attempt); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		d, err := time.ParseDuration(at)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		told[seq] = append(told[seq], int(d/time.Millisecond))
	}
	return told
}

package executor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/executor"
)

func after(t *testing.T, commands ...string) *world {
	t.Helper()
	w := &world{t: t, deadline: executor.NoDeadline}
	for _, c := range commands {
		w.command(c)
	}
	return w
}

// While nobody acknowledges, what watches see must not fill the journal: there is
// room for so much of it, and the rest of the room is for results.
func TestWatchesLeaveRoomForResults(t *testing.T) {
	w := after(t, "start", "connect", "welcome", "deliver 1 intent=watch", "disconnect")
	n := 0
	for ; w.core.Roomy(); n++ {
		w.command(fmt.Sprintf("edges 1 %d", n))
	}
	if n < 1000 || n > 2000 {
		t.Errorf("room for %d reports", n)
	}
	for _, c := range []string{"connect 2", "welcome session=2", "deliver 2", "finish 2"} {
		w.command(c)
	}
	if !strings.Contains(w.out.String(), "start 2/1") {
		t.Error("an instruction was refused although only watches have filled up")
	}
	w.command(fmt.Sprintf("welcome session=2 through=%d", n))
	w.command(fmt.Sprintf("ack %d", n))
	if !w.core.Roomy() {
		t.Error("there is no room after the acknowledgement")
	}
}

// Waiting is cheap but not free: so many watches may run or wait, another is told to
// come again. Workers are not taken by them.
func TestWatchesAreBounded(t *testing.T) {
	w := after(t, "start workers=1", "connect", "welcome")
	for n := range executor.MaxWatches {
		w.command(fmt.Sprintf("deliver %d intent=watch", n+1))
	}
	if got := strings.Count(w.out.String(), "start "); got != executor.MaxWatches {
		t.Errorf("%d of %d watches run", got, executor.MaxWatches)
	}
	w.out.Reset()
	w.command("deliver 100 intent=watch")
	w.command("deliver 101")
	if out := w.out.String(); !strings.Contains(out, "100/1 processed resources") || !strings.Contains(out, "start 101/1") {
		t.Error(out)
	}
	w.out.Reset()
	w.command("finish 1")
	w.command("deliver 102 intent=watch")
	if out := w.out.String(); !strings.Contains(out, "start 102/1") {
		t.Error(out)
	}
}

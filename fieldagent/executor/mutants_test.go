//go:build mutants

package executor_test

import (
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire/mutant"
	"github.com/apollo-11/apollo11/wire/mutant/mutanttest"
)

// TestMutantsOfTheExecutor: what the scripts demand breaks with each of these faults.
// The commands are those of the scripts, separated by semicolons; what the last block
// leads to is looked at.
func TestMutantsOfTheExecutor(t *testing.T) {
	const begin = "start workers=1; connect; welcome rules=1"
	for _, c := range []struct {
		fault  mutant.Fault
		blocks []string
		want   string
	}{
		{mutant.RefusalSpares, []string{begin + "; deliver 1 on=other; deliver 2 on=pin", "deliver 3 on=pin safe=yes for=-1s"}, "2/1 processed superseded"},
		{mutant.EpochIgnored, []string{begin + "; deliver 1 on=other; deliver 2 on=pin; disconnect", "connect; welcome rules=1 epoch=6"}, "2/1 processed superseded"},
		{mutant.KeepIgnored, []string{begin + "; deliver 1 on=pin keep=yes; finish 1 busy; deliver 2 on=pin", "deliver 1 attempt=2 on=pin"}, "start 1/2"},
		{mutant.AttemptsOverlap, []string{"start workers=2; connect; welcome rules=1; deliver 1; deliver 1 attempt=2", "finish 1 io"}, "start 1/2"},
		{mutant.RefusedIsContact, []string{"start autonomy=60s; connect; welcome rules=1; narrowband up", "disconnect; connect; welcome refused=twin; wait 61s"}, "the gateway is gone"},
		{mutant.WindowIgnored, []string{"start workers=1 autonomy=60s; connect; welcome; deliver 1; deliver 2; ack; disconnect; wait 61s; finish 1", "connect 2; welcome session=2 through=2"}, "start 2/1"},
		{mutant.LateStarts, []string{begin, "deliver 1 for=-1s"}, "1/1 processed expired"},
		{mutant.LinesIgnored, []string{"start workers=2; connect; welcome; deliver 1 on=pin; deliver 2 on=pin", "finish 1"}, "start 2/1"},
		{mutant.WatchTakesWorker, []string{begin + "; deliver 1 intent=watch", "deliver 2"}, "start 2/1"},
		{mutant.OffWaitsForWorker, []string{begin + "; deliver 1 on=other", "deliver 2 on=pin safe=yes"}, "drive 2/1"},
		{mutant.OffWaitsForJournal, []string{begin, "deliver 2 on=pin safe=yes"}, "drive 2/1"},
		{mutant.OffWaitsForRoom, []string{"start workers=1 queue=1 known=1; connect; welcome rules=1; deliver 1 on=other", "deliver 2 on=pin safe=yes; finish 2"}, "2/1 processed ok"},
		{mutant.ForgetUnmarked, []string{"start workers=1 queue=1 known=1; connect; welcome rules=1; deliver 1; finish 1; ack 1; wait 720h; deliver 2; finish 2; ack 2", "deliver 1"}, "1/1 processed unknown"},
		{mutant.DedupeAfterRun, []string{begin + "; deliver 1 on=pin; restart", "connect; welcome rules=1; query 1"}, "interrupted"},
		{mutant.InterruptedIsOK, []string{begin + "; deliver 1 on=pin; restart", "connect; welcome rules=1"}, "interrupted"},
		{mutant.ForgetsOnSend, []string{begin + "; deliver 1; finish 1; disconnect", "connect 2; welcome session=2 rules=1"}, "1/1 processed ok"},
		{mutant.ResultUnwritten, []string{begin + "; deliver 1; finish 1; restart", "connect; welcome rules=1"}, "1/1 processed ok"},
		{mutant.WithdrawalUnwritten, []string{begin + "; deliver 1 on=other; deliver 2 on=pin; deliver 3 on=pin safe=yes; restart", "connect; welcome rules=1"}, "2/1 processed superseded"},
		{mutant.MarkForgotten, []string{begin + "; deliver 2 on=pin; finish 2; ack; restart; connect; welcome rules=1 through=1", "deliver 1 on=pin"}, "1/1 processed superseded"},
		{mutant.HoldForgotten, []string{begin + "; deliver 1 on=pin hold=yes; finish 1; ack; restart; connect; welcome rules=1 through=1", "deliver 2 on=pin"}, "2/1 processed held_safe"},
		{mutant.QueueUnoffered, []string{begin + "; deliver 1 on=pin; deliver 2 on=pin; wait 1s; restart; connect; welcome rules=1", "query 2"}, "start 2/1"},
		{mutant.QueueUnmet, []string{begin + "; deliver 1 on=pin; deliver 2 on=pin; wait 1s; restart", "connect; welcome"}, "start 2/1"},
		{mutant.StrangerCancels, []string{begin + "; disconnect; connect 2", "cancel 7; welcome session=2 rules=1; deliver 7"}, "start 7/1"},
		{mutant.LeaseForgotten, []string{begin + "; deliver 1 on=pin; finish 1 lease=pin; restart", "connect; welcome rules=1"}, "restart"},
		{mutant.EarlyEndLost, []string{begin + "; deliver 1 on=pin; lease-end 1 expired", "finish 1 lease=pin"}, "lease"},
		{mutant.PlainUntold, []string{begin + "; deliver 1 on=pin; finish 1 plain=pin", "lease-end 1 loss"}, "loss"},
		{mutant.LocalOnArrival, []string{begin + "; deliver 1 on=pin; deliver 2 on=pin", "hand local"}, "2/1 processed local"},
		{mutant.EasyBusy, []string{begin, "deliver 2 on=pin"}, "start 2/1"},
	} {
		mutanttest.Bites(t, mutanttest.Case{Fault: c.fault, Want: c.want, Play: func() string { return played(t, c.blocks) }})
	}
}

// played is what the last of some blocks leads to.
func played(t *testing.T, blocks []string) string {
	w := &world{t: t, deadline: executor.NoDeadline}
	for _, b := range blocks {
		w.out.Reset()
		for _, line := range strings.Split(b, ";") {
			w.command(strings.TrimSpace(line))
		}
	}
	return w.out.String()
}

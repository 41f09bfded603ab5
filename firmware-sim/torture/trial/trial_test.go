package trial_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/firmware-sim/torture/trial"
)

// programs are built once from this tree.
var programs rig.Programs

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "apollo-torture-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if programs, err = rig.Build(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// setup is a trial's own; its seed is printed.
func setup(t *testing.T, seed uint64) trial.Setup {
	t.Helper()
	t.Logf("seed %d", seed)
	return trial.Setup{Bin: programs, Dir: t.TempDir(), Seed: seed, Progress: func(string, ...any) {}}
}

// clean wants that nothing was lost, done twice, late, or told falsely, and that
// the trial was one.
func clean(t *testing.T, r trial.Tally, least int) {
	t.Helper()
	t.Logf("%+v", r)
	if !r.OK() {
		t.Errorf("faults: %v", r.Faults)
	}
	if r.Acknowledged < least || r.Executed < least/2 {
		t.Errorf("%d commands acknowledged, %d executed: hardly any load", r.Acknowledged, r.Executed)
	}
}

// TestA2_C5_GatewayKilledUnderLoad: what was acknowledged runs exactly once.
func TestA2_C5_GatewayKilledUnderLoad(t *testing.T) {
	t.Parallel()
	r, err := trial.GatewayKills(t.Context(), setup(t, 1), 4)
	if err != nil {
		t.Fatal(err)
	}
	clean(t, r.Tally, 4)
}

// TestC6_C7_AgentsKilledUnderLoad: no token acts twice, and an unknown outcome is
// never shown as success or failure.
func TestC6_C7_AgentsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	r, err := trial.AgentKills(t.Context(), setup(t, 2), 4)
	if err != nil {
		t.Fatal(err)
	}
	clean(t, r.Tally, 4)
}

// TestL_LossyLinkIsSurvived runs in network namespaces, with 30 % packet loss.
func TestL_LossyLinkIsSurvived(t *testing.T) {
	t.Parallel()
	if err := rig.Missing(t.Context()); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	r, err := trial.LossyLink(t.Context(), setup(t, 3), 2, 30)
	if err != nil {
		t.Fatal(err)
	}
	clean(t, r.Tally, 4)
}

// TestB3_StateIsKnownAgainOverNarrowband: a black hole on the primary path. The
// limit of one second is for a machine that has time; here it has slack.
func TestB3_StateIsKnownAgainOverNarrowband(t *testing.T) {
	t.Parallel()
	for _, c := range []trial.Case{trial.Before, trial.Into} {
		r, err := trial.Window(t.Context(), setup(t, 4), c, 2, 3, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", r)
		if r.Twice+r.Failed != 0 || r.Window.Count != 6 || r.Window.Median > 5*trial.WindowLimit {
			t.Errorf("%s: %+v", c, r)
		}
	}
}

// TestC1_WorkOfAnAgentThatLeavesIsFree: stopped and crashed, with slack.
func TestC1_WorkOfAnAgentThatLeavesIsFree(t *testing.T) {
	t.Parallel()
	r, err := trial.Leave(t.Context(), setup(t, 5), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if r.Stop.Most > 10*trial.StopLimit || r.Crash.Most > 10*trial.CrashLimit || r.Hang.Least < trial.HangLeast {
		t.Errorf("too slow, or a hang was noticed too soon: %+v", r)
	}
}

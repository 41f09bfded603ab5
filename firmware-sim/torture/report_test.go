package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/outage"
	"github.com/apollo-11/apollo11/firmware-sim/torture/trial"
)

// TestReportSaysWhatIsWrong in the table, and the same in JSON.
func TestReportSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	spread := trial.NewSpread([]time.Duration{time.Second, 3 * time.Second, 2 * time.Second})
	r := &report{Seed: 7, Took: time.Minute, Skipped: []string{"link: no root"}, Failures: []string{"leave: no port"},
		Tallies:  []tallied{{trial.Tally{Name: "gateway killed", Rounds: 5, Duplicated: 1, Faults: []string{"c: twice"}}, &spread}},
		Windows:  []trial.WindowResult{{Case: trial.Into, Burst: 1, Window: spread, P99Bucket: 3}},
		Leave:    &trial.LeaveResult{Stop: spread},
		Restarts: []trial.RestartResult{{LogSize: trial.LogSize{Finished: 90_000, Unfinished: 10_000}, Dispatch: spread}},
		Drain:    &outage.DrainSummary{Commands: 5, Ordered: true},
		Losses:   []outage.LossResult{{Open: 3}},
		Orders:   []trial.OrderResult{{Name: "agent killed", Overtaken: 1, Faults: []string{"round 1: overtaken"}}},
		Offs: &trial.OffsResult{All: trial.OffsCount{Name: "all", Offs: 40, Alarmed: 2, Longest: 7 * time.Second, Alarm: 5100 * time.Millisecond, Late: 1},
			Kinds: []trial.OffsCount{{Name: "both paths held", Offs: 20}}, Faults: []string{"off-3: late"}},
	}
	var text, doc bytes.Buffer
	if err := r.write(&text, "text"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gateway killed", "c: twice", "back after 2000 ms", "sent into", "<= 3 s", "90000", "left out: link: no root",
		"FAILED: leave: no port", "round 1: overtaken", "both paths held", "7000 ms", "5100 ms", "off-3: late", "NOT as promised", "seed 7"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, text.String())
		}
	}
	if n := strings.Count(text.String(), "FAILED"); n != 9 {
		t.Errorf("%d verdicts are FAILED, want 9:\n%s", n, text.String())
	}
	if err := r.write(&doc, "json"); err != nil {
		t.Fatal(err)
	}
	var back report
	if err := json.Unmarshal(doc.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if back.Tallies[0].Duplicated != 1 || back.OK || back.Seed != 7 || back.Windows[0].Window.Median != 2*time.Second {
		t.Errorf("the JSON says %+v", back)
	}
}

// TestSizesTakeWhatWasGiven and nothing else.
func TestSizesTakeWhatWasGiven(t *testing.T) {
	t.Parallel()
	s := usual
	if s.override(0, 0, 0); s.orders != usual.orders || s.offs != usual.offs || s.backlog != usual.backlog {
		t.Errorf("nothing was given: %+v", s)
	}
	if s.override(7, time.Hour, 900); s.orders != 7 || s.kills != 7 || s.cuts != 7 || s.offs != time.Hour || s.backlog != 900 || s.windows != usual.windows {
		t.Errorf("all was given: %+v", s)
	}
	for _, name := range partNames {
		h := partHelp[name]
		if h.what == "" || h.size == nil || h.size(usual) == h.size(little) {
			t.Errorf("the help does not say what %s is, and how much of it there is", name)
		}
	}
}

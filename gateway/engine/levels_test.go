package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// differs says whether somebody is told that an output stands otherwise than was told,
// after two heartbeats with these levels.
func differs(h *harness, levels string) bool {
	return strings.Contains(h.block("heartbeat a levels="+levels)+h.block("heartbeat a levels="+levels), "level_unexpected")
}

// TestB27_TheLevelThatWasTold is what the end of each instruction makes it, and that of a
// level which the board has ended by itself.
func TestB27_TheLevelThatWasTold(t *testing.T) {
	const set = "submit node=a pin=lamp level=1\nevent a seq=1 processed ok"
	const lit = "submit node=a pin=horn level=1\nevent a seq=1 processed ok"
	for name, c := range map[string]struct {
		story, levels string // valve and lamp have a safe level, horn has none
		want          bool
	}{
		"never told":                       {"", "high,high,high", false},
		"on, and it is":                    {set, "low,high,-", false},
		"on, and it is not":                {set, "low,low,-", true},
		"a pulse leaves the other level":   {"submit node=a intent=gpio.pulse pin=lamp level=1 width=10ms\nevent a seq=1 processed ok", "low,low,-", false},
		"and not that of the pulse":        {"submit node=a intent=gpio.pulse pin=lamp level=1 width=10ms\nevent a seq=1 processed ok", "low,high,-", true},
		"safe is safe":                     {set + "\nsubmit node=a intent=gpio.safe\nevent a seq=2 processed ok", "low,high,-", true},
		"safe is held":                     {set + "\nsubmit node=a intent=gpio.safe\nevent a seq=2 processed ok", "held,held,-", false},
		"safe moves nothing without it":    {lit + "\nsubmit node=a intent=gpio.safe\nevent a seq=2 processed ok", "low,low,low", true},
		"and it is as it was":              {lit + "\nsubmit node=a intent=gpio.safe\nevent a seq=2 processed ok", "low,low,high", false},
		"an end that failed says nothing":  {set + "\nevent a seq=1 lease_ended failed finished=2s pin=lamp", "low,high,-", false},
		"an end by hand says nothing":      {set + "\nevent a seq=1 lease_ended hand finished=2s pin=lamp", "low,high,-", false},
		"at the loss it falls":             {set + "\nevent a seq=1 lease_ended loss finished=2s pin=lamp", "low,high,-", true},
		"what failed may be anything":      {set + "\nsubmit node=a pin=lamp level=0\nevent a seq=2 processed unknown", "low,high,-", false},
		"what was refused changes nothing": {set + "\nsubmit node=a pin=lamp level=0\nevent a seq=2 processed local", "low,low,-", true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.block("hello a pins=valve:0,lamp:0,horn:-")
			for line := range strings.SplitSeq(c.story, "\n") {
				h.block(line)
			}
			if got := differs(h, c.levels); got != c.want {
				t.Errorf("told as another level: %v\n%s", got, h.block("show"))
			}
		})
	}
}

// TestB27_ManyLevelsAreOneAlarm: a few are named and the others counted, once a minute.
func TestB27_ManyLevelsAreOneAlarm(t *testing.T) {
	h := newHarness(t)
	var pins, on, off []string
	for k := range 12 {
		pins, on, off = append(pins, fmt.Sprintf("p%02d:0", k)), append(on, "high"), append(off, "low")
	}
	h.block("hello a pins=" + strings.Join(pins, ","))
	for k := range pins {
		h.block(fmt.Sprintf("submit node=a pin=p%02d level=1", k))
		h.block(fmt.Sprintf("event a seq=%d processed ok", k+1))
	}
	beat := func(levels []string) string {
		l := "heartbeat a levels=" + strings.Join(levels, ",")
		h.now.Mono, h.now.Wall = h.now.Mono+time.Second, h.now.Wall+1000
		return h.block(l) + h.block(l)
	}
	beat(on)
	if out := beat(off); strings.Count(out, "level_unexpected") != 1 || !strings.Contains(out, "p07 is off, told was on; and 4 more") || strings.Contains(out, "p08 is") {
		t.Errorf("%s", out)
	}
	beat(on)
	if out := beat(off); strings.Contains(out, "level_unexpected") {
		t.Errorf("again at once:\n%s", out)
	}
	beat(on)
	h.now.Mono, h.now.Wall = h.now.Mono+61*time.Second, h.now.Wall+61_000
	if out := beat(off); strings.Count(out, "level_unexpected") != 1 {
		t.Errorf("and a minute later:\n%s", out)
	}
}

// TestB27_LevelsOfPinsThatAreGoneAreForgotten, so that no map after the other fills what is
// remembered.
func TestB27_LevelsOfPinsThatAreGoneAreForgotten(t *testing.T) {
	h := newHarness(t)
	seq := 0
	for k := range wire.MaxLines + 10 {
		h.block(fmt.Sprintf("goodbye a\nhello a pins=p%d:0", k))
		seq++
		h.block(fmt.Sprintf("submit node=a pin=p%d level=1", k))
		h.block(fmt.Sprintf("event a seq=%d processed ok", seq))
	}
	if !differs(h, "low") {
		t.Error("of the last one nobody knows the level")
	}
}

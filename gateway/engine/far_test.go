package engine_test

import (
	"math"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
)

// TestA17_FarTimesNeitherSpinNorExpire: a time may be further away than a Duration can
// say, or long ago, from whatever door it comes.
func TestA17_FarTimesNeitherSpinNorExpire(t *testing.T) {
	year2400 := time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for name, c := range map[string]struct {
		spec engine.Spec
		want engine.State
	}{
		"the year 2400":      {engine.Spec{NotAfter: year2400}, engine.StatePending},
		"the last time":      {engine.Spec{NotAfter: math.MaxInt64}, engine.StatePending},
		"almost the last":    {engine.Spec{NotAfter: math.MaxInt64 - 5000}, engine.StatePending},
		"a ttl without end":  {engine.Spec{TTLMs: math.MaxInt64}, engine.StatePending},
		"before all times":   {engine.Spec{NotAfter: math.MinInt64}, engine.StateTimeout},
		"a negative time":    {engine.Spec{NotAfter: -1}, engine.StateTimeout},
		"a ttl that is over": {engine.Spec{TTLMs: math.MinInt64}, engine.StateTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			c.spec.TaskID, c.spec.Intent, c.spec.Nodes = "t", "gpio.pulse", []string{"a"}
			h.log.step(h.eng, h.now, &engine.Submit{Spec: c.spec})
			h.round()
			h.block("advance 10m") // fails if it wakes without end
			if i := h.log.insts[1]; i.State != c.want {
				t.Fatalf("%v (%s)", i.State, i.Reason)
			}
			h.block("restart\nadvance 10m\nhello a\nadvance 1h a")
		})
	}
}

// TestA17_FarRetriesAndQuietPeriodsWait likewise, from the log of a gateway whose clock
// was in another century.
func TestA17_FarRetriesAndQuietPeriodsWait(t *testing.T) {
	h := newHarness(t)
	h.block("hello a\nsubmit node=a")
	h.block("event a seq=1 processed busy\noperate quiet_on for=1h note=x")
	for _, far := range []int64{math.MaxInt64, math.MinInt64, -1, time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()} {
		i := h.log.insts[1]
		i.RetryAt = far
		h.log.insts[1] = i
		h.log.quiet.Since, h.log.quiet.Until = -far, far
		h.boot()
		h.block("advance 10m")
	}
}

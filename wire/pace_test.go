package wire_test

import (
	"math"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// A20: what takes a known time has a limit in which it fits, whether the task names
// one or not.
func TestA20_WorkFitsItsTimeLimit(t *testing.T) {
	act := func(intent string, args map[string]any) wire.Act {
		a, err := wire.ParseAct(intent, rawMap(t, args))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	pulse := func(width string) wire.Act {
		return act(wire.IntentGPIOPulse, map[string]any{"pin": "a", "width": width})
	}
	for name, tt := range map[string]struct {
		act     wire.Act
		timeout uint32
		want    time.Duration
	}{
		"a write":                          {act(wire.IntentGPIOWrite, map[string]any{"pin": "a", "level": uint64(1)}), 0, wire.DefaultTimeout},
		"a write with a limit":             {act(wire.IntentGPIOWrite, map[string]any{"pin": "a", "level": uint64(1)}), 5, 5 * time.Millisecond},
		"an intent of an agent's own":      {wire.Act{}, 0, wire.DefaultTimeout},
		"a short pulse":                    {pulse("500ms"), 0, wire.DefaultTimeout},
		"a pulse of 3 minutes":             {pulse("3m"), 0, 3*time.Minute + wire.TimeoutRoom},
		"the longest pulse":                {pulse("1h"), 0, wire.MaxPulse + wire.TimeoutRoom},
		"a pulse with a longer limit":      {pulse("3m"), 600_000, 10 * time.Minute},
		"a limit as long as the pulse":     {pulse("3m"), 180_000, 3*time.Minute + wire.TimeoutRoom},
		"a limit that an old door let in":  {pulse("3m"), 1000, 3*time.Minute + wire.TimeoutRoom},
		"the longest watch":                {act(wire.IntentGPIOWatch, map[string]any{"pin": "a", "for": "24h"}), 0, wire.MaxWatch + wire.TimeoutRoom},
		"the longest limit that there is":  {wire.Act{}, math.MaxUint32, math.MaxUint32 * time.Millisecond},
		"gpio.safe, of however many lines": {act(wire.IntentSafe, nil), 0, wire.DefaultTimeout},
	} {
		if got := time.Duration(wire.LimitMs(tt.act, tt.timeout, wire.DefaultTimeout)) * time.Millisecond; got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// A gateway may have a default of its own, which is no longer than the work by chance.
func TestA20_AConfiguredDefault(t *testing.T) {
	pulse := wire.Act{Lasts: 3 * time.Minute}
	for _, tt := range []struct {
		act       wire.Act
		def, want time.Duration
	}{
		{wire.Act{}, 5 * time.Second, 5 * time.Second}, {pulse, 5 * time.Second, 3*time.Minute + wire.TimeoutRoom},
		{pulse, time.Hour, time.Hour}, {wire.Act{}, 0, time.Millisecond}, {wire.Act{}, 1000 * time.Hour, 1000 * time.Hour},
	} {
		if got := time.Duration(wire.LimitMs(tt.act, 0, tt.def)) * time.Millisecond; got != tt.want {
			t.Errorf("%v with the default %v: %v, want %v", tt.act.Lasts, tt.def, got, tt.want)
		}
	}
	if wire.TimeoutFor(pulse) != 3*time.Minute+wire.TimeoutRoom || wire.TimeoutFor(wire.Act{}) != wire.DefaultTimeout {
		t.Error("without a configured default another one holds")
	}
}

// Numbers that both sides rely on have an order among themselves.
func TestPacesFitEachOther(t *testing.T) {
	if wire.SafeLate >= wire.OrderWait || wire.ResendAfter > wire.OrderWait || wire.HeartbeatEvery > wire.OrderWait {
		t.Error("a line that waits for an older instruction is given up before anybody has looked")
	}
	if wire.TimeoutRoom > wire.DefaultTimeout || wire.DefaultTimeout < wire.OrderWait {
		t.Error("the time limits make no sense")
	}
	if wire.LinePlaces < 1 {
		t.Error("a line has no place in the window")
	}
}

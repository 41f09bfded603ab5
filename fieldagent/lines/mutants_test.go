//go:build mutants

package lines_test

import (
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire/mutant"
	"github.com/apollo-11/apollo11/wire/mutant/mutanttest"
)

// TestMutantsOfThePins: what these tests demand of the owner of the pins breaks with each
// of these faults.
func TestMutantsOfThePins(t *testing.T) {
	for _, c := range []struct {
		fault mutant.Fault
		play  func(*world)
		want  string
	}{
		{mutant.LossIsEvent, func(w *world) {
			w.wait(2 * time.Minute)
			w.do(on(valve, 1, "a"))
		}, "refused: lost"},
		{mutant.LossIgnored, func(w *world) {
			w.do(on(valve, 1, "a"))
			w.now = time.Minute
			w.do(lines.Tick{}) // to wait would be for ever with the fault
		}, "@1m0s valve low"},
		{mutant.HoldUnasked, func(w *world) {
			w.do(lines.Want{Line: lamp, Safe: true, Hold: true, Order: 1, Cause: "a"})
			w.do(on(lamp, 2, "b"))
		}, "refused: held safe"},
		{mutant.NumberUnchecked, func(w *world) {
			w.do(off(lamp, 2, "b"))
			w.do(on(lamp, 1, "a"))
		}, "refused: superseded"},
		{mutant.PulseEndBlind, func(w *world) {
			w.do(pulse(lamp, false, time.Minute, 1, "a"))
			w.do(lines.Local{Hands: lines.HandsOn})
		}, "end lamp a: local, low"},
		{mutant.LeaseUnreplaced, func(w *world) {
			w.do(lines.Want{Line: lamp, Level: true, Order: 1, Cause: "a", For: time.Second})
			w.do(lines.Want{Line: lamp, Level: true, Order: 2, Cause: "b", For: time.Minute})
		}, "end lamp a: replaced, high"},
		{mutant.ReloadForgets, func(w *world) {
			w.do(pulse(horn, true, time.Second, 1, "a"))
			changed := all()
			changed[3].HasSafe = true
			w.do(lines.Remap{Lines: changed})
			w.wait(time.Second)
		}, "@1s horn low"},
	} {
		mutanttest.Bites(t, mutanttest.Case{Fault: c.fault, Want: c.want, Play: func() string {
			w := newWorld(t)
			c.play(w)
			return strings.Join(w.log, "\n")
		}})
	}
}

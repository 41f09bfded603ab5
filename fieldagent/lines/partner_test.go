package lines_test

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// safety.md 12: a stand-in for an interlock says that the lamp is never at its safe level
// while the valve is away from its own. What leads the lamp there takes the valve first;
// what leads it away, and a partner that stays where it is, hinder nothing.
func TestAPartnerGoesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		before, in lines.Input
		fate       lines.Fate // of the partner
		want       []string
	}{
		"off": {on(valve, 2, "v"), off(lamp, 3, "x"), lines.Moved,
			[]string{"@0s valve low v", "@0s lamp low x", "@0s end valve v: replaced, low", "@0s end lamp a: replaced, low"}},
		"safe": {on(valve, 2, "v"), lines.Want{Line: lamp, Safe: true, Hold: true, Order: 3, Cause: "x"}, lines.Moved,
			[]string{"@0s valve low v", "@0s lamp low x", "@0s end valve v: replaced, low", "@0s end lamp a: replaced, low"}},
		"the partner is safe": {lines.Tick{}, off(lamp, 3, "x"), lines.Moved,
			[]string{"@0s lamp low x", "@0s end lamp a: replaced, low"}},
		"the partner does not move": {on(valve, 2, "v"), off(lamp, 3, "x"), lines.Unmoved,
			[]string{"@0s valve low v fails", "@0s lamp low x", "@0s end valve v: failed, high", "@0s end lamp a: replaced, low"}},
		"away from safe": {on(valve, 2, "v"), on(lamp, 3, "x"), lines.Moved,
			[]string{"@0s lamp high x", "@0s end lamp a: replaced, high"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.c = lines.New(lines.Config{Autonomy: time.Minute, Lines: all(), NeverWith: func(k wire.LineKey) []wire.LineKey {
				if k == lamp {
					return []wire.LineKey{valve, wire.LineOf("nowhere")}
				}
				return nil
			}}, 0)
			w.do(on(lamp, 1, "a"))
			w.do(c.before)
			w.log = nil
			w.fate = func(d lines.Drive) lines.Fate {
				if d.Line == valve {
					return c.fate
				}
				return lines.Moved
			}
			w.do(c.in)
			w.want(c.want...)
		})
	}
}

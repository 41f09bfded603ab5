package executor_test

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// A cancel comes while the record of a start waits for the disk, and then the start
// comes too late and does not happen: the attempt ends cancelled. It does not wait again
// as if nobody had said anything, whether its next attempt has come by then or not.
func TestACancelOfWhatWasNotBegunIsNotForgotten(t *testing.T) {
	for name, next := range map[string]bool{"alone": false, "its next attempt has come": true} {
		cfg := config(1)
		cfg.Autonomy = time.Minute
		b := newBench(t, cfg)
		b.welcome(0)
		b.deliver(1, "a")
		out := b.receive(&wire.Cancel{Seq: 1, Token: token(1), Reason: "operator"})
		if len(out.Abort) != 1 {
			t.Errorf("%s: aborted %v", name, out.Abort)
		}
		if next {
			in := b.instruction(1, "a")
			in.Attempt, in.Token = 2, token(10)
			b.receive(in)
		}
		b.mono += 2 * time.Minute
		b.away = 61 * time.Second
		if !b.core.TooLate(b.at(), token(1)) {
			t.Fatal("not too late")
		}
		out = b.step(executor.Unstarted{Tokens: []wire.Token{token(1)}})
		if got := ends(out)[1]; got != wire.CodeCancelled {
			t.Errorf("%s: told %v, want cancelled", name, got)
		}
		b.away = 0
		for _, w := range append(out.Start, b.step(executor.Tick{}).Start...) {
			if w.Attempt == 1 {
				t.Errorf("%s: it begins all the same", name)
			}
		}
	}
}

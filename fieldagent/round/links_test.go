package round_test

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/round"
)

// A6: the gateway is away from the end of the last connection on, whatever the loop has
// heard of it, until the loop has taken that there is one again.
func TestA6_LinksCountFromTheEndOfTheLast(t *testing.T) {
	var l round.Links
	up, taken := l.Up, func(in executor.Input) { l.Taken(in) }
	is := func(at, want time.Duration) {
		t.Helper()
		if got := l.Away(at); got != want {
			t.Errorf("at %v: away for %v, want %v", at, got, want)
		}
	}
	is(3, 3) // since the start
	up(round.Primary)
	is(4, 4)
	taken(executor.Connected{})
	is(5, 0)
	up(round.Narrowband)
	taken(executor.NarrowbandUp{})
	l.Down(round.Primary, 10)
	is(20, 0) // by the other
	l.Down(round.Narrowband, 30)
	is(90, 60)
	// The loop hangs: connections come and go, and it knows of none.
	up(round.Primary)
	is(95, 65)
	l.Down(round.Primary, 96)
	up(round.Primary)
	taken(executor.Connected{}) // of the one that has ended
	is(100, 70)
	taken(executor.Connected{})
	is(101, 0)
}

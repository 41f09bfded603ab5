package fieldagent

import (
	"sync"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/round"
)

// linked is how long the gateway has been away, as the links know it: the loop may hang
// at its disk and learn it late.
type linked struct {
	mono func() time.Duration

	mu    sync.Mutex // guards links
	links round.Links
}

func (k *linked) up(p round.Path) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.links.Up(p)
}

func (k *linked) down(p round.Path) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.links.Down(p, k.mono())
}

// taken notes what the loop has taken.
func (k *linked) taken(in executor.Input) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.links.Taken(in)
}

// clock adds to a time how long that is.
func (k *linked) clock(now func() executor.Now) func() executor.Now {
	return func() executor.Now {
		t := now()
		k.mu.Lock()
		defer k.mu.Unlock()
		t.Away = k.links.Away(t.Mono)
		return t
	}
}

package gpio

import (
	"slices"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// maxNotices bounds what waits for the owner and nobody waits for.
const maxNotices = 4096

// notices are what the owner is told without anybody waiting for it. Telling never
// blocks, whatever the owner is at.
type notices struct {
	wake chan struct{} // holds one

	mu    sync.Mutex // guards the fields below
	heard time.Duration
	tasks []func() // for Run, the oldest first
}

// add hands something to Run. With too many, the oldest are dropped: there is no such
// number of leases to end.
func (n *notices) add(task func()) {
	n.mu.Lock()
	if n.tasks = append(n.tasks, task); len(n.tasks) > maxNotices {
		n.tasks = slices.Delete(n.tasks, 0, 1)
	}
	n.mu.Unlock()
	n.call()
}

func (n *notices) call() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Heard says that the gateway works with this agent, as of now. Without it for the
// autonomy window the gateway counts as lost.
func (o *Owner) Heard() {
	n := &o.notices
	n.mu.Lock()
	n.heard = max(n.heard, o.now())
	n.mu.Unlock()
	n.call()
}

// Cancel ends the lease or the pulse that this cause has begun, at the safe level. One
// that a later command has replaced is not touched.
func (o *Owner) Cancel(cause string) { o.notices.add(func() { o.step(lines.Cancel{Cause: cause}) }) }

// Hold keeps lines at their safe levels until they are released.
func (o *Owner) Hold(keys []wire.LineKey) {
	keys = slices.Clone(keys)
	o.notices.add(func() {
		o.step(lines.Hold{Lines: keys})
		o.moved = true
	})
}

// take takes what the owner was told.
func (o *Owner) take() {
	n := &o.notices
	n.mu.Lock()
	heard, tasks := n.heard, n.tasks
	n.heard, n.tasks = 0, nil
	n.mu.Unlock()
	if heard > 0 {
		o.step(lines.Heard{At: heard})
	}
	for _, task := range tasks {
		task()
	}
}

package trial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

const (
	// batchSize is how many commands a client sends before it reads the receipts, and
	// packetIDs after how many batches it connects anew.
	batchSize = 4
	packetIDs = 60_000 / batchSize
	// shortTTL is the time limit of some commands: shorter than many an outage.
	shortTTL = "2s"
)

// command writes one task for a node. Of eight one is a pulse, which must not be
// repeated when its outcome is unknown, and one has a short time limit.
func command(id, node string, n int, rnd *rand.Rand) string {
	switch n % 8 {
	case 3:
		return fmt.Sprintf(`{"task_id":%q,"intent":"gpio.pulse","node":%q,"args":{"pin":"GPIO%d","width":"%dms"}}`,
			id, node, 4+n/8%8, 5+rnd.IntN(60))
	case 7:
		return fmt.Sprintf(`{"task_id":%q,"intent":"gpio.write","node":%q,"args":{"pin":"GPIO17","level":%d},"ttl":%q%s}`,
			id, node, n/8%2, shortTTL, often)
	}
	return fmt.Sprintf(`{"task_id":%q,"intent":"gpio.write","node":%q,"args":{"pin":"GPIO17","level":%d}%s}`, id, node, n%2, often)
}

// often is a policy that outlasts many kills.
const often = `,"retry_policy":{"max_retries":20,"initial_interval":"50ms","max_interval":"500ms"}`

// load is clients that send commands until they are stopped, whatever becomes of
// their connections.
type load struct {
	site  *rig.Site
	book  *book
	nodes []string
	every time.Duration // between two batches of a client

	stop  context.CancelFunc
	group sync.WaitGroup
}

// startLoad starts clients, each with its own source of chance.
func startLoad(ctx context.Context, s *rig.Site, b *book, nodes []string, clients int, every time.Duration, rnd *rand.Rand) *load {
	ctx, stop := context.WithCancel(ctx)
	l := &load{site: s, book: b, nodes: nodes, every: every, stop: stop}
	for k := range clients {
		own := rand.New(rand.NewPCG(rnd.Uint64(), rnd.Uint64()))
		l.group.Go(func() { l.client(ctx, fmt.Sprintf("scada-%d", k+1), own) })
	}
	return l
}

// end stops the clients and waits for them.
func (l *load) end() {
	l.stop()
	l.group.Wait()
}

func (l *load) client(ctx context.Context, name string, rnd *rand.Rand) {
	var c *rig.Client
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	for batch := 0; rig.Pause(ctx, l.every) == nil; batch++ {
		if c == nil || batch%packetIDs == 0 {
			if c != nil {
				c.Close()
			}
			var err error
			if c, err = l.site.Client(ctx, name); err != nil {
				c = nil
				continue // the gateway is down
			}
		}
		var ids, payloads []string
		for k := range batchSize {
			n := batch*batchSize + k
			id := fmt.Sprintf("%s-%d", name, n)
			ids = append(ids, id)
			payloads = append(payloads, command(id, l.nodes[(n/8+k)%len(l.nodes)], n, rnd))
		}
		l.book.sent(ids...)
		acked, err := c.Submit(rig.TaskTopic, payloads...)
		l.book.received(ids[:acked]...)
		if err != nil {
			c.Close()
			c = nil
		}
	}
}

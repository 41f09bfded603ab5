package broker

import (
	"context"
	"errors"
	"sync"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// sweepEvery is how often sessions are looked at for their end.
const sweepEvery = time.Second

// registry knows who owns each client id. A client id is owned from the moment
// its CONNECT is admitted until nothing of that connection runs any more, so
// Mochi never sees two clients of one name and none of its takeover races can
// happen.
type registry struct {
	mu       sync.Mutex
	owners   map[string]*owner
	sessions map[string]session // of clients that are away
}

// owner holds a client id: a peer, or the sweeper for a moment.
type owner struct {
	peer *peer // nil for the sweeper
	done chan struct{}
}

// session is what is kept for an absent client besides Mochi's own state.
type session struct {
	until time.Time
	taken map[uint16]struct{}
}

func newRegistry() *registry {
	return &registry{owners: make(map[string]*owner), sessions: make(map[string]session)}
}

// tryOwn makes o the owner of id, or returns the present one.
func (r *registry) tryOwn(id string, o *owner) *owner {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.owners[id]; now != nil {
		return now
	}
	r.owners[id] = o
	return nil
}

func (r *registry) disown(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owners, id)
}

// resume takes the session of id out of the list of absent ones.
func (r *registry) resume(id string) session {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[id]
	delete(r.sessions, id)
	return s
}

// suspend keeps a session; false means that there are limit already.
func (r *registry) suspend(id string, s session, limit int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sessions) >= limit {
		return false
	}
	r.sessions[id] = s
	return true
}

// cutShort lets the session of an absent client end with the next sweep.
func (r *registry) cutShort(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.sessions[id]; ok {
		s.until = time.Time{}
		r.sessions[id] = s
	}
}

// due takes the ended sessions whose client id is free, and owns those ids.
func (r *registry) due(now time.Time) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for id, s := range r.sessions {
		if s.until.After(now) || r.owners[id] != nil {
			continue
		}
		delete(r.sessions, id)
		r.owners[id] = &owner{done: make(chan struct{})}
		ids = append(ids, id)
	}
	return ids
}

// absent counts the sessions of clients that are away.
func (r *registry) absent() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.sessions))
}

// peers returns the connected peers.
func (r *registry) peers() []*peer {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*peer, 0, len(r.owners))
	for _, o := range r.owners {
		if o.peer != nil {
			out = append(out, o.peer)
		}
	}
	return out
}

// claim makes p the owner of its client id. A present connection of the same
// user is ended first, and claim waits until it has.
func (b *Broker) claim(p *peer) error {
	timeout := time.NewTimer(b.limits.ConnectTimeout)
	defer timeout.Stop()
	o := &owner{peer: p, done: p.ended}
	for {
		now := b.registry.tryOwn(p.clientID, o)
		if now == nil {
			s := b.registry.resume(p.clientID)
			if p.keep > 0 && s.taken != nil {
				p.receipts.taken = s.taken
			}
			return nil
		}
		if old := now.peer; old != nil {
			if b.cfg.Users != nil && old.username != p.username {
				return refuse(packets.ErrClientIdentifierNotValid, "client id %q is in use by another user", p.clientID)
			}
			old.disconnect(packets.ErrSessionTakenOver, "the same client id has connected again", TakenOver)
		}
		select {
		case <-now.done:
		case <-p.conn.closing:
			return errGone
		case <-timeout.C:
			return refuse(packets.ErrServerBusy, "the former connection of %q has not ended yet, try again", p.clientID)
		}
	}
}

// ended runs when nothing of a connection runs any more except late verdicts.
func (b *Broker) ended(c *conn, panicked bool, err error) {
	p := c.peer
	if p == nil {
		return
	}
	cause := c.causeNow()
	var fault packets.Code
	if cause == Lost && (panicked || errors.As(err, &fault) && fault.Code >= packets.ErrUnspecifiedError.Code) {
		cause = Refused // malformed bytes, which the protocol engine ends without a word
		p.audit.warn("client disconnected", "client", short(p.clientID), "user", short(p.username),
			"remote", c.RemoteAddr().String(), "reason", "malformed packet", "err", err)
	}
	if cause == Slow {
		b.stats.slowClosed.Add(1)
		b.audit.warn("connection closed: peer does not read what is sent to it",
			"client", short(p.clientID), "remote", c.RemoteAddr().String())
	}
	if p.announced {
		if p.hasWill && (cause == Lost || cause == Slow || cause == Refused) {
			b.stats.uplinks.Add(1)
			b.handler.Uplink(p.uplink(p.will, true))
		}
		b.tellPresence(p, false, cause)
	}
	b.stats.connected[p.rights.role].Add(-1)
	kept := !panicked && p.keep > 0 && b.registry.suspend(p.clientID, session{
		until: time.Now().Add(p.keep), taken: p.receipts.carry(),
	}, b.limits.Sessions)
	if !kept {
		b.forget(p.clientID)
	}
	b.registry.disown(p.clientID)
	close(p.ended)
}

// forget removes all that Mochi keeps of a client id. The caller owns the id.
func (b *Broker) forget(id string) {
	cl, ok := b.server.Clients.Get(id)
	if !ok {
		return
	}
	cl.Stop(packets.CodeDisconnect)
	cl.ClearInflights()
	b.server.UnsubscribeClient(cl)
	b.server.Clients.Delete(id)
}

// sweep ends the sessions of clients that have been away for too long.
func (b *Broker) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, id := range b.registry.due(now) {
				b.forget(id)
				b.registry.release(id)
			}
		}
	}
}

// release gives up an id owned by the sweeper.
func (r *registry) release(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.owners[id].done)
	delete(r.owners, id)
}

// order renumbers the unacknowledged messages of a session that is resumed.
// Mochi sends them again sorted by the low 16 bits of their time of creation,
// which we set to a running number; renumbered from 0 they keep their order.
func order(cl *mqtt.Client) {
	for i, pk := range sortedInflight(cl) {
		pk.Created = int64(i)
		cl.State.Inflight.Set(pk)
	}
}

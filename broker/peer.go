package broker

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// peer is an admitted client on its connection.
type peer struct {
	conn     *conn
	rights   rights
	clientID string
	username string
	node     string // node, or short id on the narrowband path
	path     Path
	version  byte
	receipts *receipts
	strip    bool // take the retain flag off tasks
	noQueue  bool // its subscriptions are granted QoS 0
	will     []byte
	hasWill  bool
	audit    *auditLog
	frames   bucket        // narrowband: frames still allowed; reading goroutine
	ended    chan struct{} // closed when nothing of this client runs any more

	// Of the reading goroutine.
	announced bool          // Presence(connected) was given
	keep      time.Duration // how long the session outlives the connection
	ackID     uint16        // true id of the SUBSCRIBE or UNSUBSCRIBE in work
	throttled bool          // told the log
	refused   []int         // refused filters of the SUBSCRIBE in work
	replayed  int           // bytes of retained messages since the last pause

	mute   atomic.Bool  // take no more publishes, the connection ends soon
	queued atomic.Int32 // messages in Mochi's queue to this client, about
}

// peerOf returns the peer of a client, nil for one that was never admitted and
// for Mochi's inline client.
func peerOf(cl *mqtt.Client) *peer {
	c, ok := cl.Net.Conn.(*conn)
	if !ok {
		return nil
	}
	return c.peer
}

func (p *peer) send(b []byte) {
	_, _ = p.conn.Write(b) // a connection that is gone needs no receipt
}

// disconnect ends the connection; an MQTT 5 client is told why. MQTT 3.1.1 has
// no such packet for servers.
func (p *peer) disconnect(code packets.Code, text string, cause Cause) {
	p.conn.blame(cause)
	if p.version == 5 {
		pk := packets.Packet{
			FixedHeader:     packets.FixedHeader{Type: packets.Disconnect},
			ProtocolVersion: 5,
			ReasonCode:      code.Code,
			Properties:      packets.Properties{ReasonString: reasonText(text)},
			Mods:            packets.Mods{MaxSize: p.receipts.form.maxSize, DisallowProblemInfo: p.receipts.form.noReasons},
		}
		var out bytes.Buffer
		if pk.DisconnectEncode(&out) == nil {
			p.send(out.Bytes())
		}
	}
	p.conn.end(cause)
}

// Pacing of deliveries. Mochi's queue drops what does not fit, although the
// goroutine that empties it never blocks: it only needs to be let run.
const (
	paceHigh  = 3 // wait from 3/4 of the queue on,
	paceOf    = 4 // until it is down to half of that
	paceWait  = 50 * time.Millisecond
	paceSleep = 100 * time.Microsecond
)

// pace counts a message about to be queued and, when the queue is nearly full,
// gives its reader a moment. It runs on the publishing goroutine.
func (p *peer) pace(capacity int) {
	high := int32(capacity * paceHigh / paceOf)
	if p.queued.Add(1) > high {
		p.wait(paceWait, func() bool { return p.queued.Load() > high/2 })
	}
}

// wait waits until busy is false, for at most limit or until the connection
// closes, and reports whether it is.
func (p *peer) wait(limit time.Duration, busy func() bool) bool {
	for deadline := time.Now().Add(limit); busy(); {
		select {
		case <-p.conn.closing:
			return false
		default:
		}
		if time.Now().After(deadline) {
			return false
		}
		runtime.Gosched()
		if busy() {
			time.Sleep(paceSleep)
		}
	}
	return true
}

// unqueued counts messages that left the queue or never entered it.
func (p *peer) unqueued(n int32) {
	if p.queued.Add(-n) < 0 {
		p.queued.Store(0) // a redelivery bypasses the queue
	}
}

// drain waits until what was replayed to this client has left, so that any
// number of retained messages fits through the bounded buffer. It runs on the
// client's own reading goroutine; a peer that does not read is ended by the
// write deadline.
func (p *peer) drain(limit int) {
	for p.queued.Load() > 0 || p.conn.waiting() > limit {
		select {
		case <-p.conn.closing:
			return
		case <-time.After(paceSleep):
		}
	}
}

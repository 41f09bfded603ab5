package broker

import (
	"bytes"
	"maps"
	"strings"
	"sync"

	"github.com/mochi-mqtt/server/v2/packets"
)

// receipt is the acknowledgement owed for one publish.
type receipt struct {
	qos     byte
	id      uint16
	size    int
	settled bool
	reason  Reason
	text    string
}

// standing says what a publish is to the connection on which it came.
type standing uint8

const (
	fresh    standing = iota
	absorbed          // a repetition of one that still waits for its receipt
	received          // a QoS 2 repetition of one whose PUBREC was sent
	clash             // its packet id is in use by another publish
	flood             // more unacknowledged publishes than were announced
)

// receipts is the inbound half of one connection's QoS flows: what still waits
// for a verdict, in the order of arrival, and the QoS 2 publishes that wait for
// their PUBREL. Mochi keeps both directions in one table, where the packet ids
// of the two sides collide; it sees nothing of this half.
//
//	            begin            settle(accepted)          release
//	QoS 1  ─────────▶ waiting ───────── PUBACK ─▶ (forgotten)
//	QoS 2  ─────────▶ waiting ───────── PUBREC ─▶ taken ── PUBREL/PUBCOMP ─▶ (forgotten)
type receipts struct {
	form     ackForm
	maxCount int
	maxBytes int
	strict   bool          // the peer was told maxCount and must keep to it
	room     chan struct{} // one slot: something was settled

	mu      sync.Mutex
	queue   []*receipt          // not yet answered, oldest first
	waiting map[uint16]*receipt // those of queue with QoS 1 or 2
	taken   map[uint16]struct{} // QoS 2, PUBREC written; at most 65535
	bytes   int
}

func newReceipts(form ackForm, l Limits, taken map[uint16]struct{}) *receipts {
	if taken == nil {
		taken = make(map[uint16]struct{})
	}
	return &receipts{
		form:     form,
		maxCount: l.Unacked,
		maxBytes: l.UnackedBytes,
		strict:   form.version == 5,
		room:     make(chan struct{}, 1),
		waiting:  make(map[uint16]*receipt),
		taken:    taken,
	}
}

// begin enters a publish of size bytes. When too many wait already it blocks
// until some are settled or gone is closed; that is the backpressure on a
// sender that is faster than the disk. Only the reading goroutine calls it.
func (r *receipts) begin(qos byte, id uint16, dup bool, size int, gone <-chan struct{}) (*receipt, standing) {
	for {
		r.mu.Lock()
		if s := r.standing(qos, id, dup); s != fresh {
			r.mu.Unlock()
			return nil, s
		}
		if len(r.queue) < r.maxCount && (len(r.queue) == 0 || r.bytes+size <= r.maxBytes) {
			rc := &receipt{qos: qos, id: id, size: size}
			r.queue = append(r.queue, rc)
			r.bytes += size
			if qos > 0 {
				r.waiting[id] = rc
			}
			r.mu.Unlock()
			return rc, fresh
		}
		r.mu.Unlock()
		select {
		case <-r.room:
		case <-gone:
			return nil, absorbed
		}
	}
}

func (r *receipts) standing(qos byte, id uint16, dup bool) standing {
	if qos == 0 {
		return fresh
	}
	if _, ok := r.waiting[id]; ok {
		if dup {
			return absorbed
		}
		return clash
	}
	if _, ok := r.taken[id]; ok {
		if qos == 2 {
			return received
		}
		return clash
	}
	if r.strict && len(r.waiting)+len(r.taken) >= r.maxCount {
		return flood
	}
	return fresh
}

// settle enters the verdict on rc and writes, through send, all receipts that
// are due: the oldest ones up to the first that still waits. false means that
// rc had its verdict already.
func (r *receipts) settle(rc *receipt, reason Reason, text string, send func([]byte)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rc.settled {
		return false
	}
	rc.settled, rc.reason, rc.text = true, reason, text
	var out []byte
	done := 0
	for done < len(r.queue) && r.queue[done].settled {
		out = append(out, r.answer(r.queue[done])...)
		r.queue[done] = nil
		done++
	}
	r.queue = r.queue[done:]
	if done > 0 {
		select {
		case r.room <- struct{}{}:
		default:
		}
	}
	if len(out) > 0 {
		send(out) // appends to a buffer; inside the lock to keep the order
	}
	return true
}

// answer takes rc off the books and returns its receipt, nil if none is due.
func (r *receipts) answer(rc *receipt) []byte {
	r.bytes -= rc.size
	if rc.qos == 0 {
		return nil
	}
	delete(r.waiting, rc.id)
	refused := rc.reason != Accepted
	switch {
	case refused && r.form.version < 5 && rc.reason.repeatable():
		return nil
	case rc.qos == 1:
		return r.form.encode(packets.Puback, rc.id, rc.reason, rc.text)
	case !refused || r.form.version < 5:
		r.taken[rc.id] = struct{}{}
	}
	return r.form.encode(packets.Pubrec, rc.id, rc.reason, rc.text)
}

// release ends a QoS 2 flow by its PUBREL and returns the PUBCOMP.
func (r *receipts) release(id uint16) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.taken[id]
	delete(r.taken, id)
	return r.form.pubcomp(id, known)
}

// carry returns the QoS 2 flows that the session keeps beyond the connection.
func (r *receipts) carry() map[uint16]struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.taken) // verdicts may still come in here
}

// ackForm is how one client wants its acknowledgements.
type ackForm struct {
	version   byte
	maxSize   uint32 // of a packet, 0 is no limit
	noReasons bool   // the client asked for no reason strings
}

// maxReasonText bounds a reason string, in bytes.
const maxReasonText = 512

// encode returns a PUBACK or PUBREC.
func (f ackForm) encode(kind byte, id uint16, reason Reason, text string) []byte {
	if f.version < 5 || reason == Accepted {
		return []byte{kind << 4, 2, byte(id >> 8), byte(id)}
	}
	return f.packet(kind, id, reason.code(), text)
}

func (f ackForm) pubcomp(id uint16, known bool) []byte {
	if f.version < 5 || known {
		return []byte{packets.Pubcomp << 4, 2, byte(id >> 8), byte(id)}
	}
	return f.packet(packets.Pubcomp, id, packets.ErrPacketIdentifierNotFound.Code, "")
}

// packet encodes an acknowledgement with a reason code, and with the reason
// string if the client wants it and it fits.
func (f ackForm) packet(kind byte, id uint16, code byte, text string) []byte {
	pk := packets.Packet{
		FixedHeader:     packets.FixedHeader{Type: kind},
		ProtocolVersion: 5,
		PacketID:        id,
		ReasonCode:      code,
		Properties:      packets.Properties{ReasonString: reasonText(text)},
		Mods:            packets.Mods{MaxSize: f.maxSize, DisallowProblemInfo: f.noReasons},
	}
	var out bytes.Buffer
	var err error
	switch kind {
	case packets.Puback:
		err = pk.PubackEncode(&out)
	case packets.Pubrec:
		err = pk.PubrecEncode(&out)
	default:
		err = pk.PubcompEncode(&out)
	}
	if err != nil || f.maxSize > 0 && out.Len() > int(f.maxSize) {
		return []byte{kind << 4, 3, byte(id >> 8), byte(id), code}
	}
	return out.Bytes()
}

// reasonText makes text fit for an MQTT string.
func reasonText(text string) string {
	if len(text) > maxReasonText {
		text = text[:maxReasonText]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}

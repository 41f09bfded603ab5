package broker

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

var errOverflow = errors.New("peer does not read what is sent to it")

// conn is what Mochi gets instead of a socket. Write never blocks: it appends
// to a bounded buffer that a goroutine of the connection sends. Close lets that
// goroutine hand over the last bytes for a moment, so that a refusal is read
// before the socket goes. Deadlines set by Mochi apply to reads only.
type conn struct {
	raw      net.Conn // yields MQTT bytes
	socket   net.Conn // below raw, the same without WebSocket
	listener string
	number   uint64 // of this connection, from 1
	frames   *framer
	stall    time.Duration
	linger   time.Duration

	// peer is set by the reading goroutine when CONNECT has been admitted,
	// before anybody else knows the client. packets and connecting belong to
	// that goroutine.
	peer       *peer
	packets    uint64
	connecting *connecting

	closing chan struct{} // closed by the first Close or overflow
	wake    chan struct{} // one slot: there are bytes to send
	turn    chan struct{} // one slot: held while reading from the socket

	mu     sync.Mutex
	buf    []byte
	limit  int
	closed bool
	cause  Cause       // first cause given
	later  *time.Timer // a close that is due, stopped by the close
}

func newConn(raw net.Conn, listener string, number uint64, l Limits) *conn {
	publish := l.PacketSize
	if listener == narrowbandListener {
		publish = l.NarrowbandFrame
	}
	socket := raw
	if w, ok := raw.(*wsConn); ok {
		socket = w.Conn
	}
	return &conn{
		raw:      raw,
		socket:   socket,
		listener: listener,
		number:   number,
		frames:   newFramer(raw, publish, l.PacketSize),
		stall:    l.WriteStall,
		linger:   l.Linger,
		limit:    l.WriteBuffer,
		closing:  make(chan struct{}),
		wake:     make(chan struct{}, 1),
		turn:     make(chan struct{}, 1),
	}
}

// run sends what Write collects until the connection is closed, and then closes
// the socket. It is the only writer of the socket.
func (c *conn) run() {
	defer func() { _ = c.raw.Close() }()
	var spare []byte
	for {
		c.mu.Lock()
		out, closed := c.buf, c.closed
		c.buf = spare
		c.mu.Unlock()
		spare = keep(out) // the two buffers change places
		if len(out) > 0 {
			if err := c.send(out); err != nil {
				c.end(Lost)
				return
			}
			continue
		}
		if closed {
			c.farewell()
			return
		}
		select {
		case <-c.wake:
		case <-c.closing:
		}
	}
}

// keepBytes is the largest idle buffer kept per connection: bursts give their
// memory back.
const keepBytes = 16 << 10

func keep(b []byte) []byte {
	if cap(b) > keepBytes {
		return nil
	}
	return b[:0]
}

func (c *conn) send(b []byte) error {
	if err := c.raw.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
		return err
	}
	select {
	case <-c.closing: // closing may have shortened the deadline before us
		if err := c.raw.SetWriteDeadline(time.Now().Add(c.linger)); err != nil {
			return err
		}
	default:
	}
	_, err := c.raw.Write(b)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		c.blame(Slow)
	}
	return err
}

// farewell closes the sending side and reads away what still comes, because a
// socket closed over unread bytes resets the connection and the peer may lose
// the reason that was just sent to it.
func (c *conn) farewell() {
	half, ok := c.raw.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	select {
	case c.turn <- struct{}{}: // the reader has been woken and is out
	case <-time.After(c.linger):
		return
	}
	if c.socket.SetReadDeadline(time.Now().Add(c.linger)) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, c.socket) // ends by EOF or by the deadline
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	select {
	case <-c.closing:
		return 0, net.ErrClosed
	case c.turn <- struct{}{}:
	}
	n, err := c.frames.Read(p)
	<-c.turn
	select {
	case <-c.closing:
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

// Write implements net.Conn. Packets given in one call stay together.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	if len(c.buf)+len(p) > c.limit {
		c.buf = nil // what is not sent by now is not worth a wait
		c.closeLocked(Slow)
		_ = c.raw.Close()
		return 0, errOverflow
	}
	c.buf = append(c.buf, p...)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.end(Lost)
	return nil
}

// end closes the connection for the given cause unless an earlier one is known.
func (c *conn) end(cause Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked(cause)
}

func (c *conn) closeLocked(cause Cause) {
	if c.cause == "" {
		c.cause = cause
	}
	if c.closed {
		return
	}
	c.closed = true
	if c.later != nil {
		c.later.Stop()
	}
	close(c.closing)
	_ = c.raw.SetReadDeadline(time.Unix(1, 0)) // wakes the reader
	_ = c.socket.SetWriteDeadline(time.Now().Add(c.linger))
}

// endAfter closes the connection after a pause, unless it ends before.
func (c *conn) endAfter(pause time.Duration, cause Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == "" {
		c.cause = cause
	}
	if !c.closed && c.later == nil {
		c.later = time.AfterFunc(pause, func() { c.end(cause) })
	}
}

// blame notes why the connection is about to end.
func (c *conn) blame(cause Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == "" {
		c.cause = cause
	}
}

func (c *conn) causeNow() Cause {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// waiting returns the number of bytes not yet given to the socket.
func (c *conn) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.buf)
}

func (c *conn) setLimit(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = n
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.raw.LocalAddr() }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.raw.RemoteAddr() }

// SetDeadline implements net.Conn; it bounds reads only, because a deadline
// made from the client's keepalive is not a bound for our writes.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	return c.raw.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn. Writes never wait.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

package link

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// guardedConn is a connection that cannot hang for ever or flood the memory.
type guardedConn struct {
	net.Conn
	idle  time.Duration // silence after which a read fails
	write time.Duration // time for one write
	// deadline is what the client asked for while it connects, Unix ns; 0 for
	// none. The client never sets one afterwards.
	deadline atomic.Int64
	in       frames // used by the reader only
}

func (c *guardedConn) SetDeadline(t time.Time) error {
	ns := int64(0)
	if !t.IsZero() {
		ns = t.UnixNano()
	}
	c.deadline.Store(ns)
	return c.Conn.SetDeadline(t)
}

func (c *guardedConn) until(d time.Duration) time.Time {
	t := time.Now().Add(d)
	if ns := c.deadline.Load(); ns != 0 && time.Unix(0, ns).Before(t) {
		return time.Unix(0, ns)
	}
	return t
}

func (c *guardedConn) Read(p []byte) (int, error) {
	if err := c.Conn.SetReadDeadline(c.until(c.idle)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if ferr := c.in.pass(p[:n]); ferr != nil {
		_ = c.Conn.Close() // the read error is what counts
		return 0, ferr
	}
	return n, err
}

func (c *guardedConn) Write(p []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(c.until(c.write)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if err != nil {
		_ = c.Conn.Close() // half a packet may be out: the stream is of no use
	}
	return n, err
}

// frames follows the packet boundaries of an MQTT stream, so that a length that
// is too large is noticed before anybody allocates for it.
type frames struct {
	limit  uint32
	length uint32 // being read, seven bits at a time
	digits uint   // of the length that have been read
	inHead bool   // the type byte has been read, the length has not
	body   uint32 // bytes left of the packet
}

// pass looks at bytes that are about to be handed to the client.
func (f *frames) pass(p []byte) error {
	for len(p) > 0 {
		switch {
		case f.body > 0:
			n := min(uint32(len(p)), f.body)
			f.body -= n
			p = p[n:]
		case !f.inHead:
			f.inHead, f.length, f.digits = true, 0, 0
			p = p[1:]
		default:
			f.length |= uint32(p[0]&0x7f) << (7 * f.digits)
			f.digits++
			more := p[0]&0x80 != 0
			p = p[1:]
			if f.length > f.limit || more && f.digits == 4 {
				return fmt.Errorf("the broker announces a packet of more than %d bytes: connection closed", f.limit)
			}
			if !more {
				f.inHead, f.body = false, f.length
			}
		}
	}
	return nil
}

package broker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// MQTT packet types and sizes that the framer knows.
const (
	typeConnect = 1
	typePublish = 3

	maxVarintBytes = 4

	// maxConnect bounds the first packet: it is allocated before anybody is
	// authenticated. Client id, user, password and a will fit many times.
	maxConnect = 32 << 10

	// readBuffer is one read from the socket, in bytes.
	readBuffer = 2 << 10
)

var (
	errFirstPacket = errors.New("the first packet is not a CONNECT")
	errConnectSize = errors.New("CONNECT packet is too large")
	errPacketSize  = errors.New("packet is too large")
	errVarint      = errors.New("malformed remaining length")
)

// framer walks over the packets of an inbound stream and keeps them within
// limits before anything is allocated for them. A PUBLISH over the limit is cut
// to the limit: its header, topic and packet id pass, so that it can be refused
// by name, the rest is read away and never stored. Other packets over their
// limit end the stream.
//
// All methods run on the goroutine that reads the connection.
type framer struct {
	src     *bufio.Reader
	publish int    // limit of a PUBLISH, bytes of remaining length
	other   int    // limit of any other packet after CONNECT
	seen    uint64 // packets whose header has been read
	cut     map[uint64]int

	header  [1 + maxVarintBytes]byte
	pending []byte // header bytes not yet handed on; a slice of header
	left    int    // body bytes still to pass
	skip    int    // body bytes still to read away
}

func newFramer(src io.Reader, publish, other int) *framer {
	return &framer{src: bufio.NewReaderSize(src, readBuffer), publish: publish, other: other}
}

// Read implements io.Reader over the bounded stream.
func (f *framer) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(f.pending) == 0 && f.left == 0 {
		if f.skip > 0 {
			if _, err := f.src.Discard(f.skip); err != nil {
				return 0, err
			}
			f.skip = 0
		}
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	if len(f.pending) > 0 {
		n := copy(p, f.pending)
		f.pending = f.pending[n:]
		return n, nil
	}
	n, err := f.src.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}

// next reads the header of the next packet and decides what becomes of it.
func (f *framer) next() error {
	first, err := f.src.ReadByte()
	if err != nil {
		return err
	}
	size := 0
	for i := 0; ; i++ {
		if i == maxVarintBytes {
			return errVarint
		}
		b, err := f.src.ReadByte()
		if err != nil {
			return err
		}
		size |= int(b&0x7f) << (7 * i)
		if b&0x80 == 0 {
			break
		}
	}
	f.seen++
	kind := first >> 4
	switch {
	case f.seen == 1 && kind != typeConnect:
		return errFirstPacket
	case f.seen == 1 && size > maxConnect:
		return fmt.Errorf("%w: %d bytes, limit %d", errConnectSize, size, maxConnect)
	case kind == typePublish && size > f.publish:
		if size > maxPacketSize {
			return fmt.Errorf("%w: PUBLISH of %d bytes, limit %d", errPacketSize, size, maxPacketSize)
		}
		if f.cut == nil {
			f.cut = make(map[uint64]int)
		}
		f.cut[f.seen] = size
		f.skip = size - f.publish
		size = f.publish
	case kind != typePublish && f.seen > 1 && size > f.other:
		return fmt.Errorf("%w: type %d of %d bytes, limit %d", errPacketSize, kind, size, f.other)
	}
	f.left = size
	f.pending = append(f.header[:0], first)
	for v := size; ; {
		b := byte(v & 0x7f)
		if v >>= 7; v > 0 {
			b |= 0x80
		}
		f.pending = append(f.pending, b)
		if v == 0 {
			return nil
		}
	}
}

// oversize reports the original size of the n-th packet of the stream, counted
// from 1, if it was cut. It answers once.
func (f *framer) oversize(n uint64) (size int, ok bool) {
	size, ok = f.cut[n]
	delete(f.cut, n)
	return size, ok
}

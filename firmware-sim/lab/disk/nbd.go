package disk

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"time"
)

// The protocol of network block devices, as far as it is spoken here.
const (
	magicHello   = 0x4e42444d41474943 // "NBDMAGIC"
	magicOption  = 0x49484156454f5054 // "IHAVEOPT"
	magicAnswer  = 0x0003e889045565a9
	magicRequest = 0x25609513
	magicReply   = 0x67446698

	fixedNewstyle = 1
	noZeroes      = 2

	optionAbort = 2
	optionGo    = 7

	answerAck         = 1
	answerInfo        = 3
	answerUnsupported = 1<<31 + 1

	hasFlags  = 1
	sendFlush = 4
	sendFUA   = 8

	commandRead  = 0
	commandWrite = 1
	commandEnd   = 2
	commandFlush = 3

	flagFUA = 1

	errIO      = 5
	errInvalid = 22

	maxOption  = 64 << 10
	maxRequest = 32 << 20
)

// session is one client.
type session struct {
	d    *Disk
	conn net.Conn
}

// serve ends with the client. How it ended is nobody's concern: it is killed.
func (s session) serve() {
	if s.agree() != nil {
		return
	}
	for s.request() == nil {
	}
}

// agree greets and refuses every option but the one that begins.
func (s session) agree() error {
	hello := binary.BigEndian.AppendUint64(nil, magicHello)
	hello = binary.BigEndian.AppendUint64(hello, magicOption)
	hello = binary.BigEndian.AppendUint16(hello, fixedNewstyle|noZeroes)
	if _, err := s.conn.Write(hello); err != nil {
		return err
	}
	if _, err := s.read(4); err != nil { // the client's flags
		return err
	}
	for {
		head, err := s.read(16)
		if err != nil {
			return err
		}
		option, size := binary.BigEndian.Uint32(head[8:]), binary.BigEndian.Uint32(head[12:])
		if binary.BigEndian.Uint64(head) != magicOption || size > maxOption {
			return fmt.Errorf("option % x", head)
		}
		if _, err := s.read(int(size)); err != nil {
			return err
		}
		switch option {
		case optionGo:
			info := binary.BigEndian.AppendUint16(nil, 0) // size and flags of the export
			info = binary.BigEndian.AppendUint64(info, uint64(s.d.size))
			info = binary.BigEndian.AppendUint16(info, hasFlags|sendFlush|sendFUA)
			if err := s.answer(option, answerInfo, info); err != nil {
				return err
			}
			return s.answer(option, answerAck, nil)
		case optionAbort:
			_ = s.answer(option, answerAck, nil)
			return io.EOF
		default:
			if err := s.answer(option, answerUnsupported, nil); err != nil {
				return err
			}
		}
	}
}

func (s session) answer(option, kind uint32, data []byte) error {
	b := binary.BigEndian.AppendUint64(nil, magicAnswer)
	b = binary.BigEndian.AppendUint32(b, option)
	b = binary.BigEndian.AppendUint32(b, kind)
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	_, err := s.conn.Write(append(b, data...))
	return err
}

func (s session) read(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(s.conn, b)
	return b, err
}

// request serves one request.
func (s session) request() error {
	head, err := s.read(28)
	if err != nil {
		return err
	}
	if binary.BigEndian.Uint32(head) != magicRequest {
		return fmt.Errorf("request % x", head)
	}
	fua := binary.BigEndian.Uint16(head[4:])&flagFUA != 0
	command := binary.BigEndian.Uint16(head[6:])
	at, size := int64(binary.BigEndian.Uint64(head[16:])), int64(binary.BigEndian.Uint32(head[24:]))
	var data []byte
	if command == commandWrite {
		if size > maxRequest {
			return fmt.Errorf("write of %d bytes", size)
		}
		if data, err = s.read(int(size)); err != nil {
			return err
		}
	}
	if command == commandEnd {
		return io.EOF
	}
	out, code := s.d.do(command, at, size, data, fua)
	b := binary.BigEndian.AppendUint32(nil, magicReply)
	b = binary.BigEndian.AppendUint32(b, code)
	b = append(b, head[8:16]...)
	_, err = s.conn.Write(append(b, out...))
	return err
}

// do performs a request in the mode of the moment. It returns what was read and an
// error of the protocol, 0 for none.
func (d *Disk) do(command uint16, at, size int64, data []byte, fua bool) ([]byte, uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	power := d.power
	for d.mode == Stalling && !d.closed && !off(power) {
		d.changed.Wait()
	}
	if (command == commandFlush || fua) && d.flush > 0 {
		d.takeTime(power)
	}
	if d.closed || off(power) {
		return nil, errIO // nobody hears it any more
	}
	if command != commandFlush && (at < 0 || at%SectorSize != 0 || size%SectorSize != 0 || size > maxRequest || at+size > d.size) {
		return nil, errInvalid
	}
	if d.mode == Failing && command != commandRead {
		return nil, errIO
	}
	switch command {
	case commandRead:
		d.counts.Reads++
		return d.fetch(at, size)
	case commandWrite:
		d.counts.Writes++
		d.changed.Broadcast()
		for i := int64(0); i < size; i += SectorSize {
			d.memory[(at+i)/SectorSize] = data[i : i+SectorSize]
			if fua && d.mode != Lying && d.keep((at+i)/SectorSize) != nil {
				return nil, errIO
			}
		}
		return nil, 0
	case commandFlush:
		d.counts.Flushes++
		if d.mode == Lying {
			return nil, 0
		}
		for _, n := range slices.Sorted(maps.Keys(d.memory)) {
			if d.keep(n) != nil {
				return nil, errIO
			}
		}
		return nil, 0
	}
	return nil, errInvalid
}

// takeTime lets a flush take its time, or as much of it as there is power. d.mu is
// held, but not meanwhile.
func (d *Disk) takeTime(power chan struct{}) {
	t := time.NewTimer(d.flush)
	defer t.Stop()
	d.mu.Unlock()
	defer d.mu.Lock()
	select {
	case <-t.C:
	case <-power:
	}
}

func off(power chan struct{}) bool {
	select {
	case <-power:
		return true
	default:
		return false
	}
}

// keep makes a sector of the memory last. d.mu is held.
func (d *Disk) keep(n int64) error {
	err := d.store(n)
	if err == nil {
		delete(d.memory, n)
	}
	return err
}

// fetch reads through the memory. d.mu is held.
func (d *Disk) fetch(at, size int64) ([]byte, uint32) {
	b := make([]byte, size)
	if _, err := d.file.ReadAt(b, at); err != nil {
		return nil, errIO
	}
	for i := int64(0); i < size; i += SectorSize {
		if sector, ok := d.memory[(at+i)/SectorSize]; ok {
			copy(b[i:], sector)
		}
	}
	return b, 0
}

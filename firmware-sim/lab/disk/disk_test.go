package disk_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/disk"
)

const sectors = 64

// client is a client of the protocol, as the emulator is one.
type client struct {
	t    *testing.T
	conn net.Conn
}

// newDisk makes a disk of zeroes.
func newDisk(t *testing.T, seed uint64) (d *disk.Disk, image, socket string) {
	t.Helper()
	dir := t.TempDir()
	image, socket = filepath.Join(dir, "image"), filepath.Join(dir, "nbd")
	if err := os.WriteFile(image, make([]byte, sectors*disk.SectorSize), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := disk.New(image, socket, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, image, socket
}

func connect(t *testing.T, socket string) *client {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, conn}
	t.Cleanup(func() { _ = conn.Close() })
	hello := c.read(18)
	if string(hello[:16]) != "NBDMAGICIHAVEOPT" || hello[17] != 3 {
		t.Fatalf("hello %q", hello)
	}
	c.write(binary.BigEndian.AppendUint32(nil, 3))
	c.option(8, nil) // structured replies: refused
	if kind, _ := c.answer(); kind != 1<<31+1 {
		t.Errorf("an unknown option was answered with %#x", kind)
	}
	c.option(7, []byte{0, 0, 0, 0, 0, 0})
	kind, info := c.answer()
	if kind != 3 || binary.BigEndian.Uint64(info[2:]) != sectors*disk.SectorSize || info[11] != 1|4|8 {
		t.Fatalf("info %d % x", kind, info)
	}
	if kind, _ = c.answer(); kind != 1 {
		t.Fatalf("answer %d", kind)
	}
	return c
}

func (c *client) write(b []byte) {
	c.t.Helper()
	if _, err := c.conn.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) read(n int) []byte {
	c.t.Helper()
	b := make([]byte, n)
	if err := c.conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
	if _, err := io.ReadFull(c.conn, b); err != nil {
		c.t.Fatal(err)
	}
	return b
}

func (c *client) option(n uint32, data []byte) {
	b := append([]byte("IHAVEOPT"), 0, 0, 0, byte(n))
	c.write(append(binary.BigEndian.AppendUint32(b, uint32(len(data))), data...))
}

func (c *client) answer() (kind uint32, data []byte) {
	head := c.read(20)
	return binary.BigEndian.Uint32(head[12:]), c.read(int(binary.BigEndian.Uint32(head[16:])))
}

func (c *client) send(command, flags uint16, sector, size int, data []byte) {
	b := binary.BigEndian.AppendUint32(nil, 0x25609513)
	b = binary.BigEndian.AppendUint16(b, flags)
	b = binary.BigEndian.AppendUint16(b, command)
	b = append(b, "whatever"...)
	b = binary.BigEndian.AppendUint64(b, uint64(sector*disk.SectorSize))
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	c.write(append(b, data...))
}

// do sends a request and returns the error of the answer, and what was read.
func (c *client) do(command, flags uint16, sector, count int, data []byte) (uint32, []byte) {
	c.t.Helper()
	c.send(command, flags, sector, count*disk.SectorSize, data)
	head := c.read(16)
	if binary.BigEndian.Uint32(head) != 0x67446698 || string(head[8:]) != "whatever" {
		c.t.Fatalf("reply % x", head)
	}
	code := binary.BigEndian.Uint32(head[4:])
	if command == 0 && code == 0 {
		return 0, c.read(count * disk.SectorSize)
	}
	return code, nil
}

// fill writes every sector with a letter.
func (c *client) fill(letter byte) {
	c.t.Helper()
	if code, _ := c.do(1, 0, 0, sectors, bytes.Repeat([]byte{letter}, sectors*disk.SectorSize)); code != 0 {
		c.t.Fatalf("write: error %d", code)
	}
}

// kept counts the sectors of the image that have a letter, and wants them whole.
func kept(t *testing.T, image string, letter byte) (n int) {
	t.Helper()
	b, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(b); i += disk.SectorSize {
		sector := b[i : i+disk.SectorSize]
		if bytes.Count(sector, sector[:1]) != disk.SectorSize {
			t.Fatalf("sector %d is torn", i/disk.SectorSize)
		}
		if sector[0] == letter {
			n++
		}
	}
	return n
}

func TestFlushedIsKeptAndTheRestByChance(t *testing.T) {
	d, image, socket := newDisk(t, 7)
	c := connect(t, socket)
	c.fill('a')
	if n := kept(t, image, 'a'); n != 0 {
		t.Errorf("%d sectors are in the file before a flush", n)
	}
	if code, _ := c.do(3, 0, 0, 0, nil); code != 0 || kept(t, image, 'a') != sectors {
		t.Fatalf("flush: error %d, %d sectors", code, kept(t, image, 'a'))
	}
	c.fill('b')
	if code, b := c.do(0, 0, 3, 2, nil); code != 0 || b[0] != 'b' {
		t.Errorf("what was written is not read: error %d", code)
	}
	if code, _ := c.do(1, 1, 5, 1, bytes.Repeat([]byte{'c'}, disk.SectorSize)); code != 0 || kept(t, image, 'c') != 1 {
		t.Errorf("forced write: error %d, %d sectors", code, kept(t, image, 'c'))
	}
	if !d.AwaitDirty(time.Second) {
		t.Error("nothing to lose")
	}
	lost := d.Cut()
	a, b := kept(t, image, 'a'), kept(t, image, 'b')
	if lost < sectors/4 || lost > sectors*3/4 || a != lost || b != sectors-1-lost || kept(t, image, 'c') != 1 {
		t.Errorf("%d lost, %d old, %d new of %d", lost, a, b, sectors)
	}
	if n := d.Counts(); n.Lost != lost || n.Kept != b || n.Cuts != 1 {
		t.Errorf("%+v", n)
	}
	again := connect(t, socket) // the next boot
	if code, _ := again.do(0, 0, 0, 1, nil); code != 0 {
		t.Errorf("read after a cut: error %d", code)
	}
}

func TestSameSeedSameLoss(t *testing.T) {
	var lost [2]int
	for i := range lost {
		d, _, socket := newDisk(t, 42)
		connect(t, socket).fill('a')
		lost[i] = d.Cut()
	}
	if lost[0] != lost[1] {
		t.Errorf("%d and %d sectors lost with one seed", lost[0], lost[1])
	}
}

func TestCutInAFlush(t *testing.T) {
	d, image, socket := newDisk(t, 1)
	d.Slow(time.Hour)
	c := connect(t, socket)
	c.fill('a')
	c.send(3, 0, 0, 0, nil)
	if lost := d.Cut(); lost == 0 || lost == sectors || kept(t, image, 'a') != sectors-lost {
		t.Errorf("%d lost, %d kept", lost, kept(t, image, 'a'))
	}
}

func TestModes(t *testing.T) {
	d, image, socket := newDisk(t, 1)
	c := connect(t, socket)
	d.Set(disk.Lying)
	c.fill('a')
	if code, _ := c.do(3, 0, 0, 0, nil); code != 0 || kept(t, image, 'a') != 0 {
		t.Errorf("a lying disk: error %d, %d sectors", code, kept(t, image, 'a'))
	}
	d.Set(disk.Failing)
	for command, data := range map[uint16][]byte{1: make([]byte, disk.SectorSize), 3: nil} {
		if code, _ := c.do(command, 0, 0, len(data)/disk.SectorSize, data); code != 5 {
			t.Errorf("command %d of a failing disk: error %d", command, code)
		}
	}
	if code, _ := c.do(0, 0, 0, 1, nil); code != 0 {
		t.Errorf("read of a failing disk: error %d", code)
	}
	d.Set(disk.Stalling)
	c.send(0, 0, 0, disk.SectorSize, nil)
	if err := c.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("a stalling disk answered %d bytes", n)
	}
	d.Set(disk.Honest)
	c.read(16 + disk.SectorSize)
	if code, _ := c.do(0, 0, sectors, 1, nil); code != 22 {
		t.Errorf("read beyond the end: error %d", code)
	}
	d.Set(disk.Stalling)
	c.send(3, 0, 0, 0, nil)
	d.Cut() // must not wait for the stalled request
}

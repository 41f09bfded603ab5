package disk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// Mode is how a disk behaves.
type Mode uint8

// The modes.
const (
	Honest   Mode = 1
	Lying    Mode = 2
	Failing  Mode = 3
	Stalling Mode = 4
)

// String names the mode.
func (m Mode) String() string {
	switch m {
	case Honest:
		return "honest"
	case Lying:
		return "lying"
	case Failing:
		return "failing"
	case Stalling:
		return "stalling"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// SectorSize is what a disk writes whole or not at all.
const SectorSize = 512

// Format makes an ext4 image in a plain file. Nothing is left to be made when it is
// first mounted.
func Format(ctx context.Context, file string, mib int) error {
	cmd := exec.CommandContext(ctx, "mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", file, fmt.Sprintf("%dM", mib))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mke2fs %s: %w: %s", file, err, out)
	}
	return nil
}

// Counts is what has happened to a disk since it was made.
type Counts struct {
	Reads, Writes, Flushes int
	Cuts                   int
	Kept, Lost             int // sectors in its memory at cuts
}

// Disk is a disk with power. It may be used by several goroutines.
type Disk struct {
	file     *os.File
	size     int64
	listener net.Listener
	served   sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond // the mode, or the client
	mode    Mode
	closed  bool
	power   chan struct{}    // closed at a cut, which makes a new one
	flush   time.Duration    // how long a flush takes
	client  net.Conn         // nil for none
	memory  map[int64][]byte // sectors that the file does not have yet
	chance  *rand.Rand
	counts  Counts
}

// New serves an image on a unix socket. The seed decides what cuts lose.
func New(image, socket string, seed uint64) (*Disk, error) {
	f, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (info.Size() == 0 || info.Size()%SectorSize != 0) {
		err = fmt.Errorf("%s has %d bytes: not whole sectors", image, info.Size())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	d := &Disk{file: f, size: info.Size(), listener: l, mode: Honest, memory: map[int64][]byte{}, power: make(chan struct{}), chance: rand.New(rand.NewPCG(seed, 0))}
	d.changed = sync.NewCond(&d.mu)
	d.served.Go(d.accept)
	return d, nil
}

// accept serves one client after the other.
func (d *Disk) accept() {
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return // closed
		}
		d.mu.Lock()
		d.client = conn
		d.mu.Unlock()
		s := session{d, conn}
		s.serve()
		_ = conn.Close()
		d.mu.Lock()
		d.client = nil
		d.changed.Broadcast()
		d.mu.Unlock()
	}
}

// Set changes how the disk behaves from now on.
func (d *Disk) Set(m Mode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mode = m
	d.changed.Broadcast()
}

// Slow makes every flush take this long, as it does on a memory card. A cut in
// between finds the memory full.
func (d *Disk) Slow(flush time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flush = flush
}

// AwaitDirty waits until there is something that a cut could lose, at most for
// limit. It reports whether there is.
func (d *Disk) AwaitDirty(limit time.Duration) bool {
	over := false
	t := time.AfterFunc(limit, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		over = true
		d.changed.Broadcast()
	})
	defer t.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.memory) == 0 && !over && !d.closed {
		d.changed.Wait()
	}
	return len(d.memory) > 0
}

// Cut is the power cut. Requests that have not been answered are not any more. The
// emulator must stand still or have ended. It returns how many sectors were lost.
func (d *Disk) Cut() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.power)
	if d.client != nil {
		_ = d.client.Close() // nobody is to answer
	}
	d.changed.Broadcast()
	for d.client != nil {
		d.changed.Wait()
	}
	d.power = make(chan struct{})
	lost := 0
	for _, n := range slices.Sorted(maps.Keys(d.memory)) {
		if d.chance.Uint32()&1 == 0 {
			lost++
			continue
		}
		if err := d.store(n); err != nil {
			panic("bug: the image cannot be written: " + err.Error())
		}
	}
	d.counts.Cuts++
	d.counts.Lost += lost
	d.counts.Kept += len(d.memory) - lost
	clear(d.memory)
	return lost
}

// Counts is what has happened so far.
func (d *Disk) Counts() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

// Close ends the service. The emulator must have ended or is cut off.
func (d *Disk) Close() error {
	d.mu.Lock()
	d.closed = true
	d.changed.Broadcast()
	if d.client != nil {
		_ = d.client.Close()
	}
	d.mu.Unlock()
	err := d.listener.Close()
	d.served.Wait()
	return errors.Join(err, d.file.Close())
}

// store writes a sector of the memory to the file, which is the plate. d.mu is
// held.
func (d *Disk) store(n int64) error {
	_, err := d.file.WriteAt(d.memory[n], n*SectorSize)
	return err
}

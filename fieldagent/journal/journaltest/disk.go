package journaltest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/apollo-11/apollo11/fieldagent/journal"
)

// ErrStale is what every call through a handle returns that was opened before
// the last Kill or PowerCut.
var ErrStale = errors.New("the process that opened this file is gone")

// Kind names an operation that changes something.
type Kind string

// The operations a fault can be put on.
const (
	OpOpen     Kind = "open"
	OpWrite    Kind = "write"
	OpTruncate Kind = "truncate"
	OpSync     Kind = "sync"
	OpRename   Kind = "rename"
	OpSyncDir  Kind = "syncdir"
)

// Op describes an operation that is about to happen.
type Op struct {
	N     int // counts from 1 since New
	Kind  Kind
	Name  string // the file, the new name of a rename, or the directory
	Bytes int    // length of a write, or what a sync has to bring to the medium
}

// Fault makes an operation fail with Err. A write still carries out its first
// Written bytes. A sync brings the first Written unsynced bytes to the medium
// and calls the rest clean. An operation of any other kind does nothing.
type Fault struct {
	Err     error
	Written int
}

// Disk is a file system in memory. It implements journal.FS.
type Disk struct {
	mu      sync.Mutex
	names   map[string]*inode // as seen
	durable map[string]*inode // as on the medium
	renames []change          // names changed since the last SyncDir, in order
	locks   map[string]uint64 // name to the era that holds it
	era     uint64            // counts processes
	ops     int
	space   int64 // bytes of content that fit, negative for no limit
	inject  func(Op) *Fault
}

// change is one unsynced change of the directory.
type change struct {
	name, gone string // gone is the old name of a rename
	node       *inode
}

// inode is one file's content.
type inode struct {
	seen    []byte
	medium  []byte
	pending []write // since the last sync, in order
}

// write is one unsynced change of content; data is nil for a truncation to at.
type write struct {
	at   int64
	data []byte
}

var _ journal.FS = (*Disk)(nil)

// New returns an empty disk without a space limit.
func New() *Disk {
	return &Disk{names: map[string]*inode{}, durable: map[string]*inode{}, locks: map[string]uint64{}, era: 1, space: -1}
}

// Inject sets the function that is asked before every operation, nil for none.
// It must not call the disk.
func (d *Disk) Inject(f func(Op) *Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inject = f
}

// SetSpace limits the bytes of content that fit on the disk; writes beyond are
// cut short with ENOSPC. A negative number lifts the limit.
func (d *Disk) SetSpace(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.space = bytes
}

// Ops returns the number of operations so far.
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// Content returns what a reader of the file sees.
func (d *Disk) Content(name string) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.names[name]
	if !ok {
		return nil, false
	}
	return append([]byte(nil), n.seen...), true
}

// Spoil replaces the content of a file behind everybody's back, in the cache and
// on the medium.
func (d *Disk) Spoil(name string, content []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := &inode{seen: append([]byte(nil), content...), medium: append([]byte(nil), content...)}
	d.names[name], d.durable[name] = n, n
}

// begin counts an operation and asks for a fault. The caller holds mu.
func (d *Disk) begin(kind Kind, name string, bytes int) *Fault {
	d.ops++
	if d.inject == nil {
		return nil
	}
	return d.inject(Op{N: d.ops, Kind: kind, Name: name, Bytes: bytes})
}

// used adds up the content. The caller holds mu.
func (d *Disk) used() int64 {
	var sum int64
	for _, n := range d.names {
		sum += int64(len(n.seen))
	}
	return sum
}

// Lock implements journal.FS. Directories exist by being named.
func (d *Disk) Lock(dir, name string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	path := filepath.Join(dir, name)
	if d.locks[path] == d.era {
		return nil, fmt.Errorf("%w: %s", journal.ErrLocked, path)
	}
	d.locks[path] = d.era
	return &held{d: d, path: path, era: d.era}, nil
}

type held struct {
	d    *Disk
	path string
	era  uint64
}

func (h *held) Close() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.d.locks[h.path] == h.era {
		delete(h.d.locks, h.path)
	}
	return nil
}

// ReadFile implements journal.FS.
func (d *Disk) ReadFile(name string, limit int64) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.names[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if int64(len(n.seen)) > limit {
		return nil, fmt.Errorf("read %s: it is larger than the limit of %d bytes", name, limit)
	}
	return append([]byte(nil), n.seen...), nil
}

// OpenFile implements journal.FS.
func (d *Disk) OpenFile(name string, truncate bool) (journal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.begin(OpOpen, name, 0); f != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: f.Err}
	}
	n, ok := d.names[name]
	if !ok {
		n = &inode{}
		d.names[name] = n
		d.renames = append(d.renames, change{name: name, node: n})
	}
	if truncate && len(n.seen) > 0 {
		n.change(write{at: 0})
	}
	return &file{d: d, n: n, name: name, era: d.era}, nil
}

// Rename implements journal.FS.
func (d *Disk) Rename(oldname, newname string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.begin(OpRename, newname, 0); f != nil {
		return &fs.PathError{Op: "rename", Path: newname, Err: f.Err}
	}
	n, ok := d.names[oldname]
	if !ok {
		return &fs.PathError{Op: "rename", Path: oldname, Err: fs.ErrNotExist}
	}
	delete(d.names, oldname)
	d.names[newname] = n
	d.renames = append(d.renames, change{name: newname, gone: oldname, node: n})
	return nil
}

// SyncDir implements journal.FS. All directories share one list of names.
func (d *Disk) SyncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.begin(OpSyncDir, dir, 0); f != nil {
		return &fs.PathError{Op: "sync", Path: dir, Err: f.Err}
	}
	for _, c := range d.renames {
		c.apply(d.durable)
	}
	d.renames = nil
	return nil
}

func (c change) apply(names map[string]*inode) {
	if c.gone != "" {
		delete(names, c.gone)
	}
	names[c.name] = c.node
}

// file is a handle of one process.
type file struct {
	d    *Disk
	n    *inode
	name string
	era  uint64
}

func (f *file) stale() error {
	if f.era != f.d.era {
		return &fs.PathError{Op: "use", Path: f.name, Err: ErrStale}
	}
	return nil
}

func (f *file) WriteAt(p []byte, at int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.stale(); err != nil {
		return 0, err
	}
	fits := len(p)
	var failure error
	if fault := f.d.begin(OpWrite, f.name, len(p)); fault != nil {
		fits, failure = min(fault.Written, fits), fault.Err
	} else if grow := at + int64(len(p)) - int64(len(f.n.seen)); grow > 0 && f.d.space >= 0 {
		if over := f.d.used() + grow - f.d.space; over > 0 {
			fits, failure = max(0, fits-int(min(over, int64(fits)))), syscall.ENOSPC
		}
	}
	if fits > 0 {
		f.n.change(write{at: at, data: append([]byte{}, p[:fits]...)})
	}
	if failure != nil {
		return fits, &fs.PathError{Op: "write", Path: f.name, Err: failure}
	}
	return fits, nil
}

func (f *file) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.stale(); err != nil {
		return err
	}
	if fault := f.d.begin(OpTruncate, f.name, 0); fault != nil {
		return &fs.PathError{Op: "truncate", Path: f.name, Err: fault.Err}
	}
	f.n.change(write{at: size})
	return nil
}

func (f *file) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.stale(); err != nil {
		return err
	}
	if fault := f.d.begin(OpSync, f.name, f.n.unsynced()); fault != nil {
		f.n.persist(fault.Written)
		f.n.pending = nil // clean, says the kernel
		return &fs.PathError{Op: "fdatasync", Path: f.name, Err: fault.Err}
	}
	f.n.persist(math.MaxInt)
	f.n.pending = nil
	return nil
}

func (f *file) Close() error { return nil }

// change carries out a write in the cache and notes it as unsynced.
func (n *inode) change(w write) {
	n.seen = w.apply(n.seen)
	n.pending = append(n.pending, w)
}

func (n *inode) unsynced() int {
	sum := 0
	for _, w := range n.pending {
		sum += len(w.data)
	}
	return sum
}

// persist brings the first keep unsynced bytes to the medium, in order.
func (n *inode) persist(keep int) {
	for _, w := range n.pending {
		if len(w.data) > keep {
			if keep == 0 {
				return
			}
			w.data = w.data[:keep:keep]
		}
		keep -= len(w.data)
		n.medium = w.apply(n.medium)
	}
}

// apply returns content after the write; a gap reads as zeros.
func (w write) apply(content []byte) []byte {
	if w.data == nil {
		if int64(len(content)) <= w.at {
			return append(content, make([]byte, w.at-int64(len(content)))...)
		}
		return append([]byte(nil), content[:w.at]...)
	}
	if gap := w.at + int64(len(w.data)) - int64(len(content)); gap > 0 {
		content = append(content, make([]byte, gap)...)
	}
	copy(content[w.at:], w.data)
	return content
}

package gpio

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// FakeKernel behaves like the kernel's gpio character devices: it holds lines
// exclusively, refuses what the real one refuses, gives an output that is
// requested without a value the level 0, keeps a bounded number of events, and
// counts every change of a line as somebody with a probe would.
type FakeKernel struct {
	mu     sync.Mutex
	files  map[string]*FakeChip // by path
	faults map[string]error
	clock  time.Duration
	next   int32
	fds    map[int32]*fakeFile
	tries  int
	// Releases makes lines inputs when they are released, as some drivers do; others
	// leave them as they are.
	releases bool
}

// FakeChip is a chip and its lines.
type FakeChip struct {
	Name, Label string
	Lines       []*FakeLine
}

// FakeLine is a line.
type FakeLine struct {
	Name    string
	Holder  string // somebody else who has it
	Used    bool   // somebody without a name has it
	Output  bool
	Driven  bool // its level as an output
	Outer   bool // its level as an input
	Flips   int
	Flags   uint64 // of the last request or configuration
	Micros  uint32 // its debounce time
	owner   *fakeFile
	Latches bool // its chip keeps an edge that comes while nobody wants it
	latched bool
	asked   string // our consumer name
	seq     uint32
}

func (l *FakeLine) level() bool {
	if l.Output {
		return l.Driven
	}
	return l.Outer
}

// NewFakeKernel returns a kernel with these chips as /dev/gpiochip0 and so on.
func NewFakeKernel(chips ...*FakeChip) *FakeKernel {
	k := &FakeKernel{files: map[string]*FakeChip{}, faults: map[string]error{}, fds: map[int32]*fakeFile{}}
	for i, c := range chips {
		if c.Name == "" {
			c.Name = fmt.Sprintf("gpiochip%d", i)
		}
		k.files["/dev/"+c.Name] = c
	}
	return k
}

// Board opens the back end on this kernel, without waiting.
func (k *FakeKernel) Board() (*Chardev, error) { return openChardev(k) }

// Link adds another path of a chip.
func (k *FakeKernel) Link(path string, c *FakeChip) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.files[path] = c
}

// Unplug takes a chip away: its file goes, and lines that are open answer ENODEV.
func (k *FakeKernel) Unplug(path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.files[path].Lines {
		if f := l.owner; f != nil {
			f.gone, l.owner = true, nil
			f.cond.Broadcast()
		}
	}
	delete(k.files, path)
}

// Plug brings one in.
func (k *FakeKernel) Plug(path string, c *FakeChip) { k.Link(path, c) }

// Fail makes an operation fail: open, open PATH, chipinfo, lineinfo, request, config, get,
// set. nil ends it.
func (k *FakeKernel) Fail(operation string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.faults[operation] = err
}

// ReleasesLines says what becomes of a line that is given back.
func (k *FakeKernel) ReleasesLines(toInput bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.releases = toInput
}

// Tries returns how often a chip was opened.
func (k *FakeKernel) Tries() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tries
}

// Look returns a copy of a line.
func (k *FakeKernel) Look(l *FakeLine) FakeLine {
	k.mu.Lock()
	defer k.mu.Unlock()
	return *l
}

// Probe moves a line: from outside if it is an input, by another hand that needs
// no request if it is an output.
func (k *FakeKernel) Probe(l *FakeLine, high bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.change(l, func() {
		if l.Output {
			l.Driven = high
		} else {
			l.Outer = high
		}
	})
	k.clock += time.Millisecond
}

// Open reports how many lines are held.
func (k *FakeKernel) Open() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.fds)
}

// change does something to a line and notes the edge, if it is one. mu is held.
func (k *FakeKernel) change(l *FakeLine, do func()) {
	before := l.level()
	do()
	if l.level() == before {
		return
	}
	l.Flips++
	if l.owner == nil || l.Output {
		return
	}
	k.report(l)
}

// report notes an event that leads to the level of now, if it is wanted.
func (k *FakeKernel) report(l *FakeLine) {
	f := l.owner
	kind, flag := uint32(1), uint64(flagRising)
	if l.level() == (l.Flags&flagActiveLow != 0) {
		kind, flag = 2, flagFalling
	}
	if l.Flags&flag == 0 {
		l.latched = l.Latches
		return
	}
	l.seq++
	var e [eventBytes]byte
	binary.NativeEndian.PutUint64(e[:], uint64(k.clock))
	binary.NativeEndian.PutUint32(e[8:], kind)
	binary.NativeEndian.PutUint32(e[16:], l.seq)
	binary.NativeEndian.PutUint32(e[20:], l.seq)
	f.events = append(f.events, e)
	if len(f.events) > f.buffer {
		f.events = f.events[1:]
	}
	f.cond.Broadcast()
}

func (k *FakeKernel) chips() (paths []string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for p := range k.files {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths, nil
}

func (k *FakeKernel) open(path string) (device, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tries++
	c, ok := k.files[path]
	err := k.faults["open"]
	if one := k.faults["open "+path]; one != nil {
		err = one
	}
	if !ok {
		err = syscall.ENOENT
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &fakeFile{k: k, chip: c, cond: sync.NewCond(&k.mu)}, nil
}

func (k *FakeKernel) adopt(fd int32) (device, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fds[fd], k.faults["adopt"]
}

func (k *FakeKernel) now() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.clock
}

// Now is the kernel's clock.
func (k *FakeKernel) Now() time.Duration { return k.now() }

type fakeFile struct {
	k    *FakeKernel
	chip *FakeChip
	cond *sync.Cond

	line   *FakeLine // of a requested line
	fd     int32
	buffer int
	events [][eventBytes]byte
	past   bool
	gone   bool
	closed bool
}

func (f *fakeFile) ioctl(number uint, arg unsafe.Pointer) error {
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	names := map[uint]string{ioChipInfo: "chipinfo", ioLineInfo: "lineinfo", ioGetLine: "request", ioSetConfig: "config", ioGetValues: "get", ioSetValues: "set"}
	if err := f.k.faults[names[number]]; err != nil {
		return err
	}
	if f.closed {
		return os.ErrClosed
	}
	if f.gone {
		return syscall.ENODEV
	}
	switch number {
	case ioChipInfo:
		i := (*abiChipInfo)(arg)
		copy(i.name[:], f.chip.Name)
		copy(i.label[:], f.chip.Label)
		i.lines = uint32(len(f.chip.Lines))
		return nil
	case ioLineInfo:
		return f.lineInfo((*abiLineInfo)(arg))
	case ioGetLine:
		return f.request((*abiRequest)(arg))
	case ioSetConfig:
		return f.configure((*abiConfig)(arg))
	case ioGetValues:
		v := (*abiValues)(arg)
		v.bits = 0
		if f.line.level() != (f.line.Flags&flagActiveLow != 0) {
			v.bits = v.mask & 1
		}
		return nil
	case ioSetValues:
		if f.line.Flags&flagOutput == 0 {
			return syscall.EPERM
		}
		v := (*abiValues)(arg)
		f.k.change(f.line, func() { f.line.Driven = (v.bits&1 == 1) != (f.line.Flags&flagActiveLow != 0) })
		return nil
	}
	return syscall.EINVAL
}

func (f *fakeFile) lineInfo(i *abiLineInfo) error {
	if int(i.offset) >= len(f.chip.Lines) {
		return syscall.EINVAL
	}
	l := f.chip.Lines[i.offset]
	copy(i.name[:], l.Name)
	who := l.Holder
	if l.owner != nil {
		who = l.asked
	}
	copy(i.consumer[:], who)
	if l.Used || who != "" {
		i.flags |= flagUsed
	}
	if l.Output {
		i.flags |= flagOutput
	}
	return nil
}

func (f *fakeFile) request(r *abiRequest) error {
	if r.lines != 1 || int(r.offsets[0]) >= len(f.chip.Lines) {
		return syscall.EINVAL
	}
	l := f.chip.Lines[r.offsets[0]]
	if l.Used || l.Holder != "" || l.owner != nil {
		return syscall.EBUSY
	}
	f.k.next++
	n := &fakeFile{k: f.k, chip: f.chip, cond: sync.NewCond(&f.k.mu), line: l, fd: f.k.next, buffer: max(int(r.eventBuffer), 16)}
	if err := n.configure(&r.config); err != nil {
		return err
	}
	l.owner, l.asked = n, text(r.consumer)
	f.k.fds[n.fd] = n
	r.fd = n.fd
	return nil
}

func (f *fakeFile) configure(c *abiConfig) error {
	in, out := c.flags&flagInput != 0, c.flags&flagOutput != 0
	edges, bias := c.flags&(flagRising|flagFalling) != 0, c.flags&(flagPullUp|flagPullDown|flagNoPull) != 0
	if in && out || edges && !in || bias && !in && !out {
		return syscall.EINVAL
	}
	value, micros := uint64(0), uint32(0)
	for _, a := range c.attrs[:c.attrCount] {
		switch {
		case a.mask != 1:
			return syscall.EINVAL
		case a.attr.id == attrOutputValues && out:
			value = a.attr.value
		case a.attr.id == attrDebounce && in:
			var union [8]byte
			binary.NativeEndian.PutUint64(union[:], a.attr.value)
			micros = binary.NativeEndian.Uint32(union[:])
		default:
			return syscall.EINVAL
		}
	}
	l := f.line
	f.k.change(l, func() {
		l.Flags, l.Micros = c.flags, micros
		if out {
			l.Output, l.Driven = true, (value&1 == 1) != (c.flags&flagActiveLow != 0)
		}
		if in {
			l.Output = false
		}
	})
	if edges && l.latched {
		l.latched = false
		f.k.report(l)
	}
	return nil
}

func (f *fakeFile) Read(b []byte) (int, error) {
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	for {
		switch {
		case f.closed:
			return 0, os.ErrClosed
		case f.past:
			return 0, os.ErrDeadlineExceeded
		case f.gone:
			return 0, syscall.ENODEV
		case len(f.events) > 0:
			n := 0
			for len(f.events) > 0 && n+eventBytes <= len(b) {
				n += copy(b[n:], f.events[0][:])
				f.events = f.events[1:]
			}
			return n, nil
		}
		f.cond.Wait()
	}
}

func (f *fakeFile) SetReadDeadline(t time.Time) error {
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	f.past = !t.IsZero()
	f.cond.Broadcast()
	return nil
}

func (f *fakeFile) Close() error {
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	if f.closed {
		return os.ErrClosed
	}
	f.closed = true
	f.cond.Broadcast()
	if f.line == nil {
		return nil
	}
	delete(f.k.fds, f.fd)
	if f.line.owner == f {
		f.line.owner = nil
		if f.k.releases {
			f.k.change(f.line, func() { f.line.Output = false })
		}
	}
	return nil
}

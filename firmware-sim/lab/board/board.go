package board

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/talk"
)

// Limits of a board.
const (
	// bootLimit is how long it may take from power to the init's first word. It is
	// 2 s on an idle machine and was 25 s on the busiest one seen.
	bootLimit = 2 * time.Minute
	// lockLimit is how long another lab is waited for.
	lockLimit = 15 * time.Minute
	// socketLimit is how long the emulator may take to open its sockets.
	socketLimit = 30 * time.Second
	// maxConsole bounds what is kept of the console.
	maxConsole = 4 << 20
	// Emulator is the program that must be installed.
	Emulator = "qemu-system-aarch64"
)

// Forward is an address of the board's network that leads to one of the host, or
// the other way.
type Forward struct{ Board, Host string }

// Options say what board it is.
type Options struct {
	// Kernel is the kernel's file. Required.
	Kernel string
	// Files are the first file system. One of them is /init. Required.
	Files []File
	// Dir is a directory for sockets and the console log. Required.
	Dir string
	// Relay is the program that Out needs: it joins its standard input and output
	// to the address that is its argument.
	Relay string
	// Out are addresses that the board can connect to: an IP address of 10.0.2.0/24
	// with a port, and where it leads on the host. There are no others.
	Out []Forward
	// In are ports of the board (":1883") and the host's addresses that lead there.
	In []Forward
	// Disk is the unix socket of a network block device; empty for no disk.
	Disk string
	// PullUp has bit n set for a line n with a resistor to the supply; the others
	// have one to ground.
	PullUp byte
	// Watchdog adds a hardware watchdog (an Intel 6300ESB): once a program has opened
	// it, its silence resets the board.
	Watchdog bool
	// MemoryMiB is the size of the memory, 0 for 512.
	MemoryMiB int
}

// Board is an emulated board that has power.
type Board struct {
	lock    *os.File
	process *os.Process
	ended   chan struct{} // closed when the emulator has ended
	lines   *Lines
	control *qmp
	line    net.Conn // to the init

	mu      sync.Mutex
	console strings.Builder
	marks   chan struct{} // closed and replaced when the console grew
	waiting map[uint64]chan talk.Reply
	next    uint64
	lineErr error
	// BootTook is how long it took from power to the init's first word.
	BootTook time.Duration
}

// Start switches a board on and returns when its init listens.
func Start(ctx context.Context, o Options) (*Board, error) {
	lock, err := takeLock(ctx)
	if err != nil {
		return nil, err
	}
	b := &Board{lock: lock, ended: make(chan struct{}), marks: make(chan struct{}), waiting: map[uint64]chan talk.Reply{}}
	if err := b.start(ctx, o); err != nil {
		err = fmt.Errorf("start the board: %w\n%s", err, b.Console())
		b.Close()
		return nil, err
	}
	return b, nil
}

// takeLock waits until no other lab of this machine has a board.
func takeLock(ctx context.Context) (*os.File, error) {
	name := filepath.Join(os.TempDir(), "apollo-lab.lock")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("lock of the lab: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock %s: another lab has held it: %w", name, ctx.Err()), f.Close())
		}
	}
}

func (b *Board) start(ctx context.Context, o Options) error {
	image := filepath.Join(o.Dir, "initramfs")
	f, err := os.Create(image)
	if err != nil {
		return err
	}
	if err := errors.Join(writeInitramfs(f, o.Files), f.Close()); err != nil {
		return fmt.Errorf("initramfs: %w", err)
	}
	socket := func(name string) string { return filepath.Join(o.Dir, name) }
	for _, name := range []string{"qmp", "qtest", "line"} {
		_ = os.Remove(socket(name)) // of an earlier board
	}
	began := time.Now()
	if err := b.launch(exec.Command(Emulator, arguments(o, image, socket)...)); err != nil {
		return err
	}
	control, err := b.dial(ctx, socket("qmp"))
	if err != nil {
		return err
	}
	if b.control, err = newQMP(control); err != nil {
		return errors.Join(err, control.Close())
	}
	chip, err := b.control.findChip()
	if err != nil {
		return err
	}
	probe, err := b.dial(ctx, socket("qtest"))
	if err != nil {
		return err
	}
	b.lines = newLines(probe, chip)
	if err := b.lines.intercept(o.PullUp); err != nil {
		return err
	}
	if b.line, err = b.dial(ctx, socket("line")); err != nil {
		return err
	}
	go b.listen()
	if err := b.control.do("cont", nil, nil); err != nil {
		return err
	}
	if err := b.AwaitConsole(ctx, talk.Ready, bootLimit); err != nil {
		return err
	}
	b.BootTook = time.Since(began)
	return nil
}

// arguments is the emulator's command line.
func arguments(o Options, image string, socket func(string) string) []string {
	memory := o.MemoryMiB
	if memory == 0 {
		memory = 512
	}
	net := "user,id=n0,restrict=on"
	for _, f := range o.Out {
		net += fmt.Sprintf(",guestfwd=tcp:%s-cmd:%s %s", f.Board, o.Relay, f.Host)
	}
	for _, f := range o.In {
		net += fmt.Sprintf(",hostfwd=tcp:%s-%s", f.Host, f.Board)
	}
	args := []string{
		"-M", "virt", "-cpu", "cortex-a53", "-m", fmt.Sprint(memory), "-S", "-no-reboot",
		"-display", "none", "-nodefaults", "-no-user-config",
		"-kernel", o.Kernel, "-initrd", image, "-append", "console=ttyAMA0 quiet panic=-1",
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-qmp", "unix:" + socket("qmp") + ",server=on,wait=off",
		"-qtest", "unix:" + socket("qtest") + ",server=on,wait=off", "-qtest-log", "none",
		"-device", "virtio-serial-pci", "-chardev", "socket,id=line,path=" + socket("line") + ",server=on,wait=off",
		"-device", "virtserialport,chardev=line,name=" + talk.Port,
		"-netdev", net, "-device", "virtio-net-pci,netdev=n0,id=nic,romfile=",
	}
	if o.Watchdog {
		args = append(args, "-device", "i6300esb", "-action", "watchdog=reset")
	}
	if o.Disk != "" {
		args = append(args, "-blockdev", "driver=nbd,node-name=d,server.type=unix,server.path="+o.Disk,
			"-device", "virtio-blk-pci,drive=d,write-cache=on")
	}
	return args
}

// launch starts the emulator from a thread that lives as long as it: the kernel
// kills it with that thread, should the test be killed.
func (b *Board) launch(cmd *exec.Cmd) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go keepThread(cmd, started, b.ended)
	err = <-started
	_ = w.Close() // the emulator has its own
	if err != nil {
		_ = r.Close()
		return fmt.Errorf("start %s: %w", Emulator, err)
	}
	b.process = cmd.Process
	go b.follow(r)
	return nil
}

// follow keeps what the board writes on its console.
func (b *Board) follow(r *os.File) {
	defer func() { _ = r.Close() }() // only read from
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		b.mu.Lock()
		if b.console.Len() < maxConsole {
			b.console.WriteString(strings.ReplaceAll(line, "\r", ""))
		}
		close(b.marks)
		b.marks = make(chan struct{})
		b.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// dial connects to a socket of the emulator, which takes a moment to appear.
func (b *Board) dial(ctx context.Context, path string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, socketLimit)
	defer cancel()
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for {
		conn, err := net.Dial("unix", path)
		if err == nil {
			return conn, nil
		}
		select {
		case <-every.C:
		case <-b.ended:
			return nil, errEmulatorGone
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to the emulator: %w", err)
		}
	}
}

// Lines are the board's GPIO lines.
func (b *Board) Lines() *Lines { return b.lines }

// Cable plugs the network cable in or pulls it.
func (b *Board) Cable(in bool) error {
	return b.control.do("set_link", map[string]any{"name": "nic", "up": in}, nil)
}

// Cut takes the power away and returns when the board is dead. Whatever else loses
// its power at the same instant is done by also, which may be nil: the emulator
// stands still from before it begins, so that nothing on the board sees it happen.
func (b *Board) Cut(also func()) error {
	err := b.freeze()
	if err == nil && also != nil {
		also()
	}
	b.Close()
	return err
}

// freeze stops the emulator between two instructions of the host and returns when
// it stands still.
func (b *Board) freeze() error {
	if err := b.process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop the emulator: %w", err)
	}
	deadline := time.Now().Add(socketLimit)
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.process.Pid))
		if err != nil {
			return fmt.Errorf("stop the emulator: %w", err)
		}
		// The state follows the name, which is in brackets.
		if _, rest, ok := strings.Cut(string(stat), ") "); ok && strings.HasPrefix(rest, "T") {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the emulator does not stand still: %s", stat)
		}
		time.Sleep(time.Millisecond)
	}
}

// AwaitOff waits until the board has reset itself, which ends the emulator. The
// board still has to be closed.
func (b *Board) AwaitOff(ctx context.Context, limit time.Duration) error {
	patience := time.NewTimer(limit)
	defer patience.Stop()
	select {
	case <-b.ended:
		return nil
	case <-patience.C:
		return fmt.Errorf("the board has not reset itself within %v", limit)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the board. It may be called again.
func (b *Board) Close() {
	if b.process != nil {
		_ = b.process.Kill() // it may have ended already
		<-b.ended
	}
	if b.control != nil {
		_ = b.control.conn.Close()
	}
	if b.lines != nil {
		_ = b.lines.conn.Close()
	}
	if b.line != nil {
		_ = b.line.Close()
	}
	_ = b.lock.Close() // which gives it back
}

// Console is what the board has written on its console.
func (b *Board) Console() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.console.String()
}

// AwaitConsole waits until the console has shown a text.
func (b *Board) AwaitConsole(ctx context.Context, text string, limit time.Duration) error {
	patience := time.NewTimer(limit)
	defer patience.Stop()
	for {
		b.mu.Lock()
		seen, grew := strings.Contains(b.console.String(), text), b.marks
		b.mu.Unlock()
		if seen {
			return nil
		}
		select {
		case <-grew:
		case <-b.ended:
			return fmt.Errorf("console: %q was not shown: %w", text, errEmulatorGone)
		case <-patience.C:
			return fmt.Errorf("console: %q was not shown within %v", text, limit)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// listen hands the init's answers to those who asked.
func (b *Board) listen() {
	in := bufio.NewScanner(b.line)
	in.Buffer(nil, talk.MaxLine)
	var err error
	for in.Scan() {
		var r talk.Reply
		if err = json.Unmarshal(in.Bytes(), &r); err != nil {
			break
		}
		b.mu.Lock()
		if c := b.waiting[r.ID]; c != nil {
			c <- r // holds one
			delete(b.waiting, r.ID)
		}
		b.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lineErr = errors.Join(errEmulatorGone, err, in.Err())
	for id, c := range b.waiting {
		close(c)
		delete(b.waiting, id)
	}
}

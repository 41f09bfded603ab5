package rig

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// maxOutput bounds what is kept of a program's output: its end is what explains a
// failure.
const maxOutput = 64 << 10

// Process is one of the programs, started. It may be used by several goroutines.
type Process struct {
	name  string
	cmd   *exec.Cmd
	began time.Time
	done  chan struct{} // closed when it has ended

	mu  sync.Mutex
	out strings.Builder
	// seen are the words that were waited for and have come.
	seen map[string]bool
}

// start starts a command and follows its output. marks are beginnings of lines
// that Saw will be asked about.
func start(name string, cmd *exec.Cmd, marks ...string) (*Process, error) {
	p := &Process{name: name, cmd: cmd, done: make(chan struct{}), seen: map[string]bool{}}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, w
	p.began = time.Now()
	err = cmd.Start()
	_ = w.Close() // the child has its own
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.follow(r, marks)
		_ = r.Close()
		// How it ended is asked of ProcessState.
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// follow keeps the end of the output until the program has closed it.
func (p *Process) follow(r io.Reader, marks []string) {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		p.mu.Lock()
		for _, m := range marks {
			if strings.HasPrefix(line, m) {
				p.seen[m] = true
			}
		}
		if p.out.Len()+len(line) > maxOutput {
			keep := p.out.String()[p.out.Len()/2:]
			p.out.Reset()
			p.out.WriteString("...\n" + keep)
		}
		p.out.WriteString(line)
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Output is the end of what the program has written.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// saw reports whether a line with this beginning has come.
func (p *Process) saw(mark string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[mark]
}

// Began is when the process was started.
func (p *Process) Began() time.Time { return p.began }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal. That the process has ended already is no error here.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill ends the process with SIGKILL, as a crash would, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// CPU is the processor time that the process has used; it must have ended. On a
// machine with other work it says more than the clock.
func (p *Process) CPU() time.Duration {
	<-p.done
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// Wait waits for the end of the process and returns its exit code.
func (p *Process) Wait(limit time.Duration) (int, error) {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-t.C:
		return -1, fmt.Errorf("%s has not ended within %v", p.name, limit)
	}
}

//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/talk"
)

// program is one that was started.
type program struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// programs are those that the host has started, by name.
type programs struct {
	mu   sync.Mutex
	list map[string]*program
}

// console keeps lines of programs apart.
var console sync.Mutex

// launch starts a command whose output goes to the console.
func launch(name string, cmd *exec.Cmd) (*program, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	_ = w.Close() // the program has its own
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	p := &program{cmd, make(chan struct{})}
	go func() {
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				console.Lock()
				fmt.Printf("[%s] %s", name, line)
				console.Unlock()
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					fmt.Printf("lab: output of %s: %v\n", name, err)
				}
				break
			}
		}
		_ = r.Close()
		_ = cmd.Wait() // how it ended is in its state
		close(p.done)
	}()
	return p, nil
}

func (p *programs) start(q talk.Request) (r talk.Reply, err error) {
	cred, err := credential(q.User)
	if err != nil {
		return r, err
	}
	if len(q.Args) == 0 {
		return r, errors.New("no program is given")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.list[q.Name]; old != nil && !old.ended() {
		return r, fmt.Errorf("%s runs already", q.Name)
	}
	cmd := exec.Command(q.Args[0], q.Args[1:]...)
	cmd.Env = append([]string{"HOME=/tmp", "TMPDIR=/tmp"}, q.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	started, err := launch(q.Name, cmd)
	if err != nil {
		return r, err
	}
	p.list[q.Name] = started
	r.PID = cmd.Process.Pid
	return r, nil
}

func (p *program) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// how says how it ended. It must have ended.
func (p *program) how() (r talk.Reply) {
	st, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && st.Signaled() {
		r.Killed = int(st.Signal())
	}
	r.Exit = p.cmd.ProcessState.ExitCode()
	return r
}

func (p *programs) find(name string) (*program, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list[name] == nil {
		return nil, fmt.Errorf("%s was never started", name)
	}
	return p.list[name], nil
}

func (p *programs) signal(name string, s syscall.Signal) error {
	found, err := p.find(name)
	if err != nil {
		return err
	}
	return found.cmd.Process.Signal(s)
}

func (p *programs) wait(name string, limit time.Duration) (r talk.Reply, err error) {
	found, err := p.find(name)
	if err != nil {
		return r, err
	}
	select {
	case <-found.done:
		return found.how(), nil
	case <-time.After(limit):
		return r, fmt.Errorf("it has not ended within %v", limit)
	}
}

// credential is the user of a program: the board's one or root.
func credential(user string) (*syscall.Credential, error) {
	switch user {
	case "":
		return nil, nil
	case userName:
		return &syscall.Credential{Uid: userID, Gid: userID, Groups: []uint32{groupGPIO}}, nil
	}
	return nil, fmt.Errorf("the board has no user %q", user)
}

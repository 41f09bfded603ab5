//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/apollo-11/apollo11/firmware-sim/lab/talk"
)

const portName = talk.Port

// server does what the host asks.
type server struct {
	programs programs
	units    units
	holds    holds

	out  sync.Mutex
	port *os.File
}

// serve answers questions until the port fails.
func serve(port *os.File) error {
	s := &server{port: port}
	s.programs.list = map[string]*program{}
	s.units.list = map[string]*unit{}
	s.holds.list = map[string]int{}
	in := bufio.NewReaderSize(port, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			time.Sleep(5 * time.Millisecond) // nobody is connected at the other end yet
			continue
		}
		if err != nil {
			return fmt.Errorf("serial port: %w", err)
		}
		var q talk.Request
		if err := json.Unmarshal(line, &q); err != nil {
			return fmt.Errorf("question %.80q: %w", line, err)
		}
		go s.answer(q) // ends with the question, which has a limit
	}
}

func (s *server) answer(q talk.Request) {
	r, err := s.do(q)
	r.ID = q.ID
	if err != nil {
		r.Error = err.Error()
	}
	b, err := json.Marshal(r)
	if err != nil {
		die(err)
	}
	s.out.Lock()
	defer s.out.Unlock()
	if _, err := s.port.Write(append(b, '\n')); err != nil {
		die(err)
	}
}

func (s *server) do(q talk.Request) (r talk.Reply, err error) {
	switch q.Do {
	case talk.Start:
		return s.programs.start(q)
	case talk.Signal:
		if u := s.units.find(q.Name); u != nil {
			return r, u.signal(syscall.Signal(q.Signal))
		}
		return r, s.programs.signal(q.Name, syscall.Signal(q.Signal))
	case talk.Wait:
		return s.programs.wait(q.Name, q.Limit)
	case talk.Unit:
		return r, s.units.start(q.Name, string(q.Data))
	case talk.Stop:
		return r, s.units.stop(q.Name)
	case talk.Reload:
		return r, s.units.reload(q.Name)
	case talk.Status:
		return s.units.status(q.Name)
	case talk.Read:
		r.Data, err = os.ReadFile(q.Path)
		return r, err
	case talk.Write:
		return r, writeFile(q)
	case talk.Remove:
		return r, os.RemoveAll(q.Path)
	case talk.Sync:
		unix.Sync()
		return r, nil
	case talk.Hold:
		return r, s.holds.take(q.Name, q.Path, q.Line)
	case talk.Free:
		return r, s.holds.free(q.Name)
	}
	return r, fmt.Errorf("nobody knows how to %q", q.Do)
}

// writeFile makes the directories above the file, too. What is written is the
// host's: it must be whole when a program reads it, and last through a power cut.
func writeFile(q talk.Request) error {
	cred, err := credential(q.User)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(q.Path), 0o755); err != nil {
		return err
	}
	temp := q.Path + ".new"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, os.FileMode(q.Mode))
	if err != nil {
		return err
	}
	_, err = f.Write(q.Data)
	if err == nil && cred != nil {
		err = f.Chown(int(cred.Uid), int(cred.Gid))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), os.Rename(temp, q.Path))
}

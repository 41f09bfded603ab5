package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// steps does one thing after another, each when the log says what it waits for.
type steps struct {
	bytes.Buffer
	wait []string
	do   []func()
}

func (s *steps) Write(p []byte) (int, error) {
	if len(s.wait) > 0 && bytes.Contains(p, []byte(s.wait[0])) {
		do := s.do[0]
		s.wait, s.do = s.wait[1:], s.do[1:]
		do()
	}
	return s.Buffer.Write(p)
}

// I7: SIGHUP reads the pin map again. A file with faults changes nothing, and
// neither does one with other settings.
func TestI7_HangupReadsThePinMapAgain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "agent.yaml")
	basis := "gateway: tcp://127.0.0.1:1\nnode: pump-1\ngpio: sim\ndata: " + filepath.Join(dir, "data") + "\n"
	reread := func(text string) func() {
		return func() {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Error(err)
			}
			if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
				t.Error(err)
			}
		}
	}
	one := "pins:\n  - {name: valve, line: 'chip:1', direction: out, safe: 0}\n"
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := os.WriteFile(file, []byte(basis+one), 0o600); err != nil {
		t.Fatal(err)
	}
	log := &steps{
		wait: []string{"agent started", "pin map reloaded", "not reloaded", "not reloaded"},
		do: []func(){
			reread(basis + one + "  - {name: door, line: 'chip:2', direction: in}\n"),
			reread(basis + "pins:\n  - {name: valve, direction: sideways}\n"),
			reread(basis + one + "workers: 7\n"),
			cancel,
		},
	}
	code := Run(ctx, []string{"--config", file}, &bytes.Buffer{}, log)
	for _, want := range []string{"pins=2", "neither out nor in", "workers cannot be changed while the agent runs"} {
		if code != 0 || !strings.Contains(log.String(), want) {
			t.Errorf("exit %d, no %q in\n%s", code, want, log.String())
		}
	}
}

package lab

import (
	"syscall"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/board"
)

// TestHardwareWatchdog: nobody supervises this agent but the board's own watchdog.
// As long as the agent lives the board does; when the agent hangs the board is reset;
// after a clean stop it is left alone (C13).
func TestHardwareWatchdog(t *testing.T) {
	const (
		node, out = "arm64", 5
		timeout   = 15 * time.Second // asked of the device by the agent
		slack     = 10 * time.Second
	)
	k := lab(t)
	s := newSite(t, k)
	on := func() *board.Board {
		b := s.switchOn(board.Options{Files: k.files(levels...), Watchdog: true})
		s.must(b.Run(node, "", agentArgs(node, "--hardware-watchdog", "/dev/watchdog")...))
		s.must(b.AwaitConsole(t.Context(), "hardware watchdog armed", patience))
		s.online(node)
		return b
	}
	b := on()
	s.publish(write("on", node, line(out), 1))
	s.done(t, "on")
	s.seen(out, true, patience)
	if err := b.AwaitOff(t.Context(), timeout+3*time.Second); err == nil {
		t.Fatal("the board was reset although the agent lives")
	}
	s.must(b.Signal(node, int(syscall.SIGSTOP)))
	hung := time.Now()
	if err := b.AwaitOff(t.Context(), timeout+slack); err != nil {
		t.Fatal(err)
	}
	t.Logf("reset %v after the agent hung", time.Since(hung).Round(10*time.Millisecond))
	b.Close()

	b = on()
	s.must(b.Signal(node, int(syscall.SIGTERM)))
	if r, err := b.Wait(node, patience); err != nil || r.Exit != 0 {
		t.Fatalf("exit code %d, %v", r.Exit, err)
	}
	if err := b.AwaitOff(t.Context(), timeout+3*time.Second); err == nil {
		t.Error("the board was reset after the agent had been stopped")
	}
}

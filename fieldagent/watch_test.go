package fieldagent_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A service manager hears that the agent is ready, that it lives, and that it
// stops, in this order.
func TestServiceManagerHearsOfTheAgent(t *testing.T) {
	dir, err := os.MkdirTemp("", "notify") // a socket's path is short
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	socket := filepath.Join(dir, "s")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "60000") // 60 ms: it is told every 15
	hear := func() string {
		t.Helper()
		b := make([]byte, 100)
		must(t, l.SetReadDeadline(time.Now().Add(10*time.Second)))
		n, err := l.Read(b)
		must(t, err)
		return string(b[:n])
	}
	g := newGateway(t, "")
	b := newBoard(t, g.url(), "")
	b.start()
	said := map[string]int{}
	for said["READY=1"] == 0 || said["WATCHDOG=1"] < 3 {
		said[hear()]++
	}
	if said["STOPPING=1"] != 0 {
		t.Errorf("heard %v before the stop", said)
	}
	b.stop()
	for said["STOPPING=1"] == 0 {
		said[hear()]++
	}
}

// A watchdog that can't be had stops the agent at the start: nobody should rely on
// one that is not there.
func TestMissingHardwareWatchdogStopsTheAgent(t *testing.T) {
	b := newBoard(t, "tcp://127.0.0.1:1", "")
	b.cfg.HardwareWatchdog = filepath.Join(t.TempDir(), "watchdog")
	b.start()
	select {
	case err := <-b.done:
		if err == nil || !strings.Contains(err.Error(), b.cfg.HardwareWatchdog) {
			t.Errorf("got %v, want an error that names %s", err, b.cfg.HardwareWatchdog)
		}
	case <-time.After(10 * time.Second):
		t.Error("the agent runs without the watchdog that it was told to use")
	}
	b.cancel()
	b.cancel = nil
}

package guard_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/guard"
)

func env(m map[string]string) func(string) string { return func(k string) string { return m[k] } }

func TestManagerHearsTheProtocol(t *testing.T) {
	// Socket paths are short; a test's own directory may not be.
	dir, err := os.MkdirTemp("", "notify")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{filepath.Join(dir, "s"), "@apollo-guard-test-" + strconv.Itoa(os.Getpid())} {
		addr := strings.Replace(name, "@", "\x00", 1)
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: addr, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		m, err := guard.NewManager(env(map[string]string{"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "30000000"}))
		if err != nil || m.Watchdog() != 30*time.Second {
			t.Fatalf("watchdog %v, %v", m.Watchdog(), err)
		}
		for _, c := range []struct {
			say  func() error
			want string
		}{{m.Ready, "READY=1"}, {m.Alive, "WATCHDOG=1"}, {m.Stopping, "STOPPING=1"}} {
			if err := c.say(); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 100)
			if err := l.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
				t.Fatal(err)
			}
			n, err := l.Read(b)
			if got := string(b[:n]); err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := m.Alive(); err == nil {
			t.Error("nobody listens and nobody says so")
		}
	}
}

func TestManagerThatIsNotThereOrNotOurs(t *testing.T) {
	for _, c := range []struct {
		name   string
		env    map[string]string
		wrong  string
		period time.Duration
	}{
		{"none", nil, "", 0},
		{"watchdog without a socket", map[string]string{"WATCHDOG_USEC": "1000"}, "", 0},
		{"watchdog of the parent", map[string]string{"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}, "", 0},
		{"our watchdog", map[string]string{"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": strconv.Itoa(os.Getpid())}, "", time.Millisecond},
		{"no number", map[string]string{"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "soon"}, "WATCHDOG_USEC", 0},
		{"negative", map[string]string{"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "-1"}, "WATCHDOG_USEC", 0},
		{"no path", map[string]string{"NOTIFY_SOCKET": "tcp:1"}, "NOTIFY_SOCKET", 0},
	} {
		m, err := guard.NewManager(env(c.env))
		switch {
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: error %v, want one about %s", c.name, err, c.wrong)
		case c.wrong == "" && (err != nil || m.Watchdog() != c.period):
			t.Errorf("%s: %v, watchdog %v", c.name, err, m.Watchdog())
		}
		if m != nil && c.env == nil {
			if err := errors.Join(m.Ready(), m.Alive(), m.Stopping()); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// slow is a watcher that takes long, as on a board that was stopped or had no
// processor for a while.
type slow struct{ n atomic.Int64 }

func (s *slow) Alive() error {
	s.n.Add(1)
	time.Sleep(7 * time.Second)
	return nil
}

// What has answered is not stuck because the next question comes late.
func TestLateTurnOfTheWatchItselfIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slow
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			guard.Keep(ctx, 5*time.Second, []guard.Part{{"pins", func(context.Context) error { return nil }, 5 * time.Second}},
				[]guard.Watcher{&s}, slog.New(slog.DiscardHandler))
		}()
		time.Sleep(5*time.Second + 10*7*time.Second - time.Second)
		synctest.Wait()
		if n := s.n.Load(); n != 10 {
			t.Errorf("told %d times, want 10: once every 7 s, which is all that it bears", n)
		}
		cancel()
		<-ended
	})
}

// counter is a watcher that counts.
type counter struct{ n atomic.Int64 }

func (c *counter) Alive() error { c.n.Add(1); return nil }

func TestSilenceBeginsWithAStuckPartAndEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{}, 1)
		busy := func(ctx context.Context) error {
			select {
			case gate <- struct{}{}:
				<-gate
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		well := func(context.Context) error { return nil }
		var c counter
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			guard.Keep(ctx, 10*time.Second, []guard.Part{{"pins", well, 15 * time.Second}, {"loop", busy, time.Minute}},
				[]guard.Watcher{&c}, slog.New(slog.DiscardHandler))
		}()
		at := func(d time.Duration, want int64) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if n := c.n.Load(); n != want {
				t.Errorf("told %d times, want %d", n, want)
			}
		}
		at(61*time.Second, 6) // all is well
		gate <- struct{}{}    // the part is stuck from its next turn
		at(61*time.Second, 12)
		at(5*time.Minute, 13) // longer than its patience: silence
		<-gate
		at(21*time.Second, 15)
		cancel()
		<-ended
	})
}

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/api/apitest"
	"github.com/apollo-11/apollo11/gateway/cli"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// screen is what a running tool has written so far.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// until waits until the screen shows a text.
func (s *screen) until(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(s.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q in\n%s", text, s)
		}
	}
}

// watching runs alarms --watch until the returned function is called, which gives
// its exit code.
func watching(s *server, out, errs *screen, args ...string) (stop func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	env := func(name string) string {
		return map[string]string{"APOLLO_GATEWAY": s.http.URL, "APOLLO_ACTOR": "olga@panel"}[name]
	}
	go func() {
		done <- cli.Main(ctx, "v", append([]string{"alarms", "--watch"}, args...), strings.NewReader(""), out, errs, env)
	}()
	return func() int { cancel(); return <-done }
}

func TestAlarmsAreWatched(t *testing.T) {
	s := newServer()
	defer s.http.Close()
	s.g.Connect("pump-1", nil, apitest.Behaviour{})
	s.g.Advance(time.Minute)
	var out, errs screen
	stop := watching(s, &out, &errs)
	out.until(t, "raised  node_offline  pump-1  no sign of life")
	for range 2 { // the same twice is two incidents where the engine tells both
		s.g.Input(&engine.Compact{Short: wire.Short("pump-1"), Ack: wire.CompactAck{Seq: 77, Attempt: 1, Code: wire.CodeOK}})
	}
	out.until(t, "happened  unknown_report")
	s.g.Input(&engine.Uplink{Node: "pump-1", Msg: &wire.Heartbeat{Session: 7, Clock: s.g.Now().UnixMilli()}})
	out.until(t, "cleared  node_offline  pump-1\n")
	if err := s.set([]string{"away", "1"}); err != nil {
		t.Fatal(err)
	}
	errs.until(t, "still trying")
	if code := stop(); code != 0 {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
	if n := strings.Count(out.String(), "raised  node_offline"); n != 1 {
		t.Errorf("told %d times:\n%s", n, out.String())
	}
}

func TestWatchedAlarmsAsJSON(t *testing.T) {
	s := newServer()
	defer s.http.Close()
	s.g.Connect("pump-1", nil, apitest.Behaviour{})
	s.g.Advance(time.Minute)
	var out, errs screen
	stop := watching(s, &out, &errs, "-o", "json")
	out.until(t, "\n")
	if code := stop(); code != 0 {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
	var line struct{ Event, Alarm, Subject string }
	first, _, _ := strings.Cut(out.String(), "\n")
	if err := json.Unmarshal([]byte(first), &line); err != nil || line.Event != "raised" || line.Alarm != "node_offline" || line.Subject != "pump-1" {
		t.Errorf("%v: %s", err, first)
	}
}

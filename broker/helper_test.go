package broker_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/broker"
)

const taskTopic = "apollo/default/task"

// gateway is a Handler that keeps what it is given. Without a verdict function
// it lets submissions wait.
type gateway struct {
	verdict func(broker.Submission) (broker.Verdict, bool)

	mu       sync.Mutex
	subs     []submission
	uplinks  []broker.Uplink
	presence []broker.Presence
}

type submission struct {
	broker.Submission
	done func(broker.Verdict)
}

// accepting is a gateway that takes everything at once.
func accepting() *gateway { return deciding(broker.Verdict{Reason: broker.Accepted}) }

// deciding is a gateway that gives the same verdict on everything.
func deciding(v broker.Verdict) *gateway {
	return &gateway{verdict: func(broker.Submission) (broker.Verdict, bool) { return v, true }}
}

// counting is a Handler that takes everything and keeps nothing.
type counting struct{}

func (*counting) Submit(_ broker.Submission, done func(broker.Verdict)) {
	done(broker.Verdict{Reason: broker.Accepted})
}
func (*counting) Uplink(broker.Uplink)     {}
func (*counting) Presence(broker.Presence) {}

func (g *gateway) Submit(s broker.Submission, done func(broker.Verdict)) {
	g.mu.Lock()
	g.subs = append(g.subs, submission{s, done})
	g.mu.Unlock()
	if g.verdict != nil {
		if v, now := g.verdict(s); now {
			done(v)
		}
	}
}

func (g *gateway) Uplink(u broker.Uplink) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.uplinks = append(g.uplinks, u)
}

func (g *gateway) Presence(p broker.Presence) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.presence = append(g.presence, p)
}

func (g *gateway) submitted() []submission {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]submission(nil), g.subs...)
}

func (g *gateway) uplinked() []broker.Uplink {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]broker.Uplink(nil), g.uplinks...)
}

func (g *gateway) present() []broker.Presence {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]broker.Presence(nil), g.presence...)
}

// waitSubmitted waits until n submissions have come.
func (g *gateway) waitSubmitted(t testing.TB, n int) []submission {
	t.Helper()
	eventually(t, "submissions", func() bool { return len(g.submitted()) >= n })
	return g.submitted()
}

// eventually waits until ok is true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// journal is a log that a test can read.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) contains(s string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.buf.String(), s)
}

// running is a broker under test.
type running struct {
	*broker.Broker
	log  *journal
	stop func() // idempotent; returns when Run has
}

// serve runs a broker on free loopback ports until the test ends.
func serve(t testing.TB, h broker.Handler, change ...func(*broker.Config)) *running {
	t.Helper()
	cfg := broker.Config{MQTT: "127.0.0.1:0", Narrowband: "127.0.0.1:0"}
	for _, f := range change {
		f(&cfg)
	}
	j := new(journal)
	b, err := broker.New(cfg, h, slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	var once sync.Once
	r := &running{Broker: b, log: j}
	r.stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("Run: %v", err)
				}
			case <-time.After(patience):
				t.Error("Run does not return")
			}
		})
	}
	t.Cleanup(r.stop)
	select {
	case <-b.Ready():
	case err := <-ended:
		t.Fatalf("Run: %v", err)
	case <-time.After(patience):
		t.Fatal("broker does not get ready")
	}
	return r
}

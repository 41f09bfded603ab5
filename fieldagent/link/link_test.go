package link_test

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/link"
)

// peer is a link under test and what it told its owner.
type peer struct {
	*link.Link
	mu       sync.Mutex
	sessions []uint64
	downs    int
	got      []string
	slow     bool // take nothing
	next     uint64
}

func newPeer(t *testing.T, b *broker) *peer {
	t.Helper()
	p := &peer{}
	l, err := link.New(link.Options{
		URL: "tcp://gateway:1883", ClientID: "agent/pump-1", Subscribe: "cmd", Publish: "evt", KeepAlive: 20 * time.Second,
		Open: func() (uint64, []byte) { p.next++; return p.next, []byte{byte(p.next)} },
		Up: func(_ context.Context, s uint64) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.sessions = append(p.sessions, s)
		},
		Down: func(context.Context) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.downs++
		},
		Message: func(m []byte) bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.got = append(p.got, string(m))
			return !p.slow
		},
		Jitter: func() float64 { return 0.5 }, Dial: b.dial, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Link = l
	return p
}

// run keeps the link up while f runs, in a bubble of virtual time in which every
// goroutine must have ended at the end.
func run(t *testing.T, b *broker, f func(p *peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b.hold = make(chan struct{})
		p := newPeer(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.Run(ctx) }()
		f(p)
		cancel()
		<-done
		close(b.hold)
		b.cut()
		b.wg.Wait()
	})
}

func (p *peer) ups() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sessions)
}

// after lets d pass and everything that follows from it happen.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestConnectsSubscribesSendsAndTakesLeave(t *testing.T) {
	b := &broker{down: true, greet: [][]byte{[]byte("a"), []byte("b")}}
	run(t, b, func(p *peer) {
		if p.Send([]byte("too early")) {
			t.Error("took a message without a connection")
		}
		after(0) // the first attempt fails
		b.set(func() { b.down = false })
		after(time.Second)
		if p.ups() != 1 || strings.Join(p.got, "") != "ab" {
			t.Errorf("connections %v, received %v", p.sessions, p.got)
		}
		if !p.Send([]byte("x")) || !p.Send([]byte("y")) {
			t.Error("not taken")
		}
	})
	c := b.connects[0]
	if !c.CleanSession || c.ProtocolVersion != 4 || c.ClientIdentifier != "agent/pump-1" || c.Keepalive != 20 ||
		!c.WillFlag || c.WillTopic != "evt" || string(c.WillMessage) != "\x02" || c.WillQos != 0 {
		t.Errorf("connect packet %v", c)
	}
	if got := strings.Join(b.published, ""); got != "xy" || b.goodbyes != 1 || b.subs[0] != "cmd" {
		t.Errorf("published %q, %d goodbyes, subscriptions %v", got, b.goodbyes, b.subs)
	}
}

// C1, C6: the last words are sent, in order and before the leave, in under a second.
func TestC1_C6_WhatIsQueuedGoesBeforeTheLeave(t *testing.T) {
	b := &broker{}
	const n = 200
	var stopped time.Time
	synctest.Test(t, func(t *testing.T) {
		b.hold = make(chan struct{})
		p := newPeer(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.Run(ctx) }()
		after(time.Second)
		for i := range n {
			if !p.Send([]byte{byte(i)}) {
				t.Errorf("message %d was not taken", i)
			}
		}
		stopped = time.Now()
		cancel()
		<-done
		if d := time.Since(stopped); d >= time.Second {
			t.Errorf("took %v", d)
		}
		close(b.hold)
		b.cut()
		b.wg.Wait()
	})
	if len(b.published) != n || b.goodbyes != 1 {
		t.Fatalf("%d messages, %d goodbyes", len(b.published), b.goodbyes)
	}
	for i, m := range b.published {
		if m[0] != byte(i) {
			t.Fatalf("message %d is number %d", i, m[0])
		}
	}
}

func TestTriesForEverWithGrowingPauses(t *testing.T) {
	b := &broker{down: true}
	run(t, b, func(p *peer) {
		after(time.Hour)
		b.set(func() { b.down = false })
		after(link.BackoffMost)
		if p.ups() != 1 {
			t.Errorf("connections %v", p.sessions)
		}
	})
}

func TestF9_SubscribesAgainOnEveryConnection(t *testing.T) {
	b := &broker{}
	run(t, b, func(p *peer) {
		after(time.Minute)
		b.cut()
		after(time.Minute)
		if p.ups() != 2 || len(b.subs) != 2 || p.sessions[0] == p.sessions[1] {
			t.Errorf("connections %v, subscriptions %v", p.sessions, b.subs)
		}
		if string(b.connects[1].WillMessage) != "\x02" {
			t.Errorf("the second will is %x", b.connects[1].WillMessage)
		}
	})
}

func TestRefusedSubscriptionIsNoConnection(t *testing.T) {
	b := &broker{refuseSub: true}
	run(t, b, func(p *peer) {
		after(time.Minute)
		if p.ups() != 0 || len(b.connects) < 3 {
			t.Errorf("connections %v of %d", p.sessions, len(b.connects))
		}
		b.set(func() { b.refuseSub = false })
		after(time.Minute)
		if p.ups() != 1 {
			t.Errorf("connections %v", p.sessions)
		}
	})
}

// The broker's side is dead: what we send arrives, nothing comes back.
func TestL3_SilentPeerIsNoticedWithinOneAndAHalfKeepalives(t *testing.T) {
	b := &broker{}
	run(t, b, func(p *peer) {
		after(time.Second)
		b.set(func() { b.silent = true })
		after(31 * time.Second)
		if p.downs != 1 {
			t.Errorf("noticed %d times", p.downs)
		}
		b.set(func() { b.silent = false })
		after(time.Minute)
		if p.ups() != 2 {
			t.Errorf("connections %v", p.sessions)
		}
	})
}

// Our side is dead: what we write is not taken.
func TestL3_StuckWriteIsNoticed(t *testing.T) {
	b := &broker{deaf: true}
	run(t, b, func(p *peer) {
		after(time.Second)
		for range 400 {
			p.Send([]byte("x")) // never blocks
		}
		if p.Dropped() == 0 {
			t.Error("nothing was dropped")
		}
		after(2 * link.WriteLimit)
		if p.downs != 1 {
			t.Errorf("noticed %d times", p.downs)
		}
	})
}

// B15: many cuts with a receiver that takes nothing. The bubble would not end if
// anything were left over; memory is looked at as well.
func TestB15_ManyCutsLeaveNothingBehind(t *testing.T) {
	b := &broker{greet: [][]byte{[]byte("a"), []byte("b"), []byte("c")}}
	run(t, b, func(p *peer) {
		p.mu.Lock()
		p.slow = true
		p.mu.Unlock()
		after(10 * time.Second)
		before := runtime.NumGoroutine()
		const cuts = 300
		for range cuts {
			b.cut()
			after(time.Minute)
		}
		if p.ups() != cuts+1 {
			t.Errorf("%d connections after %d cuts", p.ups(), cuts)
		}
		if n := runtime.NumGoroutine(); n > before+5 {
			t.Errorf("%d goroutines, there were %d", n, before)
		}
	})
}

func TestFlappingConnectionIsNotTriedAllTheTime(t *testing.T) {
	b := &broker{}
	run(t, b, func(p *peer) {
		for range 600 {
			after(100 * time.Millisecond)
			b.cut()
		}
		// The wait grows to a second and no further, since the gateway is there;
		// without it there would be hundreds.
		if n := p.ups(); n < 40 || n > 120 {
			t.Errorf("%d connections in a minute", n)
		}
	})
}

func TestOversizePacketClosesTheConnection(t *testing.T) {
	b := &broker{greet: [][]byte{make([]byte, link.MaxPacket+1)}}
	run(t, b, func(p *peer) {
		after(time.Second)
		b.set(func() { b.greet = [][]byte{make([]byte, link.MaxPacket/2)} })
		after(time.Minute)
		ups := p.ups()
		if ups < 2 || len(p.got) != 1 || len(p.got[0]) != link.MaxPacket/2 {
			t.Errorf("connections %v, received %d", p.sessions, len(p.got))
		}
		after(time.Hour)
		if p.ups() != ups {
			t.Errorf("connections %v", p.sessions)
		}
	})
}

func TestStopWhileConnecting(t *testing.T) {
	for name, b := range map[string]*broker{"no broker": {down: true}, "no answer": {silent: true}} {
		t.Run(name, func(t *testing.T) {
			run(t, b, func(*peer) { after(100 * time.Millisecond) })
		})
	}
}

func TestAddresses(t *testing.T) {
	for _, good := range []string{"tcp://10.0.0.5:1883", "ws://gateway:8083/mqtt", "tcp://[::1]:1883"} {
		if err := link.CheckURL(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "10.0.0.5:1883", "tcp://gateway", "http://gateway:80", "tcp://:1883", "tcp://a:b@gateway:1883", "tcp://%zz"} {
		err := link.CheckURL(bad)
		if err == nil || strings.Contains(err.Error(), "a:b") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// F1: a quarter of an hour in which nobody says anything: pings keep the
// connection, and the first message each way gets through.
func TestF1_SilentConnectionIsKept(t *testing.T) {
	b := &broker{}
	run(t, b, func(p *peer) {
		after(15 * time.Minute)
		// A ping at the latest every keepalive of 20 s.
		if p.ups() != 1 || p.downs != 0 || b.pings < 44 {
			t.Errorf("connections %v, %d lost, %d pings", p.sessions, p.downs, b.pings)
		}
		b.say([]byte("first"))
		after(0)
		if len(p.got) != 1 || p.got[0] != "first" {
			t.Errorf("received %q", p.got)
		}
		if !p.Send([]byte("result")) {
			t.Error("not taken")
		}
	})
	if strings.Join(b.published, "") != "result" || len(b.connects) != 1 {
		t.Errorf("published %q on %d connections", b.published, len(b.connects))
	}
}

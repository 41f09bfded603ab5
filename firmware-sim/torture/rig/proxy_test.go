package rig_test

import (
	"bufio"
	"net"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

// echo answers every line with itself.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c, err := l.Accept()
		if err != nil {
			return
		}
		r := bufio.NewReader(c)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				_ = c.Close()
				return
			}
			if _, err := c.Write(line); err != nil {
				t.Error(err)
			}
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	return l.Addr().String()
}

// TestProxyHoldsAndLosesNothing: what is sent into a dead direction arrives when
// the line is mended, in order, over the same connection.
func TestProxyHoldsAndLosesNothing(t *testing.T) {
	t.Parallel()
	for _, d := range []rig.Direction{rig.Up, rig.Down} {
		p, err := rig.NewProxy(echo(t))
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(c)
		say := func(s string) {
			t.Helper()
			if _, err := c.Write([]byte(s + "\n")); err != nil {
				t.Fatal(err)
			}
		}
		hear := func(limit time.Duration) (string, error) {
			if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
				t.Fatal(err)
			}
			return r.ReadString('\n')
		}
		say("one")
		if got, err := hear(rig.Patience); got != "one\n" {
			t.Fatalf("heard %q, %v", got, err)
		}
		p.Hold(d)
		say("two")
		say("three")
		if got, err := hear(50 * time.Millisecond); err == nil {
			t.Errorf("direction %d is held, and %q came through", d, got)
		}
		p.Mend()
		for _, want := range []string{"two\n", "three\n"} {
			if got, err := hear(rig.Patience); got != want {
				t.Fatalf("heard %q, %v, want %q", got, err, want)
			}
		}
		_ = c.Close()
		p.Close()
	}
}

// TestProxyClosesWhileHeld: nothing waits for ever.
func TestProxyClosesWhileHeld(t *testing.T) {
	t.Parallel()
	p, err := rig.NewProxy(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	p.Hold(rig.Up, rig.Down)
	if _, err := c.Write([]byte("lost\n")); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if err := c.SetReadDeadline(time.Now().Add(rig.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
	_ = c.Close()
}

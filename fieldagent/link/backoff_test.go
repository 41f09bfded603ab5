package link_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"github.com/apollo-11/apollo11/fieldagent/link"
)

// briefBroker answers on one connection until it has lasted, and then drops it.
func briefBroker(conn net.Conn, lasts time.Duration) {
	timer := time.AfterFunc(lasts, func() { _ = conn.Close() })
	defer timer.Stop()
	for {
		in, err := packets.ReadPacket(conn)
		if err != nil {
			return
		}
		var out packets.ControlPacket
		switch in := in.(type) {
		case *packets.ConnectPacket:
			out = packets.NewControlPacket(packets.Connack)
		case *packets.SubscribePacket:
			ack := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
			ack.MessageID, ack.ReturnCodes = in.MessageID, []byte{0}
			out = ack
		case *packets.PingreqPacket:
			out = packets.NewControlPacket(packets.Pingresp)
		default:
			continue
		}
		if out.Write(conn) != nil {
			return
		}
	}
}

// pauses runs a link against a broker whose connections last as told, and returns
// the waits between the loss of each and the next attempt.
func pauses(t *testing.T, attempts int, lasts time.Duration) (waits []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var lost time.Time
		l, err := link.New(link.Options{
			URL: "tcp://10.0.0.5:1883", ClientID: "agent/pump-1", Subscribe: "c", Publish: "e", KeepAlive: 20 * time.Second,
			Open: func() (uint64, []byte) { return 1, nil }, Up: func(context.Context, uint64) {},
			Down:    func(context.Context) { lost = time.Now() },
			Message: func([]byte) bool { return true }, Jitter: func() float64 { return 1 }, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Dial: func(context.Context, string, string) (net.Conn, error) {
				if !lost.IsZero() {
					waits = append(waits, time.Since(lost))
				}
				if len(waits) == attempts {
					cancel()
					return nil, context.Canceled
				}
				ours, theirs := net.Pipe()
				go briefBroker(theirs, lasts)
				return ours, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		l.Run(ctx)
	})
	return waits
}

// TestB15_LineThatComesAndGoesIsFoundSoon: connections that are made but do not
// last must not slow the agent down more and more.
func TestB15_LineThatComesAndGoesIsFoundSoon(t *testing.T) {
	for _, w := range pauses(t, 20, 2*time.Second) {
		if w > time.Second {
			t.Errorf("waited %v", w)
		}
	}
}

// TestGoodConnectionStartsTheWaitAnew: what lasted is taken up again at once.
func TestGoodConnectionStartsTheWaitAnew(t *testing.T) {
	for _, w := range pauses(t, 5, time.Minute) {
		if w > link.BackoffLeast {
			t.Errorf("waited %v", w)
		}
	}
}

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/apollo-11/apollo11/gateway"
	"github.com/apollo-11/apollo11/gateway/engine"
)

// site is a gateway under measurement, inside this process.
type site struct {
	g    *gateway.Gateway
	stop context.CancelFunc
	done chan error
}

// noLog is the yardstick: a gateway that remembers nothing.
type noLog struct{}

type durable struct{}

func (durable) Wait() error { return nil }

func (noLog) Apply(*engine.Records) (gateway.Pending, error) { return durable{}, nil }
func (noLog) Lookup(engine.Want) (gateway.Found, error)      { return gateway.Found{}, nil }

func startSite(ctx context.Context, dir string, log gateway.Log) (*site, error) {
	ctx, stop := context.WithCancel(ctx)
	cfg := gateway.Config{Data: filepath.Join(dir, "gateway"), MQTT: "127.0.0.1:0", Narrowband: "127.0.0.1:0",
		WebSocket: "off", HTTP: "127.0.0.1:0", Capacity: 10_000_000, Log: log}
	lg := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	g, err := gateway.Open(ctx, cfg, lg)
	if err != nil {
		stop()
		return nil, err
	}
	s := &site{g: g, stop: stop, done: make(chan error, 1)}
	go func() { s.done <- g.Run(ctx) }()
	select {
	case <-g.Ready():
		return s, nil
	case err := <-s.done:
		stop()
		return nil, fmt.Errorf("gateway: %w", err)
	case <-time.After(time.Minute):
		stop()
		return nil, fmt.Errorf("gateway not ready within a minute")
	}
}

func (s *site) close() error {
	s.stop()
	return <-s.done
}

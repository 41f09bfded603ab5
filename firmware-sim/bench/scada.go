package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"github.com/apollo-11/apollo11/firmware-sim/fleet"
)

const wait = 30 * time.Second

// scada is one SCADA connection that publishes commands and watches statuses.
type scada struct {
	client  mqtt.Client
	settled chan struct{} // one for each task that has ended
}

func dialScada(addr string, watch bool) (*scada, error) {
	s := &scada{settled: make(chan struct{}, 1<<16)}
	o := mqtt.NewClientOptions().AddBroker("tcp://" + addr).SetClientID("bench-scada").SetProtocolVersion(4).
		SetAutoReconnect(false).SetConnectTimeout(wait).SetOrderMatters(true)
	s.client = mqtt.NewClient(o)
	if err := token(s.client.Connect()); err != nil {
		return nil, fmt.Errorf("scada: connect: %w", err)
	}
	if !watch {
		return s, nil
	}
	mark := []byte(`"settled":true`)
	err := token(s.client.Subscribe("apollo/default/task/+/status", 0, func(_ mqtt.Client, m mqtt.Message) {
		if bytes.Contains(m.Payload(), mark) {
			s.settled <- struct{}{}
		}
	}))
	if err != nil {
		return nil, fmt.Errorf("scada: subscribe: %w", err)
	}
	return s, nil
}

func token(t mqtt.Token) error {
	if !t.WaitTimeout(wait) {
		return errors.New("no answer")
	}
	return t.Error()
}

func (s *scada) close() { s.client.Disconnect(100) }

func command(node string) string {
	return `{"intent":"gpio.write","node":"` + node + `","args":{"pin":"GPIO17","level":1}}`
}

// latencies sends n commands to one node, one at a time, and returns the times
// from publish to acknowledgement and from publish to the settled status.
func (s *scada) latencies(node string, n int) (acks, ends []time.Duration, err error) {
	body := command(node)
	for range n {
		t := time.Now()
		if err := token(s.client.Publish("apollo/default/task", 1, false, body)); err != nil {
			return nil, nil, fmt.Errorf("publish: %w", err)
		}
		acks = append(acks, time.Since(t))
		select {
		case <-s.settled:
		case <-time.After(wait):
			return nil, nil, errors.New("a command did not end: its status was not seen")
		}
		ends = append(ends, time.Since(t))
	}
	return acks, ends, nil
}

// throughput keeps window commands in flight over the fleet's nodes for d and
// returns how many ended per second.
func (s *scada) throughput(ctx context.Context, nodes, window int, d time.Duration) (float64, error) {
	ended, sent := 0, 0
	start := time.Now()
	for time.Since(start) < d || ended < sent {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		for sent-ended < window && time.Since(start) < d {
			// The token is not waited for: that is what in flight means.
			s.client.Publish("apollo/default/task", 1, false, command(fleet.Name(sent%nodes)))
			sent++
		}
		select {
		case <-s.settled:
			ended++
		case <-time.After(10 * time.Second):
			return 0, fmt.Errorf("%d of %d commands did not end", sent-ended, sent)
		}
	}
	return float64(ended) / time.Since(start).Seconds(), nil
}

package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/wire"
)

// DispatchLimit is what a restart with 100,000 instructions in the log, 10,000 of
// them unfinished, may take from the start of the process to the first instruction
// at a waiting node (C5).
const DispatchLimit = 2 * time.Second

// orderTime is what the store gets to put a log in order.
const orderTime = time.Second

// RestartResult is what a restart with a log of one size costs.
type RestartResult struct {
	LogSize
	// Dispatch is from the start of the process to the first instruction at a node
	// that was waiting; Ready to open doors.
	Dispatch Spread `json:"dispatch"`
	Ready    Spread `json:"ready"`
	// CPU is what the process had used by then: the cost without what else the
	// machine was doing.
	CPU     Spread  `json:"cpu"`
	DiskMiB float64 `json:"disk_mib"`
}

// OK reports whether the limit holds.
func (r RestartResult) OK() bool { return r.Dispatch.Median < DispatchLimit }

// Restart makes a log, kills and starts a gateway on it, and measures how long a
// node that waits for its doors to open waits for its first instruction. Every
// round is ended by SIGKILL, so that each recovers from what a crash leaves.
func Restart(ctx context.Context, u Setup, size LogSize, rounds int) (r RestartResult, err error) {
	r.LogSize = size
	u.Progress("making a log with %d finished and %d unfinished instructions", size.Finished, size.Unfinished)
	s, err := rig.NewSite(ctx, u.Bin, u.Dir, rig.Options{})
	if err != nil {
		return r, err
	}
	defer s.Close()
	s.KillGateway() // only its addresses were wanted
	if err := os.RemoveAll(s.GatewayData()); err != nil {
		return r, err
	}
	seat, err := MakeLog(ctx, s.GatewayData(), size)
	if err != nil {
		return r, fmt.Errorf("make a log: %w", err)
	}
	r.DiskMiB = diskMiB(s.GatewayData())
	if err := live(ctx, s); err != nil {
		return r, err
	}
	var ready, dispatch, cpu []time.Duration
	for k := range rounds {
		a, b, err := restart(ctx, s, seat, uint64(k)+2)
		if err != nil {
			return r, err
		}
		ready, dispatch, cpu = append(ready, a), append(dispatch, b), append(cpu, s.Gateway().CPU())
		u.Progress("%d finished, %d unfinished: restart %d of %d", size.Finished, size.Unfinished, k+1, rounds)
	}
	r.Ready, r.Dispatch = NewSpread(ready), NewSpread(dispatch)
	r.CPU = NewSpread(cpu)
	return r, nil
}

// live lets a gateway live for a moment on a log that was made at a speed at which
// none ever grows, so that the store has put it in order; and stops it.
func live(ctx context.Context, s *rig.Site) error {
	if _, err := s.StartGateway(ctx); err != nil {
		return err
	}
	if err := rig.Pause(ctx, orderTime); err != nil {
		return err
	}
	s.Gateway().Signal(syscall.SIGTERM)
	code, err := s.Gateway().Wait(rig.Patience)
	if err == nil && code != 0 {
		err = fmt.Errorf("the gateway ended with %d:\n%s", code, s.Gateway().Output())
	}
	return err
}

// restart starts the gateway once, with a node that knocks at its door meanwhile.
func restart(ctx context.Context, s *rig.Site, seat Seat, session uint64) (ready, dispatch time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	type first struct {
		at  time.Time
		err error
	}
	got := make(chan first, 1)
	go func() {
		at, err := firstInstruction(ctx, s, seat, session)
		got <- first{at, err}
	}()
	ready, err = s.StartGateway(ctx)
	if err != nil {
		cancel()
	}
	f := <-got
	if err = errors.Join(err, f.err); err != nil {
		return 0, 0, err
	}
	dispatch = f.at.Sub(s.Gateway().Began())
	s.KillGateway()
	return ready, dispatch, nil
}

// firstInstruction is a node that waits for the gateway, says hello, and returns
// when its first instruction is there. It does not answer it.
func firstInstruction(ctx context.Context, s *rig.Site, seat Seat, session uint64) (at time.Time, err error) {
	topics, err := wire.NewTopics("default")
	if err != nil {
		return at, err
	}
	var c *rig.Client
	err = rig.Await(ctx, rig.Patience, "door open", func() (bool, error) {
		var err error
		c, err = rig.Connect(ctx, s.Dial, s.Door().MQTT, "agent/"+seat.Node)
		return err == nil, err
	})
	if err != nil {
		return at, err
	}
	defer c.Close()
	if err := c.Subscribe(topics.Cmd(seat.Node)); err != nil {
		return at, err
	}
	hello, err := wire.Encode(&wire.Hello{Session: session, Incarnation: seat.Incarnation, Version: "fleet", Short: wire.Short(seat.Node),
		First: seat.Next, Next: seat.Next, Clock: time.Now().UnixMilli(), ClockSet: true, Board: "fleet"})
	if err != nil {
		return at, err
	}
	if err := c.Publish(topics.Evt(seat.Node), hello); err != nil {
		return at, err
	}
	for {
		_, payload, err := c.Next(rig.Patience)
		if err != nil {
			return at, err
		}
		m, err := wire.DecodeDownlink(payload)
		if err != nil {
			return at, err
		}
		if _, ok := m.(*wire.Instruction); ok {
			return time.Now(), nil
		}
	}
}

func diskMiB(dir string) float64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error { // a figure for orientation
		if err != nil || d.IsDir() {
			return nil
		}
		if i, err := d.Info(); err == nil {
			sum += i.Size()
		}
		return nil
	})
	return float64(sum) / (1 << 20)
}

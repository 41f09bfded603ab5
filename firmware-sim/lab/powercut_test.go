package lab

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/board"
	"github.com/apollo-11/apollo11/firmware-sim/lab/disk"
	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

// cuts is how many power cuts a test makes.
func cuts(t *testing.T) int {
	t.Helper()
	const usual = 5
	text := os.Getenv("APOLLO_LAB_CUTS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 10_000 {
		t.Fatalf("APOLLO_LAB_CUTS=%q: give a number of cuts", text)
	}
	return n
}

// seed is printed, and can be given to see the same moments again.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := rand.Uint64N(1 << 32)
	if text := os.Getenv("APOLLO_LAB_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("APOLLO_LAB_SEED=%q: give a number", text)
		}
	}
	t.Logf("APOLLO_LAB_SEED=%d", n)
	return n
}

// pulses is how long pulses are, turn by turn: most cuts fall into a long one, and
// short ones keep the disk busy.
var pulses = []time.Duration{5 * time.Millisecond, 80 * time.Millisecond, 20 * time.Millisecond}

// waiting is how many pulses a board has before it at a cut, more than it can do until
// then.
const waiting = 16

// flushTakes is how long a flush of the disk takes, about as on a memory card.
const flushTakes = 15 * time.Millisecond

// boardTally is what came of power cuts of a board with an agent.
type boardTally struct {
	cuts, held, lost   int // sectors that the disk had in its memory, and lost
	tasks              int
	succeeded, unknown int // by what the gateway says
	other              []string
	rises              int // seen outside, of all boots
	alarms             []string
	finished           bool // all boards came up, and every task was read
}

// faults says what must not be.
func (r boardTally) faults() []string {
	var list []string
	for _, a := range r.alarms {
		list = append(list, "alarm: "+a)
	}
	if !r.finished {
		return list // nothing was counted
	}
	if r.rises < r.succeeded {
		list = append(list, fmt.Sprintf("%d pulses are said to be done, %d were seen", r.succeeded, r.rises))
	}
	if r.rises > r.succeeded+r.unknown {
		list = append(list, fmt.Sprintf("%d pulses were seen, %d are said to be done and %d unknown: done twice", r.rises, r.succeeded, r.unknown))
	}
	// At most one pulse is in the making at each cut, and at most one more was
	// begun before it.
	if most := 2 * r.cuts; r.unknown > most {
		list = append(list, fmt.Sprintf("%d of unknown outcome after %d cuts", r.unknown, r.cuts))
	}
	for _, o := range r.other {
		list = append(list, "neither done nor unknown: "+o)
	}
	return list
}

// agentPowerCuts cuts the power of a board in the middle of its work, again and
// again, and tells what came of it.
func agentPowerCuts(t *testing.T, k *kit, agent string, mode disk.Mode, cuts int) (r boardTally) {
	t.Helper()
	const node, out = "arm64", 5
	n := seed(t)
	chance := rand.New(rand.NewPCG(n, 1))
	s := newSite(t, k)
	d, socket := newDisk(t, 64, n)
	d.Set(mode)
	d.Slow(flushTakes)
	client, err := s.Client(t.Context(), "scada")
	s.must(err)
	defer client.Close()
	files := []board.File{{Path: "/init", Mode: 0o755, Source: k.guest}, {Path: agentPath(node), Mode: 0o755, Source: agent}}
	defer func() { r.held = d.Counts().Kept + r.lost }()
	for boot := range cuts + 1 {
		b := s.switchOn(board.Options{Files: files, Disk: socket})
		if text, err := b.ReadFile("/run/no-disk"); err == nil {
			r.alarms = append(r.alarms, "the disk cannot be mounted: "+text)
			return r
		}
		s.must(b.Run(node, "apollo", agentArgs(node)...))
		s.online(node)
		if r.alarms = s.lossAlarms(t); len(r.alarms) > 0 {
			return r // enough is known, and the rest would take minutes
		}
		if boot == cuts {
			r.finish(s)
			r.rises += b.Lines().Rises(out)
			break
		}
		var batch []string
		for r.tasks-r.rises-r.cuts < waiting { // more would pile up, and an agent refuses what it can't hold
			batch = append(batch, doc(fmt.Sprintf("pulse-%d", r.tasks), "gpio.pulse", node,
				fmt.Sprintf(`{"pin":%q,"width_ms":%d}`, line(out), pulses[r.tasks%len(pulses)].Milliseconds()), `,"retry_policy":{"max_retries":0}`))
			r.tasks++
		}
		if _, err := client.Submit(rig.TaskTopic, batch...); err != nil {
			t.Fatal(err)
		}
		s.must(aim(t, d, chance, boot))
		s.must(b.Cut(func() { r.lost += d.Cut() }))
		r.cuts++
		r.rises += b.Lines().Rises(out)
	}
	return r
}

// aim waits for the moment of a cut: a random one, or one at which the disk has
// something to lose.
func aim(t *testing.T, d *disk.Disk, chance *rand.Rand, n int) error {
	t.Helper()
	if err := rig.Pause(t.Context(), 200*time.Millisecond+time.Duration(chance.Int64N(int64(time.Second)))); err != nil || n%2 == 0 {
		return err
	}
	d.AwaitDirty(time.Second)
	return rig.Pause(t.Context(), time.Duration(chance.Int64N(int64(flushTakes))))
}

// finish waits for the end of all tasks and reads what they became.
func (r *boardTally) finish(s *site) {
	s.t.Helper()
	for k := range r.tasks {
		i := s.settled(s.t, fmt.Sprintf("pulse-%d", k))
		switch {
		case i.State == "SUCCEEDED":
			r.succeeded++
		case i.OutcomeUnknown:
			r.unknown++
		default:
			r.other = append(r.other, fmt.Sprintf("%s %s %s %s", i.TaskID, i.State, i.Code, i.Reason))
		}
	}
	r.alarms, r.finished = s.lossAlarms(s.t), true
}

// TestAgentBoardPowerCuts: what an agent has confirmed it knows after a power cut,
// and a command that was cut off is not done again (C6, C7, C14).
func TestAgentBoardPowerCuts(t *testing.T) {
	k := lab(t)
	r := agentPowerCuts(t, k, k.agentFile("arm64"), disk.Honest, cuts(t))
	t.Logf("%+v", r)
	for _, f := range r.faults() {
		t.Error(f)
	}
	if !r.finished || r.succeeded < r.cuts || r.unknown == 0 || r.held == 0 {
		t.Errorf("hardly any work was cut off: %+v", r)
	}
}

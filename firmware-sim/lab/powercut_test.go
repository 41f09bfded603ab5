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

// pulse is how long a pulse is. Most cuts fall into one.
const pulse = 120 * time.Millisecond

// boardTally is what came of power cuts of a board with an agent.
type boardTally struct {
	cuts, lost         int // sectors
	tasks              int
	succeeded, unknown int // by what the gateway says
	other              []string
	rises              int // seen outside, of all boots
	alarms             []string
}

// faults says what must not be.
func (r boardTally) faults() []string {
	var list []string
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
	for _, a := range r.alarms {
		list = append(list, "alarm: "+a)
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
	client, err := s.Client(t.Context(), "scada")
	s.must(err)
	defer client.Close()
	files := []board.File{{Path: "/init", Mode: 0o755, Source: k.guest}, {Path: agentPath(node), Mode: 0o755, Source: agent}}
	for boot := range cuts + 1 {
		b := s.switchOn(board.Options{Files: files, Disk: socket})
		if text, err := b.ReadFile("/run/no-disk"); err == nil {
			r.alarms = append(r.alarms, "the disk cannot be mounted: "+text)
			b.Cut()
			return r
		}
		s.must(b.Run(node, "apollo", agentArgs(node)...))
		s.online(node)
		if boot == cuts {
			r.finish(s)
			r.rises += b.Lines().Rises(out)
			b.Cut()
			break
		}
		var batch []string
		for range 12 {
			batch = append(batch, doc(fmt.Sprintf("pulse-%d", r.tasks), "gpio.pulse", node,
				fmt.Sprintf(`{"pin":%q,"width_ms":%d}`, line(out), pulse.Milliseconds()), `,"retry_policy":{"max_retries":0}`))
			r.tasks++
		}
		if _, err := client.Submit(rig.TaskTopic, batch...); err != nil {
			t.Fatal(err)
		}
		s.must(rig.Pause(t.Context(), 200*time.Millisecond+time.Duration(chance.Int64N(int64(10*pulse)))))
		b.Cut()
		r.cuts++
		r.lost += d.Cut()
		r.rises += b.Lines().Rises(out)
	}
	return r
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
	r.alarms = s.lossAlarms(s.t)
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
	if r.succeeded < r.cuts || r.unknown == 0 {
		t.Errorf("hardly any work was cut off: %d done, %d unknown", r.succeeded, r.unknown)
	}
}

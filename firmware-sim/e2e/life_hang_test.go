package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/gateway"
)

// hungDisk is the environment variable that makes the test binary a gateway whose disk
// lets every write and sync hang as long as the file that it names exists.
const hungDisk = "APOLLO_E2E_HUNG_DISK"

// gatewayOnHungDisk is the program apollo-gateway but for its disk.
func gatewayOnHungDisk(trigger string, args []string) int {
	hang := errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			for {
				if _, err := os.Stat(trigger); err != nil {
					return nil
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		return nil
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return gateway.Main(ctx, "test", args, os.Stdout, os.Stderr, func(c *gateway.Config) { c.FS = errorfs.Wrap(vfs.Default, hang) })
}

// onHungDisk starts the site's gateway on a disk that hangs while trigger is there, and
// a node that has switched its lamp and its valve on.
func (s *site) onHungDisk(trigger string) {
	s.t.Helper()
	s.gateway.stop()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(self, "--data", filepath.Join(s.dir, "gateway"), "--mqtt", s.mqtt, "--narrowband", s.narrow, "--ws", s.ws, "--http", s.http)
	cmd.Env = append(os.Environ(), hungDisk+"="+trigger)
	s.gateway = startCmd(s.t, "gateway on a disk that hangs", cmd)
	s.ready(s.gateway)
	s.agent("pump-1", "--config", s.pinMap())
	s.online("pump-1")
	for _, pin := range []string{"lamp", "valve"} {
		s.publish(write(pin+"-on", "pump-1", pin, 1))
		s.done(pin + "-on")
	}
}

// lines are those of pinMap.
var lines = map[string]string{"valve": "chip:1", "lamp": "chip:2"}

// moves is the level that a pin was set to last, by the trace of its board.
func (s *site) moves(node, pin string) (level gpio.Level) {
	s.t.Helper()
	for _, a := range s.actuations(node) {
		if a.Pin == lines[pin] {
			level = a.Level
		}
	}
	return level
}

// answer is what became of a submission.
type answer struct {
	text string
	err  error
}

// TestOffDoesNotWaitForTheDiskOfTheGateway (safety.md 1, 5): while its disk hangs, and
// after more commands than wait for a disk, an off over HTTP or MQTT reaches the pin; no
// receipt is given. When the disk is back the receipt comes, and the instruction ends once.
func TestOffDoesNotWaitForTheDiskOfTheGateway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	trigger := filepath.Join(t.TempDir(), "hang")
	s.onHungDisk(trigger)
	if err := os.WriteFile(trigger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	answers := make(chan answer, 64)
	send := func(f func() (string, error)) {
		go func() {
			text, err := f()
			answers <- answer{text, err}
		}()
	}
	others := 0
	for k := range 40 {
		others++
		send(func() (string, error) { return s.post(write(fmt.Sprintf("other-%d", k), "pump-2", "GPIO17", 1)) })
	}
	safe := func(pin string) {
		t.Helper()
		began := time.Now()
		within(t, slow, pin+" off", func() (bool, string) { return s.moves("pump-1", pin) == gpio.Low, "on" })
		t.Logf("%s is off after %v", pin, time.Since(began).Round(time.Millisecond))
	}
	send(func() (string, error) { return s.post(write("lamp-off", "pump-1", "lamp", 0)) })
	safe("lamp")
	send(func() (string, error) { return s.tryPublish(write("valve-off", "pump-1", "valve", 0)) })
	safe("valve")
	select {
	case a := <-answers:
		t.Errorf("a receipt while the disk hangs: %q, %v", a.text, a.err)
	default:
	}
	if err := os.Remove(trigger); err != nil {
		t.Fatal(err)
	}
	for range others + 2 {
		if a := <-answers; a.err != nil {
			t.Errorf("%q: %v", a.text, a.err)
		}
	}
	for _, pin := range []string{"lamp", "valve"} {
		i := s.done(pin + "-off")
		if w := whats(s.timeline(i.Seq)); strings.Count(w, "driven") != 1 || strings.Count(w, "processed") != 1 {
			t.Errorf("%s: %s", pin, w)
		}
		if n := i.Attempt; n != 1 {
			t.Errorf("%s: %d attempts", pin, n)
		}
	}
}

// TestLostRecordOfWhatWasDrivenIsTold (safety.md 1): the gateway is killed while its disk
// hangs and an off has gone ahead of its record. Its number is not given out again, the
// node's word is told as what it is, and the next commands go as ever.
func TestLostRecordOfWhatWasDrivenIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	trigger := filepath.Join(t.TempDir(), "hang")
	s.onHungDisk(trigger)
	before := s.task("valve-on").one(t).Seq
	if err := os.WriteFile(trigger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = s.post(write("lamp-off", "pump-1", "lamp", 0)) }()
	within(t, slow, "lamp off", func() (bool, string) { return s.moves("pump-1", "lamp") == gpio.Low, "on" })
	s.restart()
	s.online("pump-1")
	within(t, slow, "the lost record told", func() (bool, string) {
		var v struct {
			Recent []struct{ Alarm, Subject, Text string } `json:"recent"`
		}
		body := s.fetch("/v1/alarms", &v)
		for _, a := range v.Recent {
			if a.Alarm == "log_rolled_back" || a.Alarm == "log_restored" || a.Alarm == "order_lost" {
				t.Errorf("%s: %s", a.Alarm, a.Text)
			}
			if a.Alarm == "safe_record_lost" && a.Subject == "pump-1" {
				return true, ""
			}
		}
		return false, body
	})
	var v taskView
	lost := s.get("/v1/tasks/lamp-off", &v)
	if lost {
		t.Log("the record was on disk all the same")
	}
	s.publish(write("lamp-on-again", "pump-1", "lamp", 1))
	if i := s.done("lamp-on-again"); i.Seq <= before+1 {
		t.Errorf("instruction %d was given out again", i.Seq)
	}
	if s.moves("pump-1", "lamp") != gpio.High {
		t.Error("the lamp is off, and was switched on")
	}
}

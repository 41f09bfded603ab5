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

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/apollo-11/apollo11/gateway"
)

// badDisk is the environment variable that makes the test binary a gateway whose
// disk fails every sync once the file that it names exists.
const badDisk = "APOLLO_E2E_BAD_DISK"

// gatewayOnBadDisk is the program apollo-gateway but for its disk.
func gatewayOnBadDisk(trigger string, args []string) int {
	fail := errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			if _, err := os.Stat(trigger); err == nil {
				return syscall.EIO
			}
		}
		return nil
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return gateway.Main(ctx, "test", args, os.Stdout, os.Stderr, func(c *gateway.Config) { c.FS = errorfs.Wrap(vfs.Default, fail) })
}

// onBadDisk is the site's gateway on a disk that fails when trigger is made.
func (s *site) onBadDisk(trigger string) *exec.Cmd {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(self, "--data", filepath.Join(s.dir, "gateway"), "--mqtt", s.mqtt, "--narrowband", s.narrow, "--ws", s.ws, "--http", s.http)
	cmd.Env = append(os.Environ(), badDisk+"="+trigger)
	return cmd
}

// TestDiskThatCannotSync_NoPubackLeaves: with fsync failing, no publisher is told
// that its command is durable, over MQTT or HTTP; the process ends at once, with a
// code and a message of its own; and what was acknowledged before is there when it
// comes back (A2, C12, G12, B1).
func TestDiskThatCannotSync_NoPubackLeaves(t *testing.T) {
	t.Parallel()
	for _, door := range []struct {
		name string
		send func(s *site) (string, error)
	}{
		{"mqtt 3.1.1 qos 1", func(s *site) (string, error) { return s.tryPublish(write("lost", "pump-1", "GPIO17", 0)) }},
		{"mqtt 5 qos 1", func(s *site) (string, error) {
			return s.tryPublish(write("lost", "pump-1", "GPIO17", 0), "-V", "5")
		}},
		{"mqtt 3.1.1 qos 2", func(s *site) (string, error) {
			return s.tryPublish(write("lost", "pump-1", "GPIO17", 0), "-q", "2")
		}},
		{"http", func(s *site) (string, error) { return s.post(write("lost", "pump-1", "GPIO17", 0)) }},
	} {
		t.Run(door.name, func(t *testing.T) {
			s := newSite(t)
			s.gateway.stop()
			trigger := filepath.Join(t.TempDir(), "fail")
			s.gateway = startCmd(t, "gateway on a bad disk", s.onBadDisk(trigger))
			s.ready(s.gateway)
			var kept []string
			for k := range 5 {
				kept = append(kept, fmt.Sprintf("kept-%d", k))
				s.publish(write(kept[k], "pump-1", "GPIO17", 1))
			}
			if err := os.WriteFile(trigger, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := door.send(s)
			if err == nil {
				t.Errorf("it was acknowledged: %s", out)
			}
			if code := s.gateway.wait(); code != 70 {
				t.Errorf("exit code %d, want 70", code)
			}
			said := s.gateway.output()
			for _, part := range []string{"sync log: input/output error", "restart the process to recover"} {
				if !strings.Contains(said[strings.LastIndex(said, "ready"):], part) {
					t.Errorf("the last words do not say %q:\n%s", part, said)
				}
			}
			s.start()
			for _, id := range kept {
				if v := s.task(id); v.State != pending {
					t.Errorf("%s is %s", id, v.State)
				}
			}
			var v taskView
			t.Logf("publisher heard: %q, %v; the command that was never acknowledged is in the log: %v",
				strings.TrimSpace(out), err, s.get("/v1/tasks/lost", &v))
		})
	}
}

package intent

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// bootFile is where Linux tells which boot this is: a UUID that it draws anew each
// time (random(4)).
const bootFile = "proc/sys/kernel/random/boot_id"

// Limits of the program that starts the boot.
const (
	rebootOutput = 4 << 10          // bytes of what it prints that are looked at
	rebootGrace  = 10 * time.Second // for it to end after the time limit
)

// RebootOptions are the settings of the reboot intent.
type RebootOptions struct {
	// Command is the program and its arguments that boot the board; without one
	// the agent has no such intent. It may return at once or never.
	Command []string
	// Root is where proc is found, by default the real root.
	Root fs.FS
}

// reboot: the board boots once. Whoever asks twice with one token is answered from the
// journal. Its result is known only at the next start of the agent: see
// executor.Verdict. Without a command the board does not have it.
var _ = builtIn(func(b Board) Intent {
	if len(b.Reboot.Command) == 0 {
		return Intent{}
	}
	return Typed(wire.IntentReboot, b.Reboot.check, b.Reboot.run)
})

// Boot returns a number that stands for this boot of the system, 0 if the system
// does not tell.
func Boot(root fs.FS) uint64 {
	if root == nil {
		root = os.DirFS("/")
	}
	id, err := fs.ReadFile(root, bootFile)
	if id = bytes.TrimSpace(id); err != nil || len(id) == 0 {
		return 0
	}
	h := fnv.New64a()
	h.Write(id) // never fails
	return max(h.Sum64(), 1)
}

func (o RebootOptions) check(wire.Reboot) *Result {
	if Boot(o.Root) == 0 {
		return &Result{Code: wire.CodeUnsupported,
			Detail: "this system does not tell one boot from another (/" + bootFile + " is missing), so nobody could tell whether it was booted"}
	}
	return nil
}

// run starts the boot and waits for it to end the agent. It only returns if that
// does not happen.
func (o RebootOptions) run(ctx context.Context, _ wire.Reboot, r Request) Result {
	if r.Check != nil {
		if err := r.Check(); err != nil {
			return pinResult(err)
		}
	}
	// A command that has begun is not killed with the task: half a shutdown is
	// worse than one that nobody waits for.
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	var said limitedBuffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = rebootGrace
	if err := cmd.Start(); err != nil {
		return Result{Code: wire.CodeNotPermitted, Detail: fmt.Sprintf("the board was not booted: %v", err)}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // at the latest the boot ends it
	select {
	case err := <-ended:
		if err != nil {
			return Result{Code: wire.CodeFailed, Detail: fmt.Sprintf("the board was not booted: %s: %v: %s",
				strings.Join(o.Command, " "), err, said.text())}
		}
	case <-ctx.Done():
	}
	<-ctx.Done()
	return Result{Code: wire.CodeUnknown, Detail: "the boot was asked for and can't be taken back, but the agent still runs; give it a longer timeout, or look at the board"}
}

// limitedBuffer keeps the beginning of what is written to it.
type limitedBuffer struct{ b bytes.Buffer }

func (l *limitedBuffer) Write(p []byte) (int, error) {
	l.b.Write(p[:min(len(p), rebootOutput-l.b.Len())])
	return len(p), nil
}

func (l *limitedBuffer) text() string { return strings.TrimSpace(l.b.String()) }

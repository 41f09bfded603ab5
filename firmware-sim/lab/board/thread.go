package board

import (
	"os/exec"
	"runtime"
)

// keepThread starts a command and stays on the thread that did until it ends.
func keepThread(cmd *exec.Cmd, started chan<- error, ended chan<- struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	started <- err
	if err == nil {
		_ = cmd.Wait() // it is killed in the end
	}
	close(ended)
}

//go:build linux

// Command guest is the first process of the emulated board: /init, without a shell
// or any other program. It mounts what there is, sets the address, frees the GPIO
// line that the kernel has given to a power button, and then does what the host
// asks over a serial port of its own (see talk). Outputs of programs go to the
// console, each line behind the name of its program.
//
// Under the name kill it is what the shipped unit calls: kill -HUP PID. Under the
// name reboot it boots the board again, which for the emulator is its end.
//
// For units it is a stand-in for systemd, see supervise.go.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/talk"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "kill":
		kill(os.Args[1:])
	case "reboot":
		reboot()
	}
	if err := boot(); err != nil {
		die(err)
	}
	port, err := openPort()
	if err != nil {
		die(err)
	}
	fmt.Println(talk.Ready)
	die(serve(port))
}

// die says why and ends the board: the kernel panics when its first process ends,
// and the emulator with it.
func die(err error) {
	fmt.Println("lab: init ends:", err)
	time.Sleep(time.Second) // the console has to get it out
	os.Exit(1)
}

// reboot resets the board without asking anybody, as a shutdown that is cut short
// does. That it was asked is said on the console first.
func reboot() {
	fmt.Println("lab: reboot was asked for")
	time.Sleep(200 * time.Millisecond) // the line goes through init to the console
	fmt.Println(syscall.Reboot(syscall.LINUX_REBOOT_CMD_RESTART))
	os.Exit(1)
}

// kill sends SIGHUP, which is all that the unit asks for.
func kill(args []string) {
	var pid int
	err := fmt.Errorf("kill %q: only kill -HUP PID is known", args)
	if len(args) == 2 && args[0] == "-HUP" {
		if pid, err = strconv.Atoi(args[1]); err == nil {
			err = syscall.Kill(pid, syscall.SIGHUP)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

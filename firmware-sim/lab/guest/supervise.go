//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/talk"
)

// unit is a service under supervision. The rules are those of systemd, as far as
// the file uses them:
//
//   - ExecStartPre, then ExecStart, and ExecStopPost whenever the program has ended
//     or could not be started.
//   - A watchdog that is not fed gets WatchdogSignal and, after TimeoutStopSec,
//     SIGKILL. Every signal but SIGKILL is followed by SIGCONT, as systemd does: a
//     stopped process would not notice it.
//   - Whether it is started again is asked of RestartPreventExitStatus first, then
//     of Restart; after RestartSec, and not more often than StartLimitBurst.
//
// What confines a service (see unenforced) is left out, and the notify socket
// believes everybody.
type unit struct {
	name string
	file *unitFile

	mu     sync.Mutex
	main   *program // nil while it does not run
	starts int
	state  string
	last   talk.Reply // how it ended last
	stops  bool

	stopping chan struct{} // closed by stop
	ended    chan struct{} // closed when it will not be started again
	notes    chan string   // what the program tells
	notify   string        // the socket
}

type units struct {
	mu   sync.Mutex
	list map[string]*unit
}

func (u *units) find(name string) *unit {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.list[name]
}

func (u *units) start(name, text string) error {
	file, err := parseUnit(text)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if old := u.list[name]; old != nil {
		select {
		case <-old.ended:
		default:
			return fmt.Errorf("%s runs already", name)
		}
	}
	one := &unit{name: name, file: file, stopping: make(chan struct{}), ended: make(chan struct{}), notes: make(chan string, 16),
		notify: "/run/notify-" + name, state: "starting"}
	if err := one.prepare(); err != nil {
		return err
	}
	u.list[name] = one
	go one.run()
	return nil
}

func (u *units) stop(name string) error {
	one := u.find(name)
	if one == nil {
		return fmt.Errorf("there is no unit %s", name)
	}
	one.mu.Lock()
	if !one.stops {
		one.stops = true
		close(one.stopping)
	}
	one.mu.Unlock()
	<-one.ended // bounded by TimeoutStopSec
	return nil
}

func (u *units) status(name string) (r talk.Reply, err error) {
	one := u.find(name)
	if one == nil {
		return r, fmt.Errorf("there is no unit %s", name)
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	r = one.last
	r.Starts, r.Data = one.starts, []byte(one.state)
	if one.main != nil {
		r.PID = one.main.cmd.Process.Pid
	}
	return r, nil
}

// prepare makes the directories and the socket.
func (u *unit) prepare() error {
	for _, d := range u.file.state {
		dir := filepath.Join("/var/lib", d)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if u.file.user == userName {
			if err := os.Chown(dir, userID, userID); err != nil {
				return err
			}
		}
	}
	if err := os.RemoveAll(u.notify); err != nil {
		return err
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: u.notify, Net: "unixgram"})
	if err != nil {
		return err
	}
	go func() {
		<-u.ended
		_ = conn.Close() // which ends the reader
	}()
	go u.hear(conn)
	return os.Chmod(u.notify, 0o777)
}

// hear takes what the program tells until the unit ends.
func (u *unit) hear(conn *net.UnixConn) {
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		for line := range strings.Lines(string(buf[:n])) {
			select {
			case u.notes <- strings.TrimSpace(line):
			case <-u.ended:
				return
			}
		}
	}
}

func (u *unit) say(format string, args ...any) {
	console.Lock()
	defer console.Unlock()
	fmt.Printf("lab: unit "+u.name+": "+format+"\n", args...)
}

func (u *unit) set(state string, main *program) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.state, u.main = state, main
}

// run starts the program again and again, as the file says.
func (u *unit) run() {
	defer close(u.ended)
	var begun []time.Time
	for {
		begun = append(begun, time.Now())
		u.mu.Lock()
		u.starts++
		u.mu.Unlock()
		status, failed := u.once()
		u.set("ended", nil)
		for _, e := range u.file.stopPost {
			if err := u.sideExec("stop-post", e, status); err != nil {
				u.say("ExecStopPost: %v", err)
			}
		}
		select {
		case <-u.stopping:
			u.set("stopped", nil)
			return
		default:
		}
		if why := u.staysDown(status, failed); why != "" {
			u.say("is not started again: %s", why)
			u.set("down: "+why, nil)
			return
		}
		select {
		case <-time.After(u.file.restartAfter):
		case <-u.stopping:
			u.set("stopped", nil)
			return
		}
		if b := u.file.burst; b > 0 && len(begun) >= b && time.Since(begun[len(begun)-b]) < u.file.burstWithin {
			u.say("is not started again: %d starts within %v", b, u.file.burstWithin)
			u.set("down: too many starts", nil)
			return
		}
	}
}

// staysDown says why a service is not started again, or nothing.
func (u *unit) staysDown(status talk.Reply, failed bool) string {
	if status.Killed == 0 && slices.Contains(u.file.prevent, strconv.Itoa(status.Exit)) {
		return fmt.Sprintf("RestartPreventExitStatus has %d", status.Exit)
	}
	switch u.file.restart {
	case "always":
		return ""
	case "on-failure":
		if failed || status.Killed != 0 && status.Killed != int(syscall.SIGTERM) || status.Killed == 0 && status.Exit != 0 {
			return ""
		}
	}
	return "Restart=" + u.file.restart
}

// once runs the program to its end. failed means that it did not end by itself.
func (u *unit) once() (status talk.Reply, failed bool) {
	for _, e := range u.file.startPre {
		if err := u.sideExec("start-pre", e, status); err != nil {
			u.say("ExecStartPre: %v", err)
			return talk.Reply{Exit: 1}, true
		}
	}
	for len(u.notes) > 0 { // of an earlier process
		<-u.notes
	}
	cmd, err := u.command(u.file.start[0])
	if err != nil {
		u.say("%v", err)
		return talk.Reply{Exit: 203}, true
	}
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+u.notify)
	if w := u.file.watchdog; w > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("WATCHDOG_USEC=%d", w.Microseconds()))
	}
	p, err := launch(u.name, cmd)
	if err != nil {
		u.say("%v", err)
		return talk.Reply{Exit: 203}, true
	}
	u.set("running", p)
	failed = u.watch(p)
	status = p.how()
	u.mu.Lock()
	u.last = status
	u.mu.Unlock()
	u.say("ended: exit code %d, signal %d", status.Exit, status.Killed)
	return status, failed
}

// watch waits for the end of the program, or brings it about.
func (u *unit) watch(p *program) (failed bool) {
	ready := !u.file.notify
	limit := time.NewTimer(time.Hour)
	defer limit.Stop()
	rearm := func() {
		switch {
		case !ready && u.file.startLimit > 0:
			limit.Reset(u.file.startLimit)
		case ready && u.file.watchdog > 0:
			limit.Reset(u.file.watchdog)
		default:
			limit.Reset(24 * time.Hour)
		}
	}
	rearm()
	for {
		select {
		case <-p.done:
			return false
		case note := <-u.notes:
			if note == "READY=1" {
				ready = true
				u.set("ready", p)
				rearm()
			}
			if note == "WATCHDOG=1" && ready {
				rearm()
			}
		case <-limit.C:
			what, s := "watchdog", u.file.watchdogSignal
			if !ready {
				what, s = "start timeout", syscall.SIGTERM
			}
			u.say("%s", what)
			u.end(p, s)
			return true
		case <-u.stopping:
			u.end(p, syscall.SIGTERM)
			return false
		}
	}
}

// end signals the program, and kills it when it does not listen.
func (u *unit) end(p *program, s syscall.Signal) {
	_ = p.cmd.Process.Signal(s) // it may have ended already
	if s != syscall.SIGKILL {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
	}
	select {
	case <-p.done:
	case <-time.After(u.file.stopLimit):
		u.say("does not end: SIGKILL")
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// sideExec runs a command beside the program, to its end.
func (u *unit) sideExec(what string, e execLine, status talk.Reply) error {
	cmd, err := u.command(e)
	if err != nil {
		return err
	}
	code, result := "exited", "success"
	if status.Killed != 0 {
		code, result = "killed", "signal"
	}
	if status.Exit > 0 {
		result = "exit-code"
	}
	cmd.Env = append(cmd.Env, "SERVICE_RESULT="+result, "EXIT_CODE="+code, fmt.Sprintf("EXIT_STATUS=%d", status.Exit))
	p, err := launch(u.name+"/"+what, cmd)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-time.After(u.file.startLimit):
		_ = p.cmd.Process.Kill()
		<-p.done
		return errors.New("it does not end")
	}
	if r := p.how(); (r.Exit != 0 || r.Killed != 0) && !e.mayFail {
		return fmt.Errorf("%s: exit code %d, signal %d", strings.Join(e.args, " "), r.Exit, r.Killed)
	}
	return nil
}

func (u *unit) command(e execLine) (*exec.Cmd, error) {
	cred, err := credential(u.file.user)
	if err != nil {
		return nil, err
	}
	if e.fullRoot {
		cred = nil
	}
	args := slices.Clone(e.args)
	u.mu.Lock()
	for k := range args {
		if args[k] == "$MAINPID" && u.main != nil {
			args[k] = strconv.Itoa(u.main.cmd.Process.Pid)
		}
	}
	u.mu.Unlock()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append([]string{"PATH=/usr/local/bin", "HOME=/tmp", "TMPDIR=/tmp"}, u.file.environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	return cmd, nil
}

// signal sends a signal to the program.
func (u *unit) signal(s syscall.Signal) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.main == nil {
		return fmt.Errorf("unit %s does not run", u.name)
	}
	return u.main.cmd.Process.Signal(s)
}

// reload runs ExecReload.
func (u *units) reload(name string) error {
	one := u.find(name)
	if one == nil {
		return fmt.Errorf("there is no unit %s", name)
	}
	if len(one.file.reload) == 0 {
		return errors.New("the unit has no ExecReload")
	}
	for _, e := range one.file.reload {
		if err := one.sideExec("reload", e, talk.Reply{}); err != nil {
			return err
		}
	}
	return nil
}

//go:build linux

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/talk"
)

// TestShippedUnit: the stand-in understands the whole shipped unit.
func TestShippedUnit(t *testing.T) {
	b, err := os.ReadFile("../../../deploy/systemd/apollo-agent.service")
	if err != nil {
		t.Fatal(err)
	}
	u, err := parseUnit(string(b))
	if err != nil {
		t.Fatal(err)
	}
	if !u.notify || u.watchdog == 0 || u.user != userName || len(u.startPre) == 0 || len(u.stopPost) == 0 || u.restart != "always" {
		t.Errorf("%+v", u)
	}
}

const service = "[Service]\nExecStart=/bin/x\n"

func TestUnitFile(t *testing.T) {
	u, err := parseUnit("# c\n[Unit]\nStartLimitIntervalSec=0\n[Service]\nType=notify\nExecStartPre=-/bin/a \"b c\" d\nExecStart=/bin/x \\\n  --y\nExecReload=+/bin/kill -HUP $MAINPID\n" +
		"WatchdogSec=1min\nWatchdogSignal=SIGKILL\nRestart=on-failure\nRestartSec=500ms\nTimeoutStopSec=3\nRestartPreventExitStatus=2 3\nStateDirectory=a/b c\n[Install]\nWantedBy=multi-user.target\n")
	if err != nil {
		t.Fatal(err)
	}
	pre := u.startPre[0]
	if !pre.mayFail || strings.Join(pre.args, "|") != "/bin/a|b c|d" || strings.Join(u.start[0].args, "|") != "/bin/x|--y" || !u.reload[0].fullRoot {
		t.Errorf("commands %+v %+v %+v", pre, u.start, u.reload)
	}
	if u.burst != 0 || u.watchdog != time.Minute || u.watchdogSignal != syscall.SIGKILL || u.restartAfter != 500*time.Millisecond || u.stopLimit != 3*time.Second || len(u.state) != 2 {
		t.Errorf("%+v", u)
	}
	for _, bad := range []string{"", "[Service]\n", service + "ExecStart=/bin/y\n", service + "Unheard=1\n", service + "Restart=sometimes\n", service + "ExecStopPost=sh -c x\n",
		service + "ExecStopPost=/bin/x %n\n", service + "WatchdogSec=soon\n", service + "[Timer]\nx=1\n", service + "nonsense\n", service + "ExecStopPost=/bin/x \"y\n"} {
		if _, err := parseUnit(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestWhatStaysDown(t *testing.T) {
	for _, c := range []struct {
		restart, prevent string
		status           talk.Reply
		failed, down     bool
	}{
		{"always", "", talk.Reply{}, false, false},
		{"always", "2", talk.Reply{Exit: 2}, false, true},
		{"always", "2", talk.Reply{Exit: -1, Killed: 9}, true, false},
		{"on-failure", "", talk.Reply{}, false, true},
		{"on-failure", "", talk.Reply{Exit: 1}, false, false},
		{"on-failure", "", talk.Reply{Exit: -1, Killed: 9}, false, false},
		{"no", "", talk.Reply{Exit: 1}, false, true},
	} {
		u := &unit{file: &unitFile{restart: c.restart, prevent: strings.Fields(c.prevent)}}
		if why := u.staysDown(c.status, c.failed); (why != "") != c.down {
			t.Errorf("%+v: %q", c, why)
		}
	}
}

//go:build linux

package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// unitFile is what a service's file says, as far as the stand-in knows it.
type unitFile struct {
	startPre, start, reload, stopPost []execLine
	notify                            bool // Type=notify
	user                              string
	state                             []string // StateDirectory
	restart                           string
	restartAfter                      time.Duration
	prevent                           []string // RestartPreventExitStatus
	watchdog                          time.Duration
	watchdogSignal                    syscall.Signal
	stopLimit                         time.Duration
	startLimit                        time.Duration
	burst                             int // StartLimitBurst in burstWithin; 0 for no limit
	burstWithin                       time.Duration
	environment                       []string
}

// execLine is a command of a unit.
type execLine struct {
	args     []string
	mayFail  bool // "-"
	fullRoot bool // "+" or "!"
}

// unenforced are settings that confine a service. The stand-in leaves them out and
// says so; what they forbid is not shown by the lab.
var unenforced = []string{"SupplementaryGroups", "NoNewPrivileges", "ProtectSystem", "ProtectHome", "PrivateTmp", "RestrictAddressFamilies",
	"MemoryDenyWriteExecute", "ReadWritePaths", "CapabilityBoundingSet", "AmbientCapabilities", "SystemCallFilter", "SystemCallArchitectures", "LockPersonality",
	"ProtectKernelTunables", "ProtectKernelModules", "ProtectControlGroups", "ProtectClock", "RestrictNamespaces", "RestrictRealtime",
	"RestrictSUIDSGID", "DevicePolicy", "DeviceAllow", "UMask", "NotifyAccess", "OOMScoreAdjust", "Nice", "StateDirectoryMode", "Group"}

// parseUnit reads a unit file. An unknown setting is an error: it may matter.
func parseUnit(text string) (*unitFile, error) {
	u := &unitFile{restart: "no", restartAfter: 100 * time.Millisecond, watchdogSignal: syscall.SIGABRT, stopLimit: 90 * time.Second,
		startLimit: 90 * time.Second, burst: 5, burstWithin: 10 * time.Second}
	section := ""
	var errs []error
	text = strings.ReplaceAll(text, "\\\n", " ")
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' {
			section = strings.Trim(line, "[]")
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		var err error
		switch {
		case !ok:
			err = errors.New("no setting")
		case section == "Service":
			err = u.service(key, value)
		case section == "Unit":
			err = u.unit(key, value)
		case section != "Install":
			err = fmt.Errorf("section %q is not known", section)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d, %s: %w", n+1, key, err))
		}
	}
	if len(u.start) != 1 {
		errs = append(errs, fmt.Errorf("%d lines ExecStart, want one", len(u.start)))
	}
	return u, errors.Join(errs...)
}

func (u *unitFile) unit(key, value string) (err error) {
	switch key {
	case "StartLimitIntervalSec":
		u.burstWithin, err = span(value)
		if u.burstWithin == 0 {
			u.burst = 0
		}
	case "StartLimitBurst":
		u.burst, err = strconv.Atoi(value)
	case "Description", "Documentation", "After", "Wants", "Before", "Requires", "ConditionPathExists":
	default:
		err = errors.New("the stand-in does not know it")
	}
	return err
}

func (u *unitFile) service(key, value string) (err error) {
	switch key {
	case "ExecStartPre":
		return add(&u.startPre, value)
	case "ExecStart":
		return add(&u.start, value)
	case "ExecReload":
		return add(&u.reload, value)
	case "ExecStopPost":
		return add(&u.stopPost, value)
	case "Type":
		u.notify = value == "notify" || value == "notify-reload"
		if !u.notify && value != "simple" && value != "exec" {
			err = fmt.Errorf("%q is not known", value)
		}
	case "User":
		u.user = value
	case "StateDirectory":
		u.state = strings.Fields(value)
	case "Restart":
		u.restart = value
		if !slices.Contains([]string{"no", "always", "on-failure"}, value) {
			err = fmt.Errorf("%q is not known", value)
		}
	case "RestartSec":
		u.restartAfter, err = span(value)
	case "RestartPreventExitStatus":
		u.prevent = strings.Fields(value)
	case "WatchdogSec":
		u.watchdog, err = span(value)
	case "WatchdogSignal":
		u.watchdogSignal, err = signalNamed(value)
	case "TimeoutStopSec":
		u.stopLimit, err = span(value)
	case "TimeoutStartSec":
		u.startLimit, err = span(value)
	case "Environment":
		u.environment = append(u.environment, strings.Trim(value, `"`))
	default:
		if !slices.Contains(unenforced, key) {
			err = errors.New("the stand-in does not know it")
		}
	}
	return err
}

// add reads a command line: a path with its arguments, which may stand in double
// quotes. There is no shell and nothing is replaced but $MAINPID.
func add(list *[]execLine, text string) error {
	var e execLine
	for text != "" && strings.ContainsRune("-+!@:", rune(text[0])) {
		switch text[0] {
		case '-':
			e.mayFail = true
		case '+', '!':
			e.fullRoot = true
		default:
			return fmt.Errorf("the prefix %q is not known", text[0])
		}
		text = text[1:]
	}
	if strings.Contains(text, "%") {
		return errors.New("specifiers (%) are not known")
	}
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		if rest, ok := strings.CutPrefix(text, `"`); ok {
			word, after, closed := strings.Cut(rest, `"`)
			if !closed {
				return errors.New("a quote is not closed")
			}
			e.args, text = append(e.args, word), after
			continue
		}
		word, after, _ := strings.Cut(text, " ")
		e.args, text = append(e.args, word), after
	}
	if len(e.args) == 0 || !strings.HasPrefix(e.args[0], "/") {
		return errors.New("it does not begin with the path of a program")
	}
	*list = append(*list, e)
	return nil
}

// span reads a time: seconds, or with a unit.
func span(text string) (time.Duration, error) {
	if text == "infinity" {
		return 0, nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return time.Duration(n * float64(time.Second)), nil
	}
	for _, unit := range []struct{ name, short string }{{"msec", "ms"}, {"sec", "s"}, {"min", "m"}} {
		if n, ok := strings.CutSuffix(text, unit.name); ok {
			text = n + unit.short
		}
	}
	return time.ParseDuration(strings.ReplaceAll(text, " ", ""))
}

func signalNamed(name string) (syscall.Signal, error) {
	switch strings.TrimPrefix(name, "SIG") {
	case "ABRT", "6":
		return syscall.SIGABRT, nil
	case "KILL", "9":
		return syscall.SIGKILL, nil
	case "TERM", "15":
		return syscall.SIGTERM, nil
	}
	return 0, fmt.Errorf("signal %q is not known", name)
}

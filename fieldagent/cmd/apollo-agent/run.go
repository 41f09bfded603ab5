package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"github.com/apollo-11/apollo11/fieldagent"
	"github.com/apollo-11/apollo11/wire/logsink"
)

// Exit codes.
const (
	exitOK     = 0
	exitError  = 1   // it could not start or must not go on
	exitUsage  = 2   // the command line or the configuration is wrong
	exitLook   = 3   // apollo-agent safe: done, and somebody has to look at something
	exitUnread = 141 // a tool's output has no reader any more; what a shell says of a program that SIGPIPE has ended
)

const usage = `apollo-agent executes instructions of the gateway on this board.

Usage:
  apollo-agent --gateway URL --node NAME --gpio sim|periph|chardev --data DIR [flags]
  apollo-agent gpio list|get|set|watch    look at lines and move them, at the bench
  apollo-agent safe --config FILE         drive the safe levels of the pin map

What is needed:
  --gateway URL         MQTT address of the gateway, tcp://host:port or ws://host:port/path
  --node NAME           name of this node, unique on its site
  --gpio sim|periph|chardev
                        pins: simulated; memory-mapped ones of a Raspberry Pi 0 to 4;
                        the kernel's gpio devices (Linux 5.10 or later)
  --data DIR            directory of the journal; one agent at a time uses it

More:
  --narrowband URL      narrowband address of the gateway; results are told there
                        when the primary path is slow or down
  --site NAME           name of the site (default "default")
  --label KEY=VALUE     a label of this node; may be given several times
  --gpio-trace FILE     append a JSON line for each simulated actuation
  --username NAME       credentials of this node, with
  --password-file FILE  the file that holds the password
  --narrowband-username NAME, --narrowband-password-file FILE
                        other credentials for the narrowband address
  --workers N           instructions executed at a time (default two a core)
  --reboot-command "PROGRAM ARG..."
                        boots the board when the gateway asks for it (intent
                        reboot); without it the agent refuses that
  --hardware-watchdog DEVICE
                        resets the board when the agent is silent for 15 s, for
                        example /dev/watchdog
  --config FILE         YAML file with the same names (gpio_trace, not gpio-trace;
                        labels: {role: worker}); flags win over it; it may also
                        hold a pin map, which SIGHUP reads again
  --log-level LEVEL     debug, info, warn, error (default info)
  --log-format FORMAT   text, json (default text)
  --version             print the version
  --help                print this

Examples:
  apollo-agent --gateway tcp://127.0.0.1:1883 --narrowband tcp://127.0.0.1:1884 \
      --node pump-1 --label role=worker --gpio sim --data /tmp/pump-1
  apollo-agent --config /etc/apollo/agent.yaml

It ends with 0 after SIGTERM or SIGINT, 1 after a failure, 2 if the command line
or the configuration is wrong. After a failure start it again: it knows from its
journal where it stood.
`

// Run is the program: it returns the exit code. Nothing in it waits for whoever
// reads stderr; only at the end the last words have logsink.FlushLimit.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	errs := logsink.New(stderr)
	defer errs.Close(logsink.FlushLimit)
	// Libraries that have found no other way to speak.
	defer stdlog.SetOutput(stdlog.Writer())
	stdlog.SetOutput(errs)
	if code, ok := runTool(ctx, args, stdout, errs); ok {
		return code
	}
	return runAgent(ctx, args, stdout, errs)
}

func runAgent(ctx context.Context, args []string, stdout io.Writer, stderr *logsink.Sink) int {
	cfg, show, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return exitOK
	case show:
		fmt.Fprintln(stdout, "apollo-agent", programVersion())
		return exitOK
	case err == nil:
		err = cfg.Validate()
	}
	if err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			fmt.Fprintln(stderr, "apollo-agent:", line)
		}
		fmt.Fprintln(stderr, "apollo-agent: see apollo-agent --help")
		return exitUsage
	}
	log := newLog(cfg, stderr)
	agent, err := fieldagent.New(cfg, programVersion(), log)
	if err == nil {
		err = runReloading(ctx, agent, args, log)
	}
	if err != nil {
		log.Error("agent failed", "node", cfg.Node, "err", err)
		return exitError
	}
	return exitOK
}

// runReloading runs the agent and reads the configuration again at SIGHUP.
func runReloading(ctx context.Context, agent *fieldagent.Agent, args []string, log *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	var reloading sync.WaitGroup
	defer reloading.Wait()
	defer stop()
	defer signal.Stop(hangup)
	reloading.Go(func() {
		for {
			select {
			case <-hangup:
				reload(ctx, agent, args, log)
			case <-ctx.Done():
				return
			}
		}
	})
	return agent.Run(ctx)
}

func reload(ctx context.Context, agent *fieldagent.Agent, args []string, log *slog.Logger) {
	cfg, _, err := parse(args)
	if err == nil {
		err = agent.Reload(ctx, cfg)
	}
	if err != nil {
		log.Error("configuration not reloaded; the old one is in force", "err", err)
		return
	}
	log.Info("pin map reloaded", "pins", len(cfg.Pins))
}

// labels is the value of the repeatable flag --label.
type labels map[string]string

func (l labels) String() string { return "" }

func (l labels) Set(s string) error {
	k, v, ok := strings.Cut(s, "=")
	if !ok || k == "" {
		return fmt.Errorf("write it as KEY=VALUE, for example --label role=worker")
	}
	l[k] = v
	return nil
}

// parse reads the command line, and the file that it names, into a
// configuration that has not been validated.
func parse(args []string) (cfg fieldagent.Config, show bool, err error) {
	// The file comes first whatever the order, so the line is read twice.
	var file string
	scan := flags(new(fieldagent.Config), labels{}, &file, &show)
	if err := scan.Parse(args); err != nil {
		return cfg, false, err
	}
	if scan.NArg() > 0 {
		return cfg, false, fmt.Errorf("argument %q is not expected: everything is a flag", scan.Arg(0))
	}
	cfg = fieldagent.DefaultConfig()
	if file != "" && !show {
		if err := cfg.ReadFile(file); err != nil {
			return cfg, show, err
		}
	}
	given := labels{}
	if err := flags(&cfg, given, &file, &show).Parse(args); err != nil {
		return cfg, show, err
	}
	if len(given) > 0 {
		cfg.Labels = given
	}
	return cfg, show, nil
}

// flags is the command line. What is not given leaves cfg as it is.
func flags(cfg *fieldagent.Config, l labels, file *string, show *bool) *flag.FlagSet {
	f := flag.NewFlagSet("apollo-agent", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	text := func(p *string, name string) { f.StringVar(p, name, *p, "") }
	text(&cfg.Gateway, "gateway")
	text(&cfg.Narrowband, "narrowband")
	text(&cfg.Node, "node")
	text(&cfg.Site, "site")
	text(&cfg.GPIO, "gpio")
	text(&cfg.GPIOTrace, "gpio-trace")
	text(&cfg.Data, "data")
	text(&cfg.Username, "username")
	text(&cfg.PasswordFile, "password-file")
	text(&cfg.NarrowbandUsername, "narrowband-username")
	text(&cfg.NarrowbandPasswordFile, "narrowband-password-file")
	text(&cfg.RebootCommand, "reboot-command")
	text(&cfg.HardwareWatchdog, "hardware-watchdog")
	text(&cfg.LogLevel, "log-level")
	text(&cfg.LogFormat, "log-format")
	text(file, "config")
	f.IntVar(&cfg.Workers, "workers", cfg.Workers, "")
	f.Var(l, "label", "")
	f.BoolVar(show, "version", false, "")
	return f
}

func newLog(cfg fieldagent.Config, to *logsink.Sink) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		level = slog.LevelInfo // Validate has looked at it
	}
	return to.Logger(level, cfg.LogFormat == "json")
}

// programVersion is what the build was told, or what it recorded by itself: the
// module's version, or the commit.
func programVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "devel"
}

package gateway

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/storage"
	"github.com/apollo-11/apollo11/wire/logsink"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// openWait bounds the opening of the log. On a full disk the engine below would
// try for ever.
const openWait = 2 * time.Minute

const usage = `apollo-gateway: the Apollo-11 edge gateway

  apollo-gateway --data DIR [flags]

Takes commands over MQTT (topic apollo/<site>/task, JSON) and HTTP, keeps them in
an fsync'd log, sends them to field agents and follows them to their end.

  --data DIR            directory of the log (required)
  --config FILE         configuration (YAML); flags win over it
  --site NAME           site in topics and ids              (default ` + DefaultSite + `)
  --mqtt HOST:PORT      MQTT for SCADA tools and agents     (default ` + DefaultMQTT + `)
  --ws HOST:PORT|off    MQTT over WebSocket                 (default ` + DefaultWebSocket + `)
  --narrowband HOST:PORT|off
                        compact acks of agents              (default ` + DefaultNarrowband + `)
  --http HOST:PORT      HTTP API, health and metrics        (default ` + DefaultHTTP + `)
  --users FILE          MQTT users, roles and passwords; without it the MQTT
                        doors are open to programs on this machine only
  --allow-anonymous     open the MQTT doors to everybody on the network
  --allow-remote        open the HTTP door to the network
  --strip-retain LIST   clients (user names or client id prefixes, comma separated)
                        whose retain flag on commands is taken off, not refused
  --log-level LEVEL     debug, info, warn, error            (default info)
  --log-format FORMAT   text or json                        (default text)
  --version             print the version and end

Try it:
  apollo-gateway --data /tmp/apollo &
  mosquitto_pub -q 1 -t apollo/default/task \
      -m '{"intent":"gpio.write","node":"pump-1","args":{"pin":"GPIO17","level":1},"ttl":"30s"}'
  apollo task list

Exit codes: 0 stopped on request, 1 failed, 2 wrong usage, 70 the disk failed and
what was not acknowledged is in an unknown state: start again to recover.
`

// Main is the program apollo-gateway. It returns its exit code when ctx ends or
// the gateway fails. Nothing in it waits for whoever reads stdout and stderr; only
// at the end the last words have logsink.FlushLimit each. with changes the
// configuration, for tests.
func Main(ctx context.Context, version string, args []string, stdout, stderr io.Writer, with ...func(*Config)) int {
	out, errs := logsink.New(stdout), logsink.New(stderr)
	flush := func() { errs.Close(logsink.FlushLimit); out.Close(logsink.FlushLimit) }
	defer flush()
	// Libraries that have found no other way to speak.
	defer stdlog.SetOutput(stdlog.Writer())
	stdlog.SetOutput(errs)
	cfg, lg, done, err := parse(version, args, out, errs)
	if err != nil {
		say(errs, "apollo-gateway: %v\n\nSee apollo-gateway --help.\n", err)
		return exitUsage
	}
	if done {
		return exitDone
	}
	cfg.Version = version
	cfg.LogLost = func() uint64 { return out.Lost() + errs.Lost() }
	cfg.OnFatal = func(err error) {
		lg.Error("store stopped, ending the process", "error", err)
		say(errs, "storage: %v\n", err)
		flush()
		os.Exit(storage.ExitCode)
	}
	for _, f := range with {
		f(&cfg)
	}
	if err := serve(ctx, cfg, lg, out); err != nil {
		say(errs, "apollo-gateway: %v\n", err)
		return exitFailed
	}
	return exitDone
}

// say writes for people. That nobody reads it is no failure of the gateway.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

func serve(ctx context.Context, cfg Config, lg *slog.Logger, stdout io.Writer) error {
	octx, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	g, err := Open(octx, cfg, lg)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	select {
	case <-g.Ready():
		for _, door := range doorNames {
			if a := g.Addr(door); a != nil {
				say(stdout, "listening  %-11s %v\n", door, a)
			}
		}
		say(stdout, "ready      site %s, log in %s\n", g.cfg.Site, g.cfg.Data)
	case err := <-ended:
		return err
	}
	return <-ended
}

// parse reads flags and the configuration file. done means that there is nothing
// more to do.
func parse(version string, args []string, stdout io.Writer, stderr *logsink.Sink) (cfg Config, lg *slog.Logger, done bool, err error) {
	fs := flag.NewFlagSet("apollo-gateway", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	var file, level, format, strip string
	var show bool
	flags := Config{}
	fs.StringVar(&file, "config", "", "")
	fs.StringVar(&flags.Data, "data", "", "")
	fs.StringVar(&flags.Site, "site", "", "")
	fs.StringVar(&flags.MQTT, "mqtt", "", "")
	fs.StringVar(&flags.WebSocket, "ws", "", "")
	fs.StringVar(&flags.Narrowband, "narrowband", "", "")
	fs.StringVar(&flags.HTTP, "http", "", "")
	fs.StringVar(&flags.Users, "users", "", "")
	fs.BoolVar(&flags.AllowAnonymous, "allow-anonymous", false, "")
	fs.BoolVar(&flags.AllowRemote, "allow-remote", false, "")
	fs.StringVar(&strip, "strip-retain", "", "")
	fs.StringVar(&level, "log-level", "info", "")
	fs.StringVar(&format, "log-format", "text", "")
	fs.BoolVar(&show, "version", false, "")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			say(stdout, "%s", usage)
			return cfg, nil, true, nil
		}
		return cfg, nil, false, err
	}
	if fs.NArg() > 0 {
		return cfg, nil, false, fmt.Errorf("unexpected argument %q: everything is given by flags", fs.Arg(0))
	}
	if show {
		say(stdout, "apollo-gateway %s\n", version)
		return cfg, nil, true, nil
	}
	if file != "" {
		if err := LoadConfig(file, &cfg); err != nil {
			return cfg, nil, false, err
		}
	}
	if strip != "" {
		flags.StripRetain = strings.Split(strip, ",")
	}
	override(&cfg, flags)
	if lg, err = logger(stderr, level, format); err != nil {
		return cfg, nil, false, err
	}
	return cfg, lg, false, cfg.Validate()
}

// override puts every flag that was given over the configuration.
func override(cfg *Config, flags Config) {
	text := func(dst *string, v string) {
		if v != "" {
			*dst = v
		}
	}
	text(&cfg.Data, flags.Data)
	text(&cfg.Site, flags.Site)
	text(&cfg.MQTT, flags.MQTT)
	text(&cfg.WebSocket, flags.WebSocket)
	text(&cfg.Narrowband, flags.Narrowband)
	text(&cfg.HTTP, flags.HTTP)
	text(&cfg.Users, flags.Users)
	cfg.AllowAnonymous = cfg.AllowAnonymous || flags.AllowAnonymous
	cfg.AllowRemote = cfg.AllowRemote || flags.AllowRemote
	if flags.StripRetain != nil {
		cfg.StripRetain = flags.StripRetain
	}
}

func logger(to *logsink.Sink, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	if format != "text" && format != "json" {
		return nil, fmt.Errorf("log format %q: want text or json", format)
	}
	return to.Logger(l, format == "json"), nil
}

// loopback reports whether an address is reachable from this machine only.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/apollo-11/apollo11/fieldagent/bench"
)

// tool is a command beside running the agent.
type tool struct {
	name string
	run  func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

func tools() []tool {
	return []tool{{"gpio", bench.GPIO}, {"safe", bench.Safe}}
}

// runTool runs the tool that args name, if they name one.
func runTool(ctx context.Context, args []string, stdout, stderr io.Writer) (code int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	for _, t := range tools() {
		if t.name != args[0] {
			continue
		}
		// A terminal that hangs up is as good as Ctrl-C, but under nohup.
		if !signal.Ignored(syscall.SIGHUP) {
			var stop context.CancelFunc
			ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
			defer stop()
		}
		err := t.run(ctx, args[1:], stdout, stderr)
		switch {
		case errors.Is(err, syscall.EPIPE): // of stdout: nothing else here is a pipe
			return exitUnread, true
		case err == nil:
			return exitOK, true
		case errors.Is(err, flag.ErrHelp):
			return exitOK, true
		case errors.Is(err, bench.ErrUsage):
			complain(stderr, err)
			fmt.Fprintf(stderr, "apollo-agent: see apollo-agent %s --help\n", t.name)
			return exitUsage, true
		case errors.Is(err, bench.ErrLook):
			complain(stderr, err)
			return exitLook, true
		}
		complain(stderr, err)
		return exitError, true
	}
	return 0, false
}

// complain writes an error, each line for itself.
func complain(w io.Writer, err error) {
	for _, line := range strings.Split(err.Error(), "\n") {
		for _, mark := range []error{bench.ErrUsage, bench.ErrLook} {
			line = strings.TrimPrefix(line, mark.Error()+": ")
		}
		fmt.Fprintln(w, "apollo-agent:", line)
	}
}

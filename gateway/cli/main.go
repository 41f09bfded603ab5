package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitUnread = 141 // what a shell says of a program that SIGPIPE has ended
)

// callTimeout is the default wait for one answer of the gateway. It is longer
// than the gateway's own limit of 10 s, so that the gateway gets to say why.
const callTimeout = 12 * time.Second

// defaultGateway is where a gateway listens when nobody says otherwise.
const defaultGateway = "http://127.0.0.1:8080"

// app is one run of the tool.
type app struct {
	version  string
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	colour   bool

	// Common flags.
	gateway string
	output  string // text, json
	timeout time.Duration

	client *client
}

// Main runs one command line and returns its exit code. env looks up environment
// variables.
func Main(ctx context.Context, version string, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &output{Writer: stdout, left: cancel}
	a := &app{version: version, in: stdin, out: out, err: stderr, env: env,
		colour: isTerminal(out) && env("NO_COLOR") == "" && env("TERM") != "dumb"}
	err := a.run(ctx, args)
	var usage *usageError
	var report *problem
	switch {
	case out.gone:
		return exitUnread
	case err == nil:
		return exitDone
	case errors.Is(err, errTold):
		return exitFailed
	case errors.Is(err, errUsageTold):
		return exitUsage
	case errors.As(err, &usage):
		a.say("apollo: %s\n", visible(usage.text))
		for _, h := range usage.hints {
			a.say("  %s\n", visible(h))
		}
		return exitUsage
	case errors.As(err, &report):
		a.say("apollo: %s\n", visible(report.text))
		for _, h := range report.hints {
			a.say("  %s\n", visible(h))
		}
	default:
		a.say("apollo: %s\n", visible(err.Error()))
	}
	return exitFailed
}

// say writes to stderr. Where that fails there is nobody left to tell.
func (a *app) say(format string, args ...any) { _, _ = fmt.Fprintf(a.err, format, args...) }

// output is standard output. When its reader has gone, as head does when it has
// enough, the command ends quietly.
type output struct {
	io.Writer
	gone bool
	left func() // ends what is under way
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		o.gone = true
		o.left()
	}
	return n, err
}

// isTerminal reports whether there are people at the other end of a stream.
func isTerminal(stream any) bool {
	if o, ok := stream.(*output); ok {
		stream = o.Writer
	}
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a character device as well, with nobody behind it
	return err != nil || !os.SameFile(info, null)
}

// errTold ends a run that has failed and has said so.
var errTold = errors.New("told already")

// usageError is a command line that makes no sense. Nothing was sent.
type usageError struct {
	text  string
	hints []string
}

func (e *usageError) Error() string { return e.text }

func misuse(format string, args ...any) *usageError {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

func (e *usageError) hint(format string, args ...any) *usageError {
	e.hints = append(e.hints, fmt.Sprintf(format, args...))
	return e
}

// problem is a failure for people: what happened, and what to do next.
type problem struct {
	text  string
	hints []string
}

func (p *problem) Error() string { return p.text }

func trouble(format string, args ...any) *problem {
	return &problem{text: fmt.Sprintf(format, args...)}
}

func (p *problem) hint(format string, args ...any) *problem {
	p.hints = append(p.hints, fmt.Sprintf(format, args...))
	return p
}

// run finds the command and runs it.
func (a *app) run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		a.say("%s", overview())
		return errUsageTold
	}
	if args[0] == "help" || isHelp(args[0]) {
		return a.help(args[1:])
	}
	c, rest, err := find(args)
	if err != nil {
		return err
	}
	if c == nil { // a group without a command
		if len(rest) > 0 && isHelp(rest[0]) {
			return a.help(args[:1])
		}
		a.say("%s", groupHelp(args[0]))
		return errUsageTold
	}
	fs := flag.NewFlagSet("apollo "+c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	do := c.flags(fs)
	a.common(fs)
	words, err := parse(fs, c, rest)
	if errors.Is(err, flag.ErrHelp) {
		_, err = io.WriteString(a.out, commandHelp(c))
		return err
	}
	if err != nil {
		return err
	}
	if a.output != "text" && a.output != "json" {
		return misuse("-o %s is not an output format", a.output).hint("use -o text or -o json")
	}
	if a.timeout <= 0 {
		return misuse("--request-timeout %v is not a time to wait", a.timeout).hint("use for example --request-timeout 10s")
	}
	if a.client, err = newClient(a); err != nil {
		return err
	}
	return do(ctx, a, words)
}

// errUsageTold ends a run whose usage was wrong and has been explained.
var errUsageTold = errors.New("usage was wrong and has been explained")

// common defines the flags of every command.
func (a *app) common(fs *flag.FlagSet) {
	fs.StringVar(&a.gateway, "gateway", a.env("APOLLO_GATEWAY"), "talk to the gateway at `URL`; default $APOLLO_GATEWAY, else "+defaultGateway)
	fs.StringVar(&a.output, "o", "text", "write text or json (`FORMAT`)")
	fs.DurationVar(&a.timeout, "request-timeout", callTimeout, "wait at most `DURATION` for one answer of the gateway")
}

// parse reads flags and words in any order.
func parse(fs *flag.FlagSet, c *command, args []string) (words []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			e := misuse("%s", strings.Replace(err.Error(), "flag provided but not defined: -", "there is no flag --", 1))
			if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
				var known []string
				fs.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
				if s := nearest(name, known); s != "" {
					e.hint("did you mean --%s?", s)
				}
			}
			return nil, e.hint("see apollo %s --help", c.name)
		}
		if fs.NArg() == 0 {
			break
		}
		done := len(args) - fs.NArg()
		if done > 0 && args[done-1] == "--" { // what follows are words
			words = append(words, fs.Args()...)
			break
		}
		words = append(words, fs.Arg(0))
		args = fs.Args()[1:]
	}
	if len(words) > c.words {
		return nil, misuse("%q is one word too many", words[c.words]).hint("usage: apollo %s", c.usage)
	}
	return words, nil
}

func isHelp(s string) bool { return slices.Contains([]string{"-h", "-help", "--help"}, s) }

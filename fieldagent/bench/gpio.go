package bench

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire/logsink"
)

const gpioUsage = `apollo-agent gpio helps at the bench: it looks at lines, moves them and watches them.

Usage:
  apollo-agent gpio list                       chips, lines, who uses them
  apollo-agent gpio get PIN                    the level, without changing anything
  apollo-agent gpio set PIN LEVEL [--for 2s]   set an output, until Ctrl-C or for a time
  apollo-agent gpio watch PIN [--for 1m]       the edges of an input, as they come

PIN is a name of the pin map, a line's own name, or CHIP:OFFSET. LEVEL is 1 or 0, on
or off; with active_low in the map 1 is the level that switches on.

  --config FILE   an agent.yaml: its pin map and its back end are used
  --gpio KIND     chardev (default), periph or sim
  --for TIME      end after this time, for example 500ms or 10m
  -o json         for machines: one document, or one a line for watch

A line that a running agent or another program has is refused. After set the pin goes
to its safe level if the map has one, else the line is let go as it is.
It ends with 0, 1 after a failure, 2 if the command line is wrong, 141 if nobody
reads its output any more. set goes on then, so that the pin gets to its safe level.
`

// gpioTool is one call of apollo-agent gpio.
type gpioTool struct {
	*bench
	out  io.Writer
	json bool
}

// GPIO is apollo-agent gpio.
func GPIO(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, file, kind := benchFlags("gpio", stdout, gpioUsage)
	format := f.String("o", "", "")
	limit := f.Duration("for", 0, "")
	plain, err := parseMixed(f, args)
	if err != nil {
		return err
	}
	if len(plain) == 0 {
		f.Usage()
		return flag.ErrHelp
	}
	want := map[string]int{"list": 0, "get": 1, "set": 2, "watch": 1}
	n, ok := want[plain[0]]
	switch {
	case !ok:
		return fmt.Errorf("%w: gpio %s is not known: write list, get, set or watch", ErrUsage, plain[0])
	case len(plain)-1 != n:
		return fmt.Errorf("%w: gpio %s takes %d arguments, got %d", ErrUsage, plain[0], n, len(plain)-1)
	case *format != "" && *format != "json":
		return fmt.Errorf("%w: -o %s is not known: write -o json, or leave it out", ErrUsage, *format)
	case *limit < 0:
		return fmt.Errorf("%w: --for %v is in the past", ErrUsage, *limit)
	}
	b, err := openBench(ctx, *file, *kind, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return err
	}
	t := gpioTool{b, stdout, *format == "json"}
	if plain[0] == "list" {
		return t.list()
	}
	if err := b.free(); err != nil {
		return err
	}
	if *limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *limit)
		defer cancel()
	}
	switch plain[0] {
	case "get":
		return t.get(plain[1])
	case "set":
		// An output that is on does not wait for anybody to read so.
		out := logsink.New(stdout)
		defer out.Close(logsink.FlushLimit)
		t.out = out
		return t.set(ctx, plain[1], plain[2])
	}
	return t.watch(ctx, plain[1])
}

// list shows all lines.
func (t gpioTool) list() error {
	lines, err := gpio.List(t.board)
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, c := range t.cfg.Pins {
		if _, key, err := t.pin(c.Name); err == nil {
			names[key] = c.Name
		}
	}
	if t.json {
		type row struct {
			gpio.Line
			Mapped string `json:"mapped,omitempty"`
		}
		rows := []row{}
		for _, l := range lines {
			rows = append(rows, row{l, names[l.Key]})
		}
		return t.document(rows)
	}
	w := tabwriter.NewWriter(t.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "LINE\tNAME\tPIN MAP\tDIRECTION\tUSED BY")
	for _, l := range lines {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", l.Exact, dash(l.Name), dash(names[l.Key]), dash(l.Direction), dash(l.Consumer))
	}
	return w.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (t gpioTool) document(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.out, "%s\n", b)
	return err
}

// reading is a level of a pin, for people and machines.
type reading struct {
	Pin    string     `json:"pin"`
	Level  gpio.Level `json:"level"`
	At     time.Time  `json:"at"`
	Missed uint64     `json:"missed,omitempty"`
}

func (t gpioTool) tell(r reading, what string) error {
	if t.json {
		return t.document(r)
	}
	if r.Missed > 0 {
		what += fmt.Sprintf(" (%d edges before it were lost)", r.Missed)
	}
	_, err := fmt.Fprintf(t.out, "%s  %s %s\n", r.At.Format("15:04:05.000000"), r.Pin, what)
	return err
}

func onOff(l gpio.Level) string {
	if l {
		return "1 (on)"
	}
	return "0 (off)"
}

func (t gpioTool) get(name string) (err error) {
	c, key, err := t.pin(name)
	if err != nil {
		return err
	}
	p, err := t.board.Open(key, gpio.Request{Mode: gpio.Look, ActiveLow: c.ActiveLow, Consumer: gpio.Consumer})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	level, err := p.Get()
	if err != nil {
		return err
	}
	return t.tell(reading{Pin: name, Level: level, At: time.Now()}, "is "+onOff(level))
}

// set drives an output until ctx ends, and then its safe level.
func (t gpioTool) set(ctx context.Context, name, word string) (err error) {
	level, err := parseLevel(word)
	if err != nil {
		return err
	}
	c, key, err := t.pin(name)
	if err != nil {
		return err
	}
	if c.Mode == gpio.Input {
		return fmt.Errorf("%s is an input in the pin map: change its direction there if that is wrong", name)
	}
	c.Mode = gpio.Output
	r := c.Request("bench")
	r.Initial = &level
	p, err := t.board.Open(key, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := t.tell(reading{Pin: name, Level: level, At: time.Now()}, "set to "+onOff(level)); err != nil {
		return err
	}
	if _, ok := ctx.Deadline(); !ok && !t.json {
		fmt.Fprintln(t.out, "Ctrl-C ends it")
	}
	<-ctx.Done()
	if c.Safe == nil {
		if !t.json {
			fmt.Fprintf(t.out, "%s is let go as it is: it has no safe level in the pin map\n", name)
		}
		return nil
	}
	if err := p.Set(*c.Safe, "bench:safe"); err != nil {
		return err
	}
	return t.tell(reading{Pin: name, Level: *c.Safe, At: time.Now()}, "is safe again: "+onOff(*c.Safe))
}

func parseLevel(word string) (gpio.Level, error) {
	switch strings.ToLower(word) {
	case "1", "on", "high":
		return gpio.High, nil
	case "0", "off", "low":
		return gpio.Low, nil
	}
	return gpio.Low, fmt.Errorf("%w: level %q is neither 1 nor 0, on nor off", ErrUsage, word)
}

// watch shows edges until ctx ends.
func (t gpioTool) watch(ctx context.Context, name string) (err error) {
	c, key, err := t.pin(name)
	if err != nil {
		return err
	}
	if c.Mode == gpio.Output {
		return fmt.Errorf("%s is an output in the pin map: only inputs have edges", name)
	}
	c.Mode = gpio.Input
	p, err := t.board.Open(key, c.Request("bench"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	e, ok := p.(gpio.EdgePin)
	if !ok {
		return fmt.Errorf("watch %s: %w: this back end reports no edges: use --gpio chardev", name, gpio.ErrUnsupported)
	}
	edges := make(chan gpio.Edge, 64)
	stop, err := e.Edges(edges)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	// After the watch has begun, so that nothing happens unseen in between.
	level, err := p.Get()
	if err != nil {
		return err
	}
	if err := t.tell(reading{Pin: name, Level: level, At: time.Now()}, "is "+onOff(level)); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case edge := <-edges:
			if err := edge.Broken(); err != nil {
				return err
			}
			if err := t.tell(reading{name, edge.Level, edge.At, edge.Missed}, "went to "+onOff(edge.Level)); err != nil {
				return err
			}
		}
	}
}

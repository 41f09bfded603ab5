package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apollo-11/apollo11/fieldagent"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/journal"
)

// ErrUsage marks an error of the command line or of the configuration.
var ErrUsage = errors.New("usage")

// ErrLook marks what is done as far as it can be, and somebody has to look at the
// rest.
var ErrLook = errors.New("look")

// bench is a board as a person at the bench uses it, without an agent.
type bench struct {
	cfg   fieldagent.Config
	board gpio.Board
}

// openBench reads the settings and opens the board. Only what the pins need is
// looked at; a file that is not complete yet is enough.
func openBench(ctx context.Context, file, kind string, log *slog.Logger) (*bench, error) {
	cfg := fieldagent.DefaultConfig()
	if file != "" {
		if err := cfg.ReadFile(file); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUsage, err)
		}
	}
	if kind != "" {
		cfg.GPIO = kind
	}
	if cfg.GPIO == "" {
		cfg.GPIO = gpio.BoardChardev
	}
	return openBoard(ctx, cfg, log)
}

func openBoard(ctx context.Context, cfg fieldagent.Config, log *slog.Logger) (*bench, error) {
	board, err := gpio.OpenBoard(ctx, cfg.GPIO, gpio.BoardOptions{Log: log, Pins: cfg.Pins, Sim: gpio.SimOptions{
		Trace: cfg.GPIOTrace, Levels: simLevels(cfg)}})
	if err != nil {
		return nil, err
	}
	return &bench{cfg, board}, nil
}

// simLevels is where simulated pins keep their levels: in the agent's directory,
// once it has one.
func simLevels(cfg fieldagent.Config) string {
	if info, err := os.Stat(cfg.Data); cfg.Data == "" || err != nil || !info.IsDir() {
		return ""
	}
	return filepath.Join(cfg.Data, fieldagent.LevelsFile)
}

// free refuses while an agent has the pins. Character devices know by themselves
// who has a line; other pins belong to whoever has the agent's journal.
func (b *bench) free() error {
	if b.cfg.GPIO == gpio.BoardChardev || b.cfg.Data == "" {
		return nil
	}
	err := journal.Held(b.cfg.Data)
	if errors.Is(err, journal.ErrLocked) {
		return fmt.Errorf("the agent has the pins: %w", err)
	}
	return err
}

// pin finds a pin by its name in the pin map, or on the board.
func (b *bench) pin(name string) (c gpio.PinConfig, key string, err error) {
	i := slices.IndexFunc(b.cfg.Pins, func(c gpio.PinConfig) bool { return c.Name == name })
	if i >= 0 {
		c = b.cfg.Pins[i]
	} else {
		c = gpio.PinConfig{Name: name}
	}
	line := c.Line
	if line == "" {
		line = c.Name
	}
	key, err = b.board.Resolve(line)
	if err != nil && len(b.cfg.Pins) > 0 && i < 0 {
		err = fmt.Errorf("%w; the pin map has %s", err, strings.Join(b.mapped(), ", "))
	}
	return c, key, err
}

func (b *bench) mapped() []string {
	var names []string
	for _, c := range b.cfg.Pins {
		names = append(names, c.Name)
	}
	return names
}

// benchFlags are the flags that all commands of the bench share.
func benchFlags(name string, stdout io.Writer, usage string) (f *flag.FlagSet, file, kind *string) {
	f = flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() { fmt.Fprint(stdout, usage) }
	return f, f.String("config", "", ""), f.String("gpio", "", "")
}

// parseMixed reads flags that may stand before, between and after the arguments.
func parseMixed(f *flag.FlagSet, args []string) (plain []string, err error) {
	for {
		if err := f.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, fmt.Errorf("%w: %w", ErrUsage, err)
		}
		if f.NArg() == 0 {
			return plain, nil
		}
		plain = append(plain, f.Arg(0))
		args = f.Args()[1:]
	}
}

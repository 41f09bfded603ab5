package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/apollo-11/apollo11/fieldagent"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire/logsink"
)

const safeUsage = `apollo-agent safe drives outputs to their safe levels, reads them back where the board
can, and lets go of the lines. It runs before the agent starts and after it has ended,
because a program that is killed leaves its lines as they were.

It drives the outputs of the pin map that was in force, which the agent keeps in its
data directory, and those of the file: whoever is editing that does not keep an output
on. Of a faulty file it takes the outputs that are beyond doubt.

Usage:
  apollo-agent safe --config FILE [--data DIR]

  --config FILE   the agent's own agent.yaml; only gpio, data and pins are looked at
  --data DIR      the agent's data directory, if the file can't say it; else that of
                  the file, or $STATE_DIRECTORY
  --gpio KIND     chardev, periph or sim instead of the file's

It ends with 0 if all outputs that have a safe level have it; with 3 if they were all
driven and somebody has to look all the same: at a line that somebody else drives or
holds, which is not fought, or at faults in the file; with 1 if a line could not be
driven (the others were); with 2 if nothing says what to drive. Outputs without a safe
level are named and not moved. While an agent has the pins it touches nothing.
`

// Safe is apollo-agent safe.
func Safe(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, file, kind := benchFlags("safe", stdout, safeUsage)
	data := f.String("data", "", "")
	plain, err := parseMixed(f, args)
	if err != nil {
		return err
	}
	if len(plain) > 0 || *file == "" {
		return fmt.Errorf("%w: write apollo-agent safe --config /etc/apollo/agent.yaml", ErrUsage)
	}
	// A service manager waits for this command, not for whoever reads it.
	out := logsink.New(stdout)
	defer out.Close(logsink.FlushLimit)
	b, force, look, err := openSafe(ctx, *file, *kind, *data, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return err
	}
	if err := b.free(); err != nil {
		return err
	}
	list, failed := fieldagent.LetGo(b.board, force, b.cfg.Pins)
	done, all := 0, len(list)+len(failed)
	for _, r := range list {
		if r.Safe == nil {
			fmt.Fprintf(out, "%s has no safe level: it is not moved\n", r.Name)
			continue
		}
		foreign, err := b.driveSafe(r)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("pin %s is not safe: %w", r.Name, err))
		case foreign != nil:
			look = errors.Join(look, fmt.Errorf("pin %s: %w", r.Name, foreign))
		default:
			done++
		}
	}
	fmt.Fprintf(out, "pins at their safe levels: %d of %d outputs, %d failed\n", done, all, len(failed))
	if len(failed) > 0 {
		return errors.Join(append(failed, look)...)
	}
	if look != nil {
		return fmt.Errorf("%w: %w", ErrLook, look)
	}
	return nil
}

// openSafe finds out what there is to drive, whatever state the file is in.
func openSafe(ctx context.Context, file, kind, data string, log *slog.Logger) (b *bench, force fieldagent.InForce, look error, err error) {
	cfg := fieldagent.DefaultConfig()
	look = cfg.Salvage(file)
	for _, dir := range []string{data, cfg.Data, os.Getenv("STATE_DIRECTORY")} {
		if cfg.Data = dir; dir != "" {
			break
		}
	}
	force, err = fieldagent.ReadInForce(cfg.Data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		look = errors.Join(look, err)
	}
	if look != nil && len(force.Pins) == 0 && len(cfg.Pins) == 0 {
		return nil, force, nil, fmt.Errorf("%w: nothing says what to drive, nothing was moved: %w\n%s", ErrUsage, look,
			"mend the file, or name the agent's data directory, which holds "+fieldagent.MapFile+" once it has run: --data DIR")
	}
	cfg.GPIO = backEnd(kind, cfg.GPIO, force.GPIO, look)
	if force.GPIO != "" && force.GPIO != cfg.GPIO {
		force.Pins = nil // lines of another back end
	}
	b, err = openBoard(ctx, cfg, log)
	return b, force, look, err
}

// backEnd is the one to use: what was asked for, what a sound file says, what was in
// force.
func backEnd(asked, file, force string, faults error) string {
	known := func(kind string) bool {
		return kind == gpio.BoardChardev || kind == gpio.BoardPeriph || kind == gpio.BoardSim
	}
	switch {
	case asked != "":
		return asked
	case faults == nil && file != "":
		return file
	case force != "":
		return force
	case known(file):
		return file
	}
	return gpio.BoardChardev
}

// driveSafe opens a line with its safe level and lets go of it. foreign says that
// somebody else has the line, or drives it.
func (b *bench) driveSafe(r fieldagent.LineRule) (foreign, err error) {
	c, err := r.Config()
	if err != nil {
		return nil, err
	}
	p, err := b.board.Open(c.Line, c.Request("safe:tool"))
	if errors.Is(err, gpio.ErrBusy) {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if a, ok := p.(gpio.ActualPin); ok {
		level, err := a.Actual()
		if err == nil && level != *c.Safe {
			return fmt.Errorf("it was set %s and reads %s: something else drives the line, go and look", *c.Safe, level), nil
		}
		return nil, err
	}
	return nil, nil
}

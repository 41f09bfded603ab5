package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire/logsink"
)

const safeUsage = `apollo-agent safe drives every pin of the pin map that has a safe level to it, reads
it back where the board can, and lets go of the line. It runs before the agent
starts and after it has ended, because a program that is killed leaves its lines as
they were.

Usage:
  apollo-agent safe --config FILE

  --config FILE   the agent's own agent.yaml; only gpio and pins are looked at
  --gpio KIND     chardev, periph or sim instead of the file's

It ends with 0 if all pins have their safe levels or none has one, 1 if a pin could
not be driven (the others were), 2 if the command line or the file is wrong. A pin
that an agent holds is not touched.
`

// Safe is apollo-agent safe.
func Safe(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, file, kind := benchFlags("safe", stdout, safeUsage)
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
	b, err := openBench(ctx, *file, *kind, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return err
	}
	if err := b.free(); err != nil {
		return err
	}
	var errs []error
	done := 0
	for _, c := range b.cfg.Pins {
		if c.Safe == nil {
			continue
		}
		if err := b.driveSafe(c); err != nil {
			errs = append(errs, fmt.Errorf("pin %s is not safe: %w", c.Name, err))
			continue
		}
		done++
	}
	fmt.Fprintf(out, "pins at their safe levels: %d of %d mapped, %d failed\n", done, len(b.cfg.Pins), len(errs))
	return errors.Join(errs...)
}

// driveSafe opens a line with its safe level and lets go of it.
func (b *bench) driveSafe(c gpio.PinConfig) (err error) {
	_, key, err := b.pin(c.Name)
	if err != nil {
		return err
	}
	p, err := b.board.Open(key, c.Request("safe:tool"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if a, ok := p.(gpio.ActualPin); ok {
		level, err := a.Actual()
		if err == nil && level != *c.Safe {
			err = fmt.Errorf("it was set %s and reads %s: something else drives the line, go and look", *c.Safe, level)
		}
		return err
	}
	return nil
}

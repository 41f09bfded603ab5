package fieldagent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// openBoard opens the pins of the board, or waits for them right after boot.
func (a *Agent) openBoard(ctx context.Context) (gpio.Board, error) {
	if a.board != nil {
		return a.board, nil
	}
	return gpio.OpenBoard(ctx, a.cfg.GPIO, gpio.BoardOptions{Log: a.log, Pins: a.cfg.Pins, Sim: gpio.SimOptions{
		Trace: a.cfg.GPIOTrace, Levels: filepath.Join(a.cfg.Data, LevelsFile), Any: len(a.cfg.Pins) > 0}})
}

// Reload takes over the pin map of a configuration that was read again, all of it
// or nothing, without touching the pins that stay as they are. Everything else in
// a configuration is read at the start only: if it differs, nothing is taken over
// and the error names what is different.
func (a *Agent) Reload(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if other := differences(a.cfg, cfg); len(other) > 0 {
		return fmt.Errorf("%s cannot be changed while the agent runs: restart it; nothing was changed", strings.Join(other, ", "))
	}
	a.reloading.Lock()
	defer a.reloading.Unlock()
	pins := a.pins.Load()
	if pins == nil {
		return errors.New("the agent is not running")
	}
	// Both maps stand in the file while they change, so that it never lacks a line that
	// may be on.
	if err := a.keepMap(pins.board, pins.pins, cfg.Pins); err != nil {
		return fmt.Errorf("write down the pin map in force: %w", err)
	}
	if err := pins.Reload(ctx, cfg.Pins); err != nil {
		return err
	}
	pins.pins = cfg.Pins
	a.logs("the pin map in force was not written down", a.keepMap(pins.board, cfg.Pins))
	return nil
}

// differences names the settings beside the pin map in which two configurations
// differ.
func differences(a, b Config) (names []string) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		field := x.Type().Field(i)
		name := field.Tag.Get("yaml")
		if field.IsExported() && name != "pins" && !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			names = append(names, name)
		}
	}
	return names
}

package fieldagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// MapFile holds the pin map that is in force, in the data directory: what "apollo-agent
// safe" drives when agent.yaml is being edited.
const MapFile = "pins-in-force.json"

// maxMapBytes bounds the file: 256 pins of a few hundred bytes.
const maxMapBytes = 1 << 20

// mapVersion is the version of its format.
const mapVersion = 1

// InForce is the pin map that an agent works with, by lines and not by names.
type InForce struct {
	Version int        `json:"version"`
	GPIO    string     `json:"gpio"` // the back end
	Pins    []LineRule `json:"pins"`
}

// LineRule is what lets go of a line.
type LineRule struct {
	Name string `json:"name"`
	// Line is the board's one name of it.
	Line      string      `json:"line"`
	ActiveLow bool        `json:"active_low,omitempty"`
	Bias      string      `json:"bias,omitempty"`
	Safe      *gpio.Level `json:"safe,omitempty"` // nil for an output without one
}

// outputs are the outputs of some pin maps, by their lines. Where two maps have a line,
// the first counts.
func outputs(board gpio.Board, maps ...[]gpio.PinConfig) (list []LineRule) {
	seen := map[string]bool{}
	for _, m := range maps {
		for _, c := range m {
			line := c.Line
			if line == "" {
				line = c.Name
			}
			key, err := board.Resolve(line)
			if err != nil || c.Mode != gpio.Output || seen[key] {
				continue // what can't be found can't have been driven
			}
			seen[key] = true
			list = append(list, LineRule{Name: c.Name, Line: key, ActiveLow: c.ActiveLow, Bias: c.Bias.String(), Safe: c.Safe})
		}
	}
	return list
}

// LetGo lists what has to be let go of: the outputs of the map in force and those of a
// pin map that may come next, by their lines. Where both have a line, the one in force
// counts: that is how it was driven. Errors are lines that the board does not have.
func LetGo(board gpio.Board, m InForce, pins []gpio.PinConfig) (list []LineRule, errs []error) {
	var forced []gpio.PinConfig
	for _, r := range m.Pins {
		c, err := r.Config()
		if err != nil {
			errs = append(errs, fmt.Errorf("pin %s: %w", r.Name, err))
			continue
		}
		forced = append(forced, c)
	}
	list = outputs(board, forced, pins)
	for _, c := range append(forced, pins...) {
		line := c.Line
		if line == "" {
			line = c.Name
		}
		if _, err := board.Resolve(line); err != nil && c.Mode == gpio.Output && c.Safe != nil {
			errs = append(errs, fmt.Errorf("pin %s is not safe: %w", c.Name, err))
		}
	}
	return list, errs
}

// Config is the rule as a line of a pin map.
func (r LineRule) Config() (gpio.PinConfig, error) {
	bias, err := gpio.AsIs, error(nil)
	if r.Bias != "" {
		bias, err = gpio.ParseBias(r.Bias)
	}
	return gpio.PinConfig{Name: r.Name, Line: r.Line, Mode: gpio.Output, ActiveLow: r.ActiveLow, Bias: bias, Safe: r.Safe}, err
}

// keepMap writes down which lines have to be let go of, before any of them is driven.
func (a *Agent) keepMap(board gpio.Board, maps ...[]gpio.PinConfig) error {
	b, err := json.MarshalIndent(InForce{Version: mapVersion, GPIO: a.cfg.GPIO, Pins: outputs(board, maps...)}, "", " ")
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(a.cfg.Data, MapFile), append(b, '\n'))
}

// ReadInForce reads the map that was in force. The error is fs.ErrNotExist where no
// agent has worked yet.
func ReadInForce(data string) (m InForce, err error) {
	name := filepath.Join(data, MapFile)
	f, err := os.Open(name)
	if err != nil {
		return m, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxMapBytes+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return m, err
	}
	if len(b) > maxMapBytes {
		return m, fmt.Errorf("%s has more than %d bytes", name, maxMapBytes)
	}
	if len(b) == 0 {
		return m, fmt.Errorf("%s is empty", name)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	if m.Version != mapVersion {
		return m, fmt.Errorf("%s has version %d, this program reads %d", name, m.Version, mapVersion)
	}
	if len(m.Pins) > gpio.MaxPins*2 {
		return m, fmt.Errorf("%s lists %d pins", name, len(m.Pins))
	}
	return m, nil
}

// replaceFile replaces a file so that either the old or the new one is there after a
// power cut, whole.
func replaceFile(name string, b []byte) (err error) {
	temp := name + ".new"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, removed(temp))
	}
	if err := os.Rename(temp, name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func removed(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

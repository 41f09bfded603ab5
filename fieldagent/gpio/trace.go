package gpio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Actuation is one Set of a simulated pin, and one line of its trace file.
type Actuation struct {
	At    int64  `json:"t"` // Unix time in ns
	Pin   string `json:"pin"`
	Level Level  `json:"level"`
	Cause string `json:"cause"`
}

const simFileMode = 0o644

// appendTrace adds a line to the trace file in one write, so that a killed
// process leaves whole lines. The file is opened each time: it may be moved away
// between two actuations, and nothing has to be closed.
func appendTrace(name string, a Actuation) error {
	if name == "" {
		return nil
	}
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, simFileMode)
	if err != nil {
		return fmt.Errorf("gpio trace: %w", err)
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return errors.Join(fmt.Errorf("gpio trace: %w", err), f.Close())
	}
	return f.Close()
}

// ReadTrace returns the actuations in a trace file, the oldest first. A file
// that is not there is an empty trace. An unfinished last line is an error, as
// is any other that is not an actuation.
func ReadTrace(name string) ([]Actuation, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Actuation
	for n := 1; len(data) > 0; n++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		var a Actuation
		if err := json.Unmarshal(line, &a); err != nil {
			return all, fmt.Errorf("%s line %d: %w", name, n, err)
		}
		if !whole {
			return all, fmt.Errorf("%s line %d: it is not finished", name, n)
		}
		all, data = append(all, a), rest
	}
	return all, nil
}

// writeLevels replaces the levels file. It is written beside and renamed, so
// that a reader never sees half of it; it is not synced, as nobody relies on the
// levels of a simulated board after a power cut. Where name is a link, to an
// absolute name, what it points to is replaced.
func writeLevels(name string, levels map[string]Level) error {
	if name == "" {
		return nil
	}
	data, err := json.Marshal(levels) // sorts the keys
	if err != nil {
		return err
	}
	if to, err := os.Readlink(name); err == nil {
		name = to
	}
	temp := name + ".new"
	if err := os.WriteFile(temp, append(data, '\n'), simFileMode); err != nil {
		return fmt.Errorf("gpio levels: %w", err)
	}
	if err := os.Rename(temp, name); err != nil {
		return fmt.Errorf("gpio levels: %w", err)
	}
	return nil
}

// ReadLevels returns the levels in a levels file by pin.
func ReadLevels(name string) (map[string]Level, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var levels map[string]Level
	if err := json.Unmarshal(data, &levels); err != nil {
		return nil, fmt.Errorf("levels file %s: %w: delete it to start with all pins low", name, err)
	}
	return levels, nil
}

// readKeptLevels is ReadLevels at start: no file is no levels.
func readKeptLevels(name string) (map[string]Level, error) {
	if name == "" {
		return nil, nil
	}
	levels, err := ReadLevels(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return levels, err
}

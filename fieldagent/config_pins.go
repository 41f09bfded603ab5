package fieldagent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// pinKeys are the keys of a pin, in the order in which they are listed.
const pinKeys = "name, line, direction, active_low, bias, safe, max_on, on_loss, debounce"

// readPins reads the pin map. The error has everything that can't be read, with
// its place.
func readPins(list *yaml.Node) ([]gpio.PinConfig, error) {
	if list.Kind != yaml.SequenceNode {
		return nil, errors.New("pins is a list, each entry with a name and a direction")
	}
	if len(list.Content) == 0 {
		return nil, errors.New("pins is empty: list the pins that may be used, or leave it out to allow all")
	}
	var pins []gpio.PinConfig
	var errs []error
	for _, entry := range list.Content {
		pin, err := readPin(entry)
		if err != nil {
			errs = append(errs, err)
		}
		pins = append(pins, pin)
	}
	return pins, errors.Join(errs...)
}

// placed adds the place of a node to an error.
func placed(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d, column %d: "+format, append([]any{n.Line, n.Column}, args...)...)
}

func readPin(entry *yaml.Node) (pin gpio.PinConfig, err error) {
	if entry.Kind != yaml.MappingNode {
		return pin, placed(entry, "a pin is written as \"name: value\" pairs")
	}
	var errs []error
	seen := map[string]bool{}
	for i := 0; i < len(entry.Content); i += 2 {
		key, value := entry.Content[i], entry.Content[i+1]
		switch {
		case seen[key.Value]:
			errs = append(errs, placed(key, "%s is set twice", key.Value))
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			errs = append(errs, placed(key, "%s has no value", key.Value))
		default:
			if err := setPin(&pin, key.Value, value.Value); err != nil {
				errs = append(errs, placed(key, "%w", err))
			}
		}
		seen[key.Value] = true
	}
	for _, need := range []string{"name", "direction"} {
		if !seen[need] {
			errs = append(errs, placed(entry, "the pin needs a %s", need))
		}
	}
	return pin, errors.Join(errs...)
}

// setPin sets one key of a pin.
func setPin(pin *gpio.PinConfig, key, value string) (err error) {
	switch key {
	case "name":
		pin.Name = value
	case "line":
		pin.Line = value
	case "direction":
		pin.Mode, err = readDirection(value)
	case "active_low":
		pin.ActiveLow, err = readBool(key, value)
	case "bias":
		pin.Bias, err = gpio.ParseBias(value)
	case "safe":
		pin.Safe, err = readLevel(value)
	case "max_on":
		pin.MaxOn, err = readDuration(key, value)
	case "on_loss":
		pin.OnLoss, err = gpio.ParseLoss(value)
	case "debounce":
		pin.Debounce, err = readDuration(key, value)
	default:
		return fmt.Errorf("unknown setting %q of a pin; there are %s", key, pinKeys)
	}
	if err != nil && !strings.HasPrefix(err.Error(), key) {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return err
}

func readDirection(s string) (gpio.Mode, error) {
	switch s {
	case "out":
		return gpio.Output, nil
	case "in":
		return gpio.Input, nil
	}
	return 0, fmt.Errorf("%.40q is neither out nor in", s)
}

func readBool(key, s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%s is true or false, not %.40q", key, s)
}

func readLevel(s string) (*gpio.Level, error) {
	var l gpio.Level
	if err := l.UnmarshalJSON([]byte(s)); err != nil {
		return nil, err
	}
	return &l, nil
}

// readDuration reads a time with its unit. 0 would look like a limit and be none.
func readDuration(key, s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s is a time with a unit, like 500ms, 20s or 10m, not %.40q", key, s)
	}
	return d, nil
}

// narrowbandEvery is the keepalive of the narrowband connection. As long as one of the
// two connections is taken for alive the gateway counts as there; where a pin relies on
// its loss being noticed, both have to notice it as soon.
func (c *Config) narrowbandEvery() time.Duration {
	for _, p := range c.Pins {
		if p.OnLoss == gpio.FallSafe {
			return primaryKeepAlive
		}
	}
	return narrowbandKeepAlive
}

package fieldagent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// Salvage reads what is needed to let go of outputs from a file that may be faulty,
// because somebody is editing it: back end, data directory, and the outputs whose
// safe levels are beyond doubt. The error has what is wrong with it.
func (c *Config) Salvage(file string) error {
	faults := c.ReadFile(file)
	f, err := os.Open(file)
	if err != nil {
		return faults
	}
	b, err := io.ReadAll(io.LimitReader(f, maxConfigBytes))
	if err = errors.Join(err, f.Close()); err != nil {
		return faults // which has it
	}
	var doc yaml.Node
	err = yaml.Unmarshal(b, &doc)
	if faults == nil && err == nil && len(doc.Content) == 0 {
		return fmt.Errorf("config %s is empty", file)
	}
	if faults == nil {
		return nil
	}
	if err != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		c.scan(b)
		return faults
	}
	root := doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "pins" && root.Content[i+1].Kind == yaml.SequenceNode && len(c.Pins) == 0 {
			c.Pins = salvagePins(root.Content[i+1])
		}
	}
	return faults
}

// plainSetting is a setting that stands on a line of its own, also in a file that is
// no YAML.
var plainSetting = regexp.MustCompile(`(?m)^(data|gpio|gpio_trace):[ \t]*["']?([^"'#\s]+)`)

func (c *Config) scan(b []byte) {
	for _, m := range plainSetting.FindAllSubmatch(b, -1) {
		*c.text(string(m[1])) = string(m[2])
	}
}

// salvagePins lists the outputs of a pin map whose line, polarity and safe level are
// beyond doubt. A key that nobody knows may be a misspelt one of these.
func salvagePins(list *yaml.Node) (pins []gpio.PinConfig) {
	for _, entry := range list.Content {
		if pin, ok := salvagePin(entry); ok {
			pins = append(pins, pin)
		}
	}
	return pins
}

func salvagePin(entry *yaml.Node) (pin gpio.PinConfig, ok bool) {
	if entry.Kind != yaml.MappingNode {
		return pin, false
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(entry.Content); i += 2 {
		key, value := entry.Content[i], entry.Content[i+1]
		switch key.Value {
		case "max_on", "on_loss", "debounce":
			continue // they say when, not where to
		}
		if seen[key.Value] || value.Kind != yaml.ScalarNode || setPin(&pin, key.Value, value.Value) != nil {
			return pin, false
		}
		seen[key.Value] = true
	}
	return pin, pin.Mode == gpio.Output && pin.Check() == nil
}

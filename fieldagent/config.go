package fieldagent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/link"
	"github.com/apollo-11/apollo11/wire"
)

// maxConfigBytes bounds a configuration file.
const maxConfigBytes = 1 << 20

// Bounds of the autonomy window, by requirement: below half a minute a link that is
// only slow would stop work, above two minutes nobody would know what goes on.
const (
	MinAutonomy     = 30 * time.Second
	MaxAutonomy     = 2 * time.Minute
	DefaultAutonomy = time.Minute
)

// Config is everything that can be set about an agent. The file has the same
// names as the command line, with _ for -.
type Config struct {
	// Gateway is the address of the gateway's MQTT listener, tcp://host:port or
	// ws://host:port/path. Required.
	Gateway string `yaml:"gateway"`
	// Narrowband is the address of its narrowband listener; empty for none.
	Narrowband string `yaml:"narrowband"`
	// Node is the name of this node, unique on its site. Required.
	Node string `yaml:"node"`
	// Site is the name of the site; default is "default".
	Site string `yaml:"site"`
	// Labels are what selectors find the node by.
	Labels map[string]string `yaml:"labels"`
	// GPIO is the pin back end, chardev, periph or sim. Required: pins that are
	// only simulated must be a decision.
	GPIO string `yaml:"gpio"`
	// Pins is the pin map; with it only its pins may be used. In the file only.
	Pins []gpio.PinConfig `yaml:"pins"`
	// GPIOTrace is a file for a line per simulated actuation; empty for none.
	GPIOTrace string `yaml:"gpio_trace"`
	// Data is the directory of the agent's journal. Required.
	Data string `yaml:"data"`
	// Username and PasswordFile are the node's credentials; both or none. The
	// narrowband connection uses them as well unless it has its own.
	Username               string `yaml:"username"`
	PasswordFile           string `yaml:"password_file"`
	NarrowbandUsername     string `yaml:"narrowband_username"`
	NarrowbandPasswordFile string `yaml:"narrowband_password_file"`
	// Workers is how many instructions run at a time; default is two a core.
	Workers int `yaml:"workers"`
	// RebootCommand is the program, with its arguments, that boots the board for
	// the intent reboot; words are separated by spaces, there is no shell. Without
	// it the agent does not offer that intent.
	RebootCommand string `yaml:"reboot_command"`
	// LocalSwitch is the mapped input that is 1 while somebody works at the board by
	// hand: then the agent refuses what would actuate. Empty for none.
	LocalSwitch string `yaml:"local_switch"`
	// Autonomy is how long work goes on as usual without the gateway, MinAutonomy to
	// MaxAutonomy, or 0 for ever.
	Autonomy time.Duration `yaml:"autonomy"`
	// HardwareWatchdog is the device that resets the board when the agent is
	// silent, for example /dev/watchdog; empty for none.
	HardwareWatchdog string `yaml:"hardware_watchdog"`
	// LogLevel is debug, info, warn or error; LogFormat is text or json.
	LogLevel  string `yaml:"log_level"`
	LogFormat string `yaml:"log_format"`

	root fs.FS // where proc is found, nil for the real root
}

// DefaultConfig returns what holds unless it is set.
func DefaultConfig() Config {
	return Config{
		Site:      "default",
		Workers:   min(2*runtime.NumCPU(), executor.MaxWorkers),
		Autonomy:  DefaultAutonomy,
		LogLevel:  "info",
		LogFormat: "text",
	}
}

// ReadFile is ReadConfig for the file with this name.
func (c *Config) ReadFile(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if err := errors.Join(c.ReadConfig(f), f.Close()); err != nil {
		return fmt.Errorf("config %s: %w", file, err)
	}
	return nil
}

// ReadConfig reads a YAML file over c. Unknown keys are refused, with their
// place; all that are wrong are named at once.
func (c *Config) ReadConfig(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, maxConfigBytes+1))
	if err != nil {
		return err
	}
	if len(b) > maxConfigBytes {
		return fmt.Errorf("more than %d bytes", maxConfigBytes)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return err
	}
	if len(doc.Content) == 0 {
		return nil // an empty file sets nothing
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d, column %d: settings are written as \"name: value\"", root.Line, root.Column)
	}
	var errs []error
	seen := map[string]bool{}
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		var err error
		switch {
		case !slices.Contains(configKeys(), key.Value):
			err = fmt.Errorf("unknown setting %q; there are %s", key.Value, strings.Join(configKeys(), ", "))
		case seen[key.Value]:
			err = fmt.Errorf("%s is set twice", key.Value)
		default:
			err = c.set(key.Value, value)
		}
		seen[key.Value] = true
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d, column %d: %w", key.Line, key.Column, err))
		}
	}
	return errors.Join(errs...)
}

func configKeys() []string {
	return []string{"gateway", "narrowband", "node", "site", "labels", "gpio", "pins", "gpio_trace", "data", "username", "password_file",
		"narrowband_username", "narrowband_password_file", "workers", "reboot_command", "hardware_watchdog", "local_switch", "autonomy",
		"log_level", "log_format"}
}

// text returns the setting with this name if it is a plain text one.
func (c *Config) text(name string) *string {
	switch name {
	case "gateway":
		return &c.Gateway
	case "narrowband":
		return &c.Narrowband
	case "node":
		return &c.Node
	case "site":
		return &c.Site
	case "gpio":
		return &c.GPIO
	case "gpio_trace":
		return &c.GPIOTrace
	case "data":
		return &c.Data
	case "username":
		return &c.Username
	case "password_file":
		return &c.PasswordFile
	case "narrowband_username":
		return &c.NarrowbandUsername
	case "narrowband_password_file":
		return &c.NarrowbandPasswordFile
	case "reboot_command":
		return &c.RebootCommand
	case "local_switch":
		return &c.LocalSwitch
	case "hardware_watchdog":
		return &c.HardwareWatchdog
	case "log_level":
		return &c.LogLevel
	case "log_format":
		return &c.LogFormat
	}
	return nil
}

func (c *Config) set(name string, value *yaml.Node) error {
	switch name {
	case "workers":
		if err := value.Decode(&c.Workers); err != nil {
			return errors.New("workers is a whole number")
		}
	case "pins":
		pins, err := readPins(value)
		if err != nil {
			return err
		}
		c.Pins = pins
	case "autonomy":
		d, err := time.ParseDuration(value.Value)
		if value.Kind != yaml.ScalarNode || err != nil {
			return errors.New("autonomy is a time with a unit, for example 60s, or 0 for no limit")
		}
		c.Autonomy = d
	case "labels":
		var m map[string]string
		if err := value.Decode(&m); err != nil {
			return errors.New("labels are written as names and texts, for example {role: worker}")
		}
		c.Labels = m
	default:
		if value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
			return fmt.Errorf("%s is a text", name)
		}
		*c.text(name) = value.Value
	}
	return nil
}

// Validate returns everything that is wrong, and what to write instead.
func (c *Config) Validate() error {
	var errs []error
	bad := func(name string, err error) { errs = append(errs, fmt.Errorf("%s: %w", name, err)) }
	need := func(name, example string) { bad(name, fmt.Errorf("is missing; write for example %s", example)) }
	if c.Gateway == "" {
		need("gateway", "--gateway tcp://10.0.0.5:1883")
	} else if err := link.CheckURL(c.Gateway); err != nil {
		bad("gateway", err)
	}
	if c.Narrowband != "" {
		if err := link.CheckURL(c.Narrowband); err != nil {
			bad("narrowband", err)
		}
	}
	if c.Node == "" {
		need("node", "--node pump-1 (a name that no other node of the site has)")
	} else if err := wire.CheckNode(c.Node); err != nil {
		bad("node", err)
	}
	if err := wire.CheckSite(c.Site); err != nil {
		bad("site", err)
	}
	for _, k := range sorted(c.Labels) {
		if err := wire.CheckLabel(k, c.Labels[k]); err != nil {
			bad("label", err)
		}
	}
	if len(c.Labels) > wire.MaxLabels {
		bad("label", fmt.Errorf("%d are too many, the limit is %d", len(c.Labels), wire.MaxLabels))
	}
	if n := labelBytes(c.Labels); n > wire.MaxLabelBytes {
		bad("label", fmt.Errorf("all of them have %d bytes, the limit is %d", n, wire.MaxLabelBytes))
	}
	switch {
	case c.GPIO == "":
		need("gpio", "--gpio chardev for the pins of this board, or --gpio sim for simulated pins")
	case c.GPIO != gpio.BoardSim && c.GPIO != gpio.BoardPeriph && c.GPIO != gpio.BoardChardev:
		bad("gpio", fmt.Errorf("%q is not a pin back end; write chardev, sim or periph", c.GPIO))
	case c.GPIO != gpio.BoardSim && c.GPIOTrace != "":
		bad("gpio_trace", errors.New("only simulated pins can be traced; leave it out or write --gpio sim"))
	}
	for _, p := range c.Pins {
		if err := errors.Join(wire.CheckPin(p.Name), p.Check()); err != nil {
			bad("pins", err)
		}
	}
	if c.Data == "" {
		need("data", "--data /var/lib/apollo-agent")
	}
	if (c.Username == "") != (c.PasswordFile == "") {
		bad("username", errors.New("username and password_file belong together; give both or none"))
	}
	if (c.NarrowbandUsername == "") != (c.NarrowbandPasswordFile == "") {
		bad("narrowband_username", errors.New("narrowband_username and narrowband_password_file belong together; give both or none"))
	}
	if c.Workers < 1 || c.Workers > executor.MaxWorkers {
		bad("workers", fmt.Errorf("%d is out of range; write 1 to %d", c.Workers, executor.MaxWorkers))
	}
	if c.Autonomy != 0 && (c.Autonomy < MinAutonomy || c.Autonomy > MaxAutonomy) {
		bad("autonomy", fmt.Errorf("%v is out of range; write %v to %v, or 0 for no limit", c.Autonomy, MinAutonomy, MaxAutonomy))
	}
	if c.Autonomy == 0 {
		for _, p := range c.Pins {
			if p.OnLoss == gpio.FallSafe {
				bad("autonomy", fmt.Errorf("0 means that the gateway is never taken for lost, so on_loss: safe of pin %q would never come; write a time, or on_loss: hold", p.Name))
				break
			}
		}
	}
	if c.LocalSwitch != "" && !slices.ContainsFunc(c.Pins, func(p gpio.PinConfig) bool {
		return p.Name == c.LocalSwitch && p.Mode == gpio.Input
	}) {
		bad("local_switch", fmt.Errorf("%q is not in the pin map as an input; add it to pins with direction: in", c.LocalSwitch))
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel) {
		bad("log_level", fmt.Errorf("%q is not one of debug, info, warn, error", c.LogLevel))
	}
	if !slices.Contains([]string{"text", "json"}, c.LogFormat) {
		bad("log_format", fmt.Errorf("%q is not one of text, json", c.LogFormat))
	}
	return errors.Join(errs...)
}

func sorted(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// labelBytes is what the labels take of a hello, which must hold all pins as well.
func labelBytes(labels map[string]string) int {
	n := 0
	for k, v := range labels {
		n += len(k) + len(v)
	}
	return n
}

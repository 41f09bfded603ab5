package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.yaml.in/yaml/v3"

	"github.com/apollo-11/apollo11/broker"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// Addresses on which a gateway listens when it is told nothing: loopback only.
const (
	DefaultMQTT       = "127.0.0.1:1883"
	DefaultWebSocket  = "127.0.0.1:8083"
	DefaultNarrowband = "127.0.0.1:1884"
	DefaultHTTP       = "127.0.0.1:8080"
	DefaultSite       = "default"
)

// off is what turns a listener off.
const off = "off"

// Config is everything that can be set about a gateway. The file has the same
// names; see deploy/gateway.yaml.
type Config struct {
	// Site names the site in topics and instruction ids. Default "default".
	Site string `yaml:"site"`
	// Data is the directory of the log. Required.
	Data string `yaml:"data"`
	// MQTT, WebSocket, Narrowband and HTTP are host:port; WebSocket and
	// Narrowband may be "off".
	MQTT       string `yaml:"mqtt"`
	WebSocket  string `yaml:"ws"`
	Narrowband string `yaml:"narrowband"`
	HTTP       string `yaml:"http"`
	// Users is the path of the users file; see broker.ParseUsers. Without it the
	// MQTT doors are open to loopback only.
	Users string `yaml:"users"`
	// AllowAnonymous opens the MQTT doors to remote peers without a users file.
	AllowAnonymous bool `yaml:"allow_anonymous"`
	// AllowRemote opens the HTTP door to remote peers. It has no users yet.
	AllowRemote bool `yaml:"allow_remote"`
	// StripRetain lists user names and client id prefixes whose retain flag on
	// commands is taken off instead of refused (A10).
	StripRetain []string `yaml:"strip_retain"`
	// Capacity bounds unfinished instructions; 0 is 100,000.
	Capacity int `yaml:"capacity"`
	// Delivery are the delivery numbers; zero fields take their defaults.
	Delivery Delivery `yaml:"delivery"`

	// Version is the program's own, for health and logs.
	Version string `yaml:"-"`
	// LogLost is how many lines of the program's log have got lost; nil for none.
	LogLost func() uint64 `yaml:"-"`
	// OnFatal is called when the store has died; see storage.Options.
	OnFatal func(error) `yaml:"-"`
	// The rest is for tests and benchmarks.
	FS  vfs.FS `yaml:"-"` // see storage.Options
	Log Log    `yaml:"-"` // instead of the ledger on disk
}

// Delivery are the numbers of dispatch and confirmation (see engine.Config).
// Durations are written like 5s or 1m.
type Delivery struct {
	Window         int           `yaml:"window"`
	ConfirmTimeout time.Duration `yaml:"confirm_timeout"`
	ConfirmMax     time.Duration `yaml:"confirm_max"`
	MaxResends     int           `yaml:"max_resends"`
	DefaultTimeout time.Duration `yaml:"default_timeout"`
	Heartbeat      time.Duration `yaml:"heartbeat"`
	OfflineAfter   time.Duration `yaml:"offline_after"`
	LowWater       int           `yaml:"low_water"`
	HighWater      int           `yaml:"high_water"`
	LatencyLimit   time.Duration `yaml:"latency_limit"`
	DrainRate      int           `yaml:"drain_rate"`
	DrainBurst     int           `yaml:"drain_burst"`
	ClockSkew      time.Duration `yaml:"clock_skew"`
}

// LoadConfig reads a configuration file into c, over what c holds. Unknown keys
// and wrong types are refused with their line.
func LoadConfig(path string, c *Config) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("configuration %s: %w", path, err)
	}
	return nil
}

func (c Config) withDefaults() Config {
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	def(&c.Site, DefaultSite)
	def(&c.MQTT, DefaultMQTT)
	def(&c.WebSocket, DefaultWebSocket)
	def(&c.Narrowband, DefaultNarrowband)
	def(&c.HTTP, DefaultHTTP)
	return c
}

// Validate returns all faults at once.
func (c Config) Validate() error {
	c = c.withDefaults()
	var faults []error
	if err := wire.CheckSite(c.Site); err != nil {
		faults = append(faults, err)
	}
	if c.Data == "" {
		faults = append(faults, errors.New("no data directory: say where the log is kept, for example --data /var/lib/apollo"))
	}
	for _, a := range []struct{ name, addr string }{
		{"mqtt", c.MQTT}, {"ws", c.WebSocket}, {"narrowband", c.Narrowband}, {"http", c.HTTP},
	} {
		if a.addr == off && (a.name == "ws" || a.name == "narrowband") {
			continue
		}
		if _, _, err := net.SplitHostPort(a.addr); err != nil {
			faults = append(faults, fmt.Errorf("%s address %q: want host:port, for example 127.0.0.1:1883", a.name, a.addr))
		}
	}
	if err := c.engine().Validate(); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func (c Config) engine() engine.Config {
	return engine.Config{Site: c.Site, Capacity: c.Capacity, Window: c.Delivery.Window,
		ConfirmTimeout: c.Delivery.ConfirmTimeout, ConfirmMax: c.Delivery.ConfirmMax, MaxResends: c.Delivery.MaxResends,
		DefaultTimeout: c.Delivery.DefaultTimeout, Heartbeat: c.Delivery.Heartbeat, OfflineAfter: c.Delivery.OfflineAfter,
		LowWater: c.Delivery.LowWater, HighWater: c.Delivery.HighWater, LatencyLimit: c.Delivery.LatencyLimit,
		DrainRate: c.Delivery.DrainRate, DrainBurst: c.Delivery.DrainBurst, ClockSkew: c.Delivery.ClockSkew}
}

// broker makes the broker's configuration; it reads the users file.
func (c Config) broker() (broker.Config, error) {
	listen := func(addr string) string {
		if addr == off {
			return ""
		}
		return addr
	}
	b := broker.Config{Site: c.Site, MQTT: c.MQTT, WebSocket: listen(c.WebSocket), Narrowband: listen(c.Narrowband),
		AllowAnonymous: c.AllowAnonymous, StripRetain: c.StripRetain}
	if c.Users == "" {
		return b, nil
	}
	f, err := os.Open(c.Users)
	if err != nil {
		return b, fmt.Errorf("read users file: %w", err)
	}
	defer func() { _ = f.Close() }() // read only: nothing can be lost
	if b.Users, err = broker.ParseUsers(f); err != nil {
		return b, fmt.Errorf("users file %s: %w", c.Users, err)
	}
	return b, nil
}

package rig

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// readyLine is how the gateway says that all its doors are open.
const readyLine = "ready "

// TaskTopic takes tasks of the sites here.
const TaskTopic = "apollo/default/task"

// Options say what is particular about a site.
type Options struct {
	// Network puts gateway and agents into its two namespaces; nil is loopback.
	Network *Network
	// Args are more arguments of the gateway.
	Args []string
}

// Door is where an agent connects.
type Door struct{ MQTT, Narrowband string }

// Site is a gateway with its addresses, which survive its restarts, and agents.
type Site struct {
	bin  Programs
	dir  string
	o    Options
	door Door
	http string
	web  *http.Client

	mu      sync.Mutex
	gateway *Process
	agents  []*Process
}

// NewSite starts a gateway whose data lie in dir.
func NewSite(ctx context.Context, bin Programs, dir string, o Options) (*Site, error) {
	s := &Site{bin: bin, dir: dir, o: o}
	var err error
	if n := o.Network; n != nil {
		// In a namespace of our own every port is free.
		s.door = Door{net.JoinHostPort(n.GatewayIP(), "1883"), net.JoinHostPort(n.GatewayIP(), "1884")}
		s.http = "127.0.0.1:8080"
		s.o.Args = append([]string{"--allow-anonymous"}, o.Args...)
	} else if s.door, s.http, err = freeDoor(); err != nil {
		return nil, err
	}
	s.web = &http.Client{Timeout: Patience, Transport: &http.Transport{MaxIdleConnsPerHost: 4,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return s.Dial(ctx, addr) }}}
	if _, err := s.StartGateway(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Dir is where the site keeps its data.
func (s *Site) Dir() string { return s.dir }

// Door is where agents and clients connect.
func (s *Site) Door() Door { return s.door }

// Dial opens a connection from the gateway's side of the network.
func (s *Site) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if s.o.Network != nil {
		return s.o.Network.DialGateway(ctx, addr)
	}
	return Loopback(ctx, addr)
}

// Client connects a SCADA client.
func (s *Site) Client(ctx context.Context, id string) (*Client, error) {
	return Connect(ctx, s.Dial, s.door.MQTT, id)
}

// GatewayData is the gateway's data directory.
func (s *Site) GatewayData() string { return filepath.Join(s.dir, "gateway") }

// StartGateway starts the gateway, again after a kill, and returns how long it
// took until its doors were open.
func (s *Site) StartGateway(ctx context.Context) (time.Duration, error) {
	p, err := s.LaunchGateway()
	if err != nil {
		return 0, err
	}
	err = Await(ctx, Patience, "gateway ready", func() (bool, error) {
		if p.Ended() {
			return true, nil
		}
		return p.saw(readyLine), nil
	})
	if err != nil || !p.saw(readyLine) {
		return 0, errors.Join(err, fmt.Errorf("the gateway does not start:\n%s", p.Output()))
	}
	return time.Since(p.began), nil
}

// LaunchGateway starts the gateway and does not wait for anything.
func (s *Site) LaunchGateway() (*Process, error) {
	args := append([]string{"--data", s.GatewayData(), "--mqtt", s.door.MQTT, "--narrowband", s.door.Narrowband,
		"--ws", "off", "--http", s.http, "--log-level", "warn"}, s.o.Args...)
	cmd := exec.Command(s.bin.path("apollo-gateway"), args...)
	if s.o.Network != nil {
		cmd = s.o.Network.onGateway(cmd)
	}
	p, err := start("apollo-gateway", cmd, readyLine)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.gateway = p
	s.mu.Unlock()
	return p, nil
}

// Gateway is the gateway's latest process.
func (s *Site) Gateway() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gateway
}

// KillGateway ends the gateway with SIGKILL.
func (s *Site) KillGateway() {
	if p := s.Gateway(); p != nil {
		p.Kill()
	}
	s.web.CloseIdleConnections()
}

// StartAgent starts an agent with simulated pins. Its data survive its restarts
// under the same name.
func (s *Site) StartAgent(node string, via Door, args ...string) (*Process, error) {
	args = append([]string{"--gateway", "tcp://" + via.MQTT, "--narrowband", "tcp://" + via.Narrowband, "--node", node,
		"--gpio", "sim", "--gpio-trace", s.trace(node), "--data", filepath.Join(s.dir, "agent-"+node)}, args...)
	cmd := exec.Command(s.bin.path("apollo-agent"), args...)
	if s.o.Network != nil {
		cmd = s.o.Network.onAgents(cmd)
	}
	p, err := start(node, cmd)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.agents = append(s.agents, p)
	s.mu.Unlock()
	return p, nil
}

func (s *Site) trace(node string) string { return filepath.Join(s.dir, "pins-"+node) }

// Actuations is everything that was done to a node's pins, the oldest first.
func (s *Site) Actuations(node string) ([]gpio.Actuation, error) {
	return gpio.ReadTrace(s.trace(node))
}

// Close kills whatever still runs.
func (s *Site) Close() {
	s.KillGateway()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.agents {
		p.Kill()
	}
}

// Ports lie below the range from which the system takes the source ports of
// connections: a gateway that is away for a moment must find its port free again.
const (
	firstPort = 12_000
	ports     = 18_000
	portTries = 200
)

// freeDoor finds three loopback addresses that nobody listens on.
func freeDoor() (d Door, web string, err error) {
	var free []string
	at := rand.IntN(ports) // several programs at a time do not meet at once
	for n := 0; n < portTries && len(free) < 3; n++ {
		addr := fmt.Sprintf("127.0.0.1:%d", firstPort+(at+n)%ports)
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			free = append(free, addr)
		}
	}
	if len(free) < 3 {
		return d, "", errors.New("no free ports on the loopback interface")
	}
	return Door{free[0], free[1]}, free[2], nil
}

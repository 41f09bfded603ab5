package broker

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// Config says where the broker listens and whom it lets in.
type Config struct {
	// Site is the second level of all primary topics. Default "default".
	Site string
	// MQTT, WebSocket and Narrowband are listen addresses, host:port; port 0
	// takes a free one, an empty address turns the listener off.
	MQTT, WebSocket, Narrowband string
	// Users is the content of the users file. With nil the broker is open to
	// loopback peers and the role follows from the client id.
	Users *Users
	// AllowAnonymous lets remote peers in although there is no users file.
	AllowAnonymous bool
	// StripRetain lists user names and client id prefixes of operators whose
	// retain flag on the task topic is taken off instead of refused, for HMI
	// tools that always set it.
	StripRetain []string
	// Origins lists further origins (scheme://host[:port]) whose web pages may
	// open a WebSocket. Pages from the host of the listener itself may anyway.
	Origins []string
	// Limits are the bounds; zero fields take their default.
	Limits Limits
	// Listen opens a listening socket; nil means TCP. It is the place to put
	// TLS, and where tests inject faults.
	Listen func(network, address string) (net.Listener, error)
}

// Limits are the bounds of the broker. Every queue, wait and size has one.
type Limits struct {
	// Connections is the number of sockets open at once. Default 4096: about
	// 30 KiB each.
	Connections int
	// PacketSize is the largest PUBLISH taken, in bytes of MQTT remaining
	// length. Default 256 KiB: four times the largest task document. What is
	// over it is read away and refused without being stored.
	PacketSize int
	// ConnectTimeout is how long a new socket may take to send a whole CONNECT
	// packet. Default 10 s.
	ConnectTimeout time.Duration
	// WriteBuffer is how many bytes may wait to be sent to an agent, and
	// OperatorWriteBuffer to an operator; over it the connection is closed.
	// Defaults 256 KiB and 1 MiB: an HMI reads the status of all tasks.
	WriteBuffer, OperatorWriteBuffer int
	// WriteStall is how long one write to a socket may take. Default 10 s.
	WriteStall time.Duration
	// Linger is how long a closing socket may take to hand over its last
	// bytes. Default 500 ms.
	Linger time.Duration
	// Unacked is the number of publishes of one connection that wait for their
	// receipt, and UnackedBytes their payload bytes. At the limit the broker
	// reads no further from that connection; an MQTT 5 client that exceeds the
	// announced number is disconnected. Defaults 1024 and 1 MiB.
	Unacked, UnackedBytes int
	// Outbound is the number of messages queued to one client inside Mochi and
	// the number of its unacknowledged ones. Default 1024: 8 KiB a client.
	Outbound int
	// AckStall is how long a publish waits for an operator that has so many
	// unacknowledged messages to acknowledge one; then it is disconnected.
	// Default 1 s.
	AckStall time.Duration
	// Sessions is the number of operators' persistent sessions kept while they
	// are away, and SessionExpiry for how long. Defaults 256 and 1 h.
	Sessions      int
	SessionExpiry time.Duration
	// MaxKeepalive is the longest keepalive of an agent. Default 20 min.
	MaxKeepalive time.Duration
	// NarrowbandRate is the number of frames a second taken from one
	// narrowband client, and NarrowbandFrame the size of one in bytes of MQTT
	// remaining length. Defaults 10 and 64.
	NarrowbandRate  int
	NarrowbandFrame int
	// RefusalPause is how long an MQTT 3.1.1 client whose publish was not
	// taken stays connected, so that it sees the reply and does not come back
	// in a tight loop. Default 250 ms.
	RefusalPause time.Duration
}

// WithDefaults returns the limits with every zero field set to its default.
func (l Limits) WithDefaults() Limits {
	fill := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	wait := func(v *time.Duration, def time.Duration) {
		if *v == 0 {
			*v = def
		}
	}
	fill(&l.Connections, 4096)
	fill(&l.PacketSize, 256<<10)
	wait(&l.ConnectTimeout, 10*time.Second)
	fill(&l.WriteBuffer, 256<<10)
	fill(&l.OperatorWriteBuffer, 1<<20)
	wait(&l.WriteStall, 10*time.Second)
	wait(&l.Linger, 500*time.Millisecond)
	fill(&l.Unacked, 1024)
	fill(&l.UnackedBytes, 1<<20)
	fill(&l.Outbound, 1024)
	wait(&l.AckStall, time.Second)
	fill(&l.Sessions, 256)
	wait(&l.SessionExpiry, time.Hour)
	wait(&l.MaxKeepalive, 20*time.Minute)
	fill(&l.NarrowbandRate, wire.NarrowbandRate)
	fill(&l.NarrowbandFrame, 64)
	wait(&l.RefusalPause, 250*time.Millisecond)
	return l
}

// The ranges of limits. An MQTT packet can not exceed 256 MiB; the receive
// maximum and Mochi's in-flight limit are 16 bit.
const (
	minPacketSize = 1 << 10
	maxPacketSize = 16 << 20
	maxUint16     = 1<<16 - 1
	maxKeepalive  = maxUint16 * time.Second
)

func (l Limits) validate() error {
	var faults []error
	within := func(name string, v, low, high int) {
		if v < low || v > high {
			faults = append(faults, fmt.Errorf("limit %s is %d, want %d to %d", name, v, low, high))
		}
	}
	positive := func(name string, v, high time.Duration) {
		if v < 0 || v > high {
			faults = append(faults, fmt.Errorf("limit %s is %s, want more than 0 and at most %s", name, v, high))
		}
	}
	within("connections", l.Connections, 1, 1<<20)
	within("packet size", l.PacketSize, minPacketSize, maxPacketSize)
	within("write buffer", l.WriteBuffer, minPacketSize, 1<<30)
	within("operator write buffer", l.OperatorWriteBuffer, minPacketSize, 1<<30)
	within("unacked", l.Unacked, 1, maxUint16)
	within("unacked bytes", l.UnackedBytes, minPacketSize, 1<<30)
	within("outbound", l.Outbound, 16, maxUint16)
	within("sessions", l.Sessions, 1, 1<<20)
	within("narrowband rate", l.NarrowbandRate, 1, 1<<20)
	within("narrowband frame", l.NarrowbandFrame, 16, minPacketSize)
	positive("connect timeout", l.ConnectTimeout, time.Hour)
	positive("write stall", l.WriteStall, time.Hour)
	positive("ack stall", l.AckStall, time.Minute)
	positive("linger", l.Linger, time.Minute)
	positive("session expiry", l.SessionExpiry, 7*24*time.Hour)
	positive("keepalive", l.MaxKeepalive, maxKeepalive)
	positive("refusal pause", l.RefusalPause, time.Minute)
	return errors.Join(faults...)
}

func (c Config) withDefaults() Config {
	if c.Site == "" {
		c.Site = "default"
	}
	if c.Listen == nil {
		c.Listen = listenTCP
	}
	c.Limits = c.Limits.WithDefaults()
	return c
}

// validate returns all faults at once.
func (c Config) validate() error {
	var faults []error
	if err := wire.CheckSite(c.Site); err != nil {
		faults = append(faults, err)
	}
	if c.MQTT == "" && c.WebSocket == "" && c.Narrowband == "" {
		faults = append(faults, errors.New("no listen address: give at least one of mqtt, websocket and narrowband"))
	}
	if c.Users != nil && c.AllowAnonymous {
		faults = append(faults, errors.New("allow_anonymous contradicts a users file: drop one of them"))
	}
	for _, address := range []string{c.MQTT, c.WebSocket, c.Narrowband} {
		if address == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			faults = append(faults, fmt.Errorf("listen address %q: want host:port: %w", address, err))
		}
	}
	faults = append(faults, c.Limits.validate())
	return errors.Join(faults...)
}

// warnings names what is allowed but dangerous.
func (c Config) warnings() []string {
	if c.Users != nil {
		return nil
	}
	var out []string
	for _, address := range []string{c.MQTT, c.WebSocket, c.Narrowband} {
		if address == "" || loopbackAddress(address) {
			continue
		}
		if c.AllowAnonymous {
			out = append(out, fmt.Sprintf("OPEN TO THE NETWORK: anybody who reaches %s can move actuators; give a users file", address))
		} else {
			out = append(out, fmt.Sprintf("listening on %s without a users file: remote peers are refused; give a users file", address))
		}
	}
	return out
}

// loopbackAddress reports whether host:port names the loopback interface.
func loopbackAddress(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

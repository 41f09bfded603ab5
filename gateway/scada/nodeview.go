package scada

import (
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// Presence is what the gateway knows of an agent's connection at the moment. It
// is never stored: after a restart every node is unknown until it says hello.
type Presence struct {
	State    PresenceState
	Reason   string // for example last_will, goodbye, silent; may be empty
	Since    int64  // of the state, Unix ms
	LastSeen int64  // any message, Unix ms
	Running  uint32 // instructions, by the last heartbeat
	Queued   uint32 // instructions that it has not confirmed
	// Local says that its LOCAL switch is on; Foreign are its outputs that somebody
	// else has changed, both by the last heartbeat.
	Local   bool
	Foreign []wire.Foreign
	Twin    bool // two boards of its name are there
	Levels  []engine.PinLevel
}

// PresenceOf is what the engine knows of a node's connection.
func PresenceOf(n engine.NodeState) Presence {
	p := Presence{State: PresenceOffline, Reason: n.Reason, Since: n.Since,
		Running: uint32(n.Running), Queued: uint32(n.Queued + n.Flying),
		Local: n.Local, Foreign: n.Foreign, Twin: n.Twin, Levels: n.Levels}
	switch {
	case n.Online:
		p.State = PresenceOnline
	case n.Since == 0:
		p.State = PresenceUnknown
	}
	return p
}

// PresenceState says whether a node can be reached.
type PresenceState string

const (
	PresenceUnknown PresenceState = "unknown" // not heard of since the gateway started
	PresenceOnline  PresenceState = "online"
	PresenceSuspect PresenceState = "suspect" // silent for longer than it should be
	PresenceOffline PresenceState = "offline"
)

// NodeView is a node: the payload of its state topic, and of the HTTP API.
type NodeView struct {
	Node      string            `json:"node"`
	State     string            `json:"state"`
	Reason    string            `json:"reason"`
	Since     string            `json:"since,omitempty"`
	LastSeen  string            `json:"last_seen,omitempty"`
	Running   uint32            `json:"running"`
	Queued    uint32            `json:"queued"`
	Short     string            `json:"short"`
	Labels    map[string]string `json:"labels,omitempty"`
	Version   string            `json:"version,omitempty"`
	Board     string            `json:"board,omitempty"`
	Workers   uint16            `json:"workers,omitempty"`
	Intents   []string          `json:"intents,omitempty"`
	Pins      []string          `json:"pins,omitempty"`
	FirstSeen string            `json:"first_seen,omitempty"`
	LastHello string            `json:"last_hello,omitempty"`
	Local     bool              `json:"local"` // the LOCAL switch is on: what would actuate is refused
	Foreign   []ForeignView     `json:"foreign,omitempty"`
	// Twin: two boards of this name are there, and commands that do not lead to safe are
	// held back. It is left out while it is false.
	Twin    bool        `json:"twin,omitempty"`
	Levels  []LevelView `json:"levels,omitempty"` // of its outputs, as the agent says
	Updated string      `json:"updated"`
}

// NewNodeView joins what is known for good and what is known right now, at now
// in Unix ms. The zero Presence is unknown.
func NewNodeView(n engine.Node, p Presence, now int64) NodeView {
	if p.State == "" {
		p.State = PresenceUnknown
	}
	return NodeView{
		Node:      n.ID,
		State:     string(p.State),
		Reason:    p.Reason,
		Since:     stamp(p.Since),
		LastSeen:  stamp(p.LastSeen),
		Running:   p.Running,
		Queued:    p.Queued,
		Short:     n.Short,
		Labels:    n.Labels,
		Version:   n.Version,
		Board:     n.Board,
		Workers:   n.Workers,
		Intents:   n.Intents,
		Pins:      n.Pins,
		FirstSeen: stamp(n.FirstSeen),
		LastHello: stamp(n.LastHello),
		Local:     p.Local,
		Foreign:   foreignViews(p.Foreign),
		Twin:      p.Twin,
		Levels:    levelViews(p.Levels),
		Updated:   stamp(now),
	}
}

package scada

import (
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// LeaseView is an output that was set for a limited time (C13).
type LeaseView struct {
	Pin   string `json:"pin"`
	Until string `json:"until,omitempty"` // when it ends by itself, by the agent's clock
	// Open is false when the agent has told of its end. Until has passed and Open is
	// true means that nobody has told yet.
	Open  bool   `json:"open"`
	End   string `json:"end,omitempty"`   // expired, replaced, loss, stopped, restart, failed, local, reload, cancelled, hand
	Ended string `json:"ended,omitempty"` // by the agent's clock
	Level *uint8 `json:"level,omitempty"` // of the pin since then, where the agent says it
}

// NewLeaseView writes a lease; nil gives nil.
func NewLeaseView(l *engine.Lease) *LeaseView {
	if l == nil {
		return nil
	}
	v := &LeaseView{Pin: l.Pin, Until: stamp(l.Until), Open: !l.Over(), Ended: stamp(l.EndedAt), Level: l.Level}
	if l.End != 0 {
		v.End = l.End.String()
	}
	return v
}

// PinView is the payload of apollo/<site>/node/<node>/pin/<pin>: something that
// happened there, of an instruction that watches it or has set it.
type PinView struct {
	Node        string         `json:"node"`
	Pin         string         `json:"pin"`
	Kind        PinKind        `json:"kind"`
	Time        string         `json:"time"` // the gateway's
	TaskID      string         `json:"task_id"`
	Instruction string         `json:"instruction"`
	EventID     string         `json:"event_id"` // the same event comes again when a receipt was lost
	Watch       map[string]any `json:"watch,omitempty"`
	Lease       *LeaseView     `json:"lease,omitempty"`
}

// PinKind says what a PinView tells of.
type PinKind string

const (
	PinEdges    PinKind = "edges"       // Watch has what the agent reported
	PinLeaseEnd PinKind = "lease_ended" // Lease says how
)

func (PinView) document() {}

// NewPinView writes what happened at a pin.
func NewPinView(p engine.PinNews) PinView {
	v := PinView{Node: p.Node, Pin: p.Pin, Kind: PinEdges, Time: stamp(p.At), TaskID: p.Task, Instruction: p.Instruction,
		EventID: wire.EventID(p.Node, p.Event), Lease: NewLeaseView(p.Lease)}
	if p.Lease != nil {
		v.Kind = PinLeaseEnd
		return v
	}
	v.Watch, _ = result(p.Edges)
	return v
}

// LevelView is how an output stands, as its agent says (B27).
type LevelView struct {
	Pin   string `json:"pin"`
	Level *uint8 `json:"level,omitempty"` // 0 or 1; left out while it is held
	// Held: it is at its safe level, and held there until somebody releases it.
	Held bool `json:"held,omitempty"`
	// Expected is the level that all that was told makes it, where it is another one.
	Expected *uint8 `json:"expected,omitempty"`
}

func levelViews(list []engine.PinLevel) []LevelView {
	out := make([]LevelView, 0, len(list))
	for _, l := range list {
		out = append(out, LevelView{l.Pin, levelValue(l.Level), l.Level == wire.LevelHeld, levelValue(l.Expected)})
	}
	return out
}

func levelValue(l wire.Level) *uint8 {
	var v uint8
	switch l {
	case wire.LevelLow:
	case wire.LevelHigh:
		v = 1
	default:
		return nil
	}
	return &v
}

// ForeignView is an output that somebody else has changed (C15).
type ForeignView struct {
	Pin       string `json:"pin"`
	Commanded uint8  `json:"commanded"`
	Found     uint8  `json:"found"`
}

func foreignViews(list []wire.Foreign) []ForeignView {
	out := make([]ForeignView, 0, len(list))
	for _, f := range list {
		out = append(out, ForeignView{f.Pin, f.Commanded, f.Found})
	}
	return out
}

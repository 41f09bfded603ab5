package explore

import (
	"fmt"
	"slices"
	"strings"
)

// kind is what a step of the plan does.
type kind uint8

const (
	gatewayCut     kind = iota // power cut: a suffix of what was not synced is gone
	gatewayFail                // the next sync fails: the process must stop
	gatewayFull                // the disk is full for a while: writes fail, so does starting
	gatewaySlow                // every sync takes long for a while
	gatewayHang                // no sync ends for a while, up to minutes
	gatewayClock               // the wall clock jumps
	brokerRestart              // every connection ends, what was in flight is lost
	agentCut                   // power cut
	agentKill                  // the process dies, the page cache does not
	agentStop                  // the process is asked to stop
	agentWipe                  // power cut, and the card is replaced by an empty one
	agentFail                  // the next sync fails
	agentFull                  // the disk is full for a while
	agentSlow                  // every sync takes long for a while
	agentTight                 // for a while its disk has room for an append and none for a copy
	agentHang                  // a sync takes up to minutes
	agentRot                   // a power cut, and a bit of the journal is another one
	agentClock                 // the wall clock jumps
	linkCut                    // the connection breaks; both ends or one of them notice
	linkHold                   // nothing passes for a while, then everything does (TCP)
	linkHole                   // nothing passes for a while, the connection is dead after that
	linkHalf                   // the same in one direction
	linkSlow                   // the agent's socket is read slowly: the broker drops what is too much
	narrowFlip                 // the narrowband path goes down or comes back
	gatewayCopy                // somebody copies the gateway's log
	gatewayRestore             // the gateway dies, and starts on that copy
	agentCopy                  // somebody copies an agent's card
	agentRestore               // power cut, and the card is replaced by that copy
	agentLies                  // an agent says hello with numbers that nobody gave it
	secondBoard                // another board with the same node id, for a while
	faultKinds                 // those above are faults, those below are operations

	opSubmit
	opRepeat  // a known task again, with the same content
	opChange  // a known task id with other content
	opCancel  // a whole task
	opCancel1 // one instruction
	opGarbage // a document that cannot be read
	opRetry   // an instruction of the operator queue, once more
	opResolve // an instruction of the operator queue, settled by hand
	opQuiet   // a quiet period for a while
	opDead    // a dead letter is forgotten

	agentReload // the pin map of a board is replaced by one in which two names have changed their lines

	handLocal // somebody throws the LOCAL switch of a board, for a while
	handAway  // the cables of a board are pulled, for a while
	boardBusy // the owner of a board's pins is busy, for a while
	cardClone // a copy of a board with the same memory says hello once
)

var kindNames = map[kind]string{
	gatewayCut: "gateway-cut", gatewayFail: "gateway-fail", gatewayFull: "gateway-full", gatewaySlow: "gateway-slow",
	gatewayHang: "gateway-hang", gatewayClock: "gateway-clock", brokerRestart: "broker-restart", agentCut: "agent-cut", agentKill: "agent-kill",
	agentStop: "agent-stop", agentWipe: "agent-wipe", agentFail: "agent-fail", agentFull: "agent-full",
	agentSlow: "agent-slow", agentClock: "agent-clock", agentTight: "agent-tight", agentHang: "agent-hang", agentRot: "agent-rot", linkCut: "link-cut", linkHold: "link-hold",
	linkHole: "link-hole", linkHalf: "link-half", linkSlow: "link-slow", narrowFlip: "narrow-flip",
	gatewayCopy: "gateway-copy", gatewayRestore: "gateway-restore", agentCopy: "agent-copy", agentRestore: "agent-restore",
	secondBoard: "second-board", agentLies: "lies",
	opSubmit: "submit", opRepeat: "repeat", opChange: "change", opCancel: "cancel", opCancel1: "cancel-one", opGarbage: "garbage",
	opRetry: "retry", opResolve: "resolve", opQuiet: "quiet", opDead: "dead-drop", agentReload: "reload", handLocal: "local", handAway: "away", boardBusy: "busy", cardClone: "clone",
}

func (k kind) String() string { return kindNames[k] }

// Profile says which faults a site meets, and how often.
type Profile struct {
	Name string
	// Loss and Repeat bound the share of messages that are lost and that arrive
	// twice on the primary path; the seed draws from 0, or from LeastLoss, to them.
	LeastLoss, Loss, Repeat float64
	// NarrowLoss is the same for the narrowband path.
	NarrowLoss float64
	// NarrowTrip bounds how long a frame takes on the narrowband path, in ms.
	NarrowTrip int
	// BadClocks lets machines start with clocks that are off or not set.
	BadClocks bool
	// Memory is the share of the sites that lose or double a memory; see story.
	Memory float64
	// Hands is the share of the sites at which people throw LOCAL switches and pull
	// cables.
	Hands float64
	// Scenes is the share of the boards that have a scene.
	Scenes float64
	// rare are other scenes than those of the profile scenes.
	rare bool
	// Hangs is the share of the sites at which the disk of the gateway hangs.
	Hangs   float64
	weights []weight
	total   int
}

type weight struct {
	kind  kind
	share int
}

// Profiles are the known ones, in order of unkindness.
func Profiles() []Profile {
	links := []weight{{linkCut, 6}, {linkHold, 3}, {linkHole, 3}, {linkHalf, 3}, {linkSlow, 2}, {narrowFlip, 2}, {brokerRestart, 2}}
	power := []weight{{gatewayCut, 3}, {agentCut, 4}, {agentKill, 3}, {agentStop, 2}, {agentWipe, 1}}
	clocks := []weight{{gatewayClock, 2}, {agentClock, 4}}
	disks := []weight{{gatewayFail, 2}, {gatewayFull, 1}, {gatewaySlow, 1}, {agentFail, 3}, {agentFull, 2}, {agentSlow, 2}, {agentTight, 2}, {agentHang, 2}, {agentRot, 1}}
	list := []Profile{
		{Name: "calm"},
		{Name: "lossy", LeastLoss: 0.3, Loss: 0.3, Repeat: 0.1, NarrowLoss: 0.3},
		{Name: "flapping", Hangs: 0.2, Hands: 0.5, Repeat: 0.05, NarrowLoss: 0.1, weights: links},
		{Name: "power", Hangs: 0.3, Hands: 0.5, NarrowLoss: 0.1, weights: power},
		{Name: "clock", Hands: 0.5, BadClocks: true, weights: slices.Concat(clocks, []weight{{agentKill, 2}, {linkCut, 1}, {linkHold, 1}, {gatewayCut, 1}})},
		{Name: "disk", Hangs: 0.6, Hands: 0.5, weights: slices.Concat(disks, []weight{{gatewayCut, 1}, {agentCut, 1}})},
		{Name: "blackhole", NarrowTrip: 150, weights: []weight{{linkHole, 2}, {linkHalf, 1}}},
		{Name: "scenes", Loss: 0.1, NarrowTrip: 150, Scenes: 1},
		{Name: "rare", NarrowTrip: 150, Scenes: 1, rare: true},
		{Name: "restore", Hangs: 0.15, Hands: 0.5, Loss: 0.1, Repeat: 0.05, NarrowLoss: 0.1, Memory: 1, weights: slices.Concat(power, []weight{{linkCut, 3}, {linkHold, 2}, {linkHole, 1}, {narrowFlip, 1}})},
		{Name: "all", Hangs: 0.3, Hands: 0.5, Loss: 0.3, Repeat: 0.1, NarrowLoss: 0.3, BadClocks: true, Memory: 0.2, weights: slices.Concat(links, power, clocks, disks)},
	}
	for k := range list {
		if list[k].NarrowTrip == 0 {
			list[k].NarrowTrip = 2_000
		}
		for _, w := range list[k].weights {
			list[k].total += w.share
		}
	}
	return list
}

// profileOf finds a profile by its name.
func profileOf(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("profile %q is not known; there are %s", name, strings.Join(names, ", "))
}

// draw chooses a fault; the profile must have some.
func (p Profile) draw(n int) kind {
	for _, w := range p.weights {
		if n < w.share {
			return w.kind
		}
		n -= w.share
	}
	panic("bug: a fault beyond the weights")
}

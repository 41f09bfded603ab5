// Package talk is what the host and the emulated board say to each other: one JSON
// document a line over a virtio serial port. The host asks, the board answers with
// the number of the question; a question that takes long delays no other.
package talk

import "time"

// Port is the name of the virtio serial port.
const Port = "apollo.lab"

// Ready is the line that the board's init writes on the console when it listens.
const Ready = "lab: ready"

// MaxLine bounds a question and an answer.
const MaxLine = 16 << 20

// What can be asked.
const (
	Start  = "start"  // a program: Name, Args (the first is the program), Env, User
	Signal = "signal" // to the program Name: Signal
	Wait   = "wait"   // for the end of the program Name, at most Limit
	Unit   = "unit"   // supervise Name as the unit file Data says
	Stop   = "stop"   // stop the unit Name
	Reload = "reload" // the unit Name
	Status = "status" // of the unit Name: PID, Starts, how it ended last, its state in Data
	Read   = "read"   // the file Path
	Write  = "write"  // Data into the file Path, with Mode, for User; whole and synced
	Remove = "remove" // the file or directory Path, with what is in it
	Sync   = "sync"   // everything to disk
	Hold   = "hold"   // take line Line of the chip Path as consumer Name, until Release
	Free   = "free"   // give back the line that Name holds
)

// Request is a question.
type Request struct {
	ID     uint64        `json:"id"`
	Do     string        `json:"do"`
	Name   string        `json:"name,omitempty"`
	Args   []string      `json:"args,omitempty"`
	Env    []string      `json:"env,omitempty"`
	User   string        `json:"user,omitempty"`
	Path   string        `json:"path,omitempty"`
	Data   []byte        `json:"data,omitempty"`
	Mode   uint32        `json:"mode,omitempty"`
	Signal int           `json:"signal,omitempty"`
	Line   uint32        `json:"line,omitempty"`
	Limit  time.Duration `json:"limit,omitempty"`
}

// Reply is an answer.
type Reply struct {
	ID     uint64 `json:"id"`
	Error  string `json:"error,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Exit   int    `json:"exit,omitempty"`   // exit code of a program that has ended
	Killed int    `json:"killed,omitempty"` // the signal that ended it, 0 for none
	Starts int    `json:"starts,omitempty"` // how often a unit's program was started
	Data   []byte `json:"data,omitempty"`
}

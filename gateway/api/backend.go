package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
)

// ErrStopping is returned by a Backend that has certainly not taken the input,
// because it is shutting down.
var ErrStopping = errors.New("the gateway is shutting down")

// Backend is the running gateway, as the HTTP door sees it.
type Backend interface {
	Submitter
	Operator
	Watcher
}

// Submitter takes tasks in and stops them. Both methods return after the commit.
// An error is ErrStopping, or leaves open whether the input was taken (the context
// ended, the commit was interrupted).
type Submitter interface {
	Submit(ctx context.Context, spec engine.Spec, src engine.Source) (engine.Reply, error)
	Cancel(ctx context.Context, c engine.Cancel) (engine.Reply, error)
}

// Operator does what an operator does by hand.
type Operator interface {
	// Operate returns after the commit; its errors are those of a Submitter.
	Operate(ctx context.Context, o engine.Operate) (engine.Reply, error)
	// Quiet returns the quiet period as it stands.
	Quiet(ctx context.Context) (engine.Quiet, error)
	// Alarms returns the conditions that stand, by kind and subject, and the latest
	// incidents, the oldest first.
	Alarms(ctx context.Context) (standing, recent []engine.Alarm, err error)
}

// Watcher says how the site is doing at the moment.
type Watcher interface {
	// Nodes returns every node that has ever connected, by name.
	Nodes(ctx context.Context) ([]engine.NodeState, error)
	// Owed returns the ways to safe that nobody has confirmed yet, by node and pin.
	Owed(ctx context.Context) ([]engine.Owed, error)
	// Waits says of unfinished instructions, by sequence, what they wait for; those that
	// wait for no other are left out.
	Waits(ctx context.Context, seqs []uint64) (map[uint64]string, error)
	// Health does not block.
	Health() Health
}

// Reader reads what is durable.
type Reader interface {
	TaskReader
	OperatorReader
	DeadLetterReader
}

// TaskReader reads tasks and their history.
type TaskReader interface {
	// Task returns a task by its id; false when there is none.
	Task(ctx context.Context, id string) (engine.TaskState, bool, error)
	// Tasks returns at most limit tasks, the newest first. before is the First of
	// the last task of the page before, 0 for the newest; next is what to pass as
	// before for the following page, 0 when there is none.
	Tasks(ctx context.Context, before uint64, limit int) (list []engine.TaskState, next uint64, err error)
	// Timeline returns an instruction with its entries, the oldest first.
	Timeline(ctx context.Context, seq uint64) (engine.Instruction, []engine.Entry, bool, error)
}

// OperatorReader reads what waits for operators, and what they did.
type OperatorReader interface {
	// Queue returns at most limit instructions that wait for an operator, with
	// sequences above after, in order; next is what to pass as after for the
	// following page, 0 when there is none.
	Queue(ctx context.Context, after uint64, limit int) (list []engine.Instruction, next uint64, err error)
	// Audit returns at most limit entries of the audit trail with numbers above
	// after, in order.
	Audit(ctx context.Context, after uint64, limit int) ([]engine.Audit, error)
}

// DeadLetterReader reads what could not be processed.
type DeadLetterReader interface {
	// DeadLetters returns at most limit dead letters with a number above after, in
	// order of number.
	DeadLetters(ctx context.Context, after uint64, limit int) ([]engine.DeadLetter, error)
	// DeadLetter returns one; nil when there is none.
	DeadLetter(ctx context.Context, number uint64) (*engine.DeadLetter, error)
}

// Health is how the gateway is doing.
type Health struct {
	// Ready says that tasks are taken. When it is false, /healthz answers 503.
	Ready   bool
	Version string
	Uptime  time.Duration
	Epoch   uint64 // names the log
	// Open is the number of unfinished instructions.
	Open      int
	Listeners []Listener
	// Degraded lists, for people, what does not work as it should; empty is well.
	Degraded []string
}

// Listener is an address on which the gateway listens.
type Listener struct {
	Name string `json:"name"` // mqtt, narrowband, http
	Addr string `json:"addr"` // host:port
}

// Options are the settings of the handler. The zero value is a door that is open
// to the machine itself.
type Options struct {
	// Site is the site's name, which stands in instruction ids. Default "default".
	Site string
	// Users checks a name and password of HTTP basic authentication. nil means
	// that no credentials are asked for; then callers may declare who they are, see
	// the package comment. It may take as long as a password hash needs.
	Users func(name, password string) bool
	// AllowRemote admits callers from other machines.
	AllowRemote bool
	// Hosts are further names by which clients may address the gateway, without
	// port.
	Hosts []string
	// Metrics serves /metrics; nil leaves the route out.
	Metrics http.Handler
	// Log gets a line for every change that was asked for and every refusal. nil
	// discards.
	Log *slog.Logger
	// Now is the clock, for the sanity of absolute times in documents. Default
	// time.Now.
	Now func() time.Time
	// CallTimeout bounds one call of Backend or Reader. Default 10 s: a commit on
	// a worn SD card can take seconds.
	CallTimeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.Site == "" {
		o.Site = "default"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = 10 * time.Second
	}
	return o
}

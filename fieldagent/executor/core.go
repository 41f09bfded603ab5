package executor

import (
	"errors"
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Core is the agent's decisions and all the state they need. It belongs to one
// goroutine.
type Core struct {
	cfg         Config
	incarnation uint64
	clock       clock
	table       table
	ahead       []cancelAhead

	queue     []*attempt // by arrival
	arrivals  uint64
	running   []*attempt // by start
	lingering []*attempt // given up, but their work has not ended

	events     []*wire.Event // through+1 to next-1
	eventBytes int           // of their payloads and sentences, about
	through    uint64        // the gateway has the events up to this one
	journalled uint64        // the journal says so up to this one
	next       uint64        // number of the next event
	unmet      uint64        // no process has sent this event or a later one, as far as the journal knows
	sent       uint64        // highest event sent since the last going back
	roundAt    time.Duration // when sending began at through+1, or the last progress
	resendIn   time.Duration // after it, what is under way is sent again
	again      bool          // the gateway seems to need it sooner
	gapAt      time.Duration // when the gap after gapThrough was last answered
	gapThrough uint64
	gapSeen    bool

	hedged       []*attempt // with an event that is not acknowledged, by their arming
	narrowband   bool       // that connection is up
	narrowbandAt time.Duration

	leases []*lease // whose ends have not been told, by their beginning

	marks    map[wire.LineKey]uint64 // highest number begun; 0 is the board
	holds    map[wire.LineKey]uint64 // held at the safe level, by the number of who held it
	released map[wire.LineKey]uint64 // the newest release; 0 is the board
	kept     []keep
	pulses   []Pulse               // that the end of the agent has cut
	unsaid   map[wire.Token]uint64 // what is driven without an attempt of its own, and how it went is to be told: its instruction
	levels   []byte                // of the pins of the hello, packed

	session session
	stop    stopping

	contact time.Duration // when the gateway was last heard or could be
	alone   bool          // it has been gone for longer than the autonomy window
	local   bool          // the LOCAL switch is on
	foreign []wire.Foreign

	now Now
	out Output
}

// cancelAhead is a narrowband cancel of an attempt that has not arrived.
type cancelAhead struct {
	seq     uint64
	attempt uint8
	at      time.Duration // Mono of its coming
}

// Errors of New about a journal, to branch on.
var (
	// ErrNewer means that a newer agent wrote the journal.
	ErrNewer = errors.New("written by a newer agent; start that one")
	// ErrNonsense means that the journal contradicts itself: it is as good as damaged.
	ErrNonsense = errors.New("the journal does not make sense")
)

// New makes a core from the records of the journal, in order; none for a new
// journal. The Output is performed like any other. An error is about the
// configuration, or an ErrNewer or ErrNonsense about the journal.
func New(cfg Config, records [][]byte, now Now) (*Core, Output, error) {
	if err := cfg.fill(); err != nil {
		return nil, Output{}, fmt.Errorf("agent configuration: %w", err)
	}
	c := &Core{cfg: cfg, table: newTable(cfg.MaxKnown), next: firstEvent, unmet: firstEvent, resendIn: ResendAfter, now: now,
		marks: map[wire.LineKey]uint64{}, holds: map[wire.LineKey]uint64{}, released: map[wire.LineKey]uint64{},
		unsaid: map[wire.Token]uint64{}}
	c.session.started, c.contact, c.local = now.Mono, now.Mono, cfg.Local
	for i, r := range records {
		if err := c.replay(i, r); err != nil {
			if !errors.Is(err, ErrNewer) {
				err = fmt.Errorf("%w: %w", ErrNonsense, err)
			}
			return nil, Output{}, fmt.Errorf("journal record %d: %w", i+1, err)
		}
	}
	c.out = Output{}
	if len(records) == 0 {
		c.incarnation = cfg.Incarnation
		c.record(c.head(c.next))
	}
	c.table.sortEnds()
	c.journalled = c.through
	c.sent = c.through
	c.resumeHedges()
	c.hearAgain()
	for _, a := range c.running {
		if a.pulse != nil && !mutant.On(mutant.PulseLeft) {
			c.pulses = append(c.pulses, *a.pulse)
		}
	}
	for len(c.running) > 0 {
		if mutant.On(mutant.InterruptedIsOK) {
			c.end(c.running[0], Result{Code: wire.CodeOK})
			continue
		}
		a := c.running[0]
		r := c.afterRestart(a)
		if p := a.pulse; p != nil && r.Code != wire.CodeOK {
			r.Ended = &Ended{Pin: p.Pin, Why: wire.LeaseRestart, Level: &p.Off}
			if cfg.Local {
				r.Ended.Level = nil // it is driven when the switch is off
			}
		}
		c.end(a, r)
	}
	c.closeAllLeases()
	c.recheckQueue()
	for _, a := range c.queue {
		if cfg.Local {
			a.throws = foundOn
		}
	}
	return c, c.finish(), nil
}

// Sense reports whether New can make sense of a journal: nil, an ErrNewer or an
// ErrNonsense. What makes the core find a bug in itself makes no sense either: the
// board would stay away for ever.
func Sense(records [][]byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrNonsense, r)
		}
	}()
	_, _, err = New(Config{Incarnation: 1, Check: func(string, wire.RawMap) Verdict { return Verdict{} }}, records, Now{})
	return err
}

func (cfg *Config) fill() error {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&cfg.Workers, DefaultWorkers)
	def(&cfg.MaxQueue, DefaultMaxQueue)
	def(&cfg.MaxKnown, DefaultMaxKnown)
	if cfg.DefaultTimeout == 0 {
		cfg.DefaultTimeout = DefaultTimeout
	}
	var errs []error
	if cfg.Incarnation == 0 {
		errs = append(errs, errors.New("no incarnation"))
	}
	if cfg.Check == nil {
		errs = append(errs, errors.New("no check"))
	}
	if cfg.Workers < 1 || cfg.Workers > MaxWorkers {
		errs = append(errs, fmt.Errorf("%d workers, allowed are 1 to %d", cfg.Workers, MaxWorkers))
	}
	if cfg.Autonomy < 0 {
		errs = append(errs, fmt.Errorf("an autonomy window of %v", cfg.Autonomy))
	}
	if cfg.MaxQueue < 1 || cfg.MaxKnown < cfg.MaxQueue || cfg.DefaultTimeout < 0 {
		errs = append(errs, fmt.Errorf("limits make no sense: queue %d, known %d, timeout %v", cfg.MaxQueue, cfg.MaxKnown, cfg.DefaultTimeout))
	}
	return errors.Join(errs...)
}

// Step takes one input.
func (c *Core) Step(now Now, in Input) Output {
	if now.Mono < c.now.Mono {
		now.Mono = c.now.Mono
	}
	c.now, c.out = now, Output{}
	c.lookAtClock()
	c.mindAutonomy() // before a connection that has lasted is gone
	switch in := in.(type) {
	case Connected:
		c.connected(in.Session)
	case Disconnected:
		c.session.up, c.session.welcomed = false, false
	case NarrowbandUp:
		c.narrowband = true
	case NarrowbandDown:
		c.narrowband = false
	case Received:
		c.received(in.Message)
	case ReceivedCompact:
		c.receivedCompact(in.Frame)
	case Finished:
		if in.Again {
			c.drivenAgain(in)
			break
		}
		c.finished(in)
	case Unstarted:
		c.unstarted(in)
	case Progressed:
		c.progressed(in)
	case LeaseEnded:
		c.leaseEnded(in)
	case Pins:
		c.newPins(in)
	case Levels:
		c.levels = in.Levels
	case Hand:
		c.hand(in)
	case Tick:
		c.giveUpOverdue()
	case Stop:
		c.stopNow(in.Reason)
	default:
		panic(fmt.Sprintf("bug: input %T", in))
	}
	return c.finish()
}

func (c *Core) received(m wire.Message) {
	if _, ok := m.(*wire.Welcome); !ok && !c.session.welcomed {
		// It was sent to whoever was connected before: to this agent with another
		// memory, or to another board under its name. What is meant for this one
		// comes after the welcome. Only to stop what is known here is right in any
		// case: another board may be running the rest.
		if m, ok := m.(*wire.Cancel); ok && (c.table.known[m.Token] != nil || mutant.On(mutant.StrangerCancels)) {
			c.cancel(m)
			return
		}
		// And what is towards safe is right for any board, once the gateway has answered
		// this session: it may refuse this one as the second of its name (B28).
		if m, ok := m.(*wire.Instruction); ok && c.session.answered {
			c.driveUnwelcome(m)
			return
		}
		c.note(LevelDebug, "message ignored", fmt.Sprintf("%T before the welcome", m))
		return
	}
	switch m := m.(type) {
	case *wire.Instruction:
		if c.clock.heard(c.now, m.SentAt) {
			c.askTime()
		}
		c.acknowledged(m.Through, false)
		c.deliver(m)
	case *wire.Cancel:
		c.acknowledged(m.Through, false)
		c.cancel(m)
	case *wire.Release:
		c.acknowledged(m.Through, false)
		c.unkeep(m.Seq)
	case *wire.Query:
		c.acknowledged(m.Through, false)
		c.query(m)
	case *wire.Welcome:
		c.welcome(m)
	case *wire.EventAck:
		c.acknowledged(m.Through, m.Gap)
	default:
		c.note(LevelWarn, "message in the wrong direction", fmt.Sprintf("%T", m))
	}
}

func (c *Core) receivedCompact(frame any) {
	switch f := frame.(type) {
	case wire.CompactQuery:
		c.queryCompact(f)
	case wire.CompactCancel:
		c.cancelCompact(f)
	case wire.CompactSafe:
		// The owner of the pins has it. It stands for nothing here: nobody has proved
		// who sent it, so it ends no work and raises no mark.
	default:
		c.note(LevelWarn, "compact frame in the wrong direction", fmt.Sprintf("%T", f))
	}
}

// finish does what follows from the time and from what the input changed, and
// closes the Output.
func (c *Core) finish() Output {
	c.mindAutonomy()
	c.refuseWaiting()
	c.lapseKeeps()
	c.startWaitingSafes()
	c.startReady()
	c.mindDoubt()
	c.tellSlowWork()
	c.goOnStopping()
	c.keepSession()
	c.sendEvents()
	c.sayGoodbye()
	c.sendHedges()
	if len(c.out.Records) > 0 && c.through > c.journalled {
		c.record(throughRecord{kindThrough, c.through})
		c.journalled = c.through
	}
	c.out.Contact = c.reached() && c.now.Away == 0
	c.out.Deadline = c.deadline()
	return c.out
}

// deadline is when something will be due if no input comes before.
func (c *Core) deadline() time.Duration {
	d := NoDeadline
	at := func(t time.Duration) { d = min(d, max(t, c.now.Mono)) }
	c.queueDeadlines(at)
	c.offerDeadline(at)
	c.keepDeadlines(at)
	for _, a := range c.running {
		if !a.startTold {
			at(a.startedMono + ShortWork)
		}
		at(a.startedMono + a.timeout + OverdueAfter)
	}
	if c.session.up {
		at(c.session.nextAt)
	}
	if c.session.welcomed {
		c.sessionDeadlines(at)
	}
	if c.session.welcomed && c.sent > c.through {
		at(c.resendAt())
	}
	if c.narrowband {
		c.hedgeDeadlines(at)
	}
	c.stopDeadlines(at)
	c.autonomyDeadline(at)
	return d
}

func (c *Core) note(l Level, text, detail string) {
	c.out.Notes = append(c.out.Notes, Note{Level: l, Text: text, Detail: detail})
}

func (c *Core) noteOf(l Level, a *attempt, text, detail string) {
	c.out.Notes = append(c.out.Notes, Note{Level: l, Text: text, Detail: detail,
		Seq: a.seq, Token: a.token, Attempt: a.attempt, Trace: a.trace, Intent: a.intent, Code: a.code})
}

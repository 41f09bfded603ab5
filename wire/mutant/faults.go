// Package mutant plants faults into the product, to prove that the simulator
// finds them. Without the build tag mutants every question is answered with no by
// a constant, and the compiler leaves the planted lines out.
//
// A fault is one line where the right thing is decided:
//
//	if i.Token.IsZero() || !mutant.On(mutant.TokenReused) {
//
// firmware-sim/explore plays its seeds with each of them and demands that every
// one is caught.
package mutant

// Fault is one planted fault.
type Fault uint8

// The faults. None is the product as it is.
const (
	None                Fault = iota
	EffectsFirst              // the gateway: effects leave before the commit
	TokenReused               // the gateway: a retry keeps the token of the attempt before
	StaleAccepted             // the gateway: a report is believed whatever its token
	IndexLost                 // the gateway: a task is not marked unfinished in the log
	CursorLost                // the gateway: an event's number is not written with what it caused
	VersionStuck              // the gateway: a change does not raise the version
	RetryTimerLost            // the gateway: after a restart nobody waits for a retry
	TableIgnored              // the gateway: a result is a jump, and the transition table is not asked
	UnknownIsSuccess          // the gateway: an unknown outcome is taken for success
	GapAccepted               // the gateway: an event is taken although one before it is missing
	TaskIndexLost             // the gateway: a task cannot be found by its id
	PublishRepeated           // the gateway: a retransmitted publish becomes another task
	UnknownRepeated           // the gateway: what must not be done twice is repeated when its outcome is unknown
	CancelHides               // the gateway: an unknown outcome becomes CANCELLED
	ActsFirst                 // the agent: it acts before its journal is on disk
	LinesIgnored              // the agent: two executions hold the same pin
	DedupeAfterRun            // the agent: a start is not written down before it
	LateStarts                // the agent: not_after is not looked at
	ForgetsOnSend             // the agent: an event is forgotten when it is sent
	InterruptedIsOK           // the agent: what a crash interrupted is reported as done
	ResultUnwritten           // the agent: a result is told without being written down
	RestoreUnseen             // the gateway: that its log is an older copy is not noticed
	BoardBelieved             // the gateway: another board is believed while the one that the log knows is heard
	CopyBelieved              // the agent: an older copy of its journal is taken for the journal
	QueueUnmet                // the agent: what waits in the journal starts before the first welcome
	StrangerCancels           // the agent: not welcomed, it answers a cancel of what it does not know
	LeaseForgotten            // the agent: the leases that a restart has ended are not told
	LeaseUnreplaced           // the pins: a later command does not replace a lease, and is ended with it
	EarlyEndLost              // the agent: an end of a lease that comes before the result is forgotten
	LeaseRepeated             // the gateway: "on for ten minutes" begins anew when its outcome is unknown
	LocalOnArrival            // the agent: the LOCAL switch is looked at when something arrives, not when it starts
	WatchTakesWorker          // the agent: a watch takes a worker from what actuates
	OffWaitsForWorker         // the agent: what is towards safe waits for a worker and for its line
	OffWaitsForJournal        // the agent: what is towards safe begins when its record is on disk
	OffWaitsForRoom           // the agent: what is towards safe is not taken when there is no room
	WithdrawalUnwritten       // the agent: "superseded" is told without being written down
	RefusalSpares             // the agent: something towards safe that is refused or expired lets the older work live
	MarkForgotten             // the agent: what has begun on a line is forgotten with the process
	HoldForgotten             // the agent: a hold at the safe level is forgotten with the process
	EpochIgnored              // the agent: work of another log of the gateway begins
	KeepIgnored               // the agent: a line is not kept for the retry of an older instruction
	NarrowbandFirst           // the agent: it answers over narrowband before its journal is on disk
	QueueUnoffered            // the agent: what waits in the journal begins although this session has not offered it
	PriorityOvertakes         // the gateway: a newer command of a line goes before an older one
	SafeAtCapacity            // the gateway: what is towards safe has no reserve and no precedence at submission
	WithdrawnOffered          // the gateway: what something towards safe stands for is offered again
	NumberTwice               // the gateway: reserved numbers are given out again after a restart
	SupersededBelieved        // the gateway: an agent's "superseded" is believed blindly
	WindowForgets             // the gateway: what is received and waits in the agent takes no place
	HoldLost                  // the gateway: a restart forgets what gpio.safe holds
	HelloForAll               // the gateway: what one node's hello says counts for all
	TwinUnseen                // the gateway: two boards of one name and one journal are not noticed
	CompactCancelUnsent       // the gateway: a cancel is not sent over narrowband
	UnknownUnasked            // the gateway: an unknown outcome is tried again without a yes
	NumberUnchecked           // the pins: the owner does not look at the number of a drive
	LossIsEvent               // the pins: the loss of the gateway is done once, and does not last
	LossIgnored               // the pins: nothing falls when the gateway is lost
	PulseEndBlind             // the pins: a pulse that is cut short ends at its other level
	ReloadForgets             // the pins: a reload forgets what runs at a line whose name has changed
	HoldUnasked               // the pins: what gpio.safe holds may be moved
	LateAtPin                 // the board: nobody looks at the time limit right before the pin
	WindowIgnored             // the agent: new work begins although the gateway is gone for longer than the autonomy window
	RefusedIsContact          // the agent: a gateway that refuses it counts as heard
	DoubtIsExpired            // the agent: what may be late is refused as expired
	EasyBusy                  // the agent: every other command is refused as busy at its first attempt
	AttemptsOverlap           // the agent: two attempts of one instruction run at once
	PlainUntold               // the agent: that a level without a time was ended by the board is told nobody
	ContactStale              // the agent: words that waited while it hung count as contact now
	LeaseByName               // the agent: a lease is known by the name of its pin, whatever line that means now
	OwnersActRetried          // the gateway: what the board has ended by itself is tried again
	UnknownCancelled          // the gateway: what is withdrawn after an attempt of unknown outcome becomes CANCELLED
	FrameEndsAttempt          // the gateway: an answer to a safe frame ends the first attempt
	KeptForever               // the gateway: a line that is kept for a retry which will not come is not let go
	NoBackoff                 // the gateway: a retry does not wait
	QuietIgnored              // the gateway: a quiet period holds nothing back
	DrainBurst                // the gateway: a backlog goes out in one burst
	NumbersUnbounded          // the gateway: the word of an agent moves the numbers without a bound
	LimitUnsent               // the gateway: the time limit is not sent along
	RetriesUncounted          // the gateway: retries are not counted
	AckAhead                  // the gateway: it acknowledges one event more than it has
	CancelUnasked             // the gateway: the wish to cancel is noted and sent to nobody
	OtherAttempt              // the gateway: a compact ack of another attempt is believed
	ExpiryIgnored             // the gateway: what is too late is handed out all the same
	AuditUnlinked             // the gateway: an audit entry does not name the one before
	QueueStale                // the gateway: what has left the operator queue stays listed
	OperatorForgotten         // the gateway: what is given up does not enter the operator queue
	ConflictTaken             // the gateway: a known task id with other content is taken for the same task
	ExpiredEarly              // the agent: it refuses as expired what has an hour left
	UnstartedUnwritten        // the agent: that a start was taken back is not written down
	ForgetUnmarked            // the agent: it forgets a token and leaves no mark
	CursorOff                 // the agent: an acknowledgement lets go of one event more
	LineUnlocked              // the agent: work that does not end lets go of its lines when it is given up
	AheadForgotten            // the agent: the cancel of what has not come is forgotten
	PulseLeft                 // the agent: a pulse that a crash has cut is left at its level
	ErrorSwallowed            // the agent: an error of its journal is not looked at
	LeaseTimerUnarmed         // the pins: nobody waits for the end of a lease
	LeaseHalf                 // the pins: a lease ends after half of its time
	LevelSwapped              // the pins: the end of a lease is told with the other level
	HeardIgnored              // the pins: the word of the gateway does not put the loss off
	OffWaitsForLog            // the gateway: what is towards safe waits for its record
	UrgentUnreserved          // the gateway: what leaves before its record has numbers that nobody has reserved
	LocalSpares               // the gateway: what was submitted before it heard that LOCAL was thrown goes on
	LeaseFromBegin            // the gateway: the lease of a renewal is counted from its begin alone
	faults
)

var names = [faults]string{
	None:                "none",
	EffectsFirst:        "effects_first",
	TokenReused:         "token_reused",
	StaleAccepted:       "stale_accepted",
	IndexLost:           "index_lost",
	CursorLost:          "cursor_lost",
	VersionStuck:        "version_stuck",
	RetryTimerLost:      "retry_timer_lost",
	TableIgnored:        "table_ignored",
	UnknownIsSuccess:    "unknown_is_success",
	GapAccepted:         "gap_accepted",
	TaskIndexLost:       "task_index_lost",
	PublishRepeated:     "publish_repeated",
	UnknownRepeated:     "unknown_repeated",
	CancelHides:         "cancel_hides",
	ActsFirst:           "acts_first",
	LinesIgnored:        "lines_ignored",
	DedupeAfterRun:      "dedupe_after_run",
	LateStarts:          "late_starts",
	ForgetsOnSend:       "forgets_on_send",
	InterruptedIsOK:     "interrupted_is_ok",
	ResultUnwritten:     "result_unwritten",
	RestoreUnseen:       "restore_unseen",
	BoardBelieved:       "board_believed",
	CopyBelieved:        "copy_believed",
	QueueUnmet:          "queue_unmet",
	StrangerCancels:     "stranger_cancels",
	LeaseForgotten:      "lease_forgotten",
	LeaseUnreplaced:     "lease_unreplaced",
	EarlyEndLost:        "early_end_lost",
	LeaseRepeated:       "lease_repeated",
	LocalOnArrival:      "local_on_arrival",
	WatchTakesWorker:    "watch_takes_worker",
	OffWaitsForWorker:   "off_waits_for_worker",
	OffWaitsForJournal:  "off_waits_for_journal",
	OffWaitsForRoom:     "off_waits_for_room",
	WithdrawalUnwritten: "withdrawal_unwritten",
	RefusalSpares:       "refusal_spares",
	MarkForgotten:       "mark_forgotten",
	HoldForgotten:       "hold_forgotten",
	EpochIgnored:        "epoch_ignored",
	KeepIgnored:         "keep_ignored",
	NarrowbandFirst:     "narrowband_first",
	QueueUnoffered:      "queue_unoffered",
	PriorityOvertakes:   "priority_overtakes",
	SafeAtCapacity:      "safe_at_capacity",
	WithdrawnOffered:    "withdrawn_offered",
	NumberTwice:         "number_twice",
	SupersededBelieved:  "superseded_believed",
	WindowForgets:       "window_forgets",
	HoldLost:            "hold_lost",
	HelloForAll:         "hello_for_all",
	TwinUnseen:          "twin_unseen",
	CompactCancelUnsent: "compact_cancel_unsent",
	UnknownUnasked:      "unknown_unasked",
	NumberUnchecked:     "number_unchecked",
	LossIsEvent:         "loss_is_event",
	LossIgnored:         "loss_ignored",
	PulseEndBlind:       "pulse_end_blind",
	ReloadForgets:       "reload_forgets",
	HoldUnasked:         "hold_unasked",
	LateAtPin:           "late_at_pin",
	WindowIgnored:       "window_ignored",
	RefusedIsContact:    "refused_is_contact",
	DoubtIsExpired:      "doubt_is_expired",
	EasyBusy:            "easy_busy",
	AttemptsOverlap:     "attempts_overlap",
	PlainUntold:         "plain_untold",
	ContactStale:        "contact_stale",
	LeaseByName:         "lease_by_name",
	OwnersActRetried:    "owners_act_retried",
	UnknownCancelled:    "unknown_cancelled",
	FrameEndsAttempt:    "frame_ends_attempt",
	KeptForever:         "kept_forever",
	NoBackoff:           "no_backoff",
	QuietIgnored:        "quiet_ignored",
	DrainBurst:          "drain_burst",
	NumbersUnbounded:    "numbers_unbounded",
	LimitUnsent:         "limit_unsent",
	RetriesUncounted:    "retries_uncounted",
	AckAhead:            "ack_ahead",
	CancelUnasked:       "cancel_unasked",
	OtherAttempt:        "other_attempt",
	ExpiryIgnored:       "expiry_ignored",
	AuditUnlinked:       "audit_unlinked",
	QueueStale:          "queue_stale",
	OperatorForgotten:   "operator_forgotten",
	ConflictTaken:       "conflict_taken",
	ExpiredEarly:        "expired_early",
	UnstartedUnwritten:  "unstarted_unwritten",
	ForgetUnmarked:      "forget_unmarked",
	CursorOff:           "cursor_off",
	LineUnlocked:        "line_unlocked",
	AheadForgotten:      "ahead_forgotten",
	PulseLeft:           "pulse_left",
	ErrorSwallowed:      "error_swallowed",
	LeaseTimerUnarmed:   "lease_timer_unarmed",
	LeaseHalf:           "lease_half",
	LevelSwapped:        "level_swapped",
	HeardIgnored:        "heard_ignored",
	OffWaitsForLog:      "off_waits_for_log",
	UrgentUnreserved:    "urgent_unreserved",
	LocalSpares:         "local_spares",
	LeaseFromBegin:      "lease_from_begin",
}

// String is the fault's name.
func (f Fault) String() string {
	if f < faults {
		return names[f]
	}
	return "no such fault"
}

// All returns every fault but None.
func All() []Fault {
	list := make([]Fault, 0, faults-1)
	for f := None + 1; f < faults; f++ {
		list = append(list, f)
	}
	return list
}

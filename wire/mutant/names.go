package mutant

// The faults. Each name is the end of its build tag.
const (
	EffectsBeforeCommit  = "effects_before_commit"  // the gateway sends and answers before its log is on disk
	StartBeforeJournal   = "start_before_journal"   // the agent acts before its journal is on disk
	DedupeAfterExecution = "dedupe_after_execution" // the agent remembers a token only when it has been executed
	TokenReusedOnRetry   = "token_reused_on_retry"  // a new attempt carries the token of the one before
	StaleTokenAccepted   = "stale_token_accepted"   // a report of an older attempt is taken for the current one's
	ExpiryOnlyAtGateway  = "expiry_only_at_gateway" // the agent does not look at not_after
	OpenIndexLost        = "open_index_lost"        // the log does not mark what is unfinished
	TaskIndexLost        = "task_index_lost"        // the log does not index task ids
	EventDeletedOnSend   = "event_deleted_on_send"  // the agent forgets an event when it is sent
	GapAccepted          = "gap_accepted"           // the gateway takes an event although one before it is missing
	VersionNotRaised     = "version_not_raised"     // an instruction is written twice under one version
	TimerLostOnRestart   = "timer_lost_on_restart"  // a restarted gateway forgets what it waited for
	IllegalTransition    = "illegal_transition"     // a step that the table does not know is let through
	DuplicatePublish     = "duplicate_publish"      // a retransmitted publish becomes another task
	UnknownRetried       = "unknown_retried"        // what must not be done twice is repeated when its outcome is unknown
	InterruptedAsSuccess = "interrupted_as_success" // what a restart interrupted is reported as done
	LinesIgnored         = "lines_ignored"          // two executions hold the same pin
	CancelHidesUnknown   = "cancel_hides_unknown"   // an unknown outcome becomes CANCELLED
)

// All lists the faults.
func All() []string {
	return []string{EffectsBeforeCommit, StartBeforeJournal, DedupeAfterExecution, TokenReusedOnRetry, StaleTokenAccepted,
		ExpiryOnlyAtGateway, OpenIndexLost, TaskIndexLost, EventDeletedOnSend, GapAccepted, VersionNotRaised, TimerLostOnRestart,
		IllegalTransition, DuplicatePublish, UnknownRetried, InterruptedAsSuccess, LinesIgnored, CancelHidesUnknown}
}

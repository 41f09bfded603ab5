//go:build mutant_event_deleted_on_send

package mutant

// Active is the fault that was planted.
const Active = EventDeletedOnSend

package fieldagent

import "golang.org/x/sys/unix"

// clockSynced reports whether the kernel says that something keeps its clock
// right. A board without a real-time clock starts with a wrong one, which looks
// no different.
func clockSynced() bool {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	return err == nil && state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0
}

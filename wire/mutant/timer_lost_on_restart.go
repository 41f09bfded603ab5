//go:build mutant_timer_lost_on_restart

package mutant

// Active is the fault that was planted.
const Active = TimerLostOnRestart

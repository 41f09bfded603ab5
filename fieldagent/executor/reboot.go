package executor

import "github.com/apollo-11/apollo11/wire"

// A reboot is work that ends the agent. Whoever told the gateway "done" before
// would not know, and whoever waits to tell it after never gets there; so the
// start record names the boot in which the work began, and the next start of the
// agent compares (D6, D7). The token is in the dedupe table like any other, so
// that the same instruction never boots the board twice.

// noteBoot marks work that is about to run and boots the board.
func (c *Core) noteBoot(a *attempt) {
	if a.reboots {
		a.boot = c.cfg.Boot
	}
}

// afterRestart is how an attempt ended that ran when the agent ended.
func (c *Core) afterRestart(a *attempt) Result {
	switch {
	case a.boot == 0:
		return Result{Code: wire.CodeInterrupted,
			Detail: "the agent was restarted while this ran: it may or may not have had its effect"}
	case c.cfg.Boot == 0 || a.boot == c.cfg.Boot:
		return Result{Code: wire.CodeInterrupted,
			Detail: "the agent was restarted, but the board had not booted again by then; it may still do so"}
	}
	return Result{Code: wire.CodeOK, Detail: "the board has booted again"}
}

// worksOn reports whether something runs that a stop waits for.
func (c *Core) worksOn() bool {
	for _, a := range c.running {
		if a.boot == 0 {
			return true
		}
	}
	return false
}

// Package order is a small random model of the safety rule: in which order the
// commands of a line reach its pin, and the way to safe. It shares no code with
// the gateway or the agent. It plays the wording of the rule, so that a clause
// can be attacked before it is built and again when it changes.
//
//	wrong, log := order.Run(42, order.Whole(), true)             // "" if all is well
//	wrong, log := order.Run(1149, order.Without("Offered"), true)
//
// # The model
//
// One gateway, one board and what is on its way between them. The board has
// three lines: lamp, which is also called light, has a safe level and falls when
// the gateway is lost; fan has a safe level; valve has none. A tick is a step and
// not a second; order_wait is twelve of them.
//
//	people    submit on, off, pulses, leases and their renewals, work that is due
//	          later and apollo safe; cancel, release, retry out of the operator queue
//	gateway   numbers in blocks, items, window, withdrawal, retries, budgets, what is
//	          owed, holds, the belief in superseded, hello, an epoch, a crash that
//	          loses what was not written, a log restored from an older copy with or
//	          without a new epoch, quiet
//	network   two paths; loss and repetition; sessions and paths overtake each other,
//	          messages within a session do not; forged compact frames
//	board     a queue, a journal that is written in order, that may hang and of which
//	          a crash keeps a part, marks, workers that learn late that their work has
//	          ended, the owner of the pins, leases, loss as a state, LOCAL and a hand,
//	          another journal
//
// A seed draws which of the faults it has, plays 40 to 120 ticks with them, and
// then a calm phase in which everything must settle.
//
// # What is checked
//
// The checker (check.go, checkend.go) sees everything and decides nothing. Its
// order is that in which people asked; a retry by an operator, and what the
// gateway had to give a new number after it had lost its log, count as asked anew.
// The first word of what it finds names what was broken:
//
//	order       nothing away from safe begins, drives or is written as begun after a
//	            newer one of its line has; nothing older begins after a towards safe
//	            was heard, whatever became of that one
//	off         if the last word was off the line is off, or a hand, LOCAL, expiry or a
//	            cancel explains it and that was told
//	offered     the gateway hands out nothing that is older than a towards safe
//	delayed     towards safe leaves at its submission and is driven when it is heard; a
//	            cancel is sent at once
//	deaf        superseded is believed only if something known can have done it, and new
//	            work is not behind numbers of a lost log or a forged frame
//	unrecorded  nothing is told as final that a crash can take back
//	held        nothing leaves safe under a hold, which both sides know
//	local, loss, lease, epoch, ends, again, twice, false, number, window, budget, settle
//
// Eight writes are eight executions follows from deaf, budget and settle: what did
// not begin must have been ended by something that may end it.
//
// # What is forgiven
//
// A record that is lost on both sides at once (the gateway's by a crash or a
// restore, the board's by a crash) is as if nobody had asked. After another
// journal the board's past is forgotten. A compact frame that a restored gateway
// sends before its hello may have a number lower than those of the lost log: it
// drives if nothing higher is at the pin, and ends waiting work of the lost log
// only with the hello. A start that stands in the journal
// counts as begun for what is older, although the process may have died before
// the pin moved: the start of the process has set the pin to safe.
//
// # What is not modelled
//
// Interlocks and partners, sequences over several lines, approvals, windows and
// arms except as work that is due later, a name that moves to another line,
// clocks that are wrong, disk levels and reserves, breaker and pause, MACs, the
// formats, several boards, two lost memories of one thing in one seed.
//
// # To replay a seed
//
//	go test -run TestSeed -v ./firmware-sim/order -seed 42
//	go test -run TestSeed -v ./firmware-sim/order -seed 1149 -without Offered
//	APOLLO_ORDER_SEEDS=1000000 go test -run WholeRule -timeout 2h ./firmware-sim/order
//
// In a timeline n4 is an order number and #4 a command. A clause is a field of
// Rule, with its place in the rule; clauses_test.go has a row for each, with the
// seed that shows what happens without it. To add one: a field, the place where
// it decides, the situation that needs it, a row.
package order

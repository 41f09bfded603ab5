// Package executor decides what a field agent does: which instructions it takes,
// when they start, what it remembers and what it tells the gateway.
//
// It is a pure core. Step takes the time and one input and returns one Output; it
// starts no goroutine, reads no clock, touches no file. The same code runs in the
// agent and in the simulator.
//
//	core, out, err := executor.New(cfg, journalRecords, now)
//	perform(out)
//	for in := range inputs {
//	        perform(core.Step(now(), in))
//	}
//
// perform takes the fields of an Output in order: append Records to the journal
// and sync, then start and abort work, then send, then wait until Deadline. After
// an error of the journal nothing else of that Output may be performed.
//
// # The life of an attempt
//
//	Instruction
//	     |  known token: the stored answer, nothing else
//	     |  unfit: refused ---------------------------------+
//	     v                                                  |
//	  queued --- cancelled, expired, newer attempt ---------+
//	     |  record "started" is durable                     |
//	     v                                                  v
//	  running --- result (or restart: interrupted) ------> ended
//
// # Rules
//
//   - A token runs at most once (C7). Its "started" record is durable before the
//     work starts; a started token without a result is reported as interrupted
//     after a restart and never run again (C6).
//   - An instruction whose earlier attempt ended well is not run again: the new
//     attempt is answered with that result.
//   - Two instructions that share a line never overlap and run in order of
//     arrival, whatever their priorities (F4, A19). What makes safe does not wait
//     all the same: an off level asks a running pulse on its pin to stop at once,
//     and takes its turn when that has ended (see Verdict).
//   - Nothing starts after its not_after (A9). It is looked at when the
//     instruction arrives, while it waits, when it is about to start and once more
//     when that is in the journal, which may take long on a slow card. An
//     instruction with a limit does not start while the time is not known.
//   - Events are numbered from 1 without gaps, are in the journal before they are
//     sent, and are kept until the gateway's cumulative EventAck covers them (B7).
//     At most Window are under way; loss is repaired by going back to the first
//     one that is not acknowledged.
//   - What the agent says about a waiting instruction (received event, report,
//     compact ack) is said only after the instruction is in the journal.
//   - An event that is not acknowledged within HedgeAfter is told in short on the
//     narrowband path as well, and repeated there until it is (B3). The gateway may
//     ask there about one attempt; an unknown one is answered with never, and a
//     question changes nothing.
//   - After every welcome and every DigestEvery a digest sums up what the gateway
//     has acknowledged to know of and what has not ended (B9).
//   - A hello names the highest instruction and token sequence ever seen, across
//     restarts and forgetting, so that a gateway with an old copy of its log does
//     not use them again.
//   - While the gateway refuses the node nothing starts; what runs may end.
//   - When neither path has reached the gateway for Config.Autonomy, nothing starts
//     until one does, what runs may end, and Output.Fall has outputs set to their
//     safe levels (C8).
//   - While the LOCAL switch is on, what would actuate is refused, whether it comes
//     or waits; reading and watching go on (C15).
//   - A watch takes no worker. What it sees becomes events as it comes, as long as
//     there is room; see Roomy.
//
// # Leases
//
// A lease is an output that is set for a limited time (C13). Who owns the pins ends
// it; the core only sees to it that its end is told, once, whatever happens:
//
//	result with Lease --> record "lease", then the result
//	                         |  LeaseEnded           restart
//	                         v                          v
//	                      event lease_ended         event lease_ended, "restart"
//
// The event closes the lease in the journal. An end that failed leaves it open,
// because another follows. A lease is remembered apart from its attempt, which may
// be forgotten before it ends.
//
// # Time
//
// Intervals use the monotonic clock. not_after is measured in the gateway's time,
// which is known between two bounds: see clock. An own clock that is synchronised
// and near those bounds is taken instead. Late is what is late by the latest that
// the gateway's time can be. So nothing starts or expires because the agent's
// clock is set (H1); the gateway is told of that with another hello.
//
// # Old copies
//
// If the gateway has events that the journal does not know, the journal is an old
// copy of itself. The agent then begins a new incarnation, which tells the gateway
// that things were forgotten, and numbers its events from 1 again. What the old
// copy says is waiting may have run since and ends with CodeUnknown. What a process
// says of what a crash interrupted, before it was ever welcomed, does not count as
// known: its numbers could hide that the gateway has others under them.
//
// # What is remembered, and for how long
//
// A token is remembered until 24 h of the agent's running time after its end, or
// until the table is full; only attempts whose result the gateway has are ever
// forgotten, oldest end first. Forgetting leaves a mark: the highest token
// sequence of that shard and the youngest creation time among the forgotten. A
// token that is not known, not above the mark and not younger than it may be a
// forgotten one: it is answered with CodeUnknown and not run. So a duplicate is
// caught ten days later as well, and memory stays bounded.
//
// The payload of a result is kept until its event is acknowledged. A token that
// is asked for later is answered with code, sentence and times, without payload,
// in a Report and in an event with a new number.
package executor

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
// perform takes the fields of an Output in order: feed the timer of the pins' owner,
// begin what is Urgent, append Records to the journal and sync, then start and abort
// work, then send, then wait until Deadline. After an error of the journal nothing
// else of that Output may be performed. Before the Output of New the owner of the pins
// is given Marks and Holds, and drives the ends of Pulses.
//
// # The life of an attempt
//
//	Instruction
//	     |  known token: the stored answer, nothing else
//	     |  unfit: refused ---------------------------------+
//	     v                                                  |
//	  queued --- cancelled, expired, superseded, ... -------+
//	     |  record "started" is durable                     |
//	     v                                                  v
//	  running --- result (or restart: interrupted) ------> ended
//
// What is towards safe skips the queue: it is running when it arrives, and its record
// follows.
//
// # Order at a line (docs/safety.md)
//
// An instruction that actuates has a number, Order or else its sequence, and the
// agent a mark on each line: the highest number that has begun there. A mark is in
// the record of the start, in every snapshot, and survives what it stands for. A
// refusal raises none.
//
//   - What actuates and has a lower number than a mark of one of its lines ends with
//     CodeSuperseded. An equal number is the same instruction: a retry.
//   - Within a line what waits goes by number, however late it came. A newer one that
//     is more urgent lifts the older to its own priority and never jumps it. What
//     actuates nothing has no number: it comes after what waited when it came.
//   - What holds the whole board shares every line, for waiting and for its own mark
//     (key 0 of Marks). It is nothing against what is towards safe.
//   - Between a failure that may pass and the retry the agent keeps the line, if the
//     instruction says Keep: what is newer waits, until the next attempt comes, a
//     wire.Release or a cancel, or for wire.OrderWait. See keep.go.
//
// # Towards safe
//
// A verdict with Towards waits for no worker, line, queue, journal, acknowledgement,
// welcome of its own, autonomy window or hold. Three things hinder it: its expiry, if
// that is certain; its cancel; and the LOCAL switch.
//
//   - It ends what waits on its lines and is older with CodeSuperseded, also if it is
//     refused itself; and asks older work that runs there to stop.
//   - It is in Output.Urgent: driven before its record. So an agent that dies in
//     between does not know it, and the gateway, which has no answer, sends it again.
//   - A token that is known is driven again when it comes again, if nothing newer has
//     begun there, and answered with what is stored.
//   - safeReserve attempts and events find room for it beyond every limit. What is
//     beyond that is driven, leaves its mark, and is answered with StatusDriven, which
//     settles nothing.
//   - An agent that the gateway has refused, as the second board of a name, does the same
//     with it, and nothing else: its events do not count.
//   - Where something newer has begun it drives nothing, and the rest of its lines all
//     the same. It also drives the line that the gateway took its pin for.
//
// A verdict with Hold that was tried, whether it ended well or may be tried again, holds
// its lines: what actuates there, and is not towards safe, is refused with CodeHeldSafe, and what waits is superseded. The
// welcome names lines that the gateway holds as well. Holds are in the journal; a
// Release whose number is not lower ends them. Actuating work that holds the whole
// board is not refused here: the owner of the pins refuses the line.
//
// # Offers
//
// What waits when a session begins starts only when the gateway has offered it again
// in that session: the instruction once more, or a Query that names it. Until then it
// keeps newer ones from its lines for wire.OrderWait, since a gateway begins with the
// oldest. Work of another log of the gateway (its epoch is in the record) ends with
// CodeSuperseded at the welcome, before anything new begins. A gateway without Rules
// offers nothing: to it the first welcome is enough. Nor is it told codes, statuses
// or ends of leases that it can't read: see told and readable.
//
// # Rules
//
//   - A token runs at most once (C7). Its "started" record is durable before the
//     work starts; a started token without a result is reported as interrupted
//     after a restart and never run again (C6).
//   - An instruction whose earlier attempt ended well is not run again: the new
//     attempt is answered with that result.
//   - Two instructions that share a line never overlap (F4, A19), unless one of them
//     is towards safe.
//   - Nothing starts after its not_after (A9). It is looked at when the
//     instruction arrives, while it waits, when it is about to start and once more
//     when that is in the journal, which may take long on a slow card; the owner of
//     the pins looks again, with ClockView. An instruction with a limit does not start
//     while the time is not known.
//   - A full queue is said with StatusFull, and the attempt leaves no trace; a
//     heartbeat tells how much room there is. A gateway without Rules gets
//     CodeResources.
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
//     until one does, and what runs may end (C8). A gateway that refuses the node has
//     not been reached. Outputs fall by the timer of the pins' owner, which
//     Output.Contact feeds.
//   - Work that was too late only because the gateway or the time was missing waits
//     again: its queued record behind its started one takes the start back.
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
// be forgotten before it ends. A Plain one is a level without a time limit: that the
// board has ended it by itself is told, that a later instruction has replaced it is
// written down only. A cancel of an attempt that has ended well asks the owner of the
// pins to end its lease, if it is still its own (Output.EndLease).
//
// # Time
//
// Intervals use the monotonic clock. not_after is measured in the gateway's time,
// which is known between two bounds: see clock. An own clock that is synchronised
// and near those bounds is taken instead. Nothing starts that may be late, by the latest
// that the gateway's time can be. So nothing starts or expires because the agent's
// clock is set (H1); the gateway is told of that with another hello. What is refused
// as late is late by the earliest that it can be. In between, and while a message was
// too old for the bounds, what has a limit waits, and the agent asks at once. Time in
// doubt never hinders what is towards safe.
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

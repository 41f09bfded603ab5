// Package ledger keeps the engine's records in the store: which keys they have,
// what one Ready writes, and how the engine's memory is built again after a
// restart.
//
// One Ready is one atomic batch, so that record, index and timeline can never
// disagree (E1).
//
//	c                     counters
//	T first(8)            task; first is the number of its first instruction
//	t task id             number under which the task stands: the idempotency index
//	o first(8)            the task is unfinished; recovery reads only these
//	i seq(8)              instruction
//	l seq(8) version(4)   the timeline entries written with that version
//	n node                node
//	e node                event cursor of the node
//	p client packet(2)    what an MQTT publish became (see engine.Mark)
//	d number(8)           dead letter
//	q seq(8)              the instruction waits for an operator
//	a number(8)           audit entry
//	Q                     quiet period
//	L                     numbers that this log, an older copy, has lost, as noted by older versions
//	g node                what the log has given to the node, with its cursor (see engine.Given)
//	J                     how far the counters were moved by the word of agents
//
// Values are CBOR maps and arrays with integer keys (wire.EncodeRecord). A field
// is added under a new key and never reused.
//
// Reads see what has been applied, which may not be durable yet. Who shows what
// it read calls Barrier in between; the Reader type does that.
package ledger

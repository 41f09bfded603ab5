// Package gateway wires the rooms of the gateway together: the broker and the
// HTTP API as doors, the engine as the mind, the ledger as the memory.
//
//	broker ─┐                              ┌─> outbox of each node ─> broker
//	        ├─> inputs ─> loop ─> committer┼─> replies, acknowledgements
//	HTTP  ──┘            (engine)  (fsync) └─> status, node and alarm topics
//
// The rules:
//
//   - One goroutine, the loop, owns the engine. It takes all inputs that are
//     waiting, steps the engine for each, and hands one batch to the ledger.
//   - The committer waits until that batch is on disk and only then lets its
//     effects out, in order. Meanwhile the loop fills the next batch: that is
//     what makes fsync cheap.
//   - Neither ever publishes: each node has an outbox goroutine of its own, so
//     that one stalled board delays nobody.
//   - A failed write or fsync ends the process (C12). Restart recovers.
package gateway

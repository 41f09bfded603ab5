// Package intent holds what an agent can do: one executor for each intent, in a
// registry that the agent builds at start.
//
// An intent says what is wanted, not how (D2). An executor brings it about
// within its context and says how it ended: a result code, a sentence for
// people, and a small payload.
//
//	r, err := intent.New(log, intent.GPIO(owner), intent.Metrics(intent.MetricsOptions{...}))
//	if refused := r.Check("gpio.write", args); refused != nil { ... }  // nothing has happened
//	result := r.Run(ctx, "gpio.write", args, req)                      // something may have
//
// Rules for executors:
//
//   - Check touches nothing. It says what is certain to be refused: arguments, a
//     pin that is not there. Run checks again, since it may be called alone.
//   - Run ends soon after its context does and leaves the world safe: a pulse puts
//     its pin back whatever happens. It never outlives its call.
//   - The end is honest. What has happened is "ok", what has not is a refusal, a
//     failure or "cancelled", and what nobody can tell is "unknown".
//   - No package state. Whoever writes a new intent adds a file with a
//     constructor that returns an Intent, and names it in the agent's New call.
//
// The registry turns a panic into an internal-error result, keeps details and
// payloads inside the limits of package wire, and is safe for use by several
// goroutines.
package intent

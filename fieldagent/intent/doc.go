// Package intent holds what an agent can do: one executor for each intent, in a
// registry that the agent builds at start.
//
// An intent says what is wanted, not how (D2). An executor brings it about
// within its context and says how it ended: a result code, a sentence for
// people, and a small payload.
//
//	r, err := intent.New(log, intent.BuiltIn(intent.Board{Pins: owner}))
//	act, refused := r.Check("gpio.write", args)                  // nothing has happened
//	result := r.Run(ctx, "gpio.write", args, req)                // something may have
//
// # Adding one that is built in
//
// Four things. Tests notice one of the first three that is left out, and what does not fit
// the others:
//
//  1. Its declaration, a file of its own in package wire (intent_read.go is a short one):
//     declare with name, text, the traits that doors, gateway and agent go by (does it move
//     anything, which lines does it hold, may it be repeated, does it leave a lease, what
//     undoes it), the type of its arguments, and each argument with the field that it fills
//     in: pin, pinOrAll, level, levelOrHigh, maxOn (a lease), lasts (it takes that long by
//     itself) and spanOf (any other duration). How an argument is parsed and written, what
//     it means for lines and time, an example and its text come with it. The tables of
//     docs/wire.md are written from that by go test ./wire -run Documented -update.
//
//  2. One file here, which adds it. No other file names it.
//
//     // gpio.read: the level of an input, or the commanded level of an output.
//     var _ = builtIn(func(b Board) Intent { return Typed(wire.IntentGPIORead, b.checkRead, b.read) })
//
//  3. Its line in the table of docs/operator.md: what it does, for whoever uses it.
//
//  4. Its line in docs/CHANGELOG.md.
//
// The tests here (TestA19) play the examples of its arguments, from either level of its
// output: they hold what it does against what it declares, let the owner of the pins fail
// in every way, wait beyond its end, and ask for what is certain to be refused. Nothing in
// them names an intent. They do not know what it is for: that what it says of its purpose
// is so is a test of its own.
//
// # What an executor is made of
//
// The executor gets its arguments parsed and in their own type. What it moves it moves
// through Pins, which asks right before a pin moves whether it still may; what its
// declaration says of its lines is what it holds, so it moves no others.
//
//   - b.resolve finds a pin for a mode or refuses it; b.safe is its safe level, b.limit the
//     longest time that the pin map gives a level, b.setting all three for a level with or
//     without a time. Check and Run use the same.
//   - b.write sets a level, as a lease if it is to end, and b.writeSafe drives the safe one,
//     at the lines of Request.Lines. What leaves an output away from its safe level without
//     them says so in Result.Lease, or nobody is told when the board ends that.
//   - r.drive is a request to Pins with the order number and the question that each has to
//     carry; what ends later is Drive.For, and no timer here.
//   - pinResult is the end of a request that failed. Nothing else translates an error of the
//     pins: an unknown outcome that is told as io is done again, and nobody has asked.
//     badArgs is the refusal of an argument that only the board can judge.
//   - Values of a result that is about one pin have "pin" and "level", the level that it has
//     then: the gateway takes that for the level of an output whose arguments named none.
//
// Towards safe waits for nothing (docs/safety.md 5), and wire.Act.Towards decides it from
// declaration and arguments: the trait Safe, or a level argument that is the safe level of
// every pin, and no pulse. One whose arguments name no level, as one that inverts, never
// is, whatever it turns out to do.
//
// # An agent with an intent of its own
//
// It gives New another list beside BuiltIn, with Traits in each Intent. The zero value is the
// most careful: such an intent is refused while the LOCAL switch is on, holds the whole
// board, so that it neither cuts into a pulse nor runs beside anything, and is never
// done again by itself. Whoever says less than that says it in Traits.
//
// # Rules for executors
//
//   - Check touches nothing. It says what is certain to be refused: arguments, a
//     pin that is not there. Run checks again, since it may be called alone.
//   - Run ends soon after its context does and leaves the world safe. It never outlives
//     its call; what ends later is the owner of the pins' affair.
//   - The end is honest. What has happened is "ok", what has not is a refusal, a
//     failure or "cancelled", and what nobody can tell is "unknown".
//   - No package state, but the list of what is built in.
//
// The registry turns a panic into an internal-error result, keeps details and
// payloads inside the limits of package wire, and is safe for use by several
// goroutines.
package intent

// Package board is an emulated ARM board: a real kernel with a real GPIO chip in an
// emulator, whose lines, cable, power and disk are in the hands of a test.
//
//	b, err := board.Start(ctx, board.Options{...})
//	defer b.Close()
//	err = b.Lines().Drive(1, true)          // the world sets an input
//	high, err := b.Lines().High(0)          // an oscilloscope on an output
//	n := b.Lines().Rises(0)                 // and one with a counter
//	err = b.Cable(false)                    // pull it
//	err = b.Cut(nil)                        // the power fails
//
// # Rules
//
//   - One board at a time on a machine: a lock file in the directory for temporary
//     files. Two emulators on two cores double every time limit.
//   - The emulator ends with the test: it is killed by Close and Cut, and by the
//     kernel should the test be killed. It gets no shell, no window and no network
//     but the addresses in Options.
//   - What the board writes on its console is kept and shown by Console.
//   - Before anything runs on the board, inputs and lines without a driver have the
//     level that a resistor would give them (Options.PullUp). The chip's driver
//     can't set a level before the direction, so the first level of an output is the
//     one that its resistor gave it.
//   - Edges are reported by the emulator as they happen (irq_intercept_out), not
//     polled: none is too short to be seen.
package board

// Package lab is the board lab: the real programs on an emulated ARM board with a
// real kernel and a real GPIO chip, whose lines, cable, power and disk are in the
// hands of the tests. It holds tests only; docs/lab.md says what they show.
//
//   - One board serves many tests: a boot costs two to ten seconds.
//   - What a line did is seen from outside the board, edge by edge, never asked of
//     the program that should have done it.
//   - Supervised agents run under the shipped unit file; the stand-in for systemd is
//     in guest/supervise.go and says what it leaves out.
//   - Random moments have a seed, which is printed; APOLLO_LAB_SEED repeats it.
//   - A tool that is missing skips the tests with a reason, and fails them with
//     CI=true or APOLLO_LAB=1. They are not run with -short or under the race
//     detector.
//   - APOLLO_LAB_CUTS is how many power cuts a test makes (5), APOLLO_LAB_CABLE how
//     long the cable is out (35s).
//
// Parts: board (the emulator and its sockets), disk (a disk that forgets), guest
// (the board's init), talk (what host and init say), relay (the board's way out),
// kernel (a module that pins the kernel's version).
package lab

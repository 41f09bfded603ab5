// Package guard tells whoever watches over the agent that it lives: systemd's
// service watchdog, the board's hardware watchdog, or both.
//
// A dead or stuck agent leaves its pins as they are, so somebody outside must
// bring them to their safe levels: systemd kills a service that does not report
// and runs "apollo-agent safe", and a hardware watchdog resets the board. Both act
// on silence. What is reported here is therefore not that a goroutine turns, but
// that the agent's own parts have answered (see Keep).
package guard

// Command torture is hard on the real programs for a while, counts what became of
// every command, and ends with 1 if anything was lost, done twice, late or told
// falsely, or if a limit does not hold.
//
//	make torture                                    everything, up to ten minutes
//	go run ./firmware-sim/torture -short            a minute of it
//	go run ./firmware-sim/torture -only window,leave -o json
//	go run ./firmware-sim/torture -plot docs/outage-drain.svg
//
// Its parts are in package trial (real processes) and package outage (virtual
// time). The part link needs root, iproute2 and nftables; without them it is left
// out and says so, and with CI=true in the environment that is a failure.
package main

// Command bench measures the gateway against what the machine itself can do, as
// ratios taken side by side in one run: absolute figures of a busy machine mean
// little, their ratios mean much.
//
//	make bench                       three rounds of everything
//	go run ./firmware-sim/bench -rounds 5 -only enqueue,latency -o json
//
// Every round measures each thing once, in turn; the table shows the median of
// the rounds' ratios. The unit f is one fdatasync of a 256-byte append.
package main

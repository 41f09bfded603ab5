// The kernel of the emulated board: a module of its own, so that the programs'
// go.mod does not name it. Its version stands here and nowhere else. Nothing is
// imported from it, so go mod tidy would take it out.
module github.com/apollo-11/apollo11/firmware-sim/lab/kernel

go 1.26.0

require github.com/gokrazy/kernel.arm64 v0.0.0-20260705071517-37841c4d6ff1 // indirect

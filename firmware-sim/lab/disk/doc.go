// Package disk is a disk whose power can fail: it keeps what was written in memory
// until it is told to flush, and loses a part of the rest when the power is cut.
//
//	d, err := disk.New(file, socket, seed) // file: an image, made by mke2fs
//	defer d.Close()
//	... the emulator connects to the socket ...
//	lost := d.Cut() // after the emulator was killed
//
// It speaks the protocol of network block devices (fixed newstyle, one client at a
// time) on a unix socket, with flush and forced unit access.
//
// # What it does
//
//	Honest    a flush returns when everything before it is in the file
//	Lying     says so and does nothing
//	Failing   answers writes and flushes with an I/O error
//	Stalling  answers nothing until the mode changes
//
// At a cut every sector that was not flushed is kept or lost by the toss of a coin,
// each on its own: real disks write their cache in any order, and a sector whole or
// not at all.
package disk

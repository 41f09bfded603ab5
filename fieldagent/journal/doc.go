// Package journal keeps what an agent must not forget: a list of opaque
// records in one append-only file, durable when Append returns.
//
// # Idea
//
// The agent writes down what it is about to do before it does it and what came
// of it before it says so. Both promises rest on this file, so it offers very
// little: append a batch, replace everything, read everything at start. What a
// record means is the caller's business.
//
//	j, records, err := journal.Open(journal.OS(), "/var/lib/apollo/agent", journal.Options{})
//	...replay records...
//	err = j.Append(started)          // durable from here on
//	err = j.Append(result, event)    // both or neither
//	err = j.Rewrite(stillNeeded)     // compaction
//
// # Format (version 1, little endian)
//
//	file    = header frame*
//
//	header  | magic "A11JRNL\n" | version u32 | salt u64 | crc32c u32 |     24 bytes
//	                                                        over the 20 bytes before it
//
//	frame   | length u32 | crc32c u32 | type u8 | payload, length bytes |   9 + length
//	             over salt, offset of the frame as u64, length, type, payload
//
//	payload = ( | length u32 | record | )+          type 1, the only one so far
//
// One frame holds one Append, so a batch survives whole or not at all. The
// checksum includes the file's salt and the frame's own offset: bytes that a
// file system left over from an older journal, a block written to the wrong
// place, or a record that happens to contain a frame never pass as a frame.
//
// # Rules
//
//   - Every frame is synced before the next one is written. So after a power cut
//     only the last frame can be incomplete, and a damaged frame with an intact
//     one behind it is not a torn write: it is damage to acknowledged records.
//     Open cuts the first kind off and reports it, and refuses the second
//     (ErrDamaged). More damaged bytes than one frame can hold are also refused.
//   - What Open returns is durable. A record may be readable only because it
//     still sits in the page cache of a process that was killed, or, worse,
//     because an earlier fsync failed and the kernel then called the page clean.
//     Open therefore writes the last frame again, in place and unchanged, and
//     syncs the file and its directory before it returns.
//   - After a failed append or sync the journal is dead (ErrDead) and stays so; a
//     sync is never retried. The process stops and recovers by reading.
//   - A new file is written beside the old one, synced, renamed over it, and the
//     directory is synced. The old file is valid until the rename. Rewrite and
//     the first Open share this one helper.
//   - The file is locked (flock on a file of its own, since the journal is
//     replaced by rename) for as long as it is open.
//
// One thing no single file can tell: a tail of at most one frame's size that was
// synced and ruined afterwards, to the very end, looks like a torn write and is
// cut, with a report. The gateway notices, because the numbers of the agent's
// events then fall back.
//
// A Journal belongs to one goroutine; it starts none.
package journal

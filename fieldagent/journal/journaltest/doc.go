// Package journaltest is a file system in memory that forgets what was not
// synced, for tests and for the simulation of a whole site.
//
// A Disk keeps two pictures of every file: what a reader sees (the page cache)
// and what is on the medium. Sync moves the one into the other. Killing the
// process loses nothing of the first picture; a power cut falls back to the
// second, plus whatever part of the unsynced writes the medium happened to take.
//
//	d := journaltest.New()
//	j, _, _ := journal.Open(d, "/data", journal.Options{})
//	d.Inject(func(op journaltest.Op) *journaltest.Fault { ... })
//	d.PowerCut(rng)                  // j is stale now, as if its process had died
//	j, records, err := journal.Open(d, "/data", journal.Options{})
//
// The rules it holds a caller to are those of a real, nasty disk:
//
//   - an unsynced write survives a cut whole, in part, or not at all, and a later
//     one may survive an earlier one;
//   - a name survives only after SyncDir, and it may survive before its content;
//   - after a failed Sync the unsynced writes are called clean: they stay
//     readable, a later Sync does not write them, and a cut may lose them.
//
// A Disk is safe for use by several goroutines. It decides nothing by itself:
// all chance comes from the *rand.Rand that PowerCut is given.
package journaltest

// Package memstore is a store in memory that keeps the promises of package
// storage and breaks everything that is not promised. It decides nothing: what
// reaches the disk and what a crash takes is told by its caller.
//
//	s := memstore.New()
//	p, _ := s.Apply(b)       // visible, not durable
//	s.Sync(s.Applied())      // durable; p.Wait returns nil from here on
//	s.Crash(1)               // of what was not durable the first batch survived
//
// A crash takes a suffix of the batches and never a part of one, as after a
// power cut with the real store. Wait and Barrier do not wait, since there is
// nobody else to make progress: they return ErrNotDurable instead.
//
// The suite of this package runs on memstore and on the real store alike, so
// that the two cannot drift apart.
package memstore

// Package formats holds what earlier revisions have written against the code of
// today: a site in the field is upgraded one program at a time, with whatever its
// disks hold at that moment. It holds tests only.
//
//   - testdata has a directory for each recorded revision: what its real programs
//     left behind when they were killed (site.tar.gz), and in its README.md, as a
//     table that the tests read, what must become of every command in it. A
//     recording is never made anew and never deleted: a change that cannot read it
//     is a change that cannot be shipped.
//   - Old and new programs are also run against each other. The old ones are built
//     from this repository's history, so that a clone without it skips that.
//   - TestRecord is how a recording is made. It does nothing unless it is asked to.
package formats

package journaltest

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// sector is the unit in which a medium takes a write, in bytes.
const sector = 512

// Kill ends the process: its handles turn stale and its locks are free. What
// was written stays readable.
func (d *Disk) Kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.era++
}

// PowerCut ends the process and falls back to the medium. rng decides what of
// the unsynced changes the medium took: of every file a random part, sector by
// sector and in any order, the last one possibly torn in the middle; of the
// names a random first part. Without rng nothing unsynced survives.
func (d *Disk) PowerCut(rng *rand.Rand) {
	d.cut(func(n *inode) {
		if rng == nil {
			return
		}
		for _, w := range n.pending {
			for _, part := range w.torn(rng) {
				n.medium = part.apply(n.medium)
			}
		}
	}, func(names int) int {
		if rng == nil {
			return 0
		}
		return rng.IntN(names + 1)
	})
}

// cut applies fate to every file and keeps the first names(n) of n directory
// changes. Files are visited in the order of their names, so that a seed always
// gives the same disk.
func (d *Disk) cut(fate func(*inode), names func(int) int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.era++
	done := map[*inode]bool{}
	settle := func(n *inode) {
		if done[n] {
			return
		}
		done[n] = true
		fate(n)
		n.pending = nil
		n.seen = append([]byte(nil), n.medium...)
	}
	for _, set := range []map[string]*inode{d.names, d.durable} {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			settle(set[name])
		}
	}
	for _, c := range d.renames[:names(len(d.renames))] {
		settle(c.node)
		c.apply(d.durable)
	}
	d.renames = nil
	d.names = maps.Clone(d.durable)
}

// torn returns the parts of a write that reach the medium, in a random order.
func (w write) torn(rng *rand.Rand) []write {
	switch rng.IntN(4) {
	case 0: // nothing
		return nil
	case 1: // everything
		return []write{w}
	}
	if w.data == nil {
		return nil
	}
	if rng.IntN(2) == 0 { // a first part, cut anywhere
		return []write{{at: w.at, data: w.data[:rng.IntN(len(w.data)+1)]}}
	}
	var parts []write
	for from := 0; from < len(w.data); {
		to := min(len(w.data), from+sector-int((w.at+int64(from))%sector))
		if rng.IntN(2) == 0 {
			parts = append(parts, write{at: w.at + int64(from), data: w.data[from:to]})
		}
		from = to
	}
	rng.Shuffle(len(parts), func(i, k int) { parts[i], parts[k] = parts[k], parts[i] })
	return parts
}

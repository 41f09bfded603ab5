package memstore

import "sort"

// chunkLen is how many entries a chunk holds before it is split: moving that
// many costs less than a cache miss or two.
const chunkLen = 256

type entry struct {
	key string
	val []byte
}

// table is a sorted list of entries in chunks. No chunk is empty.
type table struct{ chunks [][]entry }

// find returns the place of the first entry whose key is not below key.
func (t *table) find(key string) (chunk, at int, found bool) {
	c := sort.Search(len(t.chunks), func(k int) bool { return t.chunks[k][0].key > key })
	if c > 0 {
		c--
	}
	if c == len(t.chunks) {
		return c, 0, false
	}
	list := t.chunks[c]
	at = sort.Search(len(list), func(k int) bool { return list[k].key >= key })
	return c, at, at < len(list) && list[at].key == key
}

func (t *table) get(key string) ([]byte, bool) {
	c, at, found := t.find(key)
	if !found {
		return nil, false
	}
	return t.chunks[c][at].val, true
}

func (t *table) set(key string, val []byte) {
	c, at, found := t.find(key)
	if found {
		t.chunks[c][at].val = val
		return
	}
	if c == len(t.chunks) {
		t.chunks = append(t.chunks, []entry{{key, val}})
		return
	}
	list := append(t.chunks[c], entry{})
	copy(list[at+1:], list[at:])
	list[at] = entry{key, val}
	t.chunks[c] = list
	if len(list) > chunkLen {
		t.split(c)
	}
}

func (t *table) split(c int) {
	list := t.chunks[c]
	half := len(list) / 2
	right := append(make([]entry, 0, chunkLen+1), list[half:]...)
	clear(list[half:])
	t.chunks = append(t.chunks, nil)
	copy(t.chunks[c+2:], t.chunks[c+1:])
	t.chunks[c], t.chunks[c+1] = list[:half], right
}

func (t *table) remove(key string) {
	c, at, found := t.find(key)
	if !found {
		return
	}
	list := t.chunks[c]
	copy(list[at:], list[at+1:])
	list[len(list)-1] = entry{}
	if t.chunks[c] = list[:len(list)-1]; len(list) == 1 {
		t.chunks = append(t.chunks[:c], t.chunks[c+1:]...)
	}
}

// scan calls fn for the entries from lo to before hi.
func (t *table) scan(lo, hi []byte, fn func(entry) (bool, error)) error {
	c, at, _ := t.find(string(lo))
	for ; c < len(t.chunks); c, at = c+1, 0 {
		for ; at < len(t.chunks[c]); at++ {
			e := t.chunks[c][at]
			if hi != nil && e.key >= string(hi) {
				return nil
			}
			if more, err := fn(e); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// scanBack calls fn for the entries from before hi down to lo.
func (t *table) scanBack(lo, hi []byte, fn func(entry) (bool, error)) error {
	c, at := len(t.chunks), 0
	if hi != nil {
		c, at, _ = t.find(string(hi))
	}
	for {
		if at--; at < 0 {
			if c--; c < 0 {
				return nil
			}
			at = len(t.chunks[c]) - 1
		}
		e := t.chunks[c][at]
		if e.key < string(lo) {
			return nil
		}
		if more, err := fn(e); err != nil || !more {
			return err
		}
	}
}

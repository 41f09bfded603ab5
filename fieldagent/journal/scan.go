package journal

// scanned is what a journal file turned out to hold.
type scanned struct {
	salt    uint64
	records [][]byte // in order; they share memory with the file's bytes
	last    int64    // offset of the last intact frame, or 0 (the header)
	end     int64    // offset behind it: what is kept
	torn    string   // why the rest was not kept, empty if there is no rest
}

// scan reads a whole file. It returns an error for anything that a single torn
// append can't explain.
func scan(file string, data []byte) (scanned, error) {
	salt, err := decodeHeader(file, data)
	if err != nil {
		return scanned{}, err
	}
	s := scanned{salt: salt, end: headerSize}
	for s.end < int64(len(data)) {
		size, reason := frameAt(data, salt, s.end)
		if reason != "" {
			s.torn = reason
			break
		}
		s.last = s.end
		s.end += size
		s.records = recordsOf(s.records, data[s.last:s.end])
	}
	if s.torn == "" {
		return s, nil
	}
	if next := findFrame(data, salt, s.end+1); next >= 0 {
		return s, &DamageError{File: file, Offset: s.end, Next: next, Reason: s.torn}
	}
	if int64(len(data))-s.end > frameHead+MaxBatch {
		return s, &DamageError{File: file, Offset: s.end, Next: -1,
			Reason: s.torn + ", and what follows is more than one append can have written"}
	}
	return s, nil
}

// findFrame returns the offset of the first intact frame at or after from, or
// -1. Payloads can't fool it: see the package comment on the checksum.
func findFrame(data []byte, salt uint64, from int64) int64 {
	for o := from; o+frameHead <= int64(len(data)); o++ {
		if _, reason := frameAt(data, salt, o); reason == "" {
			return o
		}
	}
	return -1
}

// salvage returns every record of every intact frame, whatever lies between,
// and the number of bytes that belong to none.
func salvage(file string, data []byte) (records [][]byte, lost int64) {
	salt, err := decodeHeader(file, data)
	if err != nil {
		return nil, int64(len(data))
	}
	for at := int64(headerSize); at < int64(len(data)); {
		next := findFrame(data, salt, at)
		if next < 0 {
			return records, lost + int64(len(data)) - at
		}
		lost += next - at
		size, _ := frameAt(data, salt, next)
		records = recordsOf(records, data[next:next+size])
		at = next + size
	}
	return records, lost
}

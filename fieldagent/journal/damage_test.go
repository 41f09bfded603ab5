package journal_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/journal"
	"github.com/apollo-11/apollo11/fieldagent/journal/journaltest"
)

// A file of two appends: header at 0, frames at 24 and 40, end at 56.
//
//	frame at 24: 9 head, 4 length, 3 "one"    frame at 40: 9, 4, 3 "two"
const second, end = 40, 56

func twoFrames(t *testing.T) (*journaltest.Disk, []byte) {
	t.Helper()
	d := journaltest.New()
	j, _, err := journal.Open(d, dir, journal.Options{Salt: func() uint64 { return 0x1122334455667788 }})
	must(t, err)
	must(t, j.Append([]byte("one")))
	must(t, j.Append([]byte("two")))
	must(t, j.Close())
	content, _ := d.Content(path)
	if len(content) != end {
		t.Fatalf("file of %d bytes, want %d", len(content), end)
	}
	return d, content
}

// TestFormatVector pins version 1. Never change it; add one for a new version.
func TestFormatVector(t *testing.T) {
	_, content := twoFrames(t)
	want, err := os.ReadFile(filepath.Join("testdata", "v1.hex"))
	must(t, err)
	if got := hex.Dump(content); got != string(want) {
		t.Errorf("the format has changed:\n%s\nwant\n%s", got, want)
	}
}

// TestG5_G6_BitFlips flips every single bit of the file. In the header and in the
// first frame that is damage and refused; in the last frame it can't be told
// from a torn write and is cut and reported. Never a changed record, never a
// silent loss.
func TestG5_G6_BitFlips(t *testing.T) {
	d, content := twoFrames(t)
	for bit := range len(content) * 8 {
		flipped := append([]byte(nil), content...)
		flipped[bit/8] ^= 1 << (bit % 8)
		d.Spoil(path, flipped)
		var torn []journal.Torn
		j, got, err := journal.Open(d, dir, journal.Options{OnTorn: func(c journal.Torn) { torn = append(torn, c) }})
		if bit/8 < second {
			if !errors.Is(err, journal.ErrDamaged) {
				t.Fatalf("bit %d: records %q, error %v, want ErrDamaged", bit, got, err)
			}
			continue
		}
		must(t, err)
		wantRecords(t, got, []string{"one"})
		if len(torn) != 1 || torn[0].Offset != second || torn[0].Bytes != end-second {
			t.Fatalf("bit %d: reported %v", bit, torn)
		}
		must(t, j.Close())
	}
}

func TestG5_G6_ZeroedAndTruncatedFiles(t *testing.T) {
	_, content := twoFrames(t)
	zero := func(from, to int) []byte {
		c := append([]byte(nil), content...)
		clear(c[from:to])
		return c
	}
	for name, c := range map[string]struct {
		content []byte
		want    []string // nil: damaged
		says    string
	}{
		"whole file zeros":         {zero(0, end), nil, "magic"},
		"empty file":               {nil, nil, "0 bytes are less than the 24 of a header"},
		"cut inside the header":    {content[:23], nil, "23 bytes"},
		"cut behind the header":    {content[:24], []string{}, ""},
		"first frame zeros":        {zero(24, second), nil, "damaged at offset 24: a frame of that length is not possible; intact records again from offset 40"},
		"last frame zeros":         {zero(second, end), []string{"one"}, ""},
		"cut inside a frame":       {content[:end-1], []string{"one"}, ""},
		"cut between frames":       {content[:second], []string{"one"}, ""},
		"zeros appended":           {append(zero(0, 0), make([]byte, 4096)...), []string{"one", "two"}, ""},
		"many zeros appended":      {append(zero(0, 0), make([]byte, journal.MaxBatch+100)...), nil, "more than one append"},
		"frame doubled":            {append(zero(0, 0), content[second:]...), []string{"one", "two"}, ""},
		"frame of another journal": {append(zero(0, 0), foreignFrame()...), []string{"one", "two"}, ""},
	} {
		d := journaltest.New()
		d.Spoil(path, c.content)
		torn := 0
		j, got, err := journal.Open(d, dir, journal.Options{OnTorn: func(journal.Torn) { torn++ }})
		if c.want == nil {
			if !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v, want ErrDamaged with the file and %q", name, err, c.says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !sameRecords(got, c.want) {
			t.Errorf("%s: records %q, want %q", name, got, c.want)
		}
		must(t, j.Close())
	}
}

// foreignFrame is a frame of a journal with another salt, at the right offset:
// what a file system shows that gave the file a block of a deleted one.
func foreignFrame() []byte {
	frame := make([]byte, 9+4+3)
	binary.LittleEndian.PutUint32(frame, 7)
	frame[8] = 1
	binary.LittleEndian.PutUint32(frame[9:], 3)
	copy(frame[13:], "two")
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:], 99)
	binary.LittleEndian.PutUint64(place[8:], end)
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, place[:])
	sum = crc32.Update(sum, table, frame[:4])
	binary.LittleEndian.PutUint32(frame[4:], crc32.Update(sum, table, frame[8:]))
	return frame
}

// A record may hold anything, a journal too. A torn append of such a record must
// not look like damage in the middle.
func TestRecordThatHoldsAFrameIsNotTakenForOne(t *testing.T) {
	d, content := twoFrames(t)
	j := mustOpen(t, d, dir)
	must(t, j.Append(content))
	must(t, j.Close())
	torn, _ := d.Content(path)
	d.Spoil(path, torn[:len(torn)-1])
	_, got := open(t, d, dir)
	wantRecords(t, got, []string{"one", "two"})
}

func TestNewerVersionIsLeftAlone(t *testing.T) {
	d, content := twoFrames(t)
	content[8] = 2
	binary.LittleEndian.PutUint32(content[20:], crc32.Checksum(content[:20], crc32.MakeTable(crc32.Castagnoli)))
	d.Spoil(path, content)
	if _, _, err := journal.Open(d, dir, journal.Options{}); !errors.Is(err, journal.ErrVersion) {
		t.Errorf("open: %v, want ErrVersion", err)
	}
	if _, err := journal.SetAside(d, dir, journal.Options{}); !errors.Is(err, journal.ErrVersion) {
		t.Errorf("set aside: %v, want ErrVersion", err)
	}
	if _, err := journal.Discard(d, dir, journal.Options{}); !errors.Is(err, journal.ErrVersion) {
		t.Errorf("discard: %v, want ErrVersion", err)
	}
	if now, _ := d.Content(path); string(now) != string(content) {
		t.Error("the file was changed")
	}
}

// G8: nothing is deleted, and what is sound is left alone, unless its reader can make
// nothing of it.
func TestG8_SetAsideKeepsTheFile(t *testing.T) {
	d, content := twoFrames(t)
	if q, err := journal.SetAside(d, dir, journal.Options{}); err != nil || q != (journal.Aside{}) {
		t.Errorf("a good journal: %+v, %v", q, err)
	}
	q, err := journal.Discard(d, dir, journal.Options{})
	must(t, err)
	if want := (journal.Aside{File: path + ".damaged-1", Records: 2}); q != want {
		t.Errorf("set aside %+v, want %+v", q, want)
	}
	if kept, _ := d.Content(q.File); string(kept) != string(content) {
		t.Error("the file has changed")
	}
	d.PowerCut(nil)
	_, got := open(t, d, dir)
	wantRecords(t, got, nil)
}

// A11: a damaged journal on a full disk is set aside without any room, however often
// that happens, and leaves nothing half done behind.
func TestA11_SetAsideNeedsNoRoom(t *testing.T) {
	d, content := twoFrames(t)
	content[30] ^= 1
	names := map[string]bool{}
	for range 20 {
		d.SetSpace(-1)
		d.Spoil(path, content)
		d.SetSpace(0)
		q, err := journal.SetAside(d, dir, journal.Options{})
		if q.File != "" {
			names[q.File] = true
		}
		if err == nil {
			t.Fatal("there was room for a new journal")
		}
		d.Kill()
		d.SetSpace(-1) // somebody has made room
		j, got := open(t, d, dir)
		wantRecords(t, got, nil)
		must(t, j.Close())
	}
	for name := range names {
		if kept, _ := d.Content(name); string(kept) != string(content) {
			t.Errorf("%s differs from the damaged file", name)
		}
	}
	if len(names) != 4 {
		t.Errorf("%d damaged files are kept", len(names))
	}
}

// G6: the agent begins anew with an empty journal, at once or not at all: after a
// power cut at any step the file is the damaged one, which is refused, or empty;
// never one that has lost records and does not show it.
func TestG6_SetAsideLeavesAnEmptyJournal(t *testing.T) {
	for cut := 0; ; cut++ {
		d, content := twoFrames(t)
		content[30] ^= 1
		d.Spoil(path, content)
		ops := 0
		d.Inject(func(journaltest.Op) *journaltest.Fault {
			if ops++; ops > cut {
				return &journaltest.Fault{Err: errors.New("power cut")}
			}
			return nil
		})
		q, err := journal.SetAside(d, dir, journal.Options{})
		d.Inject(nil)
		d.PowerCut(nil)
		if err == nil {
			if kept, _ := d.Content(q.File); string(kept) != string(content) || q.Records != 1 || q.Lost != second-24 {
				t.Errorf("set aside %+v", q)
			}
			_, got := open(t, d, dir)
			wantRecords(t, got, nil)
			if cut < 5 {
				t.Errorf("only %d operations were counted", cut)
			}
			return
		}
		j, got, err := journal.Open(d, dir, journal.Options{})
		switch {
		case errors.Is(err, journal.ErrDamaged):
		case err != nil || len(got) != 0:
			t.Fatalf("cut after operation %d: records %q, %v", cut, got, err)
		default:
			must(t, j.Close())
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("A11JRNL\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		d := journaltest.New()
		d.Spoil(path, content)
		j, records, err := journal.Open(d, dir, journal.Options{})
		if err != nil {
			if !errors.Is(err, journal.ErrDamaged) && !errors.Is(err, journal.ErrVersion) {
				t.Fatalf("unexpected kind of error: %v", err)
			}
			return
		}
		must(t, j.Close())
		d.PowerCut(nil)
		_, again := open(t, d, dir)
		wantRecords(t, again, texts(records))
	})
}

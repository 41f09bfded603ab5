package journal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/journal"
	"github.com/apollo-11/apollo11/fieldagent/journal/journaltest"
)

var errCrash = errors.New("power gone")

// site is a journal with the model it must agree with: the acknowledged records
// and, after a call that failed, the other content that is allowed.
type site struct {
	disk  *journaltest.Disk
	j     *journal.Journal
	acked []string
	maybe []string // allowed instead of acked if doubt is set
	doubt bool
	salt  uint64
	step  int
}

func (s *site) open() error {
	j, records, err := journal.Open(s.disk, dir, journal.Options{Salt: func() uint64 { s.salt++; return s.salt }})
	if err != nil {
		return err
	}
	switch {
	case sameRecords(records, s.acked):
	case s.doubt && sameRecords(records, s.maybe):
	default:
		return fmt.Errorf("bug: found %q, want %q (in doubt %t: %q)", records, s.acked, s.doubt, s.maybe)
	}
	// From here on they have been shown to the caller and must stay.
	s.j, s.acked, s.doubt = j, texts(records), false
	return nil
}

func (s *site) append(batch ...string) error {
	s.maybe, s.doubt = append(append([]string{}, s.acked...), batch...), true
	if err := s.j.Append(records(batch)...); err != nil {
		return err
	}
	s.acked, s.doubt = s.maybe, false
	return nil
}

func (s *site) rewrite(keep []string) error {
	s.maybe, s.doubt = append([]string{}, keep...), true
	if err := s.j.Rewrite(records(keep)); err != nil {
		return err
	}
	s.acked, s.doubt = s.maybe, false
	return nil
}

// random does one random thing.
func (s *site) random(rng *rand.Rand) error {
	s.step++
	if rng.IntN(8) == 0 {
		return s.rewrite(s.acked[rng.IntN(len(s.acked)+1):])
	}
	var batch []string
	for i := range 1 + rng.IntN(4) {
		size := rng.IntN(40)
		if rng.IntN(5) == 0 {
			size = rng.IntN(3000) // over several sectors
		}
		batch = append(batch, fmt.Sprintf("%d.%d %s", s.step, i, strings.Repeat("x", size)))
	}
	return s.append(batch...)
}

// TestG5_G6_EveryAcknowledgedRecordSurvivesRandomCrashes is the property test:
// random work, a fault at a random operation, a crash of a random kind, again
// and again on the same disk.
func TestG5_G6_EveryAcknowledgedRecordSurvivesRandomCrashes(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 15
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 11))
		s := &site{disk: journaltest.New()}
		for life := range 25 {
			if err := oneLife(s, rng); err != nil {
				t.Fatalf("seed %d, life %d: %v", seed, life, err)
			}
		}
	}
}

// oneLife is one process: open, work, be hit, crash. It returns only bugs.
func oneLife(s *site, rng *rand.Rand) error {
	hit := s.disk.Ops() + 1 + rng.IntN(40)
	s.disk.Inject(func(op journaltest.Op) *journaltest.Fault {
		if op.N < hit {
			return nil
		}
		return &journaltest.Fault{Err: errCrash, Written: rng.IntN(op.Bytes + 1)}
	})
	err := s.open()
	for err == nil {
		err = s.random(rng)
	}
	if !errors.Is(err, errCrash) {
		return err
	}
	switch rng.IntN(3) {
	case 0:
		s.disk.Kill()
	case 1:
		s.disk.PowerCut(nil)
	default:
		s.disk.PowerCut(rng)
	}
	s.disk.Inject(nil)
	return nil
}

// script is a fixed run that has every kind of operation in it.
func script(s *site) error {
	for _, step := range []func() error{
		s.open,
		func() error { return s.append("one") },
		func() error { return s.append("two", "three", strings.Repeat("four", 400)) },
		func() error { return s.rewrite([]string{"two", "five"}) },
		func() error { return s.append("six") },
		func() error { return s.rewrite(nil) },
		func() error { return s.append("seven", "eight") },
		func() error { s.disk.Kill(); return s.open() },
		func() error { return s.append("nine") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// TestG15_CrashAtEveryOperation runs the script once for every operation it
// makes and crashes there, in every way. First creation and compaction are
// among them: the old file or the new one, never an empty one.
func TestG15_CrashAtEveryOperation(t *testing.T) {
	whole := &site{disk: journaltest.New()}
	must(t, script(whole))
	for hit := 1; hit <= whole.disk.Ops(); hit++ {
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, uint64(hit)))
			s := &site{disk: journaltest.New()}
			s.disk.Inject(func(op journaltest.Op) *journaltest.Fault {
				if op.N < hit {
					return nil
				}
				return &journaltest.Fault{Err: errCrash, Written: rng.IntN(op.Bytes + 1)}
			})
			if err := script(s); !errors.Is(err, errCrash) {
				t.Fatalf("operation %d: %v, want the crash", hit, err)
			}
			s.disk.Inject(nil)
			if seed == 0 {
				s.disk.PowerCut(nil)
			} else {
				s.disk.PowerCut(rng)
			}
			if err := s.open(); err != nil {
				t.Fatalf("after a crash at operation %d, seed %d: %v", hit, seed, err)
			}
			if err := s.append("goes on"); err != nil {
				t.Fatalf("append after a crash at operation %d: %v", hit, err)
			}
		}
	}
}

// TestG5_EveryByteBoundaryOfTheTail tears the last append after every byte.
func TestG5_EveryByteBoundaryOfTheTail(t *testing.T) {
	const frame = 9 + 4 + 5 + 4 + 600
	for keep := 0; keep <= frame; keep++ {
		s := &site{disk: journaltest.New()}
		must(t, s.open())
		must(t, s.append("before"))
		s.disk.Inject(func(op journaltest.Op) *journaltest.Fault {
			if op.Kind != journaltest.OpSync {
				return nil
			}
			return &journaltest.Fault{Err: errCrash, Written: keep}
		})
		if err := s.append("first", strings.Repeat("y", 600)); err == nil {
			t.Fatal("append succeeded without a sync")
		}
		s.disk.Inject(nil)
		s.disk.PowerCut(nil)
		must(t, s.open())
		if whole := len(s.acked) == 3; whole != (keep == frame) {
			t.Fatalf("%d of %d bytes: records %.60q", keep, frame, s.acked)
		}
		must(t, s.append("after"))
		s.disk.PowerCut(nil)
		must(t, s.open())
	}
}

// The model itself must bite: a record that was acknowledged and is gone is
// noticed.
func TestModelNoticesALostRecord(t *testing.T) {
	s := &site{disk: journaltest.New()}
	must(t, s.open())
	must(t, s.append("a"))
	content, _ := s.disk.Content(path)
	s.disk.Spoil(path, content[:len(content)-1])
	s.disk.Kill()
	if err := s.open(); err == nil || !strings.Contains(err.Error(), "bug:") {
		t.Fatalf("a lost record was not noticed: %v", err)
	}
}

func records(texts []string) [][]byte {
	var out [][]byte
	for _, s := range texts {
		out = append(out, []byte(s))
	}
	return out
}

func texts(records [][]byte) []string {
	var out []string
	for _, r := range records {
		out = append(out, string(r))
	}
	return out
}

package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// trailOf lets an operator work and returns the audit trail.
func trailOf(t *testing.T) []engine.Audit {
	h := newHarness(t)
	h.block("hello a\nsubmit node=a intent=gpio.pulse\nsubmit node=a id=t2")
	h.block("event a seq=1 processed interrupted\noperate quiet_on for=1m note=pump by=ann")
	h.block("operate retry seq=1 by=bob yes\ncancel t2 by=ann\ngarbage task hmi not-JSON {")
	h.block("operate dead_drop dead=1 by=ann note=nonsense\nadvance 2m")
	if len(h.log.audits) != 5 {
		t.Fatalf("%d entries: %+v", len(h.log.audits), h.log.audits)
	}
	return h.log.audits
}

func checkTrail(list []engine.Audit) error {
	var tr engine.Trail
	for _, a := range list {
		if err := tr.Check(a); err != nil {
			return err
		}
	}
	return nil
}

// TestB11_EverySingleByteOfTheTrailIsGuarded changes each byte of each stored entry
// in turn. What then reads as something else does not pass.
func TestB11_EverySingleByteOfTheTrailIsGuarded(t *testing.T) {
	list := trailOf(t)
	if err := checkTrail(list); err != nil {
		t.Fatal(err)
	}
	read := 0
	for k := range list {
		raw, err := wire.EncodeRecord(&list[k])
		if err != nil {
			t.Fatal(err)
		}
		for b := range raw {
			for _, flip := range []byte{1, 0x20, 0xff} {
				bad := bytes.Clone(raw)
				bad[b] ^= flip
				var a engine.Audit
				if wire.DecodeRecord(bad, &a) != nil {
					continue // the reader says so
				}
				if a == list[k] {
					continue // a field that was empty under a key that nobody knows
				}
				read++
				changed := slices.Clone(list)
				changed[k] = a
				err := checkTrail(changed)
				if err == nil {
					t.Fatalf("entry %d with byte %d changed passes", k+1, b)
				}
				if !strings.Contains(err.Error(), "audit entry") {
					t.Fatalf("the error names no entry: %v", err)
				}
			}
		}
	}
	if read < 500 {
		t.Errorf("only %d changes could be read at all", read)
	}
}

// TestB11_NothingIsTakenOutOrMoved removes, swaps, repeats and replaces entries.
func TestB11_NothingIsTakenOutOrMoved(t *testing.T) {
	list := trailOf(t)
	for k := range list[:len(list)-1] { // the end can only be missed by who knows of it
		if err := checkTrail(slices.Delete(slices.Clone(list), k, k+1)); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("without entry %d: %v", k+1, err)
		}
		swapped := slices.Clone(list)
		swapped[k], swapped[k+1] = swapped[k+1], swapped[k]
		if checkTrail(swapped) == nil {
			t.Errorf("with entries %d and %d swapped it passes", k+1, k+2)
		}
		if checkTrail(slices.Insert(slices.Clone(list), k, list[k])) == nil {
			t.Errorf("with entry %d twice it passes", k+1)
		}
	}
	// An entry that is forged with its own hash breaks the one behind it.
	for k := range list[:len(list)-1] {
		forged := slices.Clone(list)
		forged[k].Actor = "nobody"
		sum, err := forged[k].Seal()
		if err != nil {
			t.Fatal(err)
		}
		forged[k].Hash = sum
		if err := checkTrail(forged); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("entry %d does not continue entry %d", k+2, k+1)) {
			t.Errorf("forged entry %d: %v", k+1, err)
		}
	}
}

// TestB11_TextsOfOperatorsAreMadeToFit: whatever a client calls itself, its action is
// in the trail.
func TestB11_TextsOfOperatorsAreMadeToFit(t *testing.T) {
	h := newHarness(t)
	h.log.step(h.eng, h.now, &engine.Operate{Action: engine.ActionQuietOn, Until: h.now.Wall + 1000,
		Actor: "\xff" + strings.Repeat("a", 1<<16), Note: strings.Repeat("é", 1<<16), Reply: "caller"})
	r := h.eng.Ready(h.now)
	h.finish(&r)
	if len(h.log.audits) != 1 || !strings.HasPrefix(h.log.audits[0].Note, "éé") {
		t.Fatalf("%d entries", len(h.log.audits))
	}
	if q := h.log.quiet; len(q.Reason) > 1<<10 || len(q.By) > 1<<10 {
		t.Errorf("the quiet period keeps %d and %d bytes", len(q.Reason), len(q.By))
	}
}

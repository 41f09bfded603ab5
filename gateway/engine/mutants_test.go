//go:build mutants

package engine_test

import (
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire/mutant"
)

// TestMutantsOfTrust: what the scripts and tests of trust demand breaks with each of
// these faults. (The simulator has them too, where its sites have such agents.)
func TestMutantsOfTrust(t *testing.T) {
	for _, c := range []struct {
		fault  mutant.Fault
		blocks []string
		want   string // in what the last block prints
	}{
		{mutant.HelloForAll, []string{"hello a top=0,0", "goodbye a lost\nsubmit node=a", "hello evil top=1,3", "hello a"}, "-> send a instruction 1"},
		{mutant.TwinUnseen, []string{"hello a nonce=1", "goodbye a lost\nhello a nonce=2", "goodbye a lost\nhello a nonce=1"}, "alarm raised twin a"},
		{mutant.CompactCancelUnsent, []string{"narrowband a up\nhello a\nsubmit node=a intent=gpio.pulse", "event a seq=1 started", "goodbye a lost\ncancel seq=1\nadvance 1s"}, "cancel 1 a1"},
		{mutant.UnknownUnasked, []string{"hello a\nsubmit node=a intent=gpio.pulse", "event a seq=1 processed interrupted", "operate retry seq=1"}, "refused (6)"},
	} {
		for _, planted := range []bool{false, true} {
			if planted {
				mutant.Plant(c.fault)
			}
			h, out := newHarness(t), ""
			for _, b := range c.blocks {
				out = h.block(b)
			}
			mutant.Plant(mutant.None)
			if strings.Contains(out, c.want) == planted {
				t.Errorf("%v planted %v:\n%s", c.fault, planted, out)
			}
		}
	}
}

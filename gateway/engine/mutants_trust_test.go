//go:build mutants

package engine_test

import (
	"testing"

	"github.com/apollo-11/apollo11/wire/mutant"
)

// TestMutantsOfTrust: what the scripts and tests of trust demand breaks with each of
// these faults. (The simulator has them too, where its sites have such agents.)
func TestMutantsOfTrust(t *testing.T) {
	bites(t, []planted{
		{mutant.HelloForAll, []string{"hello a top=0,0", "goodbye a lost\nsubmit node=a", "hello evil top=1,3", "hello a"}, "-> send a instruction 1"},
		{mutant.TwinUnseen, []string{"hello a nonce=1", "goodbye a lost\nhello a nonce=2", "goodbye a lost\nhello a nonce=1"}, "alarm raised twin a"},
		{mutant.CompactCancelUnsent, []string{"narrowband a up\nhello a\nsubmit node=a intent=gpio.pulse", "event a seq=1 started", "goodbye a lost\ncancel seq=1\nadvance 1s"}, "cancel 1 a1"},
		{mutant.UnknownUnasked, []string{"hello a\nsubmit node=a intent=gpio.pulse", "event a seq=1 processed interrupted", "operate retry seq=1"}, "refused (6)"},
	})
}

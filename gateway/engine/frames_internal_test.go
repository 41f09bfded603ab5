package engine

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// TestFramesOfAKindInASecond: as many as its kind may use up go at once, and no more; the
// next one when the first of them is a second old. What comes later in the list finds its
// place behind what comes before it.
func TestFramesOfAKindInASecond(t *testing.T) {
	for _, most := range []int{frameQuestion, frameCancel, frameSafe} {
		var f frames
		began := 5 * time.Second
		for k := range most {
			if free := f.take(Now{Mono: began + time.Duration(k)}, most); free != 0 {
				t.Errorf("%d may go, and the %d. is told to wait", most, k+1)
			}
		}
		if free := f.take(Now{Mono: began + time.Second - 1}, most); free != began+time.Second {
			t.Errorf("of %d the one beyond goes at %v, not at %v", most, free, began+time.Second)
		}
		for k := range wire.NarrowbandRate - most {
			if free := f.take(Now{Mono: began + time.Millisecond}, frameSafe); free != 0 {
				t.Errorf("the %d. towards safe waits behind %d others", k+1, most)
			}
		}
		if free := f.take(Now{Mono: began + time.Millisecond}, frameSafe); free == 0 {
			t.Error("more than the narrowband carries")
		}
		if free := f.take(Now{Mono: began + time.Second + time.Millisecond}, most); free != 0 {
			t.Errorf("of %d none goes a second later", most)
		}
	}
}

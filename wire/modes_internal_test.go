package wire

import "testing"

func TestModesAreValid(t *testing.T) {
	if errEnc != nil || errDec != nil || errMap != nil || errRec != nil {
		t.Fatal(errEnc, errDec, errMap, errRec)
	}
	if simpleValues() == nil {
		t.Fatal("the simple values cannot be rejected")
	}
}

package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

func TestSafeReportsAreReadBack(t *testing.T) {
	for name, r := range map[string]wire.SafeReport{
		"nothing": {}, "all": {Driven: []string{"a", "b"}, Newer: []string{"c"}, NotMoved: []string{"d"}, Unlisted: 3},
		"not moved": {NotMoved: []string{"lamp"}},
		"released":  {Released: []string{"a", "b"}, Unlisted: 1}, "nothing was held": {Released: []string{}},
	} {
		viaCBOR, err := wire.DecodeMap(rawMap(t, r.Map()))
		if err != nil {
			t.Fatal(err)
		}
		j, err := json.Marshal(r.Map())
		if err != nil {
			t.Fatal(err)
		}
		var exact map[string]any // as a tool reads it that prints numbers as they came
		d := json.NewDecoder(bytes.NewReader(j))
		d.UseNumber()
		if err := d.Decode(&exact); err != nil {
			t.Fatal(err)
		}
		for way, m := range map[string]map[string]any{"CBOR": viaCBOR, "JSON": object(t, string(j)), "JSON with exact numbers": exact} {
			if got := wire.SafeReportOf(m); !reflect.DeepEqual(got, r) {
				t.Errorf("%s as %s: %+v, want %+v", name, way, got, r)
			}
		}
	}
}

// Whatever a board has, the report fits a payload, and the names that somebody must
// act on come first.
func TestSafeReportsFitAPayload(t *testing.T) {
	names := func(prefix string, n, length int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("%s%0*d", prefix, length-len(prefix), i)
		}
		return list
	}
	for _, c := range []struct {
		not, newer, driven, length, shown int // how many of them all are listed
	}{{0, 0, 256, 24, 256}, {0, 0, 256, wire.MaxPinLen, 108}, {100, 100, 56, wire.MaxPinLen, 108}, {256, 0, 0, wire.MaxPinLen, 108}} {
		r := wire.SafeReport{NotMoved: names("n", c.not, c.length), Newer: names("o", c.newer, c.length), Driven: names("d", c.driven, c.length)}
		b, err := wire.EncodeMap(r.Map(), wire.MaxPayloadBytes)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		m, err := wire.DecodeMap(b)
		if err != nil {
			t.Fatal(err)
		}
		got := wire.SafeReportOf(m)
		shown := len(got.NotMoved) + len(got.Newer) + len(got.Driven)
		if shown != c.shown || shown+got.Unlisted != c.not+c.newer+c.driven || len(got.NotMoved) != min(c.not, shown) {
			t.Errorf("%+v: %d are shown and %d not; not moved are %d", c, shown, got.Unlisted, len(got.NotMoved))
		}
	}
}

func TestStrangeSafeReports(t *testing.T) {
	for _, s := range []string{`{}`, `{"driven":1,"newer":{},"not_moved":"x","unlisted":"y"}`, `{"driven":[1,null,["a"]],"unlisted":-1}`, `{"unlisted":1e300}`} {
		if got := wire.SafeReportOf(object(t, s)); !reflect.DeepEqual(got, wire.SafeReport{}) {
			t.Errorf("%s was read as %+v", s, got)
		}
	}
	if got := wire.SafeReportOf(object(t, `{"driven":["a",7],"more":`+strings.Repeat("[", 3)+strings.Repeat("]", 3)+`}`)); len(got.Driven) != 1 {
		t.Errorf("%+v", got)
	}
}

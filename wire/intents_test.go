package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/apollo-11/apollo11/wire"
)

// object reads JSON as the entry points do, numbers apart.
func object(t testing.TB, s string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestParseArgs(t *testing.T) {
	high, low := wire.GPIOWrite{Pin: "GPIO17", Level: true}, wire.GPIOWrite{Pin: "GPIO17"}
	pulse := func(d time.Duration) wire.Args { return wire.GPIOPulse{Pin: "GPIO17", Level: true, Width: d} }
	lease := func(d time.Duration) wire.Args { return wire.GPIOWrite{Pin: "GPIO17", Level: true, MaxOn: d} }
	watch := func(e wire.Edge, d, every time.Duration) wire.Args {
		return wire.GPIOWatch{Pin: "GPIO17", Edge: e, For: d, Every: every}
	}
	const write, pulsed = `{"pin":"GPIO17","level":%s}`, `{"pin":"GPIO17",%s}`
	const leased, watched = `{"pin":"GPIO17","level":1,%s}`, pulsed
	tests := []struct {
		name, intent, form, value string
		want                      wire.Args // nil means refused
		field                     string    // of the refusal
	}{
		{"A1 zero is a value", wire.IntentGPIOWrite, write, `0`, low, ""},
		{"A1 zero with a fraction is a value", wire.IntentGPIOWrite, write, `0.0`, low, ""},
		{"A1 false is a value", wire.IntentGPIOWrite, write, `false`, low, ""},
		{"A1 the empty string is none", wire.IntentGPIOWrite, write, `""`, nil, "level"},
		{"A1 null is none", wire.IntentGPIOWrite, write, `null`, nil, "level"},
		{"one", wire.IntentGPIOWrite, write, `1`, high, ""},
		{"one with a fraction", wire.IntentGPIOWrite, write, `1.0`, high, ""},
		{"A3 one in quotes", wire.IntentGPIOWrite, write, `"1"`, high, ""},
		{"A3 zero in quotes", wire.IntentGPIOWrite, write, `"0"`, low, ""},
		{"A3 zero with a fraction in quotes", wire.IntentGPIOWrite, write, `"0.0"`, low, ""},
		{"A3 one with a fraction in quotes", wire.IntentGPIOWrite, write, `"1.0"`, high, ""},
		{"A3 quotes with a space", wire.IntentGPIOWrite, write, `" 1"`, nil, "level"},
		{"A3 quotes with an exponent", wire.IntentGPIOWrite, write, `"1e0"`, nil, "level"},
		{"A3 quotes with hex", wire.IntentGPIOWrite, write, `"0x1"`, nil, "level"},
		{"A3 quotes with a plus", wire.IntentGPIOWrite, write, `"+1"`, nil, "level"},
		{"A3 quotes with NaN (A11)", wire.IntentGPIOWrite, write, `"NaN"`, nil, "level"},
		{"A3 quotes with infinity (A11)", wire.IntentGPIOWrite, write, `"Infinity"`, nil, "level"},
		{"A3 quotes with a point only", wire.IntentGPIOWrite, write, `"."`, nil, "level"},
		{"A4 true", wire.IntentGPIOWrite, write, `true`, high, ""},
		{"A4 true in quotes", wire.IntentGPIOWrite, write, `"true"`, high, ""},
		{"A4 ON", wire.IntentGPIOWrite, write, `"ON"`, high, ""},
		{"A4 Off", wire.IntentGPIOWrite, write, `"Off"`, low, ""},
		{"A4 high", wire.IntentGPIOWrite, write, `"high"`, high, ""},
		{"A4 LOW", wire.IntentGPIOWrite, write, `"LOW"`, low, ""},
		{"A4 FALSE", wire.IntentGPIOWrite, write, `"FALSE"`, low, ""},
		{"A4 another word", wire.IntentGPIOWrite, write, `"open"`, nil, "level"},
		{"two", wire.IntentGPIOWrite, write, `2`, nil, "level"},
		{"minus one", wire.IntentGPIOWrite, write, `-1`, nil, "level"},
		{"half", wire.IntentGPIOWrite, write, `0.5`, nil, "level"},
		{"A11 minus zero is zero", wire.IntentGPIOWrite, write, `-0.0`, low, ""},
		{"A11 1e-400 is zero", wire.IntentGPIOWrite, write, `1e-400`, low, ""},
		{"list", wire.IntentGPIOWrite, write, `[1]`, nil, "level"},
		{"object", wire.IntentGPIOWrite, write, `{"a":1}`, nil, "level"},
		{"level missing", wire.IntentGPIOWrite, `{"pin":"GPIO17"}%s`, ``, nil, "level"},

		{"pin missing", wire.IntentGPIORead, `{}%s`, ``, nil, "pin"},
		{"pin", wire.IntentGPIORead, `{"pin":%s}`, `"gpiochip0:17"`, wire.GPIORead{Pin: "gpiochip0:17"}, ""},
		{"I10 pin as a number", wire.IntentGPIORead, `{"pin":%s}`, `17`, nil, "pin"},
		{"A3 pin as a number in quotes is a name, which boards refuse", wire.IntentGPIORead, `{"pin":%s}`, `"17"`, wire.GPIORead{Pin: "17"}, ""},
		{"pin empty", wire.IntentGPIORead, `{"pin":%s}`, `""`, nil, "pin"},
		{"pin null", wire.IntentGPIORead, `{"pin":%s}`, `null`, nil, "pin"},
		{"pin with a slash", wire.IntentGPIORead, `{"pin":%s}`, `"/dev/gpio"`, nil, "pin"},
		{"M1 pin with markup", wire.IntentGPIORead, `{"pin":%s}`, `"<script>"`, nil, "pin"},
		{"pin too long", wire.IntentGPIORead, `{"pin":%s}`, `"` + strings.Repeat("x", 65) + `"`, nil, "pin"},
		{"unknown argument", wire.IntentGPIORead, `{"pin":"GPIO17","value":%s}`, `1`, nil, "value"},
		{"argument in upper case", wire.IntentGPIORead, `{"Pin":%s}`, `"GPIO17"`, nil, "Pin"},

		{"width", wire.IntentGPIOPulse, pulsed, `"width":"500ms"`, pulse(500 * time.Millisecond), ""},
		{"width in seconds", wire.IntentGPIOPulse, pulsed, `"width":"1.5s"`, pulse(1500 * time.Millisecond), ""},
		{"width in milliseconds", wire.IntentGPIOPulse, pulsed, `"width_ms":500`, pulse(500 * time.Millisecond), ""},
		{"A3 width in quotes", wire.IntentGPIOPulse, pulsed, `"width_ms":"500"`, pulse(500 * time.Millisecond), ""},
		{"A3 width with a zero fraction in quotes", wire.IntentGPIOPulse, pulsed, `"width_ms":"500.0"`, pulse(500 * time.Millisecond), ""},
		{"level of a pulse", wire.IntentGPIOPulse, pulsed, `"width":"1s","level":0`, wire.GPIOPulse{Pin: "GPIO17", Width: time.Second}, ""},
		{"shortest pulse", wire.IntentGPIOPulse, pulsed, `"width_ms":1`, pulse(wire.MinPulse), ""},
		{"longest pulse", wire.IntentGPIOPulse, pulsed, `"width_ms":3600000`, pulse(wire.MaxPulse), ""},
		{"longest pulse in words", wire.IntentGPIOPulse, pulsed, `"width":"1h"`, pulse(wire.MaxPulse), ""},
		{"I13 no width", wire.IntentGPIOPulse, pulsed, `"level":1`, nil, "width"},
		{"I13 zero width", wire.IntentGPIOPulse, pulsed, `"width_ms":0`, nil, "width_ms"},
		{"I13 negative width", wire.IntentGPIOPulse, pulsed, `"width_ms":-1`, nil, "width_ms"},
		{"I13 negative width in words", wire.IntentGPIOPulse, pulsed, `"width":"-1s"`, nil, "width"},
		{"I13 2^31 ms", wire.IntentGPIOPulse, pulsed, `"width_ms":2147483648`, nil, "width_ms"},
		{"I13 2^63 ms", wire.IntentGPIOPulse, pulsed, `"width_ms":9223372036854775808`, nil, "width_ms"},
		{"I13 1e300 ms", wire.IntentGPIOPulse, pulsed, `"width_ms":1e300`, nil, "width_ms"},
		{"I13 one more than the longest", wire.IntentGPIOPulse, pulsed, `"width_ms":3600001`, nil, "width_ms"},
		{"I13 beyond any duration", wire.IntentGPIOPulse, pulsed, `"width":"9999999h"`, nil, "width"},
		{"I13 a microsecond", wire.IntentGPIOPulse, pulsed, `"width":"1us"`, nil, "width"},
		{"I13 a part of a millisecond", wire.IntentGPIOPulse, pulsed, `"width":"1.5ms"`, nil, "width"},
		{"I13 half a millisecond", wire.IntentGPIOPulse, pulsed, `"width_ms":0.5`, nil, "width_ms"},
		{"I13 width without a unit", wire.IntentGPIOPulse, pulsed, `"width":500`, nil, "width"},
		{"I13 width without a unit in quotes", wire.IntentGPIOPulse, pulsed, `"width":"500"`, nil, "width"},
		{"I13 width empty", wire.IntentGPIOPulse, pulsed, `"width":""`, nil, "width"},
		{"I13 width null", wire.IntentGPIOPulse, pulsed, `"width_ms":null`, nil, "width_ms"},
		{"I13 width true", wire.IntentGPIOPulse, pulsed, `"width_ms":true`, nil, "width_ms"},
		{"I13 width twice", wire.IntentGPIOPulse, pulsed, `"width_ms":500,"width":"500ms"`, nil, "width"},

		{"C13 lease", wire.IntentGPIOWrite, leased, `"max_on":"10m"`, lease(10 * time.Minute), ""},
		{"C13 lease in milliseconds", wire.IntentGPIOWrite, leased, `"max_on_ms":1500`, lease(1500 * time.Millisecond), ""},
		{"A3 lease in quotes", wire.IntentGPIOWrite, leased, `"max_on_ms":"1500"`, lease(1500 * time.Millisecond), ""},
		{"shortest lease", wire.IntentGPIOWrite, leased, `"max_on_ms":10`, lease(wire.MinLease), ""},
		{"longest lease", wire.IntentGPIOWrite, leased, `"max_on":"576h"`, lease(wire.MaxLease), ""},
		{"I13 zero lease", wire.IntentGPIOWrite, leased, `"max_on_ms":0`, nil, "max_on_ms"},
		{"I13 zero lease in words", wire.IntentGPIOWrite, leased, `"max_on":"0s"`, nil, "max_on"},
		{"I13 negative lease", wire.IntentGPIOWrite, leased, `"max_on_ms":-1`, nil, "max_on_ms"},
		{"I13 lease of 2^31 ms", wire.IntentGPIOWrite, leased, `"max_on_ms":2147483648`, nil, "max_on_ms"},
		{"I13 lease of 31 days", wire.IntentGPIOWrite, leased, `"max_on":"744h"`, nil, "max_on"},
		{"I13 part of a millisecond of a lease", wire.IntentGPIOWrite, leased, `"max_on":"1.5ms"`, nil, "max_on"},
		{"I13 half a millisecond of a lease", wire.IntentGPIOWrite, leased, `"max_on_ms":0.5`, nil, "max_on_ms"},
		{"I13 lease without a unit", wire.IntentGPIOWrite, leased, `"max_on":600`, nil, "max_on"},
		{"I13 lease null", wire.IntentGPIOWrite, leased, `"max_on":null`, nil, "max_on"},
		{"I13 lease twice", wire.IntentGPIOWrite, leased, `"max_on":"1s","max_on_ms":1000`, nil, "max_on"},

		{"watch", wire.IntentGPIOWatch, watched, `"for":"10m"`, watch(wire.EdgeBoth, 10*time.Minute, time.Second), ""},
		{"watch of rising edges", wire.IntentGPIOWatch, watched, `"for_ms":100,"edge":"Rising","every":"100ms"`,
			watch(wire.EdgeRising, wire.MinWatch, wire.MinEvery), ""},
		{"longest watch", wire.IntentGPIOWatch, watched, `"for":"24h","edge":"falling","every":"1h"`,
			watch(wire.EdgeFalling, wire.MaxWatch, wire.MaxEvery), ""},
		{"I13 watch without an end", wire.IntentGPIOWatch, watched, `"edge":"both"`, nil, "for"},
		{"I13 watch of zero", wire.IntentGPIOWatch, watched, `"for_ms":0`, nil, "for_ms"},
		{"I13 negative watch", wire.IntentGPIOWatch, watched, `"for":"-1s"`, nil, "for"},
		{"I13 watch of 2^31 ms", wire.IntentGPIOWatch, watched, `"for_ms":2147483648`, nil, "for_ms"},
		{"I13 watch of more than a day", wire.IntentGPIOWatch, watched, `"for":"24h1ms"`, nil, "for"},
		{"I13 part of a millisecond of a watch", wire.IntentGPIOWatch, watched, `"for":"100.5ms"`, nil, "for"},
		{"reports too often", wire.IntentGPIOWatch, watched, `"for":"1m","every":"99ms"`, nil, "every"},
		{"reports too seldom", wire.IntentGPIOWatch, watched, `"for":"24h","every_ms":3600001`, nil, "every_ms"},
		{"I13 another edge", wire.IntentGPIOWatch, watched, `"for":"1m","edge":"up"`, nil, "edge"},
		{"I13 edge null", wire.IntentGPIOWatch, watched, `"for":"1m","edge":null`, nil, "edge"},
		{"I13 edge as a number", wire.IntentGPIOWatch, watched, `"for":"1m","edge":1`, nil, "edge"},
		{"a level to watch for", wire.IntentGPIOWatch, watched, `"for":"1m","level":1`, nil, "level"},

		{"safe of a pin", wire.IntentSafe, `{"pin":%s}`, `"valve-1"`, wire.GPIOSafe{Pin: "valve-1"}, ""},
		{"safe of all", wire.IntentSafe, `{}%s`, ``, wire.GPIOSafe{}, ""},
		{"A1 safe of an empty name is not safe of all", wire.IntentSafe, `{"pin":%s}`, `""`, nil, "pin"},
		{"A1 safe of null is not safe of all", wire.IntentSafe, `{"pin":%s}`, `null`, nil, "pin"},
		{"I10 safe of a number", wire.IntentSafe, `{"pin":%s}`, `17`, nil, "pin"},
		{"safe with a level", wire.IntentSafe, `{"pin":"valve-1","level":%s}`, `0`, nil, "level"},
		{"release of a pin", wire.IntentRelease, `{"pin":%s}`, `"valve-1"`, wire.GPIORelease{Pin: "valve-1"}, ""},
		{"release of all", wire.IntentRelease, `{}%s`, ``, wire.GPIORelease{}, ""},
		{"A1 release of null is not release of all", wire.IntentRelease, `{"pin":%s}`, `null`, nil, "pin"},

		{"no arguments", wire.IntentCollectMetrics, `{}%s`, ``, wire.CollectMetrics{}, ""},
		{"arguments where there are none", wire.IntentCollectMetrics, `{"pin":%s}`, `"GPIO17"`, nil, "pin"},
		{"another intent", "rotate_logs", `{}%s`, ``, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := object(t, fmt.Sprintf(tt.form, tt.value))
			got, err := wire.ParseArgs(tt.intent, m)
			if tt.want != nil {
				if err != nil || !reflect.DeepEqual(got, tt.want) {
					t.Errorf("%+v, %v; want %+v", got, err, tt.want)
				}
				return
			}
			var bad *wire.ArgError
			if !errors.As(err, &bad) {
				t.Fatalf("%+v, %v; want a refusal", got, err)
			}
			if bad.Field != tt.field || bad.Problem == "" || tt.field != "" && bad.Hint == "" {
				t.Errorf("refusal of %q: %v; want one of %q with a hint", bad.Field, bad, tt.field)
			}
		})
	}
}

// A4: what is recorded is the canonical form, and reading it changes nothing, in
// CBOR or in JSON.
func TestA4_CanonicalArgumentsRoundTrip(t *testing.T) {
	for _, c := range []struct {
		intent string
		a      wire.Args
	}{
		{wire.IntentGPIOWrite, wire.GPIOWrite{Pin: "GPIO17", Level: false}},
		{wire.IntentGPIOWrite, wire.GPIOWrite{Pin: "GPIO17", Level: true, MaxOn: wire.MaxLease}},
		{wire.IntentGPIORead, wire.GPIORead{Pin: "GPIO17"}},
		{wire.IntentGPIOPulse, wire.GPIOPulse{Pin: "GPIO17", Level: true, Width: wire.MaxPulse}},
		{wire.IntentGPIOWatch, wire.GPIOWatch{Pin: "GPIO17", Edge: wire.EdgeFalling, For: wire.MaxWatch, Every: wire.MinEvery}},
		{wire.IntentSafe, wire.GPIOSafe{}},
		{wire.IntentSafe, wire.GPIOSafe{Pin: "valve-1"}},
		{wire.IntentRelease, wire.GPIORelease{}},
		{wire.IntentRelease, wire.GPIORelease{Pin: "valve-1"}},
		{wire.IntentCollectMetrics, wire.CollectMetrics{}},
		{wire.IntentReboot, wire.Reboot{}},
	} {
		intent, a := c.intent, c.a
		if !wire.BuiltIn(intent) {
			t.Errorf("%s is not built in", intent)
		}
		viaCBOR, err := wire.DecodeMap(rawMap(t, a.Map()))
		if err != nil {
			t.Fatal(err)
		}
		j, err := json.Marshal(a.Map())
		if err != nil {
			t.Fatal(err)
		}
		for way, m := range map[string]map[string]any{"directly": a.Map(), "as CBOR": viaCBOR, "as JSON": object(t, string(j))} {
			if got, err := wire.ParseArgs(intent, m); err != nil || !reflect.DeepEqual(got, a) {
				t.Errorf("%s: %+v %s became %+v, %v", intent, a, way, got, err)
			}
		}
	}
	if wire.BuiltIn("rotate_logs") || wire.BuiltIn("") || wire.BuiltIn("GPIO.WRITE") {
		t.Error("an intent is built in that is not")
	}
}

// Values that only CBOR can carry.
func TestA21_ArgumentsOfEveryType(t *testing.T) {
	for name, tt := range map[string]struct {
		level any
		ok    bool
	}{
		"uint64":       {uint64(1), true},
		"int64":        {int64(1), true},
		"float64":      {1.0, true},
		"large uint64": {uint64(math.MaxUint64), false},
		"NaN (A11)":    {math.NaN(), false},
		"infinity":     {math.Inf(1), false},
		"bytes":        {[]byte("1"), false},
		"int":          {1, false}, // no decoder makes it
		"nothing":      {nil, false},
	} {
		_, err := wire.ParseArgs(wire.IntentGPIOWrite, map[string]any{"pin": "GPIO17", "level": tt.level})
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
		_, err = wire.ParseArgs(wire.IntentGPIOPulse, map[string]any{"pin": "GPIO17", "width_ms": tt.level})
		if (err == nil) != tt.ok {
			t.Errorf("%s as width: %v", name, err)
		}
	}
}

// A refusal goes into logs and acks: it is one short line of valid text, whatever
// the caller wrote.
func TestM1_RefusalsAreFitToShow(t *testing.T) {
	long := strings.Repeat("ö", 5000)
	for _, m := range []map[string]any{
		{"<script>\n": 1}, {"a\x00": 1}, {"\xff\xfe": 1}, {long: 1}, {"": 1},
		{"pin": long}, {"pin": "\xff"}, {"pin": "a\nb"}, {"pin": []any{long}},
		{"pin": "GPIO17", "level": long}, {"pin": "GPIO17", "level": "\xff\n"},
	} {
		_, err := wire.ParseArgs(wire.IntentGPIOWrite, m)
		if err == nil {
			t.Fatalf("%.50v was accepted", m)
		}
		s := err.Error()
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\n\x00") || len(s) > wire.MaxDetailBytes {
			t.Errorf("%q (%d bytes)", s, len(s))
		}
	}
}

func ExampleParseArgs() {
	_, err := wire.ParseArgs(wire.IntentGPIOWrite, map[string]any{"pin": uint64(17), "level": "on"})
	fmt.Println(err)
	_, err = wire.ParseArgs(wire.IntentGPIOPulse, map[string]any{"pin": "GPIO17", "width_ms": int64(-1)})
	fmt.Println(err)
	// Output:
	// args.pin: is 17, not a name; pins are named, never numbered: write for example "GPIO17"
	// args.width_ms: -1 ms is out of range; a pulse lasts 1ms to 1h0m0s
}

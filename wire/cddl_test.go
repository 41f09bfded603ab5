package wire_test

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

// rule is one map or array of the schema: its lines, without the comments.
type rule struct {
	array bool
	lines []string
}

// cddlTypes are the schema types that may stand for a Go type.
var cddlTypes = map[string]string{
	"wire.Kind": `\d+`, "wire.Token": "token", "wire.Trace": "trace", "wire.RawMap": "any-map",
	"wire.Priority": "priority", "wire.Phase": "phase", "wire.Status": "status", "wire.Code": "code",
	"wire.LeaseEnd": "lease-end", "[]wire.Foreign": `\[0\*64 foreign\]`,
	"wire.Rules": "rules", "wire.LineKey": "line", "[]wire.LineKey": `\[0\*256 line\]`, "wire.PinFlags": "pin-flags",
	"[]wire.PinTraits": `\[0\*1024 pin-traits\]`, "[]uint16": `\[0\*1024 uint16\]`, "[]uint8": "levels",
	"bool": "bool", "string": "sentence|key|intent|short|name", "int64": "millis",
	"uint8": "uint8|attempt|percent|level", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64|seq|session|event-number",
	"map[string]string": "labels", "[]string": `\[0\*1024 (intent|name)\]`,
	"[]wire.Ref": `\[[01]\*512 ref\]`, "[]wire.Running": `\[0\*512 running\]`, "[]wire.State": `\[0\*512 state\]`,
}

func readSchema(t *testing.T) map[string]rule {
	t.Helper()
	b, err := os.ReadFile("wire.cddl")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]rule{}
	open := regexp.MustCompile(`^([a-z-]+) = ([{\[])$`)
	name := ""
	for _, line := range strings.Split(string(b), "\n") {
		if m := open.FindStringSubmatch(line); m != nil {
			name = m[1]
			rules[name] = rule{array: m[2] == "["}
			continue
		}
		if line == "}" || line == "]" {
			name = ""
		}
		if r, ok := rules[name]; ok {
			r.lines = append(r.lines, line)
			rules[name] = r
		}
	}
	return rules
}

// expected returns what the schema must say about a struct, a pattern a line.
func expected(t *testing.T, typ reflect.Type, kind wire.Kind) (lines []string, array bool) {
	t.Helper()
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag := f.Tag.Get("cbor")
		if f.Name == "_" {
			array = tag == ",toarray"
			continue
		}
		value, ok := cddlTypes[f.Type.String()]
		if !ok {
			t.Fatalf("%s.%s: no schema type for %s", typ, f.Name, f.Type)
		}
		end := `),\s+; ` + f.Name + `(:.*)?$`
		if array {
			lines = append(lines, `^  (`+value+end)
			continue
		}
		if f.Name == "K" {
			value = fmt.Sprint(uint8(kind))
		}
		parts := strings.Split(tag, ",")
		optional := ""
		if len(parts) == 3 && strings.HasPrefix(parts[2], "omit") {
			optional = `\? `
		}
		if len(parts) < 2 || parts[1] != "keyasint" {
			t.Errorf("%s.%s: tag %q has no integer key", typ, f.Name, tag)
		}
		lines = append(lines, `^  `+optional+parts[0]+`: (`+value+end)
	}
	if !array {
		lines = append(lines, `^  \* int => any,`)
	}
	return lines, array
}

// TestSchemaMatchesTheMessages holds wire.cddl against the structs: the same
// messages, the same keys in the same order, the same names and types.
func TestSchemaMatchesTheMessages(t *testing.T) {
	types := map[string]reflect.Type{
		"token": reflect.TypeFor[wire.Token](), "ref": reflect.TypeFor[wire.Ref](),
		"running": reflect.TypeFor[wire.Running](), "state": reflect.TypeFor[wire.State](),
		"foreign": reflect.TypeFor[wire.Foreign](), "pin-traits": reflect.TypeFor[wire.PinTraits](),
	}
	kinds := map[string]wire.Kind{}
	for _, s := range samples(t) {
		encode(t, s.msg) // sets the kind
		name := schemaName(s)
		types[name] = reflect.TypeOf(s.msg).Elem()
		kinds[name] = wire.Kind(reflect.ValueOf(s.msg).Elem().FieldByName("K").Uint())
	}
	schema := readSchema(t)
	for name := range schema {
		if types[name] == nil {
			t.Errorf("the schema has the rule %s, the code has no such type", name)
		}
	}
	for name, typ := range types {
		t.Run(name, func(t *testing.T) {
			r, ok := schema[name]
			if !ok {
				t.Fatal("is not in the schema")
			}
			want, array := expected(t, typ, kinds[name])
			if array != r.array {
				t.Errorf("array is %v in the schema, %v in the code", r.array, array)
			}
			if len(want) != len(r.lines) {
				t.Fatalf("the schema has %d lines, the code makes %d:\n%s", len(r.lines), len(want), strings.Join(r.lines, "\n"))
			}
			for i, pattern := range want {
				if !regexp.MustCompile(pattern).MatchString(r.lines[i]) {
					t.Errorf("the schema says\n%s\nthe code wants\n%s", r.lines[i], pattern)
				}
			}
		})
	}
}

// TestSchemaListsEveryMessage holds the two choices of the schema against the
// directions in which the decoders accept messages.
func TestSchemaListsEveryMessage(t *testing.T) {
	b, err := os.ReadFile("wire.cddl")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples(t) {
		choice := "downlink"
		if s.up {
			choice = "uplink"
		}
		name := schemaName(s)
		if !regexp.MustCompile(`(?m)^` + choice + ` = (.* / )?` + name + `( / .*)?$`).Match(b) {
			t.Errorf("%s does not stand in %s", name, choice)
		}
		if _, err := decode(!s.up, encode(t, s.msg)); err == nil {
			t.Errorf("%s was accepted in the other direction", s.name)
		}
	}
}

// TestSchemaNamesTheLimits holds the numbers in the schema against the constants.
func TestSchemaNamesTheLimits(t *testing.T) {
	b, err := os.ReadFile("wire.cddl")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		fmt.Sprintf("Args: at most %d bytes", wire.MaxArgsBytes),
		fmt.Sprintf("Payload: at most %d bytes", wire.MaxPayloadBytes),
		fmt.Sprintf("sentence = tstr .size (0..%d)", wire.MaxDetailBytes),
		fmt.Sprintf("at most %d, %d elements,\n; %d pairs", wire.MaxNestedLevels, wire.MaxArrayElements, wire.MaxMapPairs),
		fmt.Sprintf("0*%d ref", wire.MaxRefs), fmt.Sprintf("0*%d running", wire.MaxRefs), fmt.Sprintf("0*%d state", wire.MaxRefs),
		fmt.Sprintf("0*%d foreign", wire.MaxForeign), fmt.Sprintf("0*%d line", wire.MaxLines),
		fmt.Sprintf("at most %d, 0 for no limit", wire.MaxMaxOn.Milliseconds()), fmt.Sprintf("levels = bstr .size (1..%d)", wire.MaxArrayElements/4),
		fmt.Sprintf("rules = uint8              ; absent for none, 1 to %d:", wire.NewestRules),
		fmt.Sprintf("{ 0*%d name => tstr .size (0..%d) }", wire.MaxLabels, 2*wire.MaxNodeLen),
		fmt.Sprintf("attempt = 1..%d", wire.MaxAttempt),
		fmt.Sprintf("[A-Za-z0-9._:-]{1,%d}-", wire.MaxSiteLen),
		fmt.Sprintf("[a-z][a-z0-9._]{0,%d}", wire.MaxIntentLen-1),
	} {
		if !strings.Contains(string(b), s) {
			t.Errorf("the schema does not say %q", s)
		}
	}
}

// schemaName is the name of a message's type in the schema.
func schemaName(s sample) string {
	return strings.NewReplacer("eventack", "event-ack", "safenow", "safe-now").Replace(s.typeName())
}

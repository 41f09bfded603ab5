package wire_test

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

func wireDocument(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// section is what stands under a heading, up to the next one.
func section(t *testing.T, doc, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(doc, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("docs/wire.md has no heading %q", heading)
	}
	if i := strings.Index(rest, "\n#"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

// rows are the cells of a Markdown table, without its head.
func rows(text string) [][]string {
	var out [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		out = append(out, cells)
	}
	return out[min(2, len(out)):]
}

// TestDocumentedHexIsGolden holds the annotated examples against the vectors.
func TestDocumentedHexIsGolden(t *testing.T) {
	doc := wireDocument(t)
	stored := map[string]string{}
	for file := range vectorFiles {
		for _, v := range readVectors(t, file) {
			stored[strings.TrimSuffix(file, ".json")+"/"+v.Name] = v.Hex
		}
	}
	example := regexp.MustCompile("<!-- vector: (\\S+) -->\n```\n((?s:.*?))```\n")
	shown := map[string]bool{}
	for _, m := range example.FindAllStringSubmatch(doc, -1) {
		var hexText strings.Builder
		for line := range strings.Lines(m[2]) {
			code, _, _ := strings.Cut(line, ";")
			hexText.WriteString(strings.Join(strings.Fields(code), ""))
		}
		if want, ok := stored[m[1]]; !ok || want != hexText.String() {
			t.Errorf("%s is shown as\n%s, the vector says\n%s", m[1], hexText.String(), want)
		}
		shown[m[1]] = true
	}
	if n := strings.Count(doc, "<!-- vector:"); n != len(shown) {
		t.Errorf("%d examples are marked, %d were read", n, len(shown))
	}
	for _, s := range fullSamples(t) {
		dir := "downlink/"
		if s.up {
			dir = "uplink/"
		}
		if !shown[dir+s.name] {
			t.Errorf("there is no example of %s", s.name)
		}
	}
}

// TestDocumentedKeys holds the table of each message against its struct.
func TestDocumentedKeys(t *testing.T) {
	doc := wireDocument(t)
	for _, s := range fullSamples(t) {
		encode(t, s.msg)
		typ := reflect.TypeOf(s.msg).Elem()
		var want [][]string
		for i := range typ.NumField() {
			f := typ.Field(i)
			tag := strings.Split(f.Tag.Get("cbor"), ",")
			presence := "sent"
			if len(tag) == 3 {
				presence = "optional"
			}
			for _, k := range needed[s.typeName()] {
				if fmt.Sprint(k) == tag[0] {
					presence = "needed"
				}
			}
			want = append(want, []string{tag[0], f.Name, presence})
		}
		var got [][]string
		for _, r := range rows(section(t, doc, "### "+typ.Name())) {
			got = append(got, []string{r[0], r[1], r[3]})
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the document says\n%v\nthe code says\n%v", typ.Name(), got, want)
		}
		if k := fmt.Sprintf("always %d |", reflect.ValueOf(s.msg).Elem().Field(0).Uint()); !strings.Contains(section(t, doc, "### "+typ.Name()), k) {
			t.Errorf("%s: the document does not say %q", typ.Name(), k)
		}
	}
}

func TestDocumentedCodes(t *testing.T) {
	class := map[wire.Class]string{
		wire.ClassProgress: "progress", wire.ClassSuccess: "success", wire.ClassCancelled: "cancelled", wire.ClassUnknown: "unknown",
		wire.ClassRefused: "refused", wire.ClassRetryable: "retryable", wire.ClassPermanent: "permanent",
	}
	var want, got [][]string
	for _, c := range allCodes() {
		want = append(want, []string{fmt.Sprint(uint8(c)), c.String(), class[c.Class()]})
	}
	for _, r := range rows(section(t, wireDocument(t), "## Result codes")) {
		got = append(got, r[:3])
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the document says\n%v\nthe code says\n%v", got, want)
	}
}

func TestDocumentedTopics(t *testing.T) {
	tp := topics(t, "SITE")
	fill := strings.NewReplacer("SITE", "<site>", "NODE", "<node>", "PIN", "<pin>", "TASK", "<task id>", "000000", "<short>", "CLIENT", "<client id>")
	var want []string
	for _, s := range []string{
		tp.Cmd("NODE"), tp.Evt("NODE"), wire.NarrowbandUp("000000"), wire.NarrowbandDown("000000"), tp.Task(),
		tp.TaskStatus("TASK"), tp.Safe("NODE", ""), tp.Safe("NODE", "PIN"), tp.NodeState("NODE"), tp.NodePin("NODE", "PIN"), tp.Alarm(), tp.Reply("CLIENT"),
	} {
		want = append(want, "`"+fill.Replace(s)+"`")
	}
	var got []string
	for _, r := range rows(section(t, wireDocument(t), "## Topics")) {
		got = append(got, r[0])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the document says\n%v\nthe code says\n%v", got, want)
	}
}

func TestDocumentedLimits(t *testing.T) {
	var got []string
	for _, r := range rows(section(t, wireDocument(t), "## Limits")) {
		got = append(got, strings.Fields(r[1])[0])
	}
	var want []string
	for _, n := range []uint64{
		wire.MaxMessageBytes, wire.MaxArgsBytes, wire.MaxPayloadBytes, wire.MaxDetailBytes, wire.MaxNestedLevels, wire.MaxArrayElements,
		wire.MaxMapPairs, wire.MaxRefs, wire.MaxForeign, wire.MaxLabels, wire.MaxLines, wire.MaxAttempt, wire.MaxCompactSeq, wire.MaxCompactBytes,
	} {
		want = append(want, fmt.Sprint(n))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the document says\n%v\nthe code says\n%v", got, want)
	}
	if s := fmt.Sprintf("at most %d bytes", wire.MaxKeyLen); !strings.Contains(wireDocument(t), s) {
		t.Errorf("the document does not say that a key has %s", s)
	}
}

package wire_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

// Each built-in intent says what it does, and what each of its arguments means.
func TestA19_EveryIntentIsDeclaredWhole(t *testing.T) {
	var names []string
	for _, d := range wire.Declarations() {
		names = append(names, d.Name)
		if err := wire.CheckIntent(d.Name); err != nil || !wire.BuiltIn(d.Name) {
			t.Errorf("%s: %v", d.Name, err)
		}
		if d.Text == "" || strings.HasSuffix(d.Text, ".") || strings.Contains(d.Text, "|") {
			t.Errorf("%s has the text %q", d.Name, d.Text)
		}
		for _, a := range d.Arguments {
			if a.Name == "" || a.Text == "" || strings.HasSuffix(a.Text, ".") || a.Accepted == "" || a.Canonical == "" || a.Becomes == "" || a.Example == nil {
				t.Errorf("%s: an argument is declared in part: %+v", d.Name, a)
			}
		}
		if got, ok := wire.Declared(d.Name); !ok || !reflect.DeepEqual(got.Arguments, d.Arguments) || wire.TraitsOf(d.Name) != d.Traits {
			t.Errorf("%s is declared twice", d.Name)
		}
	}
	for _, name := range []string{wire.IntentGPIOWrite, wire.IntentGPIORead, wire.IntentGPIOPulse, wire.IntentGPIOWatch,
		wire.IntentSafe, wire.IntentRelease, wire.IntentCollectMetrics, wire.IntentReboot} { // a new one need not be named here
		if !slices.Contains(names, name) {
			t.Errorf("%s is not declared any more", name)
		}
	}
	wire.Declarations()[0].Name = "changed"
	if wire.Declarations()[0].Name == "changed" {
		t.Error("a reader can change the table")
	}
}

// What the traits of one intent say together, and with its arguments, makes sense. That
// the executor does it is seen at the agent (fieldagent/intent).
func TestA19_TraitsFitEachOther(t *testing.T) {
	for _, d := range wire.Declarations() {
		for _, what := range contradictions(t, d) {
			t.Errorf("%s: %s: %+v", d.Name, what, d.Traits)
		}
		if least := actOf(t, d, false); least.Traits != d.Traits {
			t.Errorf("%s is %+v without max_on, declared %+v", d.Name, least.Traits, d.Traits)
		}
		if act := actOf(t, d, true); act.Repeatable != (d.Repeatable && act.MaxOn == 0) {
			t.Errorf("%s with max_on would begin anew: %+v", d.Name, act)
		}
	}
	for name, flips := range map[string]map[string]func(*wire.Traits){
		wire.IntentGPIOWrite: {
			"still": func(d *wire.Traits) { d.Still = true }, "nothing held": func(d *wire.Traits) { d.Holds = wire.HoldsNothing },
			"the board held": func(d *wire.Traits) { d.Holds = wire.HoldsBoard }, "a pulse": func(d *wire.Traits) { d.Pulse = true },
			"a watch": func(d *wire.Traits) { d.Watch = true }, "no lease": func(d *wire.Traits) { d.Leases = false },
			"undone by a release": func(d *wire.Traits) { d.Undo = wire.UndoRelease }, "undone by nothing": func(d *wire.Traits) { d.Undo = wire.UndoNothing },
			"a boot": func(d *wire.Traits) { d.Reboots = true },
		},
		wire.IntentGPIOPulse: {
			"repeatable": func(d *wire.Traits) { d.Repeatable = true }, "no pulse": func(d *wire.Traits) { d.Pulse = false },
		},
		wire.IntentGPIOWatch: {
			"no watch": func(d *wire.Traits) { d.Watch = false }, "lines held": func(d *wire.Traits) { d.Holds = wire.HoldsPins },
			"undone": func(d *wire.Traits) { d.Undo = wire.UndoLevel },
		},
		wire.IntentSafe: {"still": func(d *wire.Traits) { d.Still = true }, "undone by a level": func(d *wire.Traits) { d.Undo = wire.UndoLevel; d.Safe = false }},
		wire.IntentCollectMetrics: {"moving": func(d *wire.Traits) { d.Still = false }, "lines held": func(d *wire.Traits) { d.Holds = wire.HoldsPins },
			"a watch": func(d *wire.Traits) { d.Watch = true }},
		wire.IntentReboot: {"repeatable": func(d *wire.Traits) { d.Repeatable = true }, "lines held": func(d *wire.Traits) { d.Holds = wire.HoldsPins }},
	} {
		for what, flip := range flips {
			d, _ := wire.Declared(name)
			if flip(&d.Traits); len(contradictions(t, d)) == 0 {
				t.Errorf("%s was declared wrongly, with %s, and nobody noticed", name, what)
			}
		}
	}
}

// contradictions are what is wrong with a declaration by itself.
func contradictions(t *testing.T, d wire.Declaration) (list []string) {
	act := actOf(t, d, true)
	must := func(holds bool, what string) {
		if !holds {
			list = append(list, what)
		}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(d.Arguments, func(a wire.Argument) bool { return a.Name == name })
	}
	moves := !d.Still
	must(moves || !d.Safe && !d.Pulse && !d.Leases && !d.Reboots && d.Undo == wire.UndoNothing, "what moves nothing drives, boots and leaves nothing, and there is nothing to undo")
	must(!moves || d.Holds != wire.HoldsNothing, "what moves something holds what it moves")
	must(!d.Watch || d.Still && d.Holds == wire.HoldsNothing && act.Lasts > 0, "a watch holds nothing, and lasts a time that it names")
	must(!d.Pulse || act.Sets && act.Lasts > 0 && d.Holds == wire.HoldsPins && !d.Repeatable, "a pulse has a pin, a level and a time, and twice is not once")
	must(act.Lasts == 0 || d.Pulse || d.Watch, "only a pulse and a watch take a time of their own")
	must(!act.Sets || moves && len(act.Pins) > 0, "a level is for a pin")
	must(act.MaxOn == 0 || d.Leases, "with max_on it leases")
	must(!d.Leases || d.Holds == wire.HoldsPins, "what leases an output holds its line")
	must(d.Holds != wire.HoldsPins || has("pin"), "whose pins does it hold?")
	must(!moves || !has("pin") || d.Holds == wire.HoldsPins, "it names a pin and holds the board: it may hold the pin alone")
	must(!d.Reboots || d.Holds == wire.HoldsBoard && !d.Repeatable, "a boot takes the whole board, and twice is not once")
	must(d.Undo != wire.UndoLevel || len(actOf(t, d, false).Pins) == 1, "the level of which pin?")
	must(d.Undo != wire.UndoRelease || d.Safe, "only a hold is released")
	must(d.Undo != wire.UndoNothing || d.Pulse || !act.Sets && !d.Leases && !d.Safe, "what leaves an output at another level says what undoes it; only a pulse ends by itself")
	lasts := 0
	for _, a := range d.Arguments {
		if a.Lasts {
			lasts++
		}
	}
	must((lasts == 1) == (act.Lasts > 0) && lasts <= 1, "one argument says how long it takes")
	return list
}

// actOf is what the example of an intent means.
func actOf(t *testing.T, d wire.Declaration, all bool) wire.Act {
	t.Helper()
	return wire.ActOf(d.Name, parse(t, d, d.Example(all)))
}

func parse(t *testing.T, d wire.Declaration, m map[string]any) wire.Args {
	t.Helper()
	a, err := wire.ParseArgs(d.Name, m)
	if err != nil {
		t.Fatalf("%s does not take its own example %v: %v", d.Name, m, err)
	}
	return a
}

// Whatever an intent declares as an argument is read, and has a place in the canonical
// form; what it does not declare is refused, with the names of what it takes.
func TestA19_ArgumentsAreReadAsDeclared(t *testing.T) {
	for _, d := range wire.Declarations() {
		whole := parse(t, d, d.Example(true))
		v, least := reflect.ValueOf(whole), reflect.ValueOf(parse(t, d, d.Example(false)))
		for i := range v.NumField() {
			if v.Field(i).IsZero() && v.Field(i).Equal(least.Field(i)) {
				t.Errorf("%s: no argument fills in %s, or its example is the value that it has anyhow", d.Name, v.Type().Field(i).Name)
			}
		}
		canonical := whole.Map()
		if len(canonical) != len(d.Arguments) {
			t.Errorf("%s has %d arguments and writes %v", d.Name, len(d.Arguments), canonical)
		}
		var names []string
		for _, a := range d.Arguments {
			names = append(names, a.Names()...)
			if _, ok := canonical[a.Canonical]; !ok {
				t.Errorf("%s: the canonical form %v has no %s", d.Name, canonical, a.Canonical)
			}
			for _, name := range a.Names() {
				for _, wrong := range []any{nil, []any{}, map[string]any{}, ""} {
					m := d.Example(true)
					delete(m, a.Name)
					m[name] = wrong
					if bad := refused(d, m); bad == nil || bad.Field != name || bad.Problem == "" || bad.Hint == "" {
						t.Errorf("%s: %s is %#v, and the refusal is %+v", d.Name, name, wrong, bad)
					}
				}
			}
			m := d.Example(true)
			delete(m, a.Name)
			if bad := refused(d, m); a.Optional != (bad == nil) || bad != nil && bad.Field != a.Name {
				t.Errorf("%s: %s is left out, declared optional %v, and the refusal is %v", d.Name, a.Name, a.Optional, bad)
			}
		}
		// Every argument that there is anywhere, and one that is nowhere.
		foreign := []string{"force"}
		for _, o := range wire.Declarations() {
			for _, a := range o.Arguments {
				foreign = append(foreign, a.Names()...)
			}
		}
		for _, name := range foreign {
			if slices.Contains(names, name) {
				continue
			}
			m := d.Example(true)
			m[name] = true
			bad := refused(d, m)
			if bad == nil || bad.Field != name || bad.Problem != "unknown argument" || len(names) > 0 && !strings.HasSuffix(bad.Hint, strings.Join(names, ", ")) {
				t.Errorf("%s takes no %s, and the refusal is %+v", d.Name, name, bad)
			}
		}
	}
}

func refused(d wire.Declaration, m map[string]any) *wire.ArgError {
	var bad *wire.ArgError
	if _, err := wire.ParseArgs(d.Name, m); errors.As(err, &bad) {
		return bad
	}
	return nil
}

// The canonical form of every example is read back to the same, directly, over CBOR and
// over JSON (A4).
func TestA4_ExamplesRoundTrip(t *testing.T) {
	for _, d := range wire.Declarations() {
		for _, all := range []bool{true, false} {
			a := parse(t, d, d.Example(all))
			cbor, err := wire.DecodeMap(rawMap(t, a.Map()))
			if err != nil {
				t.Fatal(err)
			}
			j, err := json.Marshal(a.Map())
			if err != nil {
				t.Fatal(err)
			}
			for way, m := range map[string]map[string]any{"directly": a.Map(), "as CBOR": cbor, "as JSON": object(t, string(j))} {
				if got := parse(t, d, m); !reflect.DeepEqual(got, a) {
					t.Errorf("%s: %+v %s became %+v", d.Name, a, way, got)
				}
			}
			for _, o := range wire.Declarations() {
				if act := wire.ActOf(o.Name, a); o.Name != d.Name && !reflect.DeepEqual(act, wire.Act{}) {
					t.Errorf("arguments of %s mean %+v for %s", d.Name, act, o.Name)
				}
			}
		}
	}
}

// The two tables of intents in docs/wire.md are written from the declarations:
// go test ./wire -run Documented -update
func TestDocumentedIntents(t *testing.T) {
	holds := map[wire.Holding]string{wire.HoldsBoard: "the board", wire.HoldsPins: "its pins", wire.HoldsNothing: "nothing"}
	undo := map[wire.Undo]string{wire.UndoNothing: "nothing", wire.UndoLevel: "the level before", wire.UndoRelease: "a release"}
	word := map[bool]string{true: "yes", false: "no"}
	var rows [][]string
	for _, d := range wire.Declarations() {
		takes := "no time of its own"
		for _, a := range d.Arguments {
			if a.Lasts {
				takes = "`" + a.Name + "`"
			}
		}
		if d.Reboots {
			takes = "a boot"
		}
		rows = append(rows, []string{"`" + d.Name + "`", d.Text, word[!d.Still], holds[d.Holds], word[d.Repeatable], takes, word[d.Leases], undo[d.Undo]})
	}
	documented(t, "### What an intent does", []string{"intent", "what it does", "moves", "holds", "repeatable", "takes", "leases", "undone by"}, rows)
}

func TestDocumentedArguments(t *testing.T) {
	var rows [][]string
	for _, d := range wire.Declarations() {
		name := "`" + d.Name + "`"
		if len(d.Arguments) == 0 {
			rows = append(rows, []string{name, "none", "", "", ""})
		}
		for _, a := range d.Arguments {
			rows = append(rows, []string{name, "`" + strings.Join(a.Names(), "` or `") + "`", a.Text, a.Accepted, a.Becomes})
			name = ""
		}
	}
	documented(t, "## Arguments", []string{"intent", "argument", "meaning", "accepted", "canonical"}, rows)
}

// documented holds the first table under a heading of docs/wire.md against what it should
// be, and writes it with -update.
func documented(t *testing.T, heading string, head []string, rows [][]string) {
	t.Helper()
	var table strings.Builder
	line := func(cells []string) {
		table.WriteString("|")
		for _, c := range cells {
			table.WriteString(strings.TrimRight(" "+c, " ") + " |")
		}
		table.WriteString("\n")
	}
	line(head)
	table.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	text := section(t, wireDocument(t), heading)
	at := strings.Index(text, "\n|") + 1
	end := at
	for l := range strings.Lines(text[at:]) {
		if !strings.HasPrefix(l, "|") {
			break
		}
		end += len(l)
	}
	if text[at:end] == table.String() {
		return
	}
	if !*update {
		t.Errorf("docs/wire.md, %q: the table is not as declared; go test ./wire -run Documented -update writes it:\n%s", heading, table.String())
		return
	}
	doc := strings.Replace(wireDocument(t), text, text[:at]+table.String()+text[end:], 1)
	if err := os.WriteFile(filepath.Join("..", "docs", "wire.md"), []byte(doc), 0o644); err != nil {
		t.Fatal(err)
	}
}

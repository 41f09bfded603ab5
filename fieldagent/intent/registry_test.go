package intent_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/wire"
)

// fake is an executor made of two functions.
type fake struct {
	check func(wire.Args) *intent.Result
	run   func(context.Context, intent.Request) intent.Result
}

func (f fake) Check(args wire.Args) *intent.Result {
	if f.check == nil {
		return nil
	}
	return f.check(args)
}

func (f fake) Run(ctx context.Context, r intent.Request) intent.Result { return f.run(ctx, r) }

func one(name string, f fake) []intent.Intent { return []intent.Intent{{Name: name, Executor: f}} }

func newRegistry(t *testing.T, lists ...[]intent.Intent) *intent.Registry {
	t.Helper()
	r, err := intent.New(slog.New(slog.DiscardHandler), lists...)
	must(t, err)
	return r
}

func TestRegistryRefusesWhatItCannotName(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	ok := fake{run: func(context.Context, intent.Request) intent.Result { return intent.Result{Code: wire.CodeOK} }}
	for name, lists := range map[string][][]intent.Intent{
		"twice":       {one("a.b", ok), one("a.b", ok)},
		"bad name":    {one("a b", ok)},
		"no executor": {{{Name: "a.b"}}},
	} {
		if _, err := intent.New(log, lists...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	r := newRegistry(t, one("z.z", ok), []intent.Intent{{Name: "a.a", Traits: wire.Traits{Still: true}, Executor: ok}})
	if got := r.Names(); !slices.Equal(got, []string{"a.a", "z.z"}) {
		t.Errorf("names %v", got)
	}
	// A19: an intent that declares nothing is taken to move something, and to hold the
	// whole board.
	if got := r.Actuating(); !slices.Equal(got, []uint16{1}) {
		t.Errorf("actuating %v", got)
	}
	if act, refused := r.Check("z.z", nil); refused != nil || !act.Moves() || act.Holds != wire.HoldsBoard || act.Repeatable {
		t.Errorf("%+v, refused %v", act, refused)
	}
	if act, _ := r.Check("a.a", nil); act.Moves() {
		t.Errorf("%+v", act)
	}
}

func TestE13_UnknownIntentIsRefusedForGood(t *testing.T) {
	r := newRegistry(t, one("a.a", fake{}))
	_, refused := r.Check("valve.open", nil)
	if refused == nil || refused.Code != wire.CodeUnknownIntent || refused.Code.Class() != wire.ClassRefused {
		t.Fatalf("check: %+v", refused)
	}
	if p := r.Run(t.Context(), "valve.open", nil, intent.Request{Cause: "t"}); p.Code != wire.CodeUnknownIntent || !strings.Contains(p.Detail, "it has a.a") {
		t.Errorf("run: %+v", p)
	}
}

func TestUnreadableArgumentsAreRefused(t *testing.T) {
	ran := false
	r := newRegistry(t, one("a.a", fake{run: func(context.Context, intent.Request) intent.Result {
		ran = true
		return intent.Result{Code: wire.CodeOK}
	}}))
	bad := wire.RawMap{0xa1, 0x01} // a map that ends too early
	if _, refused := r.Check("a.a", bad); refused == nil || refused.Code != wire.CodeBadArgs {
		t.Errorf("check: %+v", refused)
	}
	if p := r.Run(t.Context(), "a.a", bad, intent.Request{Cause: "t"}); p.Code != wire.CodeBadArgs || ran {
		t.Errorf("run: %+v, executed %v", p, ran)
	}
}

func TestPanicBecomesAnInternalError(t *testing.T) {
	var log bytes.Buffer
	r, err := intent.New(slog.New(slog.NewTextHandler(&log, nil)), one("a.a", fake{
		check: func(wire.Args) *intent.Result { panic("in check") },
		run: func(context.Context, intent.Request) intent.Result {
			var list []int
			return intent.Result{Detail: string(rune(list[len(list)]))}
		},
	}))
	must(t, err)
	if _, p := r.Check("a.a", nil); p == nil || p.Code != wire.CodeInternal || !strings.Contains(p.Detail, "in check") {
		t.Errorf("check: %+v", p)
	}
	if p := r.Run(t.Context(), "a.a", nil, intent.Request{Cause: "t"}); p.Code != wire.CodeInternal || !strings.Contains(p.Detail, "out of range") {
		t.Errorf("run: %+v", p)
	}
	if !strings.Contains(log.String(), "stack=") || !strings.Contains(log.String(), "registry_test.go") {
		t.Errorf("the log does not say where: %s", log.String())
	}
}

func TestResultsStayInsideTheWire(t *testing.T) {
	for name, c := range map[string]struct {
		result intent.Result
		code   wire.Code
		says   string
	}{
		"no code":           {intent.Result{}, wire.CodeInternal, "ended with the code none"},
		"progress":          {intent.Result{Code: wire.CodeStarted}, wire.CodeInternal, "ended with the code started"},
		"payload too large": {intent.Result{Code: wire.CodeOK, Values: map[string]any{"x": strings.Repeat("y", 9<<10)}}, wire.CodeOK, "payload left out"},
		"payload no CBOR":   {intent.Result{Code: wire.CodeOK, Detail: strings.Repeat("z", 999), Values: map[string]any{"x": func() {}}}, wire.CodeOK, "payload left out"},
		"long detail":       {intent.Result{Code: wire.CodeFailed, Detail: strings.Repeat("ä", 999)}, wire.CodeFailed, "..."},
		"broken text":       {intent.Result{Code: wire.CodeFailed, Detail: "a\xffb"}, wire.CodeFailed, "a?b"},
	} {
		r := newRegistry(t, one("a.a", fake{run: func(context.Context, intent.Request) intent.Result { return c.result }}))
		p := r.Run(t.Context(), "a.a", nil, intent.Request{Cause: "t"})
		if p.Code != c.code || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s: %v %q, want %v with %q", name, p.Code, p.Detail, c.code, c.says)
		}
		if len(p.Detail) > wire.MaxDetailBytes || !utf8.ValidString(p.Detail) || len(p.Payload) > wire.MaxPayloadBytes {
			t.Errorf("%s: detail of %d bytes, payload of %d", name, len(p.Detail), len(p.Payload))
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

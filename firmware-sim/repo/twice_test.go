package repo_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ownTwice are constants that two rooms may have, each with its reason.
var ownTwice = map[string]string{
	"exitdone":   "the exit codes of three programs, which import nothing of each other; docs/operations.md holds them together",
	"codeheld":   "a word of refusals, which is also one of alarms; each list is its own",
	"exitfailed": "as exitdone", "exitusage": "as exitdone", "exitunread": "as exitdone",
}

// TestNoConstantStandsInTwoRooms: a number of one name and one value, or one text under
// whatever name, that two rooms have each for themselves will differ one day. It stands in
// the lower of the two, or in package wire.
func TestNoConstantStandsInTwoRooms(t *testing.T) {
	for _, what := range twice(sources(t)) {
		t.Error(what)
	}
	// It bites.
	source := func(dir, text string) file {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, dir+"/a.go", "package a\n"+text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		return file{dir, dir + "/a.go", f, fset}
	}
	for name, c := range map[string]struct {
		a, b string
		want int
	}{
		"the same":             {"const maxWork = 3 * time.Second", "const MaxWork = 3 * time.Second", 1},
		"spelled otherwise":    {"const maxWork = 3 * time.Second", "const MaxWork = 3000 * time.Millisecond", 1},
		"in a block":           {"const (\n a = 1\n work = 64 << 10\n)", "const work = 65_536", 1},
		"another value":        {"const work = 3", "const work = 4", 0},
		"another name":         {"const work = 3", "const play = 3", 0},
		"one text, two names":  {`const file = "journal.bin"`, `const path = "journal.bin"`, 1},
		"a word":               {`const a = "on"`, `const b = "on"`, 0},
		"taken from the other": {"const work = 3", "const work = wire.Work", 0},
	} {
		if got := twice([]file{source("gateway/a", c.a), source("fieldagent/b", c.b)}); len(got) != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// twice lists what two rooms say each for themselves.
func twice(files []file) (list []string) {
	type place struct{ dir, name string }
	same := map[string][]place{}
	for _, f := range files {
		if strings.HasPrefix(f.dir, "firmware-sim") {
			continue
		}
		for name, value := range constants(f.ast) {
			key := ""
			if v, ok := number(value); ok {
				key = strings.ToLower(name) + " = " + strconv.FormatInt(v, 10)
			} else if s := text(value); len(s) >= 6 {
				key = strconv.Quote(s)
			}
			if key != "" && ownTwice[strings.ToLower(name)] == "" {
				same[key] = append(same[key], place{f.dir, name})
			}
		}
	}
	for key, places := range same {
		slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.dir, b.dir) })
		if first, last := places[0], places[len(places)-1]; first.dir != last.dir {
			list = append(list, key+" is "+first.name+" in "+first.dir+" and "+last.name+" in "+last.dir)
		}
	}
	slices.Sort(list)
	return list
}

// number works out an expression of numbers and units of time, false if it takes anything
// from elsewhere.
func number(e ast.Expr) (int64, bool) {
	own := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			x, isName := n.X.(*ast.Ident)
			own = own && isName && x.Name == "time"
			return false
		case *ast.Ident, *ast.CallExpr:
			own = false
		}
		return own
	})
	if !own {
		return 0, false
	}
	units := strings.NewReplacer("time.Nanosecond", "1", "time.Microsecond", "1000", "time.Millisecond", "1000000", "time.Second", "1000000000",
		"time.Minute", "60000000000", "time.Hour", "3600000000000")
	v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, units.Replace(types.ExprString(e)))
	if err != nil || v.Value == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(v.Value.ExactString(), 10, 64)
	return n, err == nil
}

func text(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		s, _ := strconv.Unquote(l.Value)
		return s
	}
	return ""
}

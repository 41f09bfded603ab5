package cli_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/cli"
)

func operatorPage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "operator.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// kinds are how the engine tells an alarm: as a condition that stands, or as an
// incident. It is read from the source, so that none is forgotten here.
func kinds(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "engine", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var parsed []*ast.File
	names := map[string]string{} // constants
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == len(v.Names) {
				for k, id := range v.Names {
					names[id.Name] = text(v.Values[k], nil)
				}
			}
			return true
		})
	}
	var list []string
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 3 {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			how, ok := map[string]string{"condition": "standing", "restate": "standing", "incident": "incident", "alarm": "incident"}[fun.Sel.Name]
			if kind := text(call.Args[1], names); ok && kind != "" {
				list = append(list, kind+" "+how)
			}
			return true
		})
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// text is a string literal, or a constant that is one.
func text(e ast.Expr, names map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return s
		}
	case *ast.Ident:
		return names[e.Name]
	}
	return ""
}

func TestOperatorPageExplainsEveryAlarm(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (standing|incident) \\| [^|]+ \\| [^|]+ \\|$")
	var got []string
	for _, m := range row.FindAllStringSubmatch(operatorPage(t), -1) {
		got = append(got, m[1]+" "+m[2])
	}
	slices.Sort(got)
	if want := kinds(t); !slices.Equal(got, want) || len(want) < 10 {
		t.Errorf("docs/operator.md has\n%q\nthe engine has\n%q", got, want)
	}
}

func TestOperatorPageNamesEveryCommand(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `apollo ([a-z ]+)` \\|")
	var got []string
	for _, m := range row.FindAllStringSubmatch(operatorPage(t), -1) {
		got = append(got, m[1])
	}
	var want []string
	for _, c := range cli.Commands() {
		group, _, _ := strings.Cut(c, " ")
		if c == "node show" || slices.Contains([]string{"safe", "release", "queue", "deadletters", "quiet", "alarms", "audit"}, group) {
			want = append(want, c)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/operator.md has\n%q\nthe tool has\n%q", got, want)
	}
}

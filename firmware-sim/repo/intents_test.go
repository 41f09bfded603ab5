package repo_test

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

// TestNobodyAsksForAnIntentByName: what an intent is stands in the table of package wire.
// Whoever compares names or types of arguments instead forgets the next one: the lease of
// an intent that is not called gpio.write was told to nobody once. Names may be used to
// make a task, not to judge one.
func TestNobodyAsksForAnIntentByName(t *testing.T) {
	asked := 0
	for _, f := range sources(t) {
		product := strings.HasPrefix(f.dir, "gateway") || strings.HasPrefix(f.dir, "fieldagent") && f.dir != "fieldagent/intent"
		if !product || strings.HasSuffix(f.dir, "/apitest") {
			continue
		}
		asked++
		complain := func(at ast.Node, what string) {
			t.Errorf("%v asks for %s: take what it wants to know from the declaration (wire.TraitsOf, wire.Act)", f.fset.Position(at.Pos()), what)
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				for _, x := range []ast.Expr{n.X, n.Y} {
					if what := intentName(x); what != "" && (n.Op == token.EQL || n.Op == token.NEQ) {
						complain(n, what)
					}
				}
			case *ast.CaseClause:
				for _, x := range n.List {
					if what := intentName(x) + argsType(x); what != "" {
						complain(x, what)
					}
				}
			case *ast.TypeAssertExpr:
				if what := argsType(n.Type); what != "" {
					complain(n, what)
				}
			}
			return true
		})
	}
	if asked < 50 {
		t.Fatalf("looked at %d files only", asked)
	}
}

// intentName is the intent that an expression names, empty for none.
func intentName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.SelectorExpr:
		if room, ok := x.X.(*ast.Ident); ok && room.Name == "wire" && strings.HasPrefix(x.Sel.Name, "Intent") {
			return x.Sel.Name
		}
	case *ast.BasicLit:
		if name, err := strconv.Unquote(x.Value); err == nil && wire.BuiltIn(name) {
			return name
		}
	}
	return ""
}

// argsType is the type of arguments that an expression names, empty for none.
func argsType(x ast.Expr) string {
	if x, ok := x.(*ast.SelectorExpr); ok {
		if room, ok := x.X.(*ast.Ident); ok && room.Name == "wire" && (strings.HasPrefix(x.Sel.Name, "GPIO") || x.Sel.Name == "Reboot" || x.Sel.Name == "CollectMetrics") {
			return "wire." + x.Sel.Name
		}
	}
	return ""
}

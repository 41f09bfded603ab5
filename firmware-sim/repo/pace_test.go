package repo_test

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// otherNames are the names under which rooms know a number of wire/pace.go.
var otherNames = []string{"DefaultHeartbeat", "Heartbeat", "NarrowbandGap", "repeatAfter", "safeLate", "orderWait", "linePlaces"}

// TestNumbersThatBothSidesRelyOnStandOnce: the gateway and its agents, or two rooms of
// one of them, may not each have their own idea of a number (A20 was one that had two:
// how long work may take whose task does not say). A room may give such a number a
// name of its own, but its value comes from wire/pace.go.
func TestNumbersThatBothSidesRelyOnStandOnce(t *testing.T) {
	files := sources(t)
	shared := slices.Clone(otherNames)
	for _, f := range files {
		if f.dir == "wire" && path.Base(f.name) == "pace.go" {
			for name := range constants(f.ast) {
				shared = append(shared, name)
			}
		}
	}
	if len(shared) < len(otherNames)+8 {
		t.Fatalf("wire/pace.go has only %d numbers", len(shared)-len(otherNames))
	}
	isShared := func(name string) bool {
		return slices.ContainsFunc(shared, func(s string) bool { return strings.EqualFold(s, name) })
	}
	for _, f := range files {
		if f.dir == "wire" || strings.HasPrefix(f.dir, "firmware-sim") || strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		for name, value := range constants(f.ast) {
			if isShared(name) && ownNumber(value) {
				t.Errorf("%s/%s: %s has a number of its own: take it from wire/pace.go", f.dir, path.Base(f.name), name)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			// Defaults are filled in by calls like def(&c.Heartbeat, value).
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 {
				return true
			}
			at, ok := call.Args[0].(*ast.UnaryExpr)
			if !ok || at.Op != token.AND {
				return true
			}
			if field, ok := at.X.(*ast.SelectorExpr); ok && isShared(field.Sel.Name) && ownNumber(call.Args[1]) {
				t.Errorf("%s/%s: the default of %s is a number of its own: take it from wire/pace.go", f.dir, path.Base(f.name), field.Sel.Name)
			}
			return true
		})
	}
}

// constants are the constants of a file that have values, by name.
func constants(f *ast.File) map[string]ast.Expr {
	list := map[string]ast.Expr{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			for i, name := range v.Names {
				if i < len(v.Values) {
					list[name.Name] = v.Values[i]
				}
			}
		}
	}
	return list
}

// ownNumber reports whether an expression has a number in it and nothing of wire.
func ownNumber(e ast.Expr) bool {
	number, ofWire := false, false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			number = number || n.Kind == token.INT || n.Kind == token.FLOAT
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "wire" {
				ofWire = true
			}
		}
		return true
	})
	return number && !ofWire
}

// What a pin map takes can be told: rooms that may not import wire have its limits.
func TestLimitsOfThePinMapAreThoseOfTheWire(t *testing.T) {
	if gpio.MaxHold != wire.MaxMaxOn {
		t.Errorf("a pin map takes a max_on of %v, a hello of %v", gpio.MaxHold, wire.MaxMaxOn)
	}
	if gpio.MaxPins != wire.MaxLines {
		t.Errorf("a pin map takes %d pins, an instruction %d lines", gpio.MaxPins, wire.MaxLines)
	}
}

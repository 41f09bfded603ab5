package repo_test

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// TestArgumentsAreParsedOnce: at a door when they come in, at the engine when they come
// from the log, and at the agent when it judges whether it takes them. From there they
// travel as what they mean. What looks at them for itself stands here, with its reason.
func TestArgumentsAreParsedOnce(t *testing.T) {
	may := map[string]string{
		"gateway/scada/args.go":         "the door of documents",
		"gateway/scada/verb.go":         "the door of commands without a document",
		"gateway/engine/types.go":       "what the log has, or a Submit that came by no door",
		"fieldagent/intent/registry.go": "the agent, when it takes an instruction",
		"fieldagent/urgent.go":          "what is towards safe, beside a loop that may hang: it can't wait for its answer",
	}
	seen := map[string]bool{}
	for _, f := range sources(t) {
		if !strings.HasPrefix(f.dir, "gateway") && !strings.HasPrefix(f.dir, "fieldagent") {
			continue
		}
		at := f.dir + "/" + path.Base(f.name)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			x, ok := n.(*ast.SelectorExpr)
			if !ok || x.Sel.Name != "ParseArgs" && x.Sel.Name != "ParseAct" {
				return true
			}
			if seen[at] {
				t.Errorf("%v parses arguments a second time in one file", f.fset.Position(n.Pos()))
			}
			if seen[at] = true; may[at] == "" {
				t.Errorf("%v parses arguments again", f.fset.Position(n.Pos()))
			}
			return true
		})
	}
	for at, why := range may {
		if !seen[at] {
			t.Errorf("%s (%s) does not parse arguments any more: take it out of the list", at, why)
		}
	}
}

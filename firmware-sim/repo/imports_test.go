package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/apollo-11/apollo11/"

// root is the top of the repository, seen from this package.
const root = "../.."

// rooms says which of our own rooms each room may import, and which other
// modules. A room not listed here may not exist. Tests may import more.
var rooms = []struct {
	dir   string
	ours  []string
	other []string // prefixes of import paths
}{
	{"wire", nil, []string{"github.com/fxamacker/cbor/v2"}}, // and wire/mutant, which imports nothing
	{"wire/logsink", nil, nil},                              // a room of its own below both programs; it writes to what it is given
	{"storage", nil, []string{"github.com/cockroachdb/pebble/v2", "golang.org/x/sys/"}},
	{"broker", []string{"wire"}, []string{"github.com/mochi-mqtt/server/v2", "github.com/gorilla/websocket", "go.yaml.in/yaml/v3", "golang.org/x/crypto/", "golang.org/x/sys/"}},
	{"gateway/engine", []string{"wire"}, nil},
	{"gateway/ledger", []string{"wire", "storage", "gateway/engine"}, nil},
	{"gateway/scada", []string{"wire", "gateway/engine"}, []string{"go.yaml.in/yaml/v3"}},
	{"gateway/api", []string{"wire", "gateway/engine", "gateway/scada"}, nil},
	{"gateway/cli", []string{"wire", "gateway/api", "gateway/scada", "gateway/engine"}, nil},
	{"gateway/cmd/apollo", []string{"gateway/cli"}, nil},
	{"gateway/cmd/apollo-gateway", []string{"gateway"}, nil},
	{"gateway", []string{"wire", "wire/logsink", "storage", "broker", "gateway/engine", "gateway/ledger", "gateway/scada", "gateway/api"},
		[]string{"go.yaml.in/yaml/v3", "github.com/prometheus/client_golang/", "github.com/cockroachdb/pebble/v2/vfs"}},
	{"fieldagent/executor", []string{"wire"}, nil},
	{"fieldagent/journal", []string{"wire"}, []string{"golang.org/x/sys/"}},
	{"fieldagent/lines", []string{"wire"}, nil},
	{"fieldagent/gpio", []string{"wire", "fieldagent/lines"}, []string{"periph.io/x/", "golang.org/x/sys/"}},
	{"fieldagent/intent", []string{"wire", "fieldagent/gpio"}, []string{"golang.org/x/sys/"}},
	{"fieldagent/link", []string{"wire"}, []string{"github.com/eclipse/paho.mqtt.golang", "golang.org/x/sys/"}},
	{"fieldagent/guard", nil, []string{"golang.org/x/sys/"}},
	{"fieldagent/bench", []string{"wire/logsink", "fieldagent", "fieldagent/gpio", "fieldagent/journal"}, nil},
	{"fieldagent/cmd/apollo-agent", []string{"wire/logsink", "fieldagent", "fieldagent/bench"}, nil},
	{"fieldagent", []string{"wire", "fieldagent/executor", "fieldagent/journal", "fieldagent/gpio", "fieldagent/lines", "fieldagent/guard", "fieldagent/intent", "fieldagent/link"}, []string{"go.yaml.in/yaml/v3", "golang.org/x/sys/"}},
	{"firmware-sim", []string{"wire", "storage", "broker", "gateway", "gateway/engine", "gateway/ledger", "gateway/scada", "gateway/api", "fieldagent", "fieldagent/executor", "fieldagent/journal", "fieldagent/gpio", "fieldagent/lines", "fieldagent/intent", "fieldagent/link"},
		[]string{"github.com/cockroachdb/pebble/v2", "github.com/eclipse/paho.mqtt.golang", "github.com/mochi-mqtt/server/v2", "golang.org/x/sys/"}},
}

// pure are the rooms that decide: no clock, goroutine, I/O or global randomness.
var pure = []string{"gateway/engine", "fieldagent/executor", "fieldagent/lines", "wire"}

type file struct {
	dir  string // from the top, with slashes
	name string
	ast  *ast.File
	fset *token.FileSet
}

// sources parses every Go file that is not a test.
func sources(t *testing.T) []file {
	t.Helper()
	var list []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata" || d.Name() == "dist" || d.Name() == "bin" || d.Name() == "data") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		list = append(list, file{filepath.ToSlash(dir), path, f, fset})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 20 {
		t.Fatalf("found only %d source files: is the test in its place?", len(list))
	}
	return list
}

// roomOf returns the longest room that a directory lies in, -1 for none.
func roomOf(dir string) int {
	best := -1
	for k, r := range rooms {
		if (dir == r.dir || strings.HasPrefix(dir, r.dir+"/")) && (best < 0 || len(r.dir) > len(rooms[best].dir)) {
			best = k
		}
	}
	return best
}

// TestRoomsImportOnlyWhatTheyMay holds the dependency direction: wire, its
// log sink and storage at the bottom, cores above wire, drivers above cores, cmd on top, and
// the gateway and the agent never meet.
func TestRoomsImportOnlyWhatTheyMay(t *testing.T) {
	for _, f := range sources(t) {
		k := roomOf(f.dir)
		if k < 0 {
			t.Errorf("%s: no room is called %s; add it to the table with what it may import", f.name, f.dir)
			continue
		}
		room := rooms[k]
		for _, imp := range f.ast.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if ours, ok := strings.CutPrefix(path, module); ok {
				to := roomOf(ours)
				if to != k && (to < 0 || !slices.Contains(room.ours, rooms[to].dir)) {
					t.Errorf("%s imports %s: %s may import only %v of ours", f.name, ours, room.dir, room.ours)
				}
				continue
			}
			first, _, _ := strings.Cut(path, "/")
			if !strings.Contains(first, ".") {
				continue // standard library
			}
			if !slices.ContainsFunc(room.other, func(p string) bool { return strings.HasPrefix(path, p) }) {
				t.Errorf("%s imports %s: %s may import only %v", f.name, path, room.dir, room.other)
			}
		}
	}
}

// TestPureRoomsDecideOnly holds that cores have no clock, goroutine, I/O or
// global randomness.
func TestPureRoomsDecideOnly(t *testing.T) {
	banned := []string{"os", "io", "net", "os/exec", "os/signal", "log", "log/slog", "sync", "sync/atomic", "context", "runtime", "crypto/rand", "syscall"}
	for _, f := range sources(t) {
		if !slices.Contains(pure, f.dir) {
			continue
		}
		names := map[string]string{}
		for _, imp := range f.ast.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(banned, path) {
				t.Errorf("%s imports %s: %s is a pure room", f.name, path, f.dir)
			}
			names[filepath.Base(strings.TrimSuffix(path, "/v2"))] = path
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%v starts a goroutine: %s is a pure room", f.fset.Position(n.Pos()), f.dir)
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if !ok {
					break
				}
				switch names[x.Name] {
				case "time":
					if slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "NewTimer", "NewTicker", "AfterFunc", "Tick"}, n.Sel.Name) {
						t.Errorf("%v reads the clock: %s is a pure room", f.fset.Position(n.Pos()), f.dir)
					}
				case "math/rand/v2", "math/rand":
					if !slices.Contains([]string{"Rand", "New", "NewPCG", "Source", "PCG"}, n.Sel.Name) {
						t.Errorf("%v uses global randomness: %s is a pure room", f.fset.Position(n.Pos()), f.dir)
					}
				}
			}
			return true
		})
	}
}

// TestAgentStaysSmall holds that the agent reaches neither the gateway's store
// nor its broker, which would make it ten times larger.
func TestAgentStaysSmall(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./fieldagent/cmd/apollo-agent")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		for _, ban := range []string{"github.com/cockroachdb/", "github.com/mochi-mqtt/", module + "gateway", module + "broker", module + "storage"} {
			if strings.HasPrefix(dep, ban) {
				t.Errorf("the agent reaches %s", dep)
			}
		}
	}
}

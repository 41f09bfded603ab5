package formats

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/storage"
)

// row is one instruction in the table of a recording.
type row struct {
	line         int
	task, node   string
	state, whats string
	then         []string // what it may be when the whole site goes on
}

// table reads the table of the recording's README.md.
func table(t *testing.T) []row {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(recording, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for k, line := range strings.Split(string(b), "\n") {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), "|")
		if len(cells) != 5 {
			t.Fatalf("%s/README.md:%d: %d cells, want task, node, state, then, timeline", recording, k+1, len(cells))
		}
		for n := range cells {
			cells[n] = strings.TrimSpace(cells[n])
		}
		r := row{line: k + 1, task: strings.Trim(cells[0], "`"), node: cells[1], state: cells[2], whats: cells[4], then: []string{cells[2]}}
		if cells[3] != "" {
			r.then = strings.Split(cells[3], " or ")
		}
		rows = append(rows, r)
	}
	if len(rows) < 30 {
		t.Fatalf("only %d rows in the table of %s", len(rows), recording)
	}
	return rows
}

// whats are the kinds of a timeline's entries.
func whats(entries []scada.EntryView) string {
	var list []string
	for _, e := range entries {
		list = append(list, e.What)
	}
	return strings.Join(list, " ")
}

// stateText is how the tables write the state of an instruction.
func stateText(i scada.InstructionView) string {
	words := []string{i.State}
	for _, w := range []string{i.Reason, i.Code} {
		if w != "" && w != "none" && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	if i.Operator {
		words = append(words, "operator")
	}
	return strings.Join(words, " ")
}

// taskIDs reads a list of tasks and returns their ids, the oldest first.
func taskIDs(t *testing.T, document []byte) []string {
	t.Helper()
	var v struct {
		Tasks []struct {
			TaskID string `json:"task_id"`
		} `json:"tasks"`
	}
	if err := json.Unmarshal(document, &v); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, task := range v.Tasks {
		ids = append(ids, task.TaskID)
	}
	slices.Reverse(ids)
	return ids
}

// openLog opens the log of a gateway's data directory.
func openLog(t *testing.T, data string) *ledger.Ledger {
	t.Helper()
	s, err := storage.Open(context.Background(), storage.Options{Dir: filepath.Join(data, "log"), BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the log: %v", err)
		}
	})
	return ledger.New(s)
}

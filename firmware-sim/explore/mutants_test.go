package explore_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/apollo-11/apollo11/wire/mutant"
)

// mutantSeeds is how many seeds may go by before a planted fault is caught.
const mutantSeeds = "1-500"

// TestEveryMutantIsCaught builds the explorer with each planted fault and demands
// that a rule breaks.
func TestEveryMutantIsCaught(t *testing.T) {
	if os.Getenv("EXPLORE_MUTANTS") == "" {
		t.Skip("builds one program for each planted fault, which takes a minute or two: set EXPLORE_MUTANTS=1, or run make mutants")
	}
	dir := t.TempDir()
	for _, name := range mutant.All() {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(dir, "explore")
			build := exec.CommandContext(t.Context(), "go", "build", "-tags", "mutant,mutant_"+name, "-o", program, "./cmd")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			out, err := exec.CommandContext(t.Context(), program, "--seeds", mutantSeeds, "--faults", "all", "--jobs", "1", "-o", "json").Output()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			var d struct {
				Failure *struct {
					Seed       uint64
					Rule, Text string
				}
			}
			if err := json.Unmarshal(out, &d); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if d.Failure == nil {
				t.Fatalf("seeds %s did not catch it", mutantSeeds)
			}
			t.Logf("seed %d, rule %s: %.120s", d.Failure.Seed, d.Failure.Rule, d.Failure.Text)
		})
	}
}

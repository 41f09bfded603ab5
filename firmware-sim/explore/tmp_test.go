package explore

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestTmp(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("N"))
	from, _ := strconv.Atoi(os.Getenv("FROM"))
	nodes, _ := strconv.Atoi(os.Getenv("NODES"))
	bad := 0
	byRule := map[string]int{}
	var sum Counts
	began := time.Now()
	for s := from; s < from+n; s++ {
		o := Options{Seed: uint64(s), Profile: os.Getenv("PROFILE"), Nodes: nodes, Store: Store(os.Getenv("STORE"))}
		r, err := Run(o)
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(r.Counts)
		if os.Getenv("TWICE") != "" {
			again, _ := Run(o)
			if again.Hash != r.Hash {
				t.Errorf("seed %d differs", s)
			}
		}
		if r.Violation != nil {
			byRule[r.Violation.Rule]++
			if bad++; bad <= 5 {
				t.Logf("seed %d: %.600s", s, r.Violation)
			}
			if os.Getenv("SHOW") != "" && bad == 1 {
				var b bytes.Buffer
				o.Trace = &b
				Run(o)
				lines := strings.Split(b.String(), "\n")
				os.WriteFile("/tmp/trace.txt", b.Bytes(), 0o644)
				t.Log(strings.Join(lines[max(0, len(lines)-40):], "\n"))
			}
		}
	}
	t.Logf("%d bad of %d: %v; %+v in %v, %v a seed", bad, n, byRule, sum, time.Since(began), time.Since(began)/time.Duration(n))
}

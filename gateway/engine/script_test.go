package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

var update = flag.Bool("update", false, "rewrite the expected output of the scripts")

// TestScripts plays the stories in testdata. A block is one or more commands, a
// line of dashes, and what they made the engine do. The commands of a block are
// one round of the gateway's loop: one batch, then its effects. Lines that start
// with # tell the story. The commands are listed in commands_test.go.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) { runScript(t, f) })
	}
}

func runScript(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t)
	var out strings.Builder
	line := 1
	for k, block := range strings.Split(strings.TrimRight(string(text), "\n"), "\n\n") {
		h.file, h.line = file, line
		line += strings.Count(block, "\n") + 2
		command, _, ok := strings.Cut(block+"\n", "\n----\n")
		if !ok {
			out.WriteString(strings.TrimRight(block, "\n") + "\n\n") // only a comment
			continue
		}
		got := strings.TrimRight(command+"\n----\n"+h.block(command), "\n")
		if !*update && got != strings.TrimRight(block, "\n") {
			t.Fatalf("%s, block %d: got\n%s\n\nwant\n%s\n(if the new output is right: go test ./gateway/engine -run Scripts -update)", file, k+1, got, block)
		}
		out.WriteString(got + "\n\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.TrimRight(out.String(), "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// harness drives an engine and the model of its log.
type harness struct {
	t     *testing.T
	cfg   engine.Config
	rnd   *rand.Rand
	eng   *engine.Engine
	log   *modelLog
	now   engine.Now
	wake  time.Duration // the last Deadline
	start time.Duration // Mono 0 of this process, since the start of the script
	agent map[string]*agentState
	out   writer
	lost  string // how this round ends: "", before, after
	copy  *modelLog
	file  string // the script, empty for commands of a Go test
	line  int    // where its block begins
	pins  int    // that submissions without a pin were given
}

// agentState is what the commands fill in by themselves.
type agentState struct{ session, incarnation, next, throws uint64 }

const scriptStart = int64(1_700_000_000_000)

func newHarness(t *testing.T) *harness {
	h := &harness{t: t, rnd: rand.New(rand.NewPCG(1, 2)), log: newModelLog(), agent: map[string]*agentState{}}
	h.cfg.Reserve = -1 // numbers without gaps are easier to read
	h.out.base = scriptStart
	h.now.Wall = scriptStart
	h.boot()
	return h
}

// boot starts a new process on the log: its monotonic clock begins at zero.
func (h *harness) boot() {
	h.start += h.now.Mono
	h.now.Mono = 0
	h.eng = engine.New(h.cfg, h.log.counters, h.rnd)
	h.log.recover(h.eng, h.now)
	r := h.eng.Ready(h.now)
	h.finish(&r)
}

// block runs the commands of one block and returns what came of them.
func (h *harness) block(text string) string {
	h.out.Reset()
	h.lost = ""
	pending := false
	for k, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		c := parseAt(h.t, h.at(k), line)
		if in := h.input(c); in != nil {
			h.log.step(h.eng, h.now, in)
			pending = true
			continue
		}
		if c.Name == "crash" {
			h.lost = c.word(0)
			continue
		}
		if pending { // a control ends the round before it
			h.round()
			pending = false
		}
		h.control(c)
	}
	if pending {
		h.round()
	}
	return h.out.String()
}

// at is where line k of a block stands.
func (h *harness) at(k int) string {
	if h.file == "" {
		return "command"
	}
	return fmt.Sprintf("%s:%d", h.file, h.line+k)
}

// round ends a round as its commands want it.
func (h *harness) round() {
	r := h.eng.Ready(h.now)
	switch h.lost {
	case "before":
		h.out.line("power cut before the commit: %d instruction records and %d messages never existed", len(r.Records.Instructions), len(r.Effects.Sends))
		h.boot()
	case "after":
		h.apply(&r)
		h.out.records(&r.Records)
		h.out.line("power cut after the commit: %d messages and %d replies never left", len(r.Effects.Sends), len(r.Effects.Replies))
		h.boot()
	default:
		h.finish(&r)
	}
}

func (h *harness) apply(r *engine.Ready) {
	h.t.Helper()
	if err := h.log.apply(&r.Records); err != nil {
		h.out.ready(r, h.now)
		h.t.Fatalf("the log refuses a batch: %v\n%s", err, h.out.String())
	}
}

func (h *harness) finish(r *engine.Ready) {
	h.t.Helper()
	h.apply(r)
	h.wake = r.Deadline
	h.out.ready(r, h.now)
	if err := h.eng.Check(); err != nil {
		h.t.Fatalf("the engine's own bookkeeping: %v\n%s", err, h.out.String())
	}
	for _, s := range r.Effects.Sends {
		if _, err := wire.Encode(s.Msg); err != nil {
			h.t.Fatalf("a message that cannot be sent: %v", err)
		}
	}
}

// advance lets time pass and wakes the engine whenever it wants to be woken.
func (h *harness) advance(d time.Duration) {
	end := h.now.Mono + d
	for n := 0; h.wake != 0 && h.wake <= end; n++ {
		if n == 10_000 {
			h.t.Fatalf("the engine wanted to be woken %d times within %v\n%s", n, d, h.out.String())
		}
		h.pass(max(h.wake-h.now.Mono, 0))
		r := h.eng.Ready(h.now)
		if !r.Records.Empty() || !r.Effects.Empty() {
			h.out.line("at %s", seconds(h.start+h.now.Mono))
			h.finish(&r)
			continue
		}
		h.wake = r.Deadline
	}
	h.pass(end - h.now.Mono)
}

// advanceWith lets time pass while nodes send heartbeats.
func (h *harness) advanceWith(d time.Duration, nodes []string) {
	const every = 4 * time.Second
	for ; len(nodes) > 0 && d >= every; d -= every {
		h.advance(every)
		for _, n := range nodes {
			h.log.step(h.eng, h.now, h.heartbeat(parseCommand(h.t, "heartbeat "+n)))
		}
		r := h.eng.Ready(h.now)
		if r.Records.Empty() && r.Effects.Empty() {
			h.wake = r.Deadline
			continue
		}
		h.out.line("at %s", seconds(h.start+h.now.Mono))
		h.finish(&r)
	}
	h.advance(d)
}

func (h *harness) alarms() {
	standing, recent := h.eng.Alarms()
	for _, a := range standing {
		h.out.line("stands since %s: %s %s", h.out.at(a.At), a.Kind, a.Subject)
	}
	for _, a := range recent {
		h.out.line("incident at %s: %s %s", h.out.at(a.At), a.Kind, a.Subject)
	}
}

// audit shows the audit trail, whose chain the model log checks.
func (h *harness) audit() {
	for _, a := range h.log.audits {
		h.out.line("%s", h.out.audit(a))
	}
}

// pass moves both clocks. The wall clock counts whole milliseconds.
func (h *harness) pass(d time.Duration) {
	before := (h.start + h.now.Mono).Milliseconds()
	h.now.Mono += d
	h.now.Wall += (h.start + h.now.Mono).Milliseconds() - before
}

func (h *harness) show() {
	for _, s := range h.eng.Unfinished() {
		state, _ := engine.Summarize(s.Instructions)
		h.out.line("task %s %v", s.Task.ID, state)
		for _, i := range s.Instructions {
			h.out.line("  %s", h.out.instruction(&i))
		}
	}
	for _, n := range h.eng.Nodes() {
		h.out.line("node %s", node(n))
	}
	s := h.eng.Sizes()
	h.out.line("in memory: %d tasks, %d instructions, %d nodes, %d queued, %d flying, %d timers", s.Tasks, s.Instructions, s.Nodes, s.Queued, s.Flying, s.Timers)
}

func (h *harness) history(seq uint64) {
	i, ok := h.log.insts[seq]
	if !ok {
		h.t.Fatalf("no instruction %d", seq)
	}
	h.out.write(&engine.Write{Instruction: i, Entries: h.log.lines[seq]})
}

package lab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/lab/board"
)

// said runs the agent's program on the board as a person at the bench would, waits
// for its end and returns what it has written and its exit code.
func (s *site) said(name string, args ...string) (text string, exit int) {
	s.t.Helper()
	return s.saidBy("arm64", name, args...)
}

// saidBy is the same with the program of another level.
func (s *site) saidBy(level, name string, args ...string) (text string, exit int) {
	s.t.Helper()
	s.must(s.board.Run(name, "apollo", append([]string{agentPath(level)}, args...)...))
	r, err := s.board.Wait(name, patience)
	s.must(err)
	mark := "[" + name + "] "
	for _, l := range strings.Split(s.board.Console(), "\n") {
		if rest, ok := strings.CutPrefix(l, mark); ok {
			text += rest + "\n"
		}
	}
	return text, r.Exit
}

// TestBenchOnRealLines: the commands of a person at the bench show what the kernel
// has, move and watch real lines, and name who holds one (I3, I6, I10).
func TestBenchOnRealLines(t *testing.T) {
	const out, in, owner = 5, 6, "pump-control"
	k := lab(t)
	s := newSite(t, k)
	b := s.switchOn(board.Options{Files: k.files(levels...)})
	text, exit := s.said("list", "gpio", "list")
	if exit != 0 || strings.Count(text, line(0)[:len(line(0))-1]) != 8 || !strings.Contains(text, "USED BY") {
		t.Errorf("exit code %d, list\n%s", exit, text)
	}

	before := len(b.Lines().Edges(out))
	text, exit = s.said("set", "gpio", "set", line(out), "1", "--for", "300ms")
	if exit != 0 || !strings.Contains(text, "set to 1 (on)") {
		t.Errorf("exit code %d, set\n%s", exit, text)
	}
	s.seen(out, true, patience) // it is let go as it is
	text, exit = s.said("get", "gpio", "get", line(out))
	if exit != 0 || !strings.Contains(text, "is 1 (on)") {
		t.Errorf("exit code %d, get\n%s", exit, text)
	}
	if n := len(b.Lines().Edges(out)) - before; n != 1 {
		t.Errorf("%d edges for one set and one get", n)
	}

	s.must(b.Run("watch", "apollo", agentPath("arm64"), "gpio", "watch", line(in), "--for", "6s"))
	s.must(b.AwaitConsole(t.Context(), "[watch] ", patience))
	s.must(b.Lines().Drive(in, true))
	s.must(b.AwaitConsole(t.Context(), "went to 1 (on)", patience))
	s.must(b.Lines().Drive(in, false))
	s.must(b.AwaitConsole(t.Context(), "went to 0 (off)", patience))
	if r, err := b.Wait("watch", patience); err != nil || r.Exit != 0 {
		t.Errorf("watch: exit code %d, %v", r.Exit, err)
	}

	s.must(b.Hold(owner, chipFile, heldLine))
	text, exit = s.said("busy", "gpio", "set", line(heldLine), "1", "--for", "1s")
	if exit != 1 || !strings.Contains(text, owner) {
		t.Errorf("exit code %d, the owner is not named:\n%s", exit, text)
	}
	s.must(b.Free(owner))
}

// TestPeriphOnARealLine: the back end of periph.io moves a line of a kernel's chip,
// reads it, and does not let go of an output by asking for its level.
func TestPeriphOnARealLine(t *testing.T) {
	const node, out, in = "arm64", 5, 6
	k := lab(t)
	s := newSite(t, k)
	b := s.switchOn(board.Options{Files: k.files(levels...)})
	s.must(b.Run(node, "apollo", agentArgs(node, "--gpio", "periph")...))
	s.online(node)
	before := len(b.Lines().Edges(out))
	for n, level := range []int{1, 1, 0} {
		id := fmt.Sprintf("periph-%d", n)
		s.publish(write(id, node, line(out), level))
		s.done(t, id)
		s.seen(out, level == 1, patience)
		s.publish(doc(id+"-back", "gpio.read", node, fmt.Sprintf(`{"pin":%q}`, line(out))))
		if i := s.done(t, id+"-back"); fmt.Sprint(i.Result["level"]) != fmt.Sprint(level) {
			t.Errorf("the output reads %v, want %d", i.Result, level)
		}
	}
	if n := len(b.Lines().Edges(out)) - before; n != 2 {
		t.Errorf("%d edges for on, on, off with a look after each: %v", n, b.Lines().Edges(out))
	}
	s.must(b.Lines().Drive(in, true))
	s.publish(doc("periph-in", "gpio.read", node, fmt.Sprintf(`{"pin":%q}`, line(in))))
	if i := s.done(t, "periph-in"); fmt.Sprint(i.Result["level"]) != "1" {
		t.Errorf("the input reads %v, want 1", i.Result)
	}
}

package fieldagent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

// bootable is a board whose boots can be counted: the program that boots it only
// writes a line, and the test plays the rest.
type bootable struct {
	*board
	dir  string
	said int
}

func newBootable(t *testing.T, g *gateway) *bootable {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "proc/sys/kernel/random"), 0o755))
	program := filepath.Join(dir, "reboot")
	must(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"$1\" >>"+filepath.Join(dir, "boots")+"\n"), 0o755))
	b := &bootable{board: newBoard(t, g.url(), ""), dir: dir}
	b.cfg.RebootCommand = program + " now"
	b.cfg.SetRoot(os.DirFS(dir))
	b.bootAgain()
	return b
}

// bootAgain does what the kernel does: it draws a new boot id.
func (b *bootable) bootAgain() {
	b.t.Helper()
	b.said++
	must(b.t, os.WriteFile(filepath.Join(b.dir, "proc/sys/kernel/random/boot_id"), fmt.Appendf(nil, "id %d\n", b.said), 0o644))
}

func (b *bootable) asked() int {
	text, err := os.ReadFile(filepath.Join(b.dir, "boots"))
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "now\n")
}

// toldToBoot is what becomes of a reboot that ends the agent: the gateway has heard
// nothing and sends it again, before and after. booted says whether the board boots
// before the agent is back. It returns the result.
func toldToBoot(t *testing.T, booted bool) *wire.Event {
	t.Helper()
	g := newGateway(t, "")
	b := newBootable(t, g)
	b.start()
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	in := instruction(t, 1, wire.IntentReboot, nil)
	g.send(in)
	g.until("the program to run", func() bool { return b.asked() == 1 })
	g.send(in)
	b.stop()
	if r := g.got(1); len(r) != 0 {
		t.Fatalf("there is a result before the agent is back: %s", describe(r[0]))
	}
	if booted {
		b.bootAgain()
	}
	b.start()
	g.until("result", func() bool { return len(g.results(1)) >= 1 })
	g.send(in)
	g.until("answer", func() bool { return len(g.reports) > 0 })
	b.stop()
	if n := b.asked(); n != 1 {
		t.Errorf("the board was booted %d times", n)
	}
	return g.got(1)[0]
}

// D6: a reboot is confirmed after the boot, and happens once however often the
// gateway sends it.
func TestD6_RebootIsConfirmedAfterwardsAndHappensOnce(t *testing.T) {
	if e := toldToBoot(t, true); e.Code != wire.CodeOK {
		t.Errorf("got %s, want ok", describe(e))
	}
}

// D7: "will boot" is not "has booted". If only the agent was restarted, nobody
// says that the board was, and nobody boots it for that.
func TestD7_RestartOfTheAgentIsNoReboot(t *testing.T) {
	if e := toldToBoot(t, false); e.Code != wire.CodeInterrupted {
		t.Errorf("got %s, want interrupted", describe(e))
	}
}

// Without a program the agent has no such intent, and a program that fails says
// why.
func TestRebootThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		name, command string
		want          wire.Code
		says          string
	}{
		{"none configured", "", wire.CodeUnknownIntent, "reboot"},
		{"no such program", "/nowhere/reboot", wire.CodeNotPermitted, "/nowhere/reboot"},
		{"program fails", "/bin/ls /nowhere/at-all", wire.CodeFailed, "at-all"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGateway(t, "")
			b := newBootable(t, g)
			b.cfg.RebootCommand = c.command
			b.start()
			g.until("hello", func() bool { return len(g.hellos) == 1 })
			g.send(instruction(t, 1, wire.IntentReboot, nil))
			g.until("result", func() bool { return len(g.results(1)) == 1 })
			b.stop()
			if e := g.got(1)[0]; e.Code != c.want || !strings.Contains(e.Detail, c.says) {
				t.Errorf("got %s, want %s with %q", describe(e), c.want, c.says)
			}
		})
	}
}

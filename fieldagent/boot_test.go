package fieldagent_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/journal"
	"github.com/apollo-11/apollo11/wire"
)

// levels are the simulated board's, as it keeps them.
func (b *board) levels() map[string]gpio.Level {
	b.t.Helper()
	l, err := gpio.ReadLevels(filepath.Join(b.cfg.Data, "gpio-levels.json"))
	must(b.t, err)
	return l
}

func (b *board) trace() []gpio.Actuation {
	b.t.Helper()
	acts, err := gpio.ReadTrace(b.cfg.GPIOTrace)
	must(b.t, err)
	return acts
}

// C4: at boot the saved state stands first; what a broker has kept for the node is
// not obeyed; then comes what the gateway has queued. The final level is explained
// by one event, and what moved the pin is named in the board's own trace.
func TestC4_BootIsSavedStateThenQueueAndNeverWhatTheBrokerKept(t *testing.T) {
	for _, c := range []struct {
		name  string
		queue bool
		want  gpio.Level
	}{{"nothing queued", false, gpio.High}, {"a command queued", true, gpio.Low}} {
		t.Run(c.name, func(t *testing.T) {
			g := newGateway(t, "")
			b := newBoard(t, g.url(), "")
			b.start()
			g.until("hello", func() bool { return len(g.hellos) == 1 })
			g.send(write(t, 1, "GPIO17", 1))
			g.until("result", func() bool { return len(g.results(1)) == 1 })
			b.stop()

			// A retained command, from a broker that does not refuse it as ours does.
			kept, err := wire.Encode(write(t, 9, "GPIO17", 0))
			must(t, err)
			must(t, g.broker.Publish(g.topics.Cmd(node), kept, true, 1))
			g.set(func() { g.mute = true })
			b.start()
			g.until("second hello", func() bool { return len(g.hellos) == 2 })
			if acts := b.trace(); len(acts) != 1 || b.levels()["GPIO17"] != gpio.High {
				t.Fatalf("before the gateway's word: %+v, levels %v", acts, b.levels())
			}
			// The queue: an answer to the hello, then what waited.
			g.set(func() {
				g.mute = false
				h := g.hellos[1]
				g.answer(&wire.Welcome{Session: h.Session, Epoch: 1, Now: h.Clock, HeartbeatMs: 200, Through: g.last})
			})
			in := write(t, 2, "GPIO17", 0)
			if c.queue {
				g.send(in)
				g.until("result of the queue", func() bool { return len(g.results(2)) == 1 })
			}
			beats := 0
			g.set(func() { beats = g.beats })
			g.until("heartbeats", func() bool { return g.beats > beats })
			b.stop()

			if len(g.got(9)) != 0 || b.levels()["GPIO17"] != c.want {
				t.Errorf("the kept command has %d results, levels %v", len(g.got(9)), b.levels())
			}
			acts := b.trace()[1:]
			switch {
			case !c.queue && len(acts) != 0:
				t.Errorf("moved by nobody's command: %+v", acts)
			case c.queue && (len(acts) != 1 || acts[0].Cause != in.Token.String() || acts[0].Level != c.want):
				t.Errorf("moved by %+v, want one by %v", acts, in.Token)
			case c.queue && (len(g.got(2)) != 1 || g.got(2)[0].Code != wire.CodeOK):
				t.Errorf("events %v", g.got(2))
			}
		})
	}
}

// G6: a journal that a power cut or a worn card has ruined does not keep the agent
// from starting. The damaged file is kept, the gateway is told by a new
// incarnation, nothing is run again, and work goes on.
func TestG6_AgentStartsOnADamagedJournal(t *testing.T) {
	for name, ruin := range map[string]func([]byte) []byte{
		"zeros":                   func(b []byte) []byte { return make([]byte, len(b)) },
		"empty":                   func([]byte) []byte { return nil },
		"cut in the header":       func(b []byte) []byte { return b[:20] },
		"a bit in the header":     func(b []byte) []byte { b[9] ^= 4; return b },
		"a bit in the first half": func(b []byte) []byte { b[40] ^= 4; return b },
		"a page of zeros":         func(b []byte) []byte { clear(b[24:64]); return b },
		"another file":            func([]byte) []byte { return []byte("PNG, or what else a file system finds") },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, "")
			b := newBoard(t, g.url(), "")
			b.start()
			g.until("hello", func() bool { return len(g.hellos) == 1 })
			in := write(t, 1, "GPIO17", 1)
			g.send(in)
			g.until("result", func() bool { return len(g.results(1)) == 1 })
			b.stop()

			file := filepath.Join(b.cfg.Data, "agent.journal")
			content, err := os.ReadFile(file)
			must(t, err)
			ruined := ruin(content)
			must(t, os.WriteFile(file, ruined, 0o600))
			// The gateway takes a new incarnation's events from the first.
			g.set(func() { g.last, g.events = 0, nil })
			b.start()
			g.until("second hello", func() bool { return len(g.hellos) == 2 })
			var old, now *wire.Hello
			g.set(func() { old, now = g.hellos[0], g.hellos[1] })
			if now.Incarnation == old.Incarnation || now.First != 1 || now.Next != 1 || now.TopSeq != 0 {
				t.Errorf("introduces itself as if nothing had happened: %+v, before: %+v", now, old)
			}
			kept, err := os.ReadFile(file + ".damaged-1")
			if err != nil || string(kept) != string(ruined) {
				t.Errorf("the damaged file is not kept: %v", err)
			}
			next := write(t, 2, "GPIO17", 0)
			g.send(next)
			g.until("next result", func() bool { return len(g.results(2)) == 1 })
			b.stop()
			if n := b.moves(); n[in.Token.String()] != 1 || n[next.Token.String()] != 1 {
				t.Errorf("moved %v", n)
			}
		})
	}
}

// A10: records that contradict each other are as good as damaged.
func TestA10_AgentStartsOnAJournalWithoutSense(t *testing.T) {
	for name, record := range map[string]map[uint64]any{
		"a second head":         {0: 1, 1: 1, 2: 7, 3: 1},
		"an event out of order": {0: 5, 1: "no number"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, "")
			b := newBoard(t, g.url(), "")
			b.start()
			g.until("hello", func() bool { return len(g.hellos) == 1 })
			b.stop()
			j, _, err := journal.Open(journal.OS(), b.cfg.Data, journal.Options{})
			must(t, err)
			r, err := wire.EncodeRecord(record)
			must(t, err)
			must(t, j.Append(r))
			must(t, j.Close())
			b.start()
			g.until("second hello", func() bool { return len(g.hellos) == 2 })
			g.set(func() {
				if g.hellos[0].Incarnation == g.hellos[1].Incarnation {
					t.Error("introduces itself as if nothing had happened")
				}
			})
			b.stop()
		})
	}
}

package executor_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/firmware-sim/script"
	"github.com/apollo-11/apollo11/wire"
)

// Scripts in testdata pin what the core does. A block is commands, a line of
// dashes, and what they lead to; -update rewrites the latter. The commands are
// explained at language, the lines they print at (*world).show.
var update = flag.Bool("update", false, "rewrite the expected output of the scripts")

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, f, string(b))
			if *update {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got != string(b) && !*update {
				t.Errorf("%s differs %s", f, firstDifference(got, string(b)))
			}
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("in line %d:\n got %s\nwant %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("in length: %d lines, want %d", len(g), len(w))
}

func runScript(t *testing.T, file, text string) string {
	t.Helper()
	w := &world{t: t, deadline: executor.NoDeadline}
	var out strings.Builder
	first := 1 // line of the block
	for i, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		if i > 0 {
			out.WriteString("\n")
		}
		commands, _, hasOutput := strings.Cut(block, "\n----")
		out.WriteString(commands + "\n")
		w.out.Reset()
		ran := false
		for k, line := range strings.Split(commands, "\n") {
			if line != "" && !strings.HasPrefix(line, "#") {
				w.commandAt(fmt.Sprintf("%s:%d", file, first+k), line)
				ran = true
			}
		}
		first += strings.Count(block, "\n") + 2
		if ran || hasOutput {
			out.WriteString("----\n" + w.out.String())
		}
	}
	return out.String()
}

// wallAtStart is 2027-01-15 08:00 UTC in Unix ms.
const wallAtStart = 1_800_000_000_000

// world is a core, its journal and its clocks.
type world struct {
	t        *testing.T
	core     *executor.Core
	cfg      executor.Config
	journal  [][]byte
	mono     time.Duration // since the last start
	uptime   time.Duration // of all starts before
	wallOff  time.Duration // the agent's clock against the true time
	unset    bool          // the agent knows that its clock is wrong
	deadline time.Duration
	newest   uint64 // event that was sent
	out      strings.Builder
}

func (w *world) now() executor.Now {
	return executor.Now{Mono: w.mono, Wall: w.gateway() + w.wallOff.Milliseconds(), WallOK: !w.unset}
}

// gateway is the gateway's time, which is the true one.
func (w *world) gateway() int64 { return wallAtStart + (w.uptime + w.mono).Milliseconds() }

// check knows do, which holds the lines of its argument "on" or the "board", brings
// them to their safe levels if it is "safe" and holds them there if it is "hold",
// drives them for a time if it is a "pulse", and boots the board if it "reboots"; and
// release, which lets them be set again. It refuses what says so. do actuates if it
// holds anything; watch only waits; read holds its lines and actuates nothing.
func check(intent string, args wire.RawMap) executor.Verdict {
	m, err := wire.DecodeMap(args)
	if err == nil && intent == "watch" {
		return executor.Verdict{Watch: true}
	}
	if err != nil || intent != "do" && intent != "release" && intent != "read" {
		return executor.Verdict{Code: wire.CodeUnknownIntent, Detail: "no such intent"}
	}
	on, _ := m["on"].(string)
	if on == "nowhere" {
		return executor.Verdict{Code: wire.CodeNoSuchPin, Detail: "no pin nowhere"}
	}
	is := func(word string) bool { return m[word] == "yes" }
	v := executor.Verdict{Lines: lines(on), Actuates: intent == "do" && (on != "" || is("board")), Release: intent == "release",
		Board: is("board"), Towards: is("safe") || is("hold"), Hold: is("hold"), Reboots: is("reboots")}
	if is("pulse") {
		v.Pulse = &executor.Pulse{Pin: on, Line: wire.LineOf(on)}
	}
	return v
}

// lines are the keys of names that are separated by commas.
func lines(names string) (list []wire.LineKey) {
	for _, n := range strings.Split(names, ",") {
		if n != "" {
			list = append(list, wire.LineOf(n))
		}
	}
	return list
}

func config(workers int) executor.Config {
	return executor.Config{Hello: wire.Hello{Short: "abcdef"}, Incarnation: 77, Check: check, Workers: workers, Boot: 1,
		DefaultTimeout: 10 * time.Minute} // so that little of the scripts is about it
}

// language is the commands of the scripts.
//
//   - start: a new agent; restart: a crash and a start with what is in the journal;
//     boot: the same, and the whole board with it.
//   - local, remote: how the LOCAL switch stands at the next start; unplug: the board
//     has no pins then.
//   - cut: the last N records of the journal are lost; rewrite: it is replaced by a
//     snapshot.
//   - wait: time passes, and the core is woken at its deadlines.
//   - clock: the agent's clock is off by D, not set, set.
//   - welcome: without rules it is that of a gateway which follows none.
//   - deliver: on=LINES are the pins that it holds, lines=LINES those that the gateway
//     takes them for; D is a duration from the start or from now; for=D sets
//     not_after. What board, safe, hold, pulse and reboots mean stands at check.
//   - release: the gateway's word that no line is kept for it.
//   - ack: without N the newest event that was sent.
//   - edges: a watch has seen something.
//   - hand: what people do at the board.
var language = script.New(script.Kinds{"N": script.Number, "BYTE": script.Byte, "D": script.Duration, "CLOCK": isClock, "CODE": isCode, "WHY": isEnd},
	"start [workers=N] [queue=N] [known=N] [autonomy=D]",
	"local", "remote", "unplug",
	"restart [new-incarnation]",
	"cut N",
	"boot", "rewrite",
	"wait D",
	"clock CLOCK",
	"connect [N]", "disconnect",
	"narrowband up|down",
	"welcome [through=N] [session=N] [heartbeat=D] [refused=WORD] [phases=BYTE] [rules=BYTE] [epoch=N] [holds=LINES]",
	"deliver N [attempt=BYTE] [token=N] [made=D] [on=LINES] [board=YES] [safe=YES] [hold=YES] [pulse=YES] [reboots=YES] [order=N] [lines=LINES] [keep=YES] [prio=PRIORITY] [for=D] [timeout=D] [intent=INTENT] [sent=D] [through=N]",
	"release N",
	"cancel N [attempt=BYTE] [token=N]",
	"query N [attempt=BYTE] [token=N]",
	"compact-cancel N [attempt=BYTE]",
	"compact-query N [attempt=BYTE] [times=N]",
	"ack [N] [gap]",
	"progress N BYTE [attempt=BYTE] [token=N]",
	"edges N N [attempt=BYTE] [token=N]",
	"finish N [CODE] [attempt=BYTE] [token=N] [detail=WORD] [lease=PIN] [plain=PIN] [again=YES]",
	"lease-end N WHY [attempt=BYTE] [token=N] [ago=D]",
	"hand [local] [foreign=PINS]",
	"stop",
)

func isClock(s string) error {
	if s == "set" || s == "unset" {
		return nil
	}
	return script.Duration(s)
}

func isCode(s string) error {
	_, err := codeNamed(s)
	return err
}

func isEnd(s string) error {
	_, err := endNamed(s)
	return err
}

// command runs a command of a Go test.
func (w *world) command(line string) {
	w.t.Helper()
	w.commandAt("command", line)
}

// commandAt runs one line; what it does not know ends the test.
func (w *world) commandAt(at, line string) {
	w.t.Helper()
	c, err := language.Parse(at, line)
	if err != nil {
		w.t.Fatal(err)
	}
	a := arguments{t: w.t, at: at, line: line, plain: c.Words, named: c.Args}
	if !w.lifecycle(c.Name, &a) {
		w.input(c.Name, &a)
	}
}

func (w *world) lifecycle(name string, a *arguments) bool {
	switch name {
	case "start":
		w.cfg = config(int(a.number("workers", 2)))
		w.cfg.MaxQueue, w.cfg.MaxKnown = int(a.number("queue", 0)), int(a.number("known", 0))
		w.cfg.Autonomy = a.duration(a.text("autonomy", "0s"))
		w.journal, w.mono, w.uptime, w.wallOff, w.unset, w.newest = nil, 0, 0, 0, false, 0
		w.boot()
	case "restart":
		if len(a.plain) > 0 {
			w.cfg.Incarnation++
		}
		w.restart()
	case "boot":
		w.cfg.Boot++
		w.restart()
	case "local", "remote":
		w.cfg.Local = name == "local"
	case "unplug":
		w.cfg.Check = func(string, wire.RawMap) executor.Verdict {
			return executor.Verdict{Code: wire.CodeNoSuchPin, Detail: "no pin is left"}
		}
	case "rewrite":
		before := len(w.journal)
		w.journal = w.core.Snapshot()
		fmt.Fprintf(&w.out, "journal of %d records, was %d\n", len(w.journal), before)
	case "cut":
		n := int(a.toNumber(a.plain[0]))
		if n > len(w.journal) {
			a.wrong("the journal has %d records", len(w.journal))
		}
		w.journal = w.journal[:len(w.journal)-n]
	case "clock":
		switch a.plain[0] {
		case "unset", "set":
			w.unset = a.plain[0] == "unset"
		default:
			w.wallOff = a.duration(a.plain[0])
		}
	case "wait":
		w.wait(a.duration(a.plain[0]))
	default:
		return false
	}
	return true
}

func (w *world) restart() {
	w.uptime += w.mono
	w.mono = 0
	w.boot()
}

func (w *world) boot() {
	w.t.Helper()
	core, out, err := executor.New(w.cfg, w.journal, w.now())
	if err != nil {
		fmt.Fprintf(&w.out, "error: %v\n", err)
		return
	}
	w.core = core
	w.show(out)
}

func (w *world) step(in executor.Input) {
	w.show(w.core.Step(w.now(), in))
}

func (w *world) wait(d time.Duration) {
	end := w.mono + d
	for i := 0; w.deadline <= end; i++ {
		if i > 10_000 {
			w.t.Fatalf("the core wants to be woken all the time")
		}
		w.mono = max(w.mono, w.deadline)
		w.step(executor.Tick{})
	}
	w.mono = end
}

func (w *world) token(a *arguments, seq uint64, attempt uint8) wire.Token {
	n := a.number("token", seq*10+uint64(attempt))
	return wire.Token{Shard: 1, Seq: n, Rand: 9}
}

func (w *world) input(name string, a *arguments) {
	w.t.Helper()
	var seq uint64
	if len(a.plain) > 0 && script.Number(a.plain[0]) == nil {
		seq = a.toNumber(a.plain[0])
	}
	attempt := uint8(a.number("attempt", 1))
	token := w.token(a, seq, attempt)
	recv := func(m wire.Message) { w.step(executor.Received{Message: m}) }
	switch name {
	case "connect":
		w.step(executor.Connected{Session: max(seq, 1)})
	case "disconnect":
		w.step(executor.Disconnected{})
	case "narrowband":
		if a.plain[0] == "up" {
			w.step(executor.NarrowbandUp{})
		} else {
			w.step(executor.NarrowbandDown{})
		}
	case "welcome":
		recv(&wire.Welcome{Session: a.number("session", 1), Epoch: a.number("epoch", 5), Now: w.gateway(), Through: a.number("through", 0),
			HeartbeatMs: uint32(a.duration(a.text("heartbeat", "1h")).Milliseconds()), Refused: a.text("refused", ""),
			Phases: wire.Phase(a.number("phases", uint64(wire.MaxPhase))), Rules: wire.Rules(a.number("rules", 0)), Holds: lines(a.text("holds", ""))})
	case "deliver":
		recv(w.instruction(a, seq, attempt, token))
	case "cancel":
		recv(&wire.Cancel{Seq: seq, Token: token, Reason: "operator"})
	case "release":
		recv(&wire.Release{Seq: seq})
	case "query":
		recv(&wire.Query{Refs: []wire.Ref{{Seq: seq, Token: token}}})
	case "compact-cancel":
		w.step(executor.ReceivedCompact{Frame: wire.CompactCancel{Seq: seq, Attempt: attempt}})
	case "compact-query":
		for range a.number("times", 1) {
			w.step(executor.ReceivedCompact{Frame: wire.CompactQuery{Seq: seq, Attempt: attempt}})
		}
	case "ack":
		gap := slices.Contains(a.plain, "gap")
		if len(a.plain) == 0 || gap && len(a.plain) == 1 {
			seq = w.newest
		}
		recv(&wire.EventAck{Through: seq, Gap: gap})
	case "finish":
		code := wire.CodeOK
		if len(a.plain) > 1 {
			code, _ = codeNamed(a.plain[1])
		}
		r := executor.Result{Code: code, Detail: a.text("detail", "")}
		if pin := a.text("lease", ""); pin != "" {
			r.Lease = &executor.Lease{Pin: pin}
		}
		if pin := a.text("plain", ""); pin != "" {
			r.Lease = &executor.Lease{Pin: pin, Plain: true}
		}
		w.step(executor.Finished{Token: token, Result: r, Again: a.text("again", "") != ""})
	case "progress":
		w.step(executor.Progressed{Token: token, Percent: uint8(a.toNumber(a.plain[1]))})
	case "edges":
		w.step(executor.Progressed{Token: token, Payload: encodeMap(w.t, map[string]any{"total": a.toNumber(a.plain[1])})})
	case "lease-end":
		why, _ := endNamed(a.plain[1])
		w.step(executor.LeaseEnded{Token: token, Why: why, Ago: a.duration(a.text("ago", "0s"))})
	case "hand":
		h := executor.Hand{Local: len(a.plain) > 0}
		if pins := a.text("foreign", ""); pins != "" {
			for _, p := range strings.Split(pins, ",") {
				h.Foreign = append(h.Foreign, wire.Foreign{Pin: p, Found: 1})
			}
		}
		w.step(h)
	case "stop":
		w.step(executor.Stop{Reason: "asked to"})
	default:
		a.wrong("nobody carries it out")
	}
}

func (w *world) instruction(a *arguments, seq uint64, attempt uint8, token wire.Token) *wire.Instruction {
	w.t.Helper()
	made := wallAtStart + a.duration(a.text("made", "0s")).Milliseconds()
	in := &wire.Instruction{
		Seq: seq, Key: wire.Key{Site: "default", Millis: made, Seq: seq}.String(), Token: token, Attempt: attempt,
		Intent: a.text("intent", "do"), SentAt: w.gateway() + a.duration(a.text("sent", "0s")).Milliseconds(),
		TimeoutMs: uint32(a.duration(a.text("timeout", "0s")).Milliseconds()), Through: a.number("through", 0),
	}
	args := map[string]any{}
	for _, word := range []string{"on", "board", "safe", "hold", "pulse", "reboots"} {
		if v := a.text(word, ""); v != "" {
			args[word] = v
		}
	}
	if len(args) > 0 {
		in.Args = encodeMap(w.t, args)
	}
	in.Order, in.Lines, in.Keep = a.number("order", 0), lines(a.text("lines", "")), a.text("keep", "") != ""
	if f := a.text("for", ""); f != "" {
		in.NotAfter = w.gateway() + a.duration(f).Milliseconds()
	}
	p, err := wire.ParsePriority(a.text("prio", ""))
	if err != nil {
		a.wrong("%v", err)
	}
	in.Priority = p
	return in
}

func encodeMap(t *testing.T, m map[string]any) wire.RawMap {
	t.Helper()
	r, err := wire.EncodeMap(m, wire.MaxArgsBytes)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

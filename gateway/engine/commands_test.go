package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/script"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// language is the commands of the scripts.
//
//   - submit: count=N gives the same N times, without ids; nodes=N names so many
//     nodes that were never seen.
//   - event: the phase lease_ended has a WHY behind it, processed a CODE.
//   - crash: power cut at the end of this round, before or after its commit.
//   - config: what it does not name is as by default; and a new, empty gateway.
//   - hello: pins= is an agent that follows the rules, each with its safe level, 0 or
//     1, or - for none.
//   - waits: what an instruction waits for.
//   - advance: time passes; the nodes send heartbeats every 4 s.
//   - backup, restored: the log is copied; the process starts from the copy.
//   - alarms, audit, quiet: what stands; the chain as the log has it; the quiet
//     period.
//   - wall: the wall clock is set forward or back.
//   - restart: the process ends and starts again from the log.
//   - show, timeline: what is in memory; an instruction as the log has it.
var language = script.New(script.Kinds{"N": script.Number, "BYTE": script.Byte, "D": script.Duration, "TIME": script.Duration, "NUMS": script.Numbers,
	"PAIRS": script.Pairs, "#N": hashed, "RETRY": isRetry, "PHASE": isPhase, "CODE": isCode, "ENDING": isEnding},
	"submit [dup] [id=TASK] [intent=INTENT] [node=LIST] [nodes=N] [label=PAIRS] [ttl=D] [timeout=D] [prio=PRIORITY] [retry=RETRY] [tiered=BYTE] [client=NAME] [packet=N] [by=USER] [pin=PIN] [level=N] [max_on=D] [width=D] [count=N]",
	"hello NODE [session=N] [incarnation=N] [first=N] [next=N] [labels=PAIRS] [intents=LIST] [short=SHORT] [top=NUMS] [clock=D] [pins=LIST] [nonce=N] [rules=N] [local] [throws=N]",
	"event NODE PHASE [ENDING] seq=N [no=N] [token=#N] [attempt=BYTE] [received=TIME] [started=TIME] [finished=TIME] [payload=PAIRS] [percent=BYTE] [detail=WORD] [pin=PIN] [level=N] [until=TIME] [max_on_ms=N] [edges=NUMS] [total=N] [times=N]",
	"compact NODE CODE seq=N [attempt=BYTE] [short=SHORT]",
	"report NODE never|queued|running|done|full|driven [CODE] seq=N [token=#N]",
	"heartbeat NODE [local] [throws=N] [session=N] [clock=D] [foreign=LIST] [room=N] [levels=LIST]",
	"digest NODE [session=N] [holds=NUMS]",
	"narrowband NODE up|down",
	"goodbye NODE [lost] [session=N] [unstarted=NUMS]",
	"gone NODE [session=N]",
	"cancel [TASK] [seq=N] [by=USER]",
	"operate ACTION [yes] [seq=N] [dead=N] [for=D] [note=WORD] [by=USER]",
	"garbage KIND FROM REASON BYTES",
	"crash before|after",
	"config [window=N] [capacity=N] [resends=N] [low=N] [high=N] [drain=N] [burst=N]",
	"advance D [NODE...]",
	"backup", "restored", "alarms", "audit", "quiet",
	"wall D",
	"restart", "show",
	"timeline N",
	"waits N",
)

func hashed(s string) error { return script.Number(strings.TrimPrefix(s, "#")) }

func isRetry(s string) error {
	p := strings.Split(s, ",")
	if len(p) != 3 {
		return errors.New("it is written N,initial,max")
	}
	return errors.Join(script.Byte(p[0]), script.Duration(p[1]), script.Duration(p[2]))
}

func isPhase(s string) error {
	if _, ok := phaseNamed(s); !ok {
		return errors.New("no phase is called so")
	}
	return nil
}

func isCode(s string) error {
	if _, ok := codeNamed(s); !ok {
		return errors.New("no code is called so")
	}
	return nil
}

// isEnding: what stands behind the phase of an event.
func isEnding(s string) error {
	_, lease := leaseEndNamed(s)
	if _, code := codeNamed(s); !code && !lease {
		return errors.New("neither a code nor an end of a lease is called so")
	}
	return nil
}

func phaseNamed(s string) (wire.Phase, bool) {
	for p := wire.PhaseReceived; p <= wire.MaxPhase; p++ {
		if p.String() == s {
			return p, true
		}
	}
	return 0, false
}

func codeNamed(s string) (wire.Code, bool) {
	for n := range 256 {
		if wire.Code(n).String() == s {
			return wire.Code(n), true
		}
	}
	return wire.CodeNone, false
}

func leaseEndNamed(s string) (wire.LeaseEnd, bool) {
	for e := range wire.LeaseEnd(255) {
		if e.String() == s {
			return e, true
		}
	}
	return 0, false
}

type command struct {
	t *testing.T
	*script.Command
}

// parseCommand reads a command of a Go test; what it does not know ends the test.
func parseCommand(t *testing.T, line string) *command {
	t.Helper()
	return parseAt(t, "command", line)
}

func parseAt(t *testing.T, at, line string) *command {
	t.Helper()
	c, err := language.Parse(at, line)
	if err != nil {
		t.Fatal(err)
	}
	return &command{t, c}
}

// wrong ends the test: each part of the command is right, but not their sum.
func (c *command) wrong(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("%s: %q: %s", c.At, c.Line, fmt.Sprintf(format, args...))
}

// needs: the argument k says nothing without another one.
func (c *command) needs(k, other string) {
	c.t.Helper()
	if _, given := c.Args[k]; given && c.Args[other] == "" {
		c.wrong("%s says nothing without %s", k, other)
	}
}

func (c *command) word(n int) string { return c.Words[n] }

func (c *command) has(word string) bool { return slices.Contains(c.Words, word) }

func (c *command) text(k, def string) string {
	if v, ok := c.Args[k]; ok {
		return v
	}
	return def
}

func (c *command) list(k string) []string {
	if c.Args[k] == "" {
		return nil
	}
	return strings.Split(c.Args[k], ",")
}

func (c *command) number(k string, def uint64) uint64 {
	v, ok := c.Args[k]
	if !ok {
		return def
	}
	return c.toNumber(strings.TrimPrefix(v, "#"))
}

// toNumber and span read what the language has checked.
func (c *command) toNumber(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		c.wrong("%v", err)
	}
	return n
}

func (c *command) span(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		c.wrong("%v", err)
	}
	return d
}

func (c *command) pairs(k string) map[string]string {
	m := map[string]string{}
	for _, p := range c.list(k) {
		key, v, _ := strings.Cut(p, ":")
		m[key] = v
	}
	return m
}

// code is the word n, none if it is not there.
func (c *command) code(n int) wire.Code {
	if n >= len(c.Words) {
		return wire.CodeNone
	}
	code, ok := codeNamed(c.Words[n])
	if !ok {
		c.wrong("no code is called %s", c.Words[n])
	}
	return code
}

// input makes the engine's input of a command; nil when it is something else.
func (h *harness) input(c *command) engine.Input {
	switch c.Name {
	case "submit":
		for range c.number("count", 1) - 1 {
			h.log.step(h.eng, h.now, h.submit(c))
		}
		return h.submit(c)
	case "cancel":
		in := &engine.Cancel{Seq: c.number("seq", 0), Actor: c.text("by", "ops"), Path: engine.PathHTTP, Reply: "caller"}
		if len(c.Words) > 0 {
			in.TaskID = c.word(0)
		}
		if (in.TaskID == "") == (in.Seq == 0) {
			c.wrong("either a task or seq is cancelled")
		}
		return in
	case "hello":
		return &engine.Uplink{Node: c.word(0), Msg: h.hello(c)}
	case "event":
		for range c.number("times", 1) - 1 {
			h.log.step(h.eng, h.now, &engine.Uplink{Node: c.word(0), Msg: h.event(c)})
		}
		return &engine.Uplink{Node: c.word(0), Msg: h.event(c)}
	case "report":
		return &engine.Uplink{Node: c.word(0), Msg: h.report(c)}
	case "heartbeat":
		return h.heartbeat(c)
	case "digest":
		return h.digest(c)
	case "narrowband":
		return &engine.NarrowbandUp{Short: wire.Short(c.word(0)), Up: c.word(1) == "up"}
	case "operate":
		in := &engine.Operate{Action: engine.Action(c.word(0)), Seq: c.number("seq", 0), Dead: c.number("dead", 0),
			Actor: c.text("by", "ops"), Note: c.text("note", ""), Path: engine.PathHTTP, AcceptUnknown: c.has("yes"), Reply: "caller"}
		if v := c.text("for", ""); v != "" {
			in.Until = h.now.Wall + c.span(v).Milliseconds()
		}
		return in
	case "goodbye":
		m := &wire.Goodbye{Session: c.number("session", h.agentOf(c).session), Lost: c.has("lost")}
		for _, s := range c.list("unstarted") {
			seq := c.toNumber(s)
			m.Unstarted = append(m.Unstarted, wire.Ref{Seq: seq, Token: h.log.insts[seq].Token})
		}
		return &engine.Uplink{Node: c.word(0), Msg: m}
	case "gone":
		return &engine.NodeGone{Node: c.word(0), Session: c.number("session", h.agentOf(c).session), Reason: "connection closed"}
	case "compact":
		return h.compact(c)
	case "garbage":
		return &engine.Garbage{Kind: c.word(0), From: c.word(1), Reason: c.word(2), Raw: []byte(c.word(3))}
	}
	return nil
}

// control runs a command that is no input.
func (h *harness) control(c *command) {
	switch c.Name {
	case "config":
		h.cfg.Window = int(c.number("window", 0))
		h.cfg.Capacity = int(c.number("capacity", 0))
		h.cfg.MaxResends = int(c.number("resends", 0))
		h.cfg.LowWater = int(c.number("low", 0))
		h.cfg.HighWater = int(c.number("high", 0))
		h.cfg.DrainRate = int(c.number("drain", 0))
		h.cfg.DrainBurst = int(c.number("burst", 0))
		h.log = newModelLog()
		h.boot()
	case "advance":
		h.advanceWith(c.span(c.word(0)), c.Words[1:])
	case "backup":
		h.copy = h.log.clone()
	case "restored":
		h.log = h.copy.clone()
		h.boot()
	case "alarms":
		h.alarms()
	case "audit":
		h.audit()
	case "quiet":
		q := h.eng.Quiet()
		h.out.line("quiet on=%v%s%s", q.On, opt("by", q.By), opt("reason", q.Reason))
	case "wall":
		h.now.Wall += c.span(c.word(0)).Milliseconds()
	case "restart":
		h.boot()
	case "waits":
		n := c.toNumber(c.word(0))
		if w, ok := h.eng.Waits(h.now, n); ok {
			h.out.line("%d %s", n, w.Why)
		} else {
			h.out.line("%d waits for no other", n)
		}
	case "show":
		h.show()
	case "timeline":
		h.history(c.toNumber(c.word(0)))
	default:
		c.wrong("nobody carries it out")
	}
}

// fitSubmit refuses what would be ignored.
func (c *command) fitSubmit() {
	c.t.Helper()
	c.needs("max_on", "pin")
	c.needs("packet", "client")
	if c.has("dup") && c.Args["client"] == "" {
		c.wrong("dup says nothing without client")
	}
	_, retry := c.Args["retry"]
	if _, tiered := c.Args["tiered"]; retry && tiered {
		c.wrong("retry and tiered contradict")
	}
	if len(c.pairs("label")) > 1 {
		c.wrong("a task is for one label")
	}
}

func (h *harness) submit(c *command) *engine.Submit {
	c.fitSubmit()
	s := engine.Spec{TaskID: c.text("id", ""), Intent: c.text("intent", wire.IntentGPIOWrite), Nodes: c.list("node")}
	slices.Sort(s.Nodes)
	for k, v := range c.pairs("label") {
		s.Label = engine.Selector{Key: k, Value: v}
	}
	for n := range c.number("nodes", 0) {
		s.Nodes = append(s.Nodes, fmt.Sprintf("dead-%04d", n))
	}
	if v := c.text("ttl", ""); v != "" {
		s.TTLMs = c.span(v).Milliseconds()
	}
	if v := c.text("timeout", ""); v != "" {
		s.TimeoutMs = uint32(c.span(v).Milliseconds())
	}
	if p := c.list("retry"); p != nil {
		s.Retry = &engine.Retry{Max: uint8(c.toNumber(p[0])), InitialMs: uint32(c.span(p[1]).Milliseconds()), MaxMs: uint32(c.span(p[2]).Milliseconds())}
	}
	if n := c.number("tiered", 0); n != 0 {
		s.Retry = &engine.Retry{Max: uint8(n), Backoff: engine.BackoffTiered}
	}
	p, err := wire.ParsePriority(c.text("prio", ""))
	if err != nil {
		c.wrong("%v", err)
	}
	s.Priority = p
	if args := h.arguments(c, s.Intent); args != nil {
		if s.Args, err = wire.EncodeMap(args, wire.MaxArgsBytes); err != nil {
			c.wrong("%v", err)
		}
	}
	in := &engine.Submit{Spec: s, Source: engine.Source{Via: "http", Actor: c.text("by", "ops")}, Path: engine.PathHTTP, Dup: c.has("dup"), Reply: "caller"}
	if client := c.text("client", ""); client != "" {
		in.Path, in.Source.Via = engine.PathMQTT, "mqtt"
		sum, err := s.Sum()
		if err != nil {
			c.wrong("%v", err)
		}
		in.Mark = &engine.Mark{Client: client, PacketID: uint16(c.number("packet", 1)), Sum: sum}
	}
	return in
}

// arguments are those of a submission. Where no pin is named each command has a line of
// its own, so that stories that are not about order at a line need not name one.
func (h *harness) arguments(c *command, intent string) map[string]any {
	args := map[string]any{}
	if !strings.HasPrefix(intent, "gpio.") {
		return nil
	}
	pin := c.text("pin", "")
	if all := intent == wire.IntentSafe || intent == wire.IntentRelease; pin == "" && !all {
		switch {
		case c.Args["id"] != "":
			pin = "p-" + c.Args["id"]
		case c.Args["client"] != "":
			pin = "p-" + c.Args["client"]
		default:
			h.pins++
			pin = fmt.Sprintf("p-%d", h.pins)
		}
	}
	if pin != "" {
		args["pin"] = pin
	}
	switch intent {
	case wire.IntentGPIOWrite, wire.IntentGPIOPulse:
		args["level"] = c.number("level", 1)
	}
	if intent == wire.IntentGPIOPulse {
		args["width_ms"] = uint64(c.span(c.text("width", "1s")).Milliseconds())
	}
	if intent == wire.IntentGPIOWatch {
		args["for_ms"] = uint64(60_000)
	}
	if d := c.text("max_on", ""); d != "" {
		args["max_on_ms"] = uint64(c.span(d).Milliseconds())
	}
	return args
}

func (h *harness) agentOf(c *command) *agentState {
	a := h.agent[c.word(0)]
	if a == nil {
		a = &agentState{next: 1, incarnation: 1}
		h.agent[c.word(0)] = a
	}
	return a
}

func (h *harness) hello(c *command) *wire.Hello {
	a := h.agentOf(c)
	a.session = c.number("session", a.session+1)
	if inc := c.number("incarnation", a.incarnation); inc != a.incarnation {
		a.incarnation, a.next = inc, 1
	}
	a.next, a.throws = c.number("next", a.next), c.number("throws", a.throws)
	var top [2]uint64
	for k, v := range c.list("top") {
		if k > 1 {
			c.wrong("top is SEQ,TOKEN")
		}
		top[k] = c.toNumber(v)
	}
	return withTraits(c, &wire.Hello{Throws: a.throws, TopSeq: top[0], TopToken: top[1], Clock: h.clock(c), ClockSet: h.clock(c) != 0,
		Session: a.session, Incarnation: a.incarnation, Short: c.text("short", wire.Short(c.word(0))),
		Labels: c.pairs("labels"), Intents: c.list("intents"), First: c.number("first", a.next), Next: a.next})
}

// clock is an agent's clock that is off by clock=D, 0 when that is not given.
func (h *harness) clock(c *command) int64 {
	if v := c.text("clock", ""); v != "" {
		return h.now.Wall + c.span(v).Milliseconds()
	}
	return 0
}

func (h *harness) heartbeat(c *command) *engine.Uplink {
	m := &wire.Heartbeat{Session: c.number("session", h.agentOf(c).session), Clock: h.clock(c), Local: c.has("local")}
	a := h.agentOf(c)
	a.throws = c.number("throws", a.throws)
	m.Throws = a.throws
	if withLevels(c, m); m.Levels != nil {
		m.Next = c.number("next", h.agentOf(c).next)
	}
	for _, p := range c.list("foreign") {
		m.Foreign = append(m.Foreign, wire.Foreign{Pin: p, Found: 1})
	}
	return &engine.Uplink{Node: c.word(0), Msg: m}
}

func (h *harness) digest(c *command) *engine.Uplink {
	var refs []wire.Ref
	for _, v := range c.list("holds") {
		seq := c.toNumber(v)
		refs = append(refs, wire.Ref{Seq: seq, Token: h.log.insts[seq].Token})
	}
	m := &wire.Digest{Session: c.number("session", h.agentOf(c).session)}
	m.Hash, m.Count = wire.DigestOf(refs)
	return &engine.Uplink{Node: c.word(0), Msg: m}
}

// tokenOf is the token that the command names by number, else the current one
// of the instruction in the log.
func (h *harness) tokenOf(c *command) wire.Token {
	seq := c.number("seq", 0)
	n := c.number("token", h.log.insts[seq].Token.Seq)
	for t := range h.log.tokens {
		if t.Seq == n {
			return t
		}
	}
	return wire.Token{Shard: 9, Seq: n, Rand: 1}
}

func (c *command) time(k string) int64 {
	v, ok := c.Args[k]
	if !ok {
		return 0
	}
	return scriptStart + c.span(v).Milliseconds()
}

func (h *harness) event(c *command) *wire.Event {
	a := h.agentOf(c)
	m := &wire.Event{Number: c.number("no", a.next), Seq: c.number("seq", 0), Token: h.tokenOf(c),
		Attempt:    uint8(c.number("attempt", uint64(max(1, h.log.insts[c.number("seq", 0)].Attempt)))),
		ReceivedAt: c.time("received"), StartedAt: c.time("started"), FinishedAt: c.time("finished"),
		Percent: uint8(c.number("percent", 0)), Detail: c.text("detail", "")}
	a.next = max(a.next, m.Number+1)
	m.Phase, _ = phaseNamed(c.word(1))
	switch wants := m.Phase == wire.PhaseProcessed || m.Phase == wire.PhaseLease; {
	case wants != (len(c.Words) == 3):
		c.wrong("processed has a code behind it, lease_ended an end, and nothing else has")
	case m.Phase == wire.PhaseProcessed:
		m.Code = c.code(2)
	case m.Phase == wire.PhaseLease:
		m.Lease = c.leaseEnd(c.word(2))
	}
	if v := c.payload(); len(v) > 0 {
		raw, err := wire.EncodeMap(v, wire.MaxPayloadBytes)
		if err != nil {
			c.wrong("%v", err)
		}
		m.Payload = raw
	}
	if err := m.Validate(); err != nil {
		c.wrong("%v", err)
	}
	return m
}

func (c *command) leaseEnd(word string) wire.LeaseEnd {
	e, ok := leaseEndNamed(word)
	if !ok {
		c.wrong("no end of a lease is called %s", word)
	}
	return e
}

// payload is what payload=, pin=, level=, until=, edges= and total= say.
func (c *command) payload() map[string]any {
	v := map[string]any{}
	for k, x := range c.pairs("payload") {
		v[k] = x
	}
	if p := c.text("pin", ""); p != "" {
		v["pin"] = p
	}
	c.needs("max_on_ms", "until")
	for _, k := range []string{"level", "total"} {
		if c.Args[k] != "" {
			v[k] = c.number(k, 0)
		}
	}
	if t := c.time("until"); t != 0 {
		v["until_ms"], v["max_on_ms"] = uint64(t), c.number("max_on_ms", 600_000)
	}
	var edges []any
	for _, l := range c.list("edges") {
		edges = append(edges, []any{c.toNumber(l), uint64(0), uint64(0)})
	}
	if edges != nil {
		v["edges"] = edges
	}
	return v
}

func (h *harness) compact(c *command) *engine.Compact {
	seq := c.number("seq", 0)
	return &engine.Compact{Short: c.text("short", wire.Short(c.word(0))), Ack: wire.CompactAck{Seq: seq,
		Attempt: uint8(c.number("attempt", uint64(h.log.insts[seq].Attempt))), Code: c.code(1)}}
}

func (h *harness) report(c *command) *wire.Report {
	s := wire.State{Seq: c.number("seq", 0), Token: h.tokenOf(c)}
	s.Status = wire.Status(1 + slices.Index([]string{"never", "queued", "running", "done", "full", "driven"}, c.word(1)))
	s.Code = c.code(2)
	return &wire.Report{States: []wire.State{s}}
}

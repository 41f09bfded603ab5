package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// The commands of the scripts. Words in brackets may be left out.
//
//	submit [id=T] [intent=I] node=A,B | label=K:V [ttl=D] [timeout=D] [prio=P] [retry=N,initial,max | tiered=N] [client=C packet=N dup] [by=U] [pin=P] [level=N] [max_on=D] [width=D]
//	submit ... count=N               the same N times, without ids
//	hello NODE [session=N] [incarnation=N] [first=N next=N] [labels=K:V,..] [intents=I,..] [short=S] [top=SEQ,TOKEN] [clock=D] [pins=P:SAFE,..]
//	                                 pins= is an agent that follows the rules; SAFE is 0, 1 or - for none
//	event NODE seq=N PHASE [CODE] [no=N] [token=#N] [attempt=N] [received=T started=T finished=T] [payload=K:V] [percent=N] [pin=P level=N until=T]
//	event NODE seq=N lease_ended WHY [finished=T] [pin=P level=N]
//	event NODE seq=N progress pin=P edges=1,0,1 total=N [times=N]
//	compact NODE seq=N CODE [attempt=N] [short=S]
//	report NODE seq=N never|queued|running|done|full|driven [CODE] [token=#N]
//	heartbeat NODE [session=N] [clock=D] [local] [foreign=P,P] [room=N] | digest NODE [session=N] [holds=N,N]
//	narrowband NODE up|down          its connection to the narrowband listener
//	goodbye NODE [session=N] [lost] [unstarted=N,N]
//	gone NODE [session=N]
//	cancel T | seq=N [by=U]
//	operate ACTION [seq=N] [dead=N] [for=D] [note=WORD] [by=U]
//	garbage KIND FROM REASON BYTES
//	crash before|after               power cut at the end of this round: before or after its commit
//	config K=V                       and a new, empty gateway
//	advance D [NODE ...]             time passes; the nodes send heartbeats every 4 s
//	backup | restored                the log is copied; the process starts from the copy
//	alarms | audit | quiet           what stands; the chain as the log has it; the quiet period
//	wall D                           the wall clock is set forward or back
//	restart                          the process ends and starts again from the log
//	waits N                          what an instruction waits for
//	show                             what is in memory
//	timeline N                       an instruction as the log has it

type command struct {
	t     *testing.T
	line  string
	name  string
	words []string
	args  map[string]string
}

func parseCommand(t *testing.T, line string) *command {
	f := strings.Fields(line)
	c := &command{t: t, line: line, name: f[0], args: map[string]string{}}
	for _, w := range f[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			c.args[k] = v
		} else {
			c.words = append(c.words, w)
		}
	}
	return c
}

func (c *command) word(n int) string {
	if n >= len(c.words) {
		c.t.Fatalf("%q: word %d is missing", c.line, n+1)
	}
	return c.words[n]
}

func (c *command) has(word string) bool { return slices.Contains(c.words, word) }

func (c *command) text(k, def string) string {
	if v, ok := c.args[k]; ok {
		return v
	}
	return def
}

func (c *command) list(k string) []string {
	if c.args[k] == "" {
		return nil
	}
	return strings.Split(c.args[k], ",")
}

func (c *command) number(k string, def uint64) uint64 {
	v, ok := c.args[k]
	if !ok {
		return def
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(v, "#"), 10, 64)
	if err != nil {
		c.t.Fatalf("%q: %v", c.line, err)
	}
	return n
}

func (c *command) span(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		c.t.Fatalf("%q: %v", c.line, err)
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

func (c *command) code(words []string) wire.Code {
	for n := range 256 {
		for _, w := range words {
			if wire.Code(n).String() == w {
				return wire.Code(n)
			}
		}
	}
	return wire.CodeNone
}

// input makes the engine's input of a command; nil when it is something else.
func (h *harness) input(c *command) engine.Input {
	switch c.name {
	case "submit":
		for range c.number("count", 1) - 1 {
			h.log.step(h.eng, h.now, h.submit(c))
		}
		return h.submit(c)
	case "cancel":
		in := &engine.Cancel{Seq: c.number("seq", 0), Actor: c.text("by", "ops"), Path: engine.PathHTTP, Reply: "caller"}
		if len(c.words) > 0 {
			in.TaskID = c.word(0)
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
			Actor: c.text("by", "ops"), Note: c.text("note", ""), Path: engine.PathHTTP, Reply: "caller"}
		if v := c.text("for", ""); v != "" {
			in.Until = h.now.Wall + c.span(v).Milliseconds()
		}
		return in
	case "goodbye":
		m := &wire.Goodbye{Session: c.number("session", h.agentOf(c).session), Lost: c.has("lost")}
		for _, s := range c.list("unstarted") {
			seq, err := strconv.ParseUint(s, 10, 64)
			if err != nil {
				c.t.Fatalf("%q: %v", c.line, err)
			}
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
	switch c.name {
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
		h.advanceWith(c.span(c.word(0)), c.words[1:])
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
		n, err := strconv.ParseUint(c.word(0), 10, 64)
		if err != nil {
			c.t.Fatalf("%q: %v", c.line, err)
		}
		if w, ok := h.eng.Waits(h.now, n); ok {
			h.out.line("%d %s", n, w.Why)
		} else {
			h.out.line("%d waits for no other", n)
		}
	case "show":
		h.show()
	case "timeline":
		n, err := strconv.ParseUint(c.word(0), 10, 64)
		if err != nil {
			c.t.Fatalf("%q: %v", c.line, err)
		}
		h.history(n)
	default:
		c.t.Fatalf("unknown command %q", c.line)
	}
}

func (h *harness) submit(c *command) *engine.Submit {
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
		n, err := strconv.Atoi(p[0])
		if err != nil || len(p) != 3 {
			c.t.Fatalf("%q: retry is N,initial,max", c.line)
		}
		s.Retry = &engine.Retry{Max: uint8(n), InitialMs: uint32(c.span(p[1]).Milliseconds()), MaxMs: uint32(c.span(p[2]).Milliseconds())}
	}
	if n := c.number("tiered", 0); n != 0 {
		s.Retry = &engine.Retry{Max: uint8(n), Backoff: engine.BackoffTiered}
	}
	p, err := wire.ParsePriority(c.text("prio", ""))
	if err != nil {
		c.t.Fatalf("%q: %v", c.line, err)
	}
	s.Priority = p
	if args := h.arguments(c, s.Intent); args != nil {
		if s.Args, err = wire.EncodeMap(args, wire.MaxArgsBytes); err != nil {
			c.t.Fatalf("%q: %v", c.line, err)
		}
	}
	in := &engine.Submit{Spec: s, Source: engine.Source{Via: "http", Actor: c.text("by", "ops")}, Path: engine.PathHTTP, Dup: c.has("dup"), Reply: "caller"}
	if client := c.text("client", ""); client != "" {
		in.Path, in.Source.Via = engine.PathMQTT, "mqtt"
		sum, err := s.Sum()
		if err != nil {
			c.t.Fatalf("%q: %v", c.line, err)
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
		case c.args["id"] != "":
			pin = "p-" + c.args["id"]
		case c.args["client"] != "":
			pin = "p-" + c.args["client"]
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
	a.next = c.number("next", a.next)
	var top [2]uint64
	for k, v := range c.list("top") {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil || k > 1 {
			c.t.Fatalf("%q: top is SEQ,TOKEN", c.line)
		}
		top[k] = n
	}
	m := &wire.Hello{TopSeq: top[0], TopToken: top[1], Clock: h.clock(c), ClockSet: h.clock(c) != 0,
		Session: a.session, Incarnation: a.incarnation, Short: c.text("short", wire.Short(c.word(0))),
		Labels: c.pairs("labels"), Intents: c.list("intents"), First: c.number("first", a.next), Next: a.next}
	for _, p := range c.list("pins") {
		name, safe, _ := strings.Cut(p, ":")
		t := wire.PinTraits{Line: wire.LineOf("chip:" + name), Flags: wire.PinOutput}
		if safe != "-" {
			t.Flags |= wire.PinHasSafe
		}
		if safe == "1" {
			t.Flags |= wire.PinSafeHigh
		}
		m.Rules, m.Pins, m.Traits = wire.NewestRules, append(m.Pins, name), append(m.Traits, t)
	}
	return m
}

// clock is an agent's clock that is off by clock=D, 0 when that is not given.
func (h *harness) clock(c *command) int64 {
	if v := c.text("clock", ""); v != "" {
		return h.now.Wall + c.span(v).Milliseconds()
	}
	return 0
}

func (h *harness) heartbeat(c *command) *engine.Uplink {
	m := &wire.Heartbeat{Session: c.number("session", h.agentOf(c).session), Clock: h.clock(c), Local: c.has("local"), Room: uint32(c.number("room", 0))}
	for _, p := range c.list("foreign") {
		m.Foreign = append(m.Foreign, wire.Foreign{Pin: p, Found: 1})
	}
	return &engine.Uplink{Node: c.word(0), Msg: m}
}

func (h *harness) digest(c *command) *engine.Uplink {
	var refs []wire.Ref
	for _, v := range c.list("holds") {
		seq, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			c.t.Fatalf("%q: %v", c.line, err)
		}
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
	v, ok := c.args[k]
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
	for p := wire.PhaseReceived; p <= wire.MaxPhase; p++ {
		if p.String() == c.word(1) {
			m.Phase = p
		}
	}
	if m.Phase == wire.PhaseProcessed {
		m.Code = c.code(c.words[2:])
	}
	if m.Phase == wire.PhaseLease {
		m.Lease = c.leaseEnd(c.word(2))
	}
	if v := c.payload(); len(v) > 0 {
		raw, err := wire.EncodeMap(v, wire.MaxPayloadBytes)
		if err != nil {
			c.t.Fatalf("%q: %v", c.line, err)
		}
		m.Payload = raw
	}
	if err := m.Validate(); err != nil {
		c.t.Fatalf("%q: %v", c.line, err)
	}
	return m
}

func (c *command) leaseEnd(word string) wire.LeaseEnd {
	for e := range wire.LeaseEnd(255) {
		if e.String() == word {
			return e
		}
	}
	c.t.Fatalf("%q: no such end", c.line)
	return 0
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
	for _, k := range []string{"level", "total"} {
		if c.args[k] != "" {
			v[k] = c.number(k, 0)
		}
	}
	if t := c.time("until"); t != 0 {
		v["until_ms"], v["max_on_ms"] = uint64(t), c.number("max_on_ms", 600_000)
	}
	var edges []any
	for _, l := range c.list("edges") {
		n, err := strconv.ParseUint(l, 10, 64)
		if err != nil {
			c.t.Fatalf("%q: %v", c.line, err)
		}
		edges = append(edges, []any{n, uint64(0), uint64(0)})
	}
	if edges != nil {
		v["edges"] = edges
	}
	return v
}

func (h *harness) compact(c *command) *engine.Compact {
	seq := c.number("seq", 0)
	return &engine.Compact{Short: c.text("short", wire.Short(c.word(0))), Ack: wire.CompactAck{Seq: seq,
		Attempt: uint8(c.number("attempt", uint64(h.log.insts[seq].Attempt))), Code: c.code(c.words[1:])}}
}

func (h *harness) report(c *command) *wire.Report {
	s := wire.State{Seq: c.number("seq", 0), Token: h.tokenOf(c)}
	s.Status = wire.Status(1 + slices.Index([]string{"never", "queued", "running", "done", "full", "driven"}, c.word(1)))
	s.Code = c.code(c.words[2:])
	return &wire.Report{States: []wire.State{s}}
}

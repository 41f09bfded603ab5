package executor_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/script"
	"github.com/apollo-11/apollo11/wire"
)

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
//   - deliver: LINES are the pins that it holds; D is a duration from the start or
//     from now; for=D sets not_after.
//     board, safe, hold, pulse and reboots are words of check.
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
	"finish N [CODE] [attempt=BYTE] [token=N] [detail=WORD] [lease=PIN] [plain=PIN]",
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

// arguments are the words after a command.
type arguments struct {
	t     *testing.T
	at    string
	line  string
	plain []string
	named map[string]string
}

// wrong ends the test.
func (a *arguments) wrong(format string, args ...any) {
	a.t.Helper()
	a.t.Fatalf("%s: %q: %s", a.at, a.line, fmt.Sprintf(format, args...))
}

func (a *arguments) text(name, def string) string {
	if v, ok := a.named[name]; ok {
		return v
	}
	return def
}

func (a *arguments) number(name string, def uint64) uint64 {
	v, ok := a.named[name]
	if !ok {
		return def
	}
	return a.toNumber(v)
}

func (a *arguments) toNumber(s string) uint64 {
	a.t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		a.wrong("%v", err)
	}
	return n
}

func (a *arguments) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		a.wrong("%v", err)
	}
	return d
}

func codeNamed(name string) (wire.Code, error) {
	for c := range 256 {
		if wire.Code(c).String() == name {
			return wire.Code(c), nil
		}
	}
	return 0, fmt.Errorf("no code is called %s", name)
}

func endNamed(name string) (wire.LeaseEnd, error) {
	for e := range wire.LeaseEnd(255) {
		if e.String() == name {
			return e, nil
		}
	}
	return 0, fmt.Errorf("no end of a lease is called %s", name)
}

// longLimit is the time limit of an instruction whose script names none: a gateway
// always sends one.
const longLimit = "10m"

package board

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Lines are the board's GPIO lines, seen from outside: what an oscilloscope and a
// hand would do. They go through the emulator's test socket, not through the board.
type Lines struct {
	chip string

	ask  sync.Mutex // one question at a time
	conn net.Conn
	// answers holds one: the reader never waits.
	answers chan string

	mu     sync.Mutex
	edges  []Edge
	levels [LineCount]bool // as a voltmeter would show them, of lines that are not inputs
}

// LineCount is how many lines the chip has.
const LineCount = 8

// Edge is a change of an output, seen outside the board.
type Edge struct {
	Line int
	High bool
	At   time.Time
}

// Registers of the PL061 on this board. The address of the data register carries a
// mask of the lines in its bits 2 to 9.
const (
	chipBase     = 0x09030000
	chipAllData  = chipBase + 0x3fc
	chipDirected = chipBase + 0x400
)

// newLines takes over the test socket.
func newLines(conn net.Conn, chip string) *Lines {
	l := &Lines{chip: chip, conn: conn, answers: make(chan string, 1)}
	go l.read()
	return l
}

// read takes answers and reports of edges apart. It ends with the connection.
func (l *Lines) read() {
	in := bufio.NewScanner(l.conn)
	for in.Scan() {
		now := time.Now()
		line := in.Text()
		if rest, ok := strings.CutPrefix(line, "IRQ "); ok {
			l.edge(rest, now)
			continue
		}
		l.answers <- line
	}
	close(l.answers)
}

func (l *Lines) edge(report string, now time.Time) {
	what, number, _ := strings.Cut(report, " ")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= LineCount {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if high := what == "raise"; high != l.levels[n] {
		l.levels[n] = high
		l.edges = append(l.edges, Edge{n, high, now})
	}
}

// command asks the emulator; the answer is what follows OK.
func (l *Lines) command(format string, args ...any) (string, error) {
	l.ask.Lock()
	defer l.ask.Unlock()
	what := fmt.Sprintf(format, args...)
	if err := l.conn.SetWriteDeadline(time.Now().Add(qmpLimit)); err != nil {
		return "", err
	}
	if _, err := l.conn.Write([]byte(what + "\n")); err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	patience := time.NewTimer(qmpLimit)
	defer patience.Stop()
	select {
	case answer, open := <-l.answers:
		if !open {
			return "", fmt.Errorf("%s: %w", what, errEmulatorGone)
		}
		rest, ok := strings.CutPrefix(answer, "OK")
		if !ok {
			return "", fmt.Errorf("%s: answered %q", what, answer)
		}
		return strings.TrimSpace(rest), nil
	case <-patience.C:
		return "", fmt.Errorf("%s: no answer within %v", what, qmpLimit)
	}
}

// intercept makes the emulator report every change of the outputs, and gives every
// line the level of its resistor. The board must not run yet.
//
// The emulator has no resistors to the supply here: to it a line that nobody drives
// is low. So a rise to a level that the line has already is no edge. A first level
// that is wrong is seen all the same: the data bit of an input follows the outside,
// so the line comes up at the level of its resistor and the wrong level is a change.
// A line that becomes an input again would show an edge that is none; the kernel
// leaves lines driven that nobody holds.
func (l *Lines) intercept(pullUp byte) error {
	if _, err := l.command("irq_intercept_out %s", l.chip); err != nil {
		return err
	}
	for n := range LineCount {
		up := pullUp>>n&1 == 1
		l.mu.Lock()
		l.levels[n] = up
		l.mu.Unlock()
		if err := l.Drive(n, up); err != nil {
			return err
		}
	}
	return nil
}

// Drive sets the level that the world gives to an input.
func (l *Lines) Drive(line int, high bool) error {
	level := 0
	if high {
		level = 1
	}
	_, err := l.command("set_irq_in %s unnamed-gpio-in %d %d", l.chip, line, level)
	return err
}

func (l *Lines) register(addr uint32) (byte, error) {
	answer, err := l.command("readb %#x", addr)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(answer, 0, 64)
	return byte(v), err
}

// Data is the levels of all lines, bit n for line n.
func (l *Lines) Data() (byte, error) { return l.register(chipAllData) }

// Directions says which lines are outputs, bit n for line n.
func (l *Lines) Directions() (byte, error) { return l.register(chipDirected) }

// High reads the level of a line.
func (l *Lines) High(line int) (bool, error) {
	all, err := l.Data()
	return all>>line&1 == 1, err
}

// Force writes an output behind the back of whoever owns it, as a second program
// with access to the registers would.
func (l *Lines) Force(line int, high bool) error {
	value := 0
	if high {
		value = 1 << line
	}
	_, err := l.command("writeb %#x %#x", chipBase+4<<line, value)
	return err
}

// Edges are the changes of an output since the board was switched on.
func (l *Lines) Edges(line int) []Edge {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Edge
	for _, e := range l.edges {
		if e.Line == line {
			list = append(list, e)
		}
	}
	return list
}

// Rises counts how often an output went high since the board was switched on.
func (l *Lines) Rises(line int) int {
	n := 0
	for _, e := range l.Edges(line) {
		if e.High {
			n++
		}
	}
	return n
}

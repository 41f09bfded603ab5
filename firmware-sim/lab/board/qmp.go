package board

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// qmpLimit bounds an answer of the emulator. A busy machine answers in a second.
const qmpLimit = 30 * time.Second

// qmp is the emulator's control socket: a JSON document a line.
type qmp struct {
	mu   sync.Mutex
	conn net.Conn
	r    *bufio.Reader
}

// newQMP shakes hands.
func newQMP(conn net.Conn) (*qmp, error) {
	q := &qmp{conn: conn, r: bufio.NewReader(conn)}
	if err := conn.SetDeadline(time.Now().Add(qmpLimit)); err != nil {
		return nil, err
	}
	if _, err := q.r.ReadBytes('\n'); err != nil { // the greeting
		return nil, fmt.Errorf("greeting of the emulator: %w", err)
	}
	return q, q.do("qmp_capabilities", nil, nil)
}

// do executes a command and decodes what it returns.
func (q *qmp) do(command string, args, into any) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	b, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{command, args})
	if err != nil {
		return err
	}
	if err := q.conn.SetDeadline(time.Now().Add(qmpLimit)); err != nil {
		return err
	}
	if _, err := q.conn.Write(append(b, '\n')); err != nil {
		return err
	}
	for {
		line, err := q.r.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("emulator, %s: %w", command, err)
		}
		var m struct {
			Return json.RawMessage `json:"return"`
			Error  *struct {
				Desc string `json:"desc"`
			} `json:"error"`
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return fmt.Errorf("emulator, %s: %w", command, err)
		}
		switch {
		case m.Error != nil:
			return fmt.Errorf("emulator, %s: %s", command, m.Error.Desc)
		case m.Return == nil: // an event, which nobody waits for
		case into == nil:
			return nil
		default:
			return json.Unmarshal(m.Return, into)
		}
	}
}

// findChip returns the path of the board's GPIO chip in the emulator's tree. The
// number in it changes with the emulator.
func (q *qmp) findChip() (string, error) {
	const parent = "/machine/unattached"
	var list []struct{ Name, Type string }
	if err := q.do("qom-list", map[string]string{"path": parent}, &list); err != nil {
		return "", err
	}
	var found []string
	for _, item := range list {
		if item.Type == "child<pl061>" {
			found = append(found, parent+"/"+item.Name)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("the emulated board has %d GPIO chips, want one: %s", len(found), strings.Join(found, ", "))
	}
	return found[0], nil
}

// errEmulatorGone says that the emulator ended while it was asked something.
var errEmulatorGone = errors.New("the emulator has ended")

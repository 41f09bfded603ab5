package guard

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// notifyLimit bounds one message to the service manager. The socket is local; it
// only blocks while the manager is stuck.
const notifyLimit = 2 * time.Second

// Manager is the service manager that started this process, as sd_notify(3)
// describes it. Its methods do nothing if there is none.
type Manager struct {
	socket   string        // empty for none
	watchdog time.Duration // 0 for none
}

// NewManager reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID by getenv
// (os.Getenv). A watchdog that is meant for another process, as in a child that
// has inherited the variables, is not ours.
func NewManager(getenv func(string) string) (*Manager, error) {
	m := &Manager{socket: getenv("NOTIFY_SOCKET")}
	if m.socket != "" && !strings.HasPrefix(m.socket, "/") && !strings.HasPrefix(m.socket, "@") {
		return nil, fmt.Errorf("NOTIFY_SOCKET=%q is neither a path nor an abstract socket: start the agent by its service, or unset it", m.socket)
	}
	usec := getenv("WATCHDOG_USEC")
	if usec == "" || m.socket == "" {
		return m, nil
	}
	if pid := getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return m, nil
	}
	n, err := strconv.ParseInt(usec, 10, 64)
	if err != nil || n <= 0 {
		return nil, fmt.Errorf("WATCHDOG_USEC=%q is not a number of microseconds: start the agent by its service, or unset it", usec)
	}
	m.watchdog = time.Duration(n) * time.Microsecond
	return m, nil
}

// Watchdog is how long the manager bears silence, 0 if it does not watch.
func (m *Manager) Watchdog() time.Duration { return m.watchdog }

// Ready says that the agent works: its pins are at their safe levels and it takes
// instructions.
func (m *Manager) Ready() error { return m.tell("READY=1") }

// Stopping says that the agent ends on purpose.
func (m *Manager) Stopping() error { return m.tell("STOPPING=1") }

// Alive says that the agent lives.
func (m *Manager) Alive() error { return m.tell("WATCHDOG=1") }

func (m *Manager) tell(state string) (err error) {
	if m.socket == "" {
		return nil
	}
	name := m.socket
	if name[0] == '@' {
		name = "\x00" + name[1:] // an abstract socket, unix(7)
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell the service manager %s: %w", state, err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := conn.SetWriteDeadline(time.Now().Add(notifyLimit)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("tell the service manager %s: %w", state, err)
	}
	return nil
}

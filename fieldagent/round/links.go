package round

import (
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
)

// Path is one of the two connections to the gateway.
type Path uint8

// The paths.
const (
	Primary Path = iota
	Narrowband
	paths
)

// Links is how long the gateway has been away: since the last connection ended, although
// the loop may hang at its disk and learn it late, and until the loop has taken that
// there is one again. A core that still believes in an old session takes nothing of a new
// connection for a word of the gateway. The zero value is that of a start at 0.
type Links struct {
	path  [paths]path
	since time.Duration
}

// path is what is known of one connection.
type path struct {
	up           bool
	given, taken int // how often the loop was told that it is up, and has taken that
}

func (p *path) counts() bool { return p.up && p.taken >= p.given }

// Up notes that a connection has come about, before the loop is told.
func (l *Links) Up(p Path) {
	l.path[p].up = true
	l.path[p].given++
}

// Down notes that it has ended, before the loop is told.
func (l *Links) Down(p Path, now time.Duration) {
	counted := l.path[p].counts()
	l.path[p].up = false
	if counted && !l.any() {
		l.since = now
	}
}

// Taken notes what the loop has taken.
func (l *Links) Taken(in executor.Input) {
	switch in.(type) {
	case executor.Connected:
		l.path[Primary].taken++
	case executor.NarrowbandUp:
		l.path[Narrowband].taken++
	}
}

// Away is executor.Now's.
func (l *Links) Away(now time.Duration) time.Duration {
	if l.any() {
		return 0
	}
	return max(now-l.since, 0)
}

func (l *Links) any() bool { return l.path[Primary].counts() || l.path[Narrowband].counts() }

package fieldagent

import (
	"io/fs"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// UseBoard makes the agent use a board that the test has built.
func (a *Agent) UseBoard(b gpio.Board) { a.board = b }

// SetRoot makes the agent look for proc somewhere else.
func (c *Config) SetRoot(root fs.FS) { c.root = root }

// NarrowbandEvery is the keepalive of the narrowband connection.
func (c *Config) NarrowbandEvery() time.Duration { return c.narrowbandEvery() }

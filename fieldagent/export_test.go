package fieldagent

import (
	"io/fs"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// UseBoard makes the agent use a board that the test has built.
func (a *Agent) UseBoard(b gpio.Board) { a.board = b }

// SetRoot makes the agent look for proc somewhere else.
func (c *Config) SetRoot(root fs.FS) { c.root = root }

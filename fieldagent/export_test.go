package fieldagent

import "github.com/apollo-11/apollo11/fieldagent/gpio"

// UseBoard makes the agent use a board that the test has built.
func (a *Agent) UseBoard(b gpio.Board) { a.board = b }

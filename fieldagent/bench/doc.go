// Package bench is the board without an agent, in the hands of a person or of a
// service manager: looking at lines, moving and watching them ("apollo-agent gpio"),
// and driving the safe levels before the agent starts and after it has ended
// ("apollo-agent safe"). It keeps nothing and connects to nothing.
package bench

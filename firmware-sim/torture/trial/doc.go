// Package trial is hard on the real programs and counts what became of every
// command.
//
//	GatewayKills  the gateway is killed and started again under load
//	AgentKills    agents are killed and started again under load
//	LossyLink     the link loses packets and is cut, in network namespaces
//	Window        how long a state is unknown while the primary path is dead
//	Leave         how soon a stopped, crashed or hanging agent's work is taken back
//	Restart       how long a gateway with a long log takes to its first dispatch
//	Order         eight commands for one line, with a fault amid them, again and again
//	Offs          one off a second, through two kinds of trouble at a time
//	Drain         a backlog for a slow board, undisturbed and with a kill in the middle
//
// # What is counted
//
// The truth is at two places that know nothing of each other: the pin trace of
// each simulated board, which names the token behind every actuation, and the
// gateway's log, which names the tokens of every instruction. A Tally compares
// them when everything has settled.
//
// Lost, twice, late and false must be 0: an acknowledged command that the log does
// not have or that does not settle; a token that acted more often than once; a
// start after the time limit; a state that the pins contradict.
package trial

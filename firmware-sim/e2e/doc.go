// Package e2e drives the real programs on loopback as their users do: gateway,
// agents and the operator's tool as processes, stock MQTT clients, SIGKILL, cut
// lines. It holds tests only.
//
//   - Every test has a site of its own: a gateway, its addresses, its agents. They
//     survive restarts; nothing else is shared.
//   - What was really done is read from the trace of the simulated pins, where
//     every actuation carries the token that caused it.
//   - Waiting has a deadline far beyond what a busy machine needs. Sleeping is only
//     used to choose, by a printed seed, the moment of a kill.
//   - APOLLO_E2E_ROUNDS=10 runs a tenth of the rounds of the long tests, =300 three
//     times as many.
package e2e

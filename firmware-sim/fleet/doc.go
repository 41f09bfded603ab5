// Package fleet is a load of simulated nodes: each speaks the agent's side of the
// protocol over its own MQTT connection and answers every instruction at once.
//
// A fleet node is not an agent: it has no journal and no pins, so that a machine
// can carry thousands of them and a measurement sees the gateway, not the load.
// Tests of correctness use the real agent.
package fleet

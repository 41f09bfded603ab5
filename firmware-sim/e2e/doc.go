// Package e2e drives the real programs on loopback as their users do: gateway,
// agents and the operator's tool as processes, stock MQTT clients, SIGKILL, cut
// lines. It holds tests only.
package e2e

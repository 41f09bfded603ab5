// Package link keeps one MQTT 3.1.1 connection to the gateway, for ever.
//
// An agent has two: the primary path and the narrowband path. A Link carries
// bytes and promises nothing: what is sent may be lost, and what arrives may be
// dropped if the receiver is slow. All reliability is in the messages themselves
// (event numbers, acknowledgements, resends), so QoS 0 is used both ways: an MQTT
// receipt would cost a round trip and prove nothing that the gateway's EventAck
// does not prove.
//
// The rules:
//
//   - A new client and a new clean session for every attempt: nothing survives a
//     connection, so nothing old can come back with the next one. Subscriptions
//     are made and checked every time.
//   - Attempts go on until the context ends, 0.2 s to 30 s apart, doubling, with
//     jitter. A connection that lasted brings the interval back to its start, a
//     short one to a second.
//   - A write that is not taken in WriteLimit closes the connection, and so does
//     silence of one and a half keepalives, whichever direction is dead.
//   - A packet larger than MaxPacket is not read: the connection is closed.
//   - Send never blocks. Messages are handed to the receiver on the client's own
//     goroutine, and the receiver must not block it.
//   - Run returns when everything that it started has ended.
package link

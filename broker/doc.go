// Package broker carries messages between operators, agents and the gateway
// over MQTT 3.1.1 and 5. It knows topics and roles; it does not know tasks.
//
// # Idea
//
// The protocol engine is Mochi, embedded. Mochi frames and decodes packets,
// keeps the index of subscriptions and the retained messages, and delivers
// what the gateway publishes. Everything that decides about a command is ours:
//
//	socket ── conn ─────── Mochi ─────────── hook ───────────── Handler
//	          bounded      decodes,          who may connect,   Submit, Uplink,
//	          writer,      keeps the         every inbound      Presence
//	          deadlines,   subscriptions     PUBLISH, PUBREL,
//	          frame size                     every ack
//
// # Rules
//
//   - A PUBLISH of a client is never routed to another client. The hook takes
//     it before Mochi sees it: a task goes to Handler.Submit, an agent's event
//     to Handler.Uplink, and anything else is refused where the sender can see
//     it. Only Broker.Publish reaches subscribers.
//   - Receipts are ours. A PUBACK or PUBREC for the task topic is written when
//     Handler calls done, so it can mean "on disk". Receipts leave in the order
//     in which the publishes came.
//   - Nothing that a peer does or fails to do blocks another peer: each
//     connection has a bounded outbound buffer with a writer of its own, and is
//     closed when the buffer overflows or a write stalls.
//   - A client id has one connection at a time, and a new one waits until the
//     old one has ended, so presence events of a node are strictly ordered.
//   - Nothing here survives a restart and nothing has to: the log is the truth.
//     Agents are subscribed at QoS 0 and what they miss is sent again from the
//     log; operators find the last status of a task retained on its topic.
//
// # Roles
//
//	role        listener         may publish          may read
//	operator    MQTT, WebSocket  task                 status, node state, alarm, own replies
//	agent       MQTT, WebSocket  evt/<own node>       cmd/<own node>
//	narrowband  Narrowband only  n/<own short id>     d/<own short id>
//
// Without a users file the role follows from the client id ("agent/<node>",
// "nb/<short id>" on the narrowband listener, otherwise operator) and only
// peers on the loopback interface are let in.
package broker

// Package wire is the language that the gateway and the agents share: message
// types, their CBOR encoding, topics, identifiers, result codes, the compact
// narrowband frames, and the arguments of the built-in intents.
//
// It does no I/O and reads no clock. The rules:
//
//   - One spelling. Everything is encoded in RFC 8949 core deterministic form
//     with integer map keys; wire.cddl is the schema and testdata/ holds vectors
//     that are never deleted.
//   - Bytes from outside are hostile. Decoders bound depth, lengths and counts,
//     refuse duplicate keys, indefinite lengths, tags, NaN and infinities, check
//     required fields, and never panic.
//   - Old and new mix. Unknown map keys are ignored; a field is added under a new
//     key and never reused for something else.
//   - Checked in pairs. A message is validated before it is encoded and after it
//     is decoded, by the same function.
//
// A message goes out with Encode and comes in with DecodeDownlink (at the agent)
// or DecodeUplink (at the gateway):
//
//	b, err := wire.Encode(&wire.Cancel{Seq: 17, Token: tok, Reason: "operator"})
//	m, err := wire.DecodeDownlink(b) // m is *wire.Cancel
package wire

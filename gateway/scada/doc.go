// Package scada turns task documents, as people and SCADA tools write them,
// into engine.Spec, and what the engine knows into JSON documents for topics and
// the HTTP API. It does no I/O and reads no clock.
//
//	spec, warnings, err := scada.ParseTask(payload, scada.JSON, scada.Options{Site: "default", Now: ms})
//
// # One tree, one decoder
//
// JSON and YAML both become the same small tree of values with their line and
// column; one decoder reads the tree. So both formats, and therefore every door
// (MQTT, HTTP, files), obey the same rules:
//
//   - Nothing is ignored. An unknown field, a duplicate key, a field that this
//     version does not support: each is refused with its place and a hint.
//   - A UTF-8 byte order mark at the very start is skipped. Any other leading
//     byte, UTF-16, control characters and invalid UTF-8 are refused; the first
//     bad byte is named in hex. White space and line ends around the document
//     mean nothing.
//   - YAML is used as another spelling of JSON: anchors, aliases, merge keys,
//     tags, several documents, True, 0x10, 1_000, 010 and .inf are refused.
//   - null is never a value of a field. Leave the field out.
//   - A number in quotes is refused in every field of a task. The arguments of
//     built-in intents belong to wire.ParseArgs, which takes decimal digits in
//     quotes as the number; a warning says so.
//   - Where text is asked for, only task_id (a whole number) and the values of
//     metadata (any scalar) are turned into text, with a warning.
//   - Integers are exact to 64 bits. A number with a fraction or an exponent that
//     happens to be whole is that integer (21.0 is 21, -0 is 0); from 2^53 on it is
//     refused, because it may not be the number that was meant. So are NaN,
//     infinities, and numbers too large or too small for a float.
//   - Times: a plain number is seconds for timeout, ttl and intervals, and Unix
//     milliseconds for not_after and expires_at. Text has a unit ("30s", "1m30s")
//     or is RFC 3339 with a zone. No unit is ever guessed; when a value looks like
//     another unit the hint says so.
//   - Without a task_id every copy of a document is a task of its own. A warning
//     says so.
//
// A fault is an *Error with code, field, line, column, problem and hint; up to
// ten faults are reported, ordered by position, missing fields last.
//
// # Canonical form
//
// Two documents that mean the same give equal Specs: node lists are sorted,
// normal priority is the absent one, arguments are canonical CBOR (built-in
// intents in the form of wire.Args.Map). MarshalTask writes a Spec as a document
// that gives the same Spec again.
//
// # Documents going out
//
// Status, NodeState, Alarm and Reply are the payloads of their topics; TaskView,
// InstructionView, EntryView and NodeView serve the HTTP API. All are flat, with
// times in RFC 3339 UTC with milliseconds. Text of any origin is data: <, > and &
// leave as JSON escapes, and integers leave with all their digits.
package scada

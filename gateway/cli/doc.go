// Package cli is the operator's tool apollo: a client of the gateway's HTTP API
// for people and scripts.
//
//	apollo task submit --file pump.yaml --wait
//
// # Rules
//
//   - Exit codes: 0 done; 1 failed, also when a task that was waited for did not
//     end SUCCEEDED; 2 wrong usage, or something dangerous that nobody has said
//     yes to: then nothing was changed; 141 nobody reads standard output any more,
//     which says nothing of what became of the command.
//   - Dangerous is what cannot be taken back and may do harm unnoticed: another
//     attempt at something that may already have happened, and forgetting a dead
//     letter. The tool says what it does and asks; where standard input is no
//     terminal it wants --yes instead.
//   - Results go to stdout, everything else to stderr. With -o json stdout holds
//     exactly one JSON document, as the API gave it; what has no end (alarms
//     --watch) and an export are one document a line.
//   - A submission is named by the tool when its document has no task_id, so that
//     it can be repeated after a lost answer without running twice.
//   - Text that came from elsewhere is never sent to a terminal raw: control
//     characters, invalid UTF-8 and invisible or reordering characters are made
//     visible (M1).
//   - To gateways without users the tool declares who it acts for, as USER@MACHINE
//     or $APOLLO_ACTOR. It proves nothing and stands in the audit trail.
//   - Colour only on a terminal, and never with NO_COLOR.
//   - An error says what, where, and what to do next.
package cli

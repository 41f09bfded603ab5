// Package api is the gateway's HTTP door: tasks come in, and everything that is
// durable can be read. It decides nothing about tasks; it checks, asks the
// Backend or the Reader, and writes the answer.
//
//	handler := api.New(backend, reader, api.Options{Site: "default"})
//	server := api.NewServer(handler, log)
//
// # Rules
//
//   - A 2xx to a submission means that the task is on disk (A2). When the gateway
//     cannot tell, it answers 504 outcome_unknown, never success or failure:
//     the same task_id can then be submitted again without running twice (A4).
//   - Reads show only what is durable.
//   - Every route, its answers and its error codes stand in openapi.yaml, which is
//     served at /v1/openapi.yaml. A test holds the two against each other.
//   - Errors have one shape everywhere: {"error":{"code","message",...}} with
//     field, line, column and hint where they are known.
//   - Nothing is ignored: unknown query parameters and fields are refused.
//   - Text from outside leaves as JSON with <, > and & escaped, under a content
//     type that no browser takes for a page (M1).
//
// # Who may call
//
// Without Users everybody on the machine itself may call, and nobody else. A
// request from another address is refused unless AllowRemote is set. The Host
// must be an address, a loopback name or one of Options.Hosts: a page in the
// operator's browser whose name has been pointed at this machine reads nothing.
// Requests that a page of another origin makes the browser send are refused when
// they would change something, and no answer carries a CORS permission.
//
// # Who did it
//
// Every change has an actor, in timelines and in the audit trail. With Users it is
// the name whose password was right, whatever else the request says. Without Users
// nobody is checked: then a client may declare an actor of the form name@machine
// in the header X-Actor, which the tool apollo does, and a request without one is
// its address. Nothing is proved by such a name; it helps honest people to find
// each other. A checked name and a declared one differ by the @.
//
// # What operators do by hand
//
// Each action is one call, entered in the audit trail before it is answered. An
// action that may do harm unnoticed asks for a word more: retrying an instruction
// whose outcome nobody knows is refused unless accept_unknown is set.
//
// A dead letter is replayed as a task under a name that follows from it, before it
// is forgotten: neither a power cut in between nor two operators at once make it
// run twice or get lost. Its time limit counts from when it came.
//
// # What follows a lost answer
//
// A client that names the task itself, in the document or with the header
// Idempotency-Key, can repeat a submission until it has an answer: the first one
// counts, later ones get "existing": true.
package api

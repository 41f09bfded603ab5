// Package outage plays two hours that no test could wait for, in virtual time, with
// the real engine, ledger and executor: the end of a long outage (Drain), and a
// network that loses a third of all messages (Loss). Everything happens in one
// goroutine, from a queue of events; the same options give the same result.
//
//	d := outage.Drain(outage.DefaultDrain())
//	os.WriteFile("outage-drain.svg", d.SVG(), 0o644)
package outage

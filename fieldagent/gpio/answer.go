package gpio

import "context"

// Answer returns nil if the goroutine that owns the pins turns, and an error if it
// does not answer within the limits of any other request. It touches no pin.
func (o *Owner) Answer(ctx context.Context) error {
	_, err := o.ask(ctx, o.requests, "ask whether the pins are served", func() (Level, error) { return Low, nil })
	return err
}

package scada

import (
	"errors"
	"fmt"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// Verb makes the task of a command that has no document: intent gpio.safe or
// gpio.release on one node, for one pin or for all of them. why is for people, it may
// be empty. It is a task like any other, with a timeline and a status; its priority is
// high because whoever uses it does not want to wait behind anything. An error is an
// *Error whose Field is node, pin or reason.
func Verb(intent, node, pin, why string) (engine.Spec, error) {
	if err := wire.CheckNode(node); err != nil {
		return engine.Spec{}, &Error{Code: CodeBadValue, Field: "node", Problem: "is not usable: " + err.Error(),
			Hint: "see `apollo node list` for the nodes that have connected"}
	}
	var m map[string]any
	if pin != "" {
		m = map[string]any{"pin": pin}
	}
	args, err := wire.ParseArgs(intent, m)
	if err != nil {
		fault := &Error{Code: CodeBadValue, Field: "pin", Problem: "is not usable: " + err.Error()}
		if arg := (*wire.ArgError)(nil); errors.As(err, &arg) {
			fault.Problem, fault.Hint = arg.Problem, "leave it out for all outputs of the node, or write its name as the node's pin map has it"
		}
		return engine.Spec{}, fault
	}
	if len(why) > MaxMetadataValue {
		return engine.Spec{}, &Error{Code: CodeTooLarge, Field: "reason",
			Problem: fmt.Sprintf("is %d bytes long, the limit is %d", len(why), MaxMetadataValue), Hint: "keep it short"}
	}
	encoded, err := wire.EncodeMap(args.Map(), wire.MaxArgsBytes)
	if err != nil {
		return engine.Spec{}, &Error{Code: CodeInternal, Field: "pin", Problem: "cannot be sent: " + err.Error()}
	}
	s := engine.Spec{Intent: intent, Args: encoded, Nodes: []string{node}, Priority: wire.PriorityHigh}
	s.Means(wire.ActOf(intent, args))
	if why != "" {
		s.Metadata = map[string]string{"reason": why}
	}
	return s, nil
}

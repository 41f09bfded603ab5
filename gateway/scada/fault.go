package scada

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Code is the machine-readable kind of a refusal. Values are never renamed.
type Code string

// Codes of faults in a document.
const (
	CodeEmpty        Code = "empty"         // nothing but white space
	CodeTooLarge     Code = "too_large"     // more bytes, entries or digits than allowed
	CodeTooDeep      Code = "too_deep"      // nested beyond the limit
	CodeEncoding     Code = "encoding"      // not UTF-8 text
	CodeSyntax       Code = "syntax"        // not JSON or YAML
	CodeDuplicate    Code = "duplicate"     // a key or a list entry given twice
	CodeUnknownField Code = "unknown_field" // no such field or argument
	CodeMissing      Code = "missing"       // a required field is absent
	CodeWrongType    Code = "wrong_type"    // for example text where a number is asked for
	CodeBadValue     Code = "bad_value"     // the right type, but not a value of this field
	CodeOutOfRange   Code = "out_of_range"  // a number or time outside its bounds
	CodeContradicts  Code = "contradicts"   // two fields that exclude each other
	CodeUnsupported  Code = "unsupported"   // known, but not yet supported
	CodeNotATask     Code = "not_a_task"    // a document of ours that is no command
)

// Codes of refusals that do not come from the document itself. This package
// only carries them in a Reply.
const (
	CodeRetained    Code = "retained"     // commands are never retained
	CodeConflict    Code = "conflict"     // the task_id exists with other content
	CodeUnknownNode Code = "unknown_node" // no such node, or no node matches
	CodeNotAllowed  Code = "not_allowed"  // the client may not do this
	CodeFull        Code = "full"         // water mark or disk; try again later
	CodeHeld        Code = "held_safe"    // an output is held at its safe level until somebody releases it
	CodeInternal    Code = "internal"     // a fault of the gateway
)

// MaxFaults bounds how many faults of one document are reported: enough to mend
// a document in one go, few enough to read.
const MaxFaults = 10

// Error says what is wrong with a document, where, and what to do. It marshals
// to JSON as it stands; Reply puts it into its envelope.
type Error struct {
	Code Code `json:"code"`
	// Field is the path of the field, for example retry_policy.backoff or
	// args.list[2]; empty for the document as a whole.
	Field string `json:"field,omitempty"`
	// Line and Column count from 1, columns in characters. 0 means unknown.
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Problem string `json:"problem"`
	Hint    string `json:"hint,omitempty"`
	// TaskID is the document's task_id where it could be read, for the answer.
	TaskID string `json:"-"`
	// More are the further faults, at most MaxFaults-1.
	More []*Error `json:"-"`
}

// Error is one line for people.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d", e.Line)
		if e.Column > 0 {
			fmt.Fprintf(&b, ", column %d", e.Column)
		}
		b.WriteString(": ")
	}
	if e.Field != "" {
		b.WriteString(e.Field)
		b.WriteString(": ")
	}
	b.WriteString(e.Problem)
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	if n := len(e.More); n > 0 {
		fmt.Fprintf(&b, " (and %d more)", n)
	}
	return b.String()
}

// Warning tells the submitter of a task that was accepted what may not be what
// was meant.
type Warning struct {
	Code    WarningCode `json:"code"`
	Field   string      `json:"field,omitempty"`
	Line    int         `json:"line,omitempty"`
	Column  int         `json:"column,omitempty"`
	Problem string      `json:"problem"`
}

// WarningCode is the machine-readable kind of a Warning.
type WarningCode string

const (
	WarnCoerced  WarningCode = "coerced"    // a scalar was taken as text
	WarnNoTaskID WarningCode = "no_task_id" // a second copy would be a second task
	WarnPast     WarningCode = "past"       // not_after has already passed
	WarnUnused   WarningCode = "unused"     // a value without effect here
	WarnIntent   WarningCode = "intent"     // very much like a built-in intent
)

func faultAt(at pos, code Code, field, problem, hint string) *Error {
	return &Error{Code: code, Field: field, Line: int(at.line), Column: int(at.col), Problem: problem, Hint: hint}
}

// firstOf orders faults by position, missing fields last, and chains them. nil
// for none.
func firstOf(faults []*Error) *Error {
	if len(faults) == 0 {
		return nil
	}
	slices.SortStableFunc(faults, func(a, b *Error) int {
		return cmp.Or(
			cmp.Compare(late(a), late(b)),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
		)
	})
	first := faults[0]
	first.More = faults[1:min(len(faults), MaxFaults)]
	return first
}

// late puts a missing field after the misspelt one that explains it.
func late(e *Error) int {
	if e.Code == CodeMissing {
		return 1
	}
	return 0
}

// clip shortens hostile text for a message, between characters.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

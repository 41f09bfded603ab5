package cli

import (
	"io"

	"github.com/apollo-11/apollo11/gateway/api"
)

// Visible, Nearest and Distance are tested alone: their input is endless.
func Visible(s string) string                    { return visible(s) }
func Nearest(word string, names []string) string { return nearest(word, names) }
func Distance(a, b string) int                   { return distance(a, b) }
func PrintJSON(w io.Writer, raw []byte) error    { return printJSON(w, raw) }

// Word makes part of an actor.
func Word(s string, most int) string { return word(s, most) }

// Coloured is a state as it goes to a terminal, or elsewhere.
func Coloured(state string, terminal bool) string {
	return (&app{colour: terminal}).paint(stateCell(state))
}

// Commands are the names of all commands.
func Commands() []string {
	var list []string
	for _, c := range commands() {
		list = append(list, c.name)
	}
	return list
}

// ListAlarms is what alarms writes in text.
func ListAlarms(out, errs io.Writer, v api.Alarms) error {
	return listAlarms(&app{out: out, err: errs}, v)
}

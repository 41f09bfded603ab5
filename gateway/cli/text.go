package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/apollo-11/apollo11/gateway/engine"
)

// visible makes text from elsewhere safe for a terminal: what does not print
// (control and escape characters, line ends, invisible and reordering
// characters, invalid UTF-8) is written out.
func visible(s string) string {
	clean := true
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

// printJSON writes a JSON document for people and programs. What does not print
// stands in strings only, where an escape means the same.
func printJSON(w io.Writer, raw []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(raw), "", "  "); err != nil {
		return fmt.Errorf("the gateway's answer is not JSON: %w", err)
	}
	return printJSONLine(w, b.Bytes())
}

// printJSONLine writes a JSON document as it is laid out, and a line end.
func printJSONLine(w io.Writer, text []byte) error {
	var out bytes.Buffer
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == '\n' || r != utf8.RuneError && unicode.IsPrint(r):
			out.Write(text[:n])
		case r > 0xffff:
			hi, lo := surrogates(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		text = text[n:]
	}
	out.WriteByte('\n')
	_, err := w.Write(out.Bytes())
	return err
}

func surrogates(r rune) (hi, lo rune) {
	r -= 0x10000
	return 0xd800 + r>>10, 0xdc00 + r&0x3ff
}

// cell is one field of a table.
type cell struct {
	text  string
	style string // an ANSI style, empty for none
}

// table is aligned text.
type table struct {
	rows [][]cell
}

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

func (t *table) head(names ...string) {
	row := make([]cell, len(names))
	for k, n := range names {
		row[k] = cell{text: n}
	}
	t.rows = append(t.rows, row)
}

// plain turns text into cells without style.
func plain(texts ...string) []cell {
	row := make([]cell, len(texts))
	for k, s := range texts {
		row[k] = cell{text: visible(s)}
	}
	return row
}

// columnGap is the space between two columns.
const columnGap = "  "

// write prints the table. Each column is as wide as its widest cell, the last is
// not filled up.
func (t *table) write(a *app) error {
	var width []int
	for _, row := range t.rows {
		for k, c := range row {
			if k == len(width) {
				width = append(width, 0)
			}
			width[k] = max(width[k], utf8.RuneCountInString(c.text))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for k, c := range row {
			line.WriteString(a.paint(c))
			line.WriteString(strings.Repeat(" ", width[k]-utf8.RuneCountInString(c.text)))
			line.WriteString(columnGap)
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(a.out, b.String())
	return err
}

func (a *app) paint(c cell) string {
	if !a.colour || c.style == "" || c.text == "" {
		return c.text
	}
	return "\x1b[" + c.style + "m" + c.text + "\x1b[0m"
}

// stateCell is a state in its colour: green done, red needs somebody, yellow
// under way.
func stateCell(state string) cell {
	c := cell{text: visible(state)}
	switch state {
	case engine.StateSucceeded.String(), "online":
		c.style = "32"
	case engine.StateFailed.String(), engine.StateTimeout.String(), "offline":
		c.style = "31"
	case engine.StateRunning.String(), engine.StateRetrying.String(), engine.StateDispatched.String():
		c.style = "33"
	case engine.StateCancelled.String():
		c.style = "35"
	}
	return c
}

// clock is a time of the API as the time of day here.
func clock(s string) string { return at(s, "15:04:05.000") }

// moment is a time of the API in full, in the zone of the reader.
func moment(s string) string { return at(s, "2006-01-02 15:04:05.000 Z07:00") }

// shortMoment is moment for tables.
func shortMoment(s string) string { return at(s, "2006-01-02 15:04:05") }

func at(s, layout string) string {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return visible(s)
	}
	return t.Local().Format(layout)
}

// span is a duration for people: 12ms, 1.25s, 3m20s.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// inline is a value as one line of JSON; empty for nothing.
func inline(v map[string]any) string {
	if len(v) == 0 {
		return ""
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // a terminal runs no markup
	if err := enc.Encode(v); err != nil {
		return visible(fmt.Sprint(v))
	}
	return visible(strings.TrimSpace(b.String()))
}

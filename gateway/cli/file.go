package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/apollo-11/apollo11/gateway/scada"
)

// readDocument reads a task file; - is standard input.
func readDocument(ctx context.Context, a *app, name string) (*document, error) {
	d := &document{name: name}
	in := a.in
	if name == "-" {
		d.name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, openTrouble(name, err)
		}
		defer func() { _ = f.Close() }() // only read
		in = f
		switch strings.ToLower(filepath.Ext(name)) {
		case ".json":
			d.kind = "application/json"
		case ".yaml", ".yml":
			d.kind = "application/yaml"
		}
	}
	var err error
	if d.text, err = readAll(ctx, in); err != nil {
		return nil, trouble("read %s: %v", d.name, err)
	}
	if len(d.text) > scada.MaxTaskBytes {
		return nil, trouble("%s is larger than %d bytes, which no task may be", d.name, scada.MaxTaskBytes).
			hint("is it the right file? otherwise split it into several tasks")
	}
	return d, nil
}

func openTrouble(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return trouble("there is no file %s", name).hint("use - for standard input")
	}
	return trouble("%v", err)
}

// readAll reads to the end, one byte over the limit at most. Nothing can call
// back a read that waits for a keyboard, so that it is left behind when the user
// interrupts: the process ends next.
func readAll(ctx context.Context, in io.Reader) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(in, scada.MaxTaskBytes+1))
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, errors.New("interrupted")
	}
}

// pairs reads KEY=VALUE flags. With asJSON a value that is JSON is taken as such.
func pairs(flag string, given []string, asJSON bool) (map[string]json.RawMessage, error) {
	if len(given) == 0 {
		return nil, nil
	}
	out := map[string]json.RawMessage{}
	for _, s := range given {
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return nil, misuse("--%s %s is not KEY=VALUE", flag, s)
		}
		if _, twice := out[key]; twice {
			return nil, misuse("--%s %s is given twice", flag, key)
		}
		if err := isText("--"+flag, s); err != nil {
			return nil, err
		}
		if asJSON && json.Valid([]byte(value)) {
			out[key] = json.RawMessage(value)
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, misuse("--%s %s: %v", flag, s, err)
		}
		out[key] = text
	}
	return out, nil
}

// isText refuses what JSON would silently change.
func isText(what, s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	return misuse("%s is not UTF-8 text: %s", what, visible(s))
}

// explain shows where in the document the gateway found a fault.
func (d *document) explain(a *app, err error) error {
	var e *apiError
	if !errors.As(err, &e) {
		return err
	}
	out := a.client.explain(err)
	var p *problem
	if d.name == "" || e.Line == 0 || !errors.As(out, &p) {
		return out
	}
	p.text = fmt.Sprintf("%s:%d:%d: %s", d.name, e.Line, e.Column, p.text)
	p.hints = append(d.excerpt(e.Line, e.Column), p.hints...)
	return p
}

// excerpt is the faulty line with a mark under the column.
func (d *document) excerpt(line, column int) []string {
	const widest = 100 // longer lines would fold and lose the mark
	lines := strings.Split(strings.TrimPrefix(string(d.text), "\ufeff"), "\n")
	if line > len(lines) {
		return nil
	}
	text := strings.TrimRight(lines[line-1], "\r")
	if text == "" || !utf8.ValidString(text) || utf8.RuneCountInString(text) > widest || column < 1 || column > utf8.RuneCountInString(text)+1 {
		return nil
	}
	before := visible(string([]rune(text)[:column-1]))
	label := fmt.Sprintf("%5d | ", line)
	return []string{label + visible(text), strings.Repeat(" ", len(label)+utf8.RuneCountInString(before)) + "^"}
}

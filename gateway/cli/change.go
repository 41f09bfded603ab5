package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/apollo-11/apollo11/gateway/api"
)

// change asks for an operator's action and decodes its answer. body may be nil.
// look says how to find out what happened when the answer was lost.
func (a *app) change(ctx context.Context, method, path string, body any, into any, look string) ([]byte, error) {
	header, text := http.Header{}, []byte(nil)
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
		header.Set("Content-Type", "application/json")
	}
	raw, err := a.client.call(ctx, method, path, header, text, into)
	if err == nil {
		return raw, nil
	}
	var maybe unsure
	var e *apiError
	if errors.As(err, &maybe) && !errors.As(err, &e) { // else the gateway says itself what to do
		return nil, trouble("%s; it is not known whether it was done", maybe.Error()).hint("%s", look)
	}
	return nil, err
}

// tellDone shows the answer to an action.
func (a *app) tellDone(raw []byte, d *api.Done) error {
	if a.output == "json" {
		return printJSON(a.out, raw)
	}
	subject := ""
	if d.Subject != "" {
		subject = d.Subject + ": "
	}
	a.print("%s\n", visible(subject+d.Text))
	return nil
}

// noted is the body of an action on an instruction.
type noted struct {
	Note          string `json:"note"`
	AcceptUnknown bool   `json:"accept_unknown,omitempty"`
}

// confirm asks a person to say yes. text says what will happen. Where nobody can
// be asked it refuses, and names the flag that says yes beforehand.
func (a *app) confirm(ctx context.Context, text string, hints ...string) error {
	if !isTerminal(a.in) {
		e := misuse("%s", text)
		for _, h := range hints {
			e.hint("%s", h)
		}
		return e.hint("nothing was changed; --yes says that this is wanted")
	}
	a.say("%s\n", visible(text))
	for _, h := range hints {
		a.say("  %s\n", visible(h))
	}
	a.say("Is this wanted? Type yes: ")
	answer, err := a.ask(ctx)
	if err != nil {
		return err
	}
	if strings.TrimSpace(answer) != "yes" {
		return trouble("nothing was changed")
	}
	return nil
}

// maxReply bounds what is read of a person's answer.
const maxReply = 100

// ask reads a line that a person types. Nothing can call back a read that waits for
// a keyboard: it is left behind when the user interrupts, and the process ends.
func (a *app) ask(ctx context.Context) (string, error) {
	got := make(chan string, 1)
	go func() {
		// What cannot be read is not yes.
		line, _ := bufio.NewReaderSize(a.in, maxReply).ReadSlice('\n')
		got <- string(line)
	}()
	select {
	case line := <-got:
		return line, nil
	case <-ctx.Done():
		return "", trouble("interrupted; nothing was changed")
	}
}

package board

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/talk"
)

// askLimit bounds an answer of the board's init beyond the limit that the question
// has of its own.
const askLimit = time.Minute

// Ask asks the board's init.
func (b *Board) Ask(q talk.Request) (talk.Reply, error) {
	answer := make(chan talk.Reply, 1)
	b.mu.Lock()
	if b.lineErr != nil {
		b.mu.Unlock()
		return talk.Reply{}, b.lineErr
	}
	b.next++
	q.ID = b.next
	b.waiting[q.ID] = answer
	doc, err := json.Marshal(q)
	if err == nil {
		err = b.line.SetWriteDeadline(time.Now().Add(askLimit))
	}
	if err == nil {
		_, err = b.line.Write(append(doc, '\n')) // under the lock: lines do not mix
	}
	b.mu.Unlock()
	if err != nil {
		return talk.Reply{}, fmt.Errorf("board, %s: %w", q.Do, err)
	}
	limit := askLimit + q.Limit
	patience := time.NewTimer(limit)
	defer patience.Stop()
	select {
	case r, ok := <-answer:
		if !ok {
			return r, fmt.Errorf("board, %s: %w", q.Do, errEmulatorGone)
		}
		if r.Error != "" {
			return r, fmt.Errorf("board, %s %s%s: %w", q.Do, q.Name, q.Path, errors.New(r.Error))
		}
		return r, nil
	case <-patience.C:
		return talk.Reply{}, fmt.Errorf("board, %s: no answer within %v", q.Do, limit)
	}
}

// Run starts a program on the board. Its output goes to the console, each line
// behind its name.
func (b *Board) Run(name, user string, args ...string) error {
	_, err := b.Ask(talk.Request{Do: talk.Start, Name: name, User: user, Args: args})
	return err
}

// Signal sends a signal to a program or to that of a unit.
func (b *Board) Signal(name string, signal int) error {
	_, err := b.Ask(talk.Request{Do: talk.Signal, Name: name, Signal: signal})
	return err
}

// Wait waits for the end of a program.
func (b *Board) Wait(name string, limit time.Duration) (talk.Reply, error) {
	return b.Ask(talk.Request{Do: talk.Wait, Name: name, Limit: limit})
}

// ReadFile reads a file of the board.
func (b *Board) ReadFile(path string) (string, error) {
	r, err := b.Ask(talk.Request{Do: talk.Read, Path: path})
	return string(r.Data), err
}

// WriteFile writes a file of the board, for a user.
func (b *Board) WriteFile(path, user, text string, mode uint32) error {
	_, err := b.Ask(talk.Request{Do: talk.Write, Path: path, User: user, Data: []byte(text), Mode: mode})
	return err
}

// Hold takes a line inside the board as another program would, until Free.
func (b *Board) Hold(consumer, chip string, line int) error {
	_, err := b.Ask(talk.Request{Do: talk.Hold, Name: consumer, Path: chip, Line: uint32(line)})
	return err
}

// Free gives back the line that a consumer holds.
func (b *Board) Free(consumer string) error {
	_, err := b.Ask(talk.Request{Do: talk.Free, Name: consumer})
	return err
}

// StartUnit supervises a program as a unit file says, see guest/supervise.go.
func (b *Board) StartUnit(name, text string) error {
	_, err := b.Ask(talk.Request{Do: talk.Unit, Name: name, Data: []byte(text)})
	return err
}

// StopUnit stops a unit and returns when its ExecStopPost is done.
func (b *Board) StopUnit(name string) error {
	_, err := b.Ask(talk.Request{Do: talk.Stop, Name: name, Limit: 2 * time.Minute})
	return err
}

// ReloadUnit does what the unit's ExecReload says.
func (b *Board) ReloadUnit(name string) error {
	_, err := b.Ask(talk.Request{Do: talk.Reload, Name: name, Limit: time.Minute})
	return err
}

// Unit is how a unit is: how often it was started and how it ended last.
func (b *Board) Unit(name string) (r talk.Reply, state string, err error) {
	r, err = b.Ask(talk.Request{Do: talk.Status, Name: name})
	return r, string(r.Data), err
}

package gpio

import (
	"errors"
	"fmt"
	"slices"
)

// Line is one line of a board, for a person who looks for the right one.
type Line struct {
	Key   string `json:"key"`            // what Resolve returns for it
	Exact string `json:"line"`           // CHIP:OFFSET, where there are chips
	Name  string `json:"name,omitempty"` // its own, "" for none
	// Direction is input or output, "" if the back end does not tell.
	Direction string `json:"direction,omitempty"`
	// Consumer is who has the line, "" for nobody. The kernel's own users may have
	// no name: they are called "kernel".
	Consumer string `json:"used_by,omitempty"`
}

// List returns the lines of a board as they are now. Nothing is opened or moved.
func List(b Board) ([]Line, error) {
	if c, ok := b.(*Chardev); ok {
		return c.list()
	}
	var lines []Line
	for _, n := range b.Names() {
		lines = append(lines, Line{Key: n, Exact: n})
	}
	return lines, nil
}

func (b *Chardev) list() ([]Line, error) {
	chips := b.found
	var lines []Line
	for _, c := range chips {
		found, err := b.listChip(chips, c)
		if err != nil {
			return nil, fmt.Errorf("list the lines of %s: %w", c.label, err)
		}
		lines = append(lines, found...)
	}
	return lines, nil
}

func (b *Chardev) listChip(chips []chip, c chip) (lines []Line, err error) {
	d, err := b.findChip(c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for i := range c.lines {
		info, err := lineInfo(d, i)
		if err != nil {
			return nil, err
		}
		p := place{c, i}
		l := Line{Key: shortest(chips, p), Exact: p.exact(), Name: text(info.name), Direction: "input"}
		if info.flags&flagOutput != 0 {
			l.Direction = "output"
		}
		if info.flags&flagUsed != 0 {
			if l.Consumer = text(info.consumer); l.Consumer == "" {
				l.Consumer = "kernel"
			}
		}
		lines = append(lines, l)
	}
	return slices.Clip(lines), nil
}

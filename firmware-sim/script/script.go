package script

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kinds say what a word or a value of a kind may be.
type Kinds map[string]func(string) error

// Number is a whole number that is not negative.
func Number(s string) error {
	_, err := strconv.ParseUint(s, 10, 64)
	return err
}

// Byte is a Number that fits into a byte.
func Byte(s string) error {
	_, err := strconv.ParseUint(s, 10, 8)
	return err
}

// Numbers are Numbers with commas between them.
func Numbers(s string) error {
	for _, n := range strings.Split(s, ",") {
		if err := Number(n); err != nil {
			return err
		}
	}
	return nil
}

// Duration is a duration as Go writes it.
func Duration(s string) error {
	_, err := time.ParseDuration(s)
	return err
}

// Pairs are K:V with commas between them.
func Pairs(s string) error {
	for _, p := range strings.Split(s, ",") {
		if k, v, ok := strings.Cut(p, ":"); !ok || k == "" || v == "" {
			return fmt.Errorf("%q is not KEY:VALUE", p)
		}
	}
	return nil
}

// Command is a command line that was read.
type Command struct {
	At    string // where it stands, for messages
	Line  string
	Name  string
	Words []string
	Args  map[string]string
}

// Language is a set of commands.
type Language struct {
	kinds    Kinds
	commands map[string]syntax
}

type syntax struct {
	text  string
	words []element
	args  map[string]element
}

// element is one word or one named argument of a command.
type element struct {
	name     string   // how the syntax writes it
	kind     string   // empty if only the literals stand for themselves
	literals []string // of a word
	optional bool
	repeats  bool
}

// New makes a language; lines are its commands. It panics on a line that makes no
// sense: lines are part of the program.
func New(kinds Kinds, lines ...string) *Language {
	l := &Language{kinds, map[string]syntax{}}
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) == 0 || l.commands[f[0]].text != "" {
			panic(fmt.Sprintf("bug: syntax %q is empty or there twice", line))
		}
		s := syntax{text: line, args: map[string]element{}}
		for _, w := range f[1:] {
			e, named := elementOf(w)
			if !named {
				s.words = append(s.words, e)
				continue
			}
			if _, twice := s.args[e.name]; twice {
				panic(fmt.Sprintf("bug: syntax %q has %s twice", line, e.name))
			}
			s.args[e.name] = e
		}
		l.commands[f[0]] = s
	}
	return l
}

func elementOf(w string) (e element, named bool) {
	if strings.HasPrefix(w, "[") != strings.HasSuffix(w, "]") {
		panic(fmt.Sprintf("bug: brackets of %q", w))
	}
	w, e.optional = strings.CutPrefix(w, "[")
	w = strings.TrimSuffix(w, "]")
	if k, v, ok := strings.Cut(w, "="); ok {
		e.name, e.kind = k, v
		return e, true
	}
	e.name = w
	w, e.repeats = strings.CutSuffix(w, "...")
	if strings.ToUpper(w) == w {
		e.kind = w
	} else {
		e.literals = strings.Split(w, "|")
	}
	return e, false
}

// Parse reads a command line that stands at a place. The error names the place,
// what is wrong and what would be right.
func (l *Language) Parse(at, line string) (*Command, error) {
	f := strings.Fields(line)
	if len(f) == 0 {
		return nil, fmt.Errorf("%s: no command", at)
	}
	s, ok := l.commands[f[0]]
	if !ok {
		known := slices.Sorted(maps.Keys(l.commands))
		return nil, fmt.Errorf("%s: %q: there is no command %s; there are %s", at, line, f[0], strings.Join(known, ", "))
	}
	c := &Command{At: at, Line: line, Name: f[0], Args: map[string]string{}}
	err := l.sort(c, s, f[1:])
	if err == nil {
		err = l.match(s, c.Words)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %q: %w; it is written %s", at, line, err, s.text)
	}
	return c, nil
}

// sort tells named arguments from words and checks the former.
func (l *Language) sort(c *Command, s syntax, fields []string) error {
	for _, w := range fields {
		k, v, ok := strings.Cut(w, "=")
		if !ok {
			c.Words = append(c.Words, w)
			continue
		}
		e, known := s.args[k]
		if !known {
			return fmt.Errorf("there is no argument %s", k)
		}
		if _, twice := c.Args[k]; twice {
			return fmt.Errorf("%s is given twice", k)
		}
		if err := l.is(e.kind, v); err != nil {
			return fmt.Errorf("%s is not %s: %w", w, e.kind, err)
		}
		c.Args[k] = v
	}
	for _, k := range slices.Sorted(maps.Keys(s.args)) {
		if _, given := c.Args[k]; !given && !s.args[k].optional {
			return fmt.Errorf("%s is missing", k)
		}
	}
	return nil
}

// match holds the words against those of the syntax, from left to right.
func (l *Language) match(s syntax, words []string) error {
	var reason error // why the latest optional word was left out
	for _, e := range s.words {
		taken := 0
		for len(words) > 0 && (taken == 0 || e.repeats) {
			if err := l.fits(e, words[0]); err != nil {
				if !e.optional {
					return err
				}
				reason = err
				break
			}
			words, taken, reason = words[1:], taken+1, nil
		}
		if taken == 0 && !e.optional {
			return fmt.Errorf("%s is missing", e.name)
		}
	}
	if len(words) == 0 {
		return nil
	}
	if reason != nil {
		return reason
	}
	return fmt.Errorf("%q is too much", words[0])
}

func (l *Language) fits(e element, word string) error {
	if e.kind == "" {
		if !slices.Contains(e.literals, word) {
			return fmt.Errorf("%q is not %s", word, e.name)
		}
		return nil
	}
	if err := l.is(e.kind, word); err != nil {
		return fmt.Errorf("%q is not %s: %w", word, e.kind, err)
	}
	return nil
}

func (l *Language) is(kind, value string) error {
	if value == "" {
		return fmt.Errorf("it is empty")
	}
	if check := l.kinds[kind]; check != nil {
		return check(value)
	}
	return nil
}

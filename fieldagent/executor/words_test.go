package executor_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// arguments are the words after a command.
type arguments struct {
	t     *testing.T
	line  string
	plain []string
	named map[string]string
}

func (a *arguments) text(name, def string) string {
	if v, ok := a.named[name]; ok {
		return v
	}
	return def
}

func (a *arguments) number(name string, def uint64) uint64 {
	v, ok := a.named[name]
	if !ok {
		return def
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		a.t.Fatalf("%s: %v", a.line, err)
	}
	return n
}

func (a *arguments) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		a.t.Fatalf("%s: %v", a.line, err)
	}
	return d
}

func codeNamed(t *testing.T, name string) wire.Code {
	for c := range 256 {
		if wire.Code(c).String() == name {
			return wire.Code(c)
		}
	}
	t.Fatalf("no code is called %s", name)
	return 0
}

func endNamed(t *testing.T, name string) wire.LeaseEnd {
	for e := range wire.LeaseEnd(255) {
		if e.String() == name {
			return e
		}
	}
	t.Fatalf("no end of a lease is called %s", name)
	return 0
}

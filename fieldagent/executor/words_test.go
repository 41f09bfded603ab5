package executor_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// arguments are the words after a command.
type arguments struct {
	t     *testing.T
	at    string
	line  string
	plain []string
	named map[string]string
}

// wrong ends the test.
func (a *arguments) wrong(format string, args ...any) {
	a.t.Helper()
	a.t.Fatalf("%s: %q: %s", a.at, a.line, fmt.Sprintf(format, args...))
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
	return a.toNumber(v)
}

func (a *arguments) toNumber(s string) uint64 {
	a.t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		a.wrong("%v", err)
	}
	return n
}

func (a *arguments) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		a.wrong("%v", err)
	}
	return d
}

func codeNamed(name string) (wire.Code, error) {
	for c := range 256 {
		if wire.Code(c).String() == name {
			return wire.Code(c), nil
		}
	}
	return 0, fmt.Errorf("no code is called %s", name)
}

func endNamed(name string) (wire.LeaseEnd, error) {
	for e := range wire.LeaseEnd(255) {
		if e.String() == name {
			return e, nil
		}
	}
	return 0, fmt.Errorf("no end of a lease is called %s", name)
}

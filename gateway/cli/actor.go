package cli

import (
	"os"
	"os/user"
	"strings"
)

// Room for a name and a machine in what a gateway takes as an actor: 64 bytes
// with the @ between them.
const (
	maxName    = 24
	maxMachine = 39
)

// actor is on whose behalf the tool acts, as name@machine: $APOLLO_ACTOR, else the
// user and the name of this machine. Gateways without users enter it in timelines
// and in the audit trail as declared, not proved. Empty when nobody knows: then the
// gateway notes the address.
func actor(env func(string) string) string {
	if s := env("APOLLO_ACTOR"); s != "" {
		return s
	}
	u, err := user.Current()
	if err != nil {
		return ""
	}
	machine, err := os.Hostname()
	if err != nil || u.Username == "" || machine == "" {
		return ""
	}
	_, name, windows := strings.Cut(u.Username, `\`) // DOMAIN\name
	if !windows {
		name = u.Username
	}
	return word(name, maxName) + "@" + word(machine, maxMachine)
}

// word replaces what a gateway would refuse, and cuts what is too long.
func word(s string, most int) string {
	s = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.+", c) {
			return c
		}
		return '-'
	}, s)
	return s[:min(len(s), most)]
}

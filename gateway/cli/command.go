package cli

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
)

// run does what a command is for. words are what is neither flag nor value.
type run func(ctx context.Context, a *app, words []string) error

// command is one thing that the tool can do.
type command struct {
	name     string // "task submit"
	short    string
	usage    string // after "apollo "
	long     string
	examples []string
	words    int // the most words it takes
	// flags defines the command's own flags and returns what to run after they
	// are read.
	flags func(fs *flag.FlagSet) run
}

// commands is everything, in the order of the help.
func commands() []*command {
	return []*command{
		submitCommand(), statusCommand(), listCommand(), cancelCommand(),
		safeCommand(), releaseCommand(),
		timelineCommand(), nodeListCommand(), nodeShowCommand(),
		queueListCommand(), queueRetryCommand(), queueResolveCommand(), queueCancelCommand(),
		deadLettersCommand(), deadLetterShowCommand(), deadLetterReplayCommand(), deadLetterDropCommand(),
		quietOnCommand(), quietOffCommand(), quietStatusCommand(), alarmsCommand(),
		auditListCommand(), auditExportCommand(), auditVerifyCommand(), versionCommand(),
	}
}

// find takes the command from the front of the arguments. nil with no error is a
// group without its command.
func find(args []string) (*command, []string, error) {
	var names, first []string
	for _, c := range commands() {
		names = append(names, c.name)
		group, _, isGroup := strings.Cut(c.name, " ")
		if !slices.Contains(first, group) {
			first = append(first, group)
		}
		if !isGroup && args[0] == group {
			return c, args[1:], nil
		}
		if len(args) > 1 && args[0]+" "+args[1] == c.name {
			return c, args[2:], nil
		}
	}
	if slices.Contains(first, args[0]) {
		if len(args) == 1 || strings.HasPrefix(args[1], "-") {
			return nil, args[1:], nil
		}
		e := misuse("apollo %s has no command %q", args[0], args[1])
		if s := nearest(args[0]+" "+args[1], names); s != "" {
			e.hint("did you mean apollo %s?", s)
		}
		return nil, nil, e.hint("see apollo help %s", args[0])
	}
	e := misuse("there is no command %q", args[0])
	var best string
	if len(args) > 1 {
		best = nearest(args[0]+" "+args[1], names)
	}
	if best == "" {
		best = nearest(args[0], append(first, "help"))
	}
	if best == "" { // the second word alone: apollo submit
		for _, n := range names {
			if strings.HasSuffix(n, " "+args[0]) {
				best = n
				break
			}
		}
	}
	if best != "" {
		e.hint("did you mean apollo %s?", best)
	}
	return nil, nil, e.hint("see apollo help")
}

// help explains everything, a group, or a command.
func (a *app) help(args []string) error {
	var text string
	switch {
	case len(args) == 0 || isHelp(args[0]):
		text = overview()
	default:
		c, _, err := find(args)
		if err != nil {
			return err
		}
		if c == nil {
			text = groupHelp(args[0])
		} else {
			text = commandHelp(c)
		}
	}
	_, err := fmt.Fprint(a.out, text)
	return err
}

func overview() string {
	var b strings.Builder
	b.WriteString("apollo: submit tasks to an Apollo-11 gateway, follow them, and do by hand what only people can\n\n")
	listCommands(&b, "")
	b.WriteString(`
The gateway is found by --gateway URL or $APOLLO_GATEWAY, by default ` + defaultGateway + `.
Where it asks for a user: $APOLLO_USER and $APOLLO_PASSWORD. Where it does not, it
notes you as USER@MACHINE, or as $APOLLO_ACTOR.

  apollo task submit --intent gpio.write --node pump-1 --arg pin=GPIO17 --arg level=1 --ttl 30s --wait
  apollo timeline TASK
  apollo safe pump-1

Exit codes: 0 done, 1 failed, 2 wrong usage.  More: apollo help COMMAND
`)
	return b.String()
}

func groupHelp(group string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apollo %s: choose a command\n\n", group)
	listCommands(&b, group+" ")
	fmt.Fprintf(&b, "\nMore: apollo help %s COMMAND\n", group)
	return b.String()
}

func listCommands(b *strings.Builder, prefix string) {
	for _, c := range commands() {
		if strings.HasPrefix(c.name, prefix) {
			fmt.Fprintf(b, "  apollo %-18s %s\n", c.name, c.short)
		}
	}
}

func commandHelp(c *command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n  apollo %s\n", c.short, c.usage)
	if c.long != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(c.long))
	}
	b.WriteString("\nFlags:\n")
	own, common := flag.NewFlagSet("", flag.ContinueOnError), flag.NewFlagSet("", flag.ContinueOnError)
	c.flags(own)
	(&app{env: func(string) string { return "" }}).common(common)
	for _, fs := range []*flag.FlagSet{own, common} {
		fs.VisitAll(func(f *flag.Flag) {
			arg, text := flag.UnquoteUsage(f)
			dashes := "--"
			if len(f.Name) == 1 {
				dashes = "-"
			}
			fmt.Fprintf(&b, "  %-28s %s\n", strings.TrimSpace(dashes+f.Name+" "+arg), text)
		})
	}
	b.WriteString("\nExamples:\n")
	for _, e := range c.examples {
		fmt.Fprintf(&b, "  %s\n", e)
	}
	return b.String()
}

// nearest is the name that was probably meant; empty for none.
func nearest(word string, names []string) string {
	best, least := "", 3 // more than two slips are another word
	for _, n := range names {
		if d := distance(word, n); d < least && d < len(n)/2+1 {
			best, least = n, d
		}
	}
	return best
}

// distance counts the insertions, deletions and replacements between two words.
func distance(a, b string) int {
	const most = 40 // no name is longer; a longer word is no slip
	if len(a) > most || len(b) > most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := left
			if a[i] != b[j] {
				d = 1 + min(left, row[j], row[j+1])
			}
			left, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}

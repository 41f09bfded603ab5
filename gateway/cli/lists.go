package cli

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/apollo-11/apollo11/gateway/api"
)

func nodeListCommand() *command {
	return &command{
		name:     "node list",
		short:    "list the nodes that have ever connected",
		usage:    "node list",
		examples: []string{"apollo node list", "apollo node list -o json"},
		flags: func(*flag.FlagSet) run {
			return func(ctx context.Context, a *app, _ []string) error {
				var v api.NodeList
				raw, err := a.client.get(ctx, "/v1/nodes", &v)
				if err != nil {
					return a.client.explain(err)
				}
				if a.output == "json" {
					return printJSON(a.out, raw)
				}
				return listNodes(a, v)
			}
		},
	}
}

func listNodes(a *app, v api.NodeList) error {
	if len(v.Nodes) == 0 {
		a.say("no node has connected yet; start one with apollo-agent --gateway tcp://HOST:1883 --node NAME\n")
		return nil
	}
	var t table
	t.head("NODE", "STATE", "SINCE", "QUEUED", "RUNNING", "BOARD", "VERSION", "LABELS", "REASON")
	for _, n := range v.Nodes {
		labels := make([]string, 0, len(n.Labels))
		for k, value := range n.Labels {
			labels = append(labels, k+"="+value)
		}
		slices.Sort(labels)
		row := plain(n.Node, n.State, "", strconv.Itoa(int(n.Queued)), strconv.Itoa(int(n.Running)), n.Board, n.Version,
			strings.Join(labels, ","), n.Reason)
		row[1], row[2] = stateCell(n.State), cell{text: shortMoment(n.Since)}
		t.add(row...)
	}
	return t.write(a)
}

func deadLettersCommand() *command {
	return &command{
		name:     "deadletters list",
		short:    "list messages that could not be processed",
		usage:    "deadletters list [--after N] [--limit N]",
		long:     "What came is in the JSON output.",
		examples: []string{"apollo deadletters list", "apollo deadletters list --after 120 -o json"},
		flags: func(fs *flag.FlagSet) run {
			after := fs.Uint64("after", 0, "only those with numbers above `N`")
			limit := fs.Int("limit", 50, "show at most `N`, up to 500")
			return func(ctx context.Context, a *app, _ []string) error {
				q := url.Values{"limit": {strconv.Itoa(*limit)}, "after": {strconv.FormatUint(*after, 10)}}
				var v api.DeadLetterList
				raw, err := a.client.get(ctx, "/v1/deadletters?"+q.Encode(), &v)
				if err != nil {
					return a.client.explain(err)
				}
				if a.output == "json" {
					return printJSON(a.out, raw)
				}
				return listDeadLetters(a, v)
			}
		},
	}
}

func listDeadLetters(a *app, v api.DeadLetterList) error {
	if len(v.DeadLetters) == 0 {
		a.say("no dead letters\n")
		return nil
	}
	var t table
	t.head("NUMBER", "TIME", "KIND", "FROM", "BYTES", "REASON")
	for _, d := range v.DeadLetters {
		row := plain(strconv.FormatUint(d.Number, 10), "", d.Kind, d.From, strconv.Itoa(len(d.Raw)), d.Reason)
		row[1] = cell{text: shortMoment(d.Time)}
		t.add(row...)
	}
	if err := t.write(a); err != nil {
		return err
	}
	if v.Next != 0 {
		a.say("there are more: apollo deadletters list --after %d\n", v.Next)
	}
	return nil
}

func versionCommand() *command {
	return &command{
		name:     "version",
		short:    "show the version of this tool",
		usage:    "version",
		examples: []string{"apollo version", "apollo version -o json"},
		flags: func(*flag.FlagSet) run {
			return func(_ context.Context, a *app, _ []string) error {
				if a.output == "json" {
					text, err := json.Marshal(map[string]string{"version": a.version})
					if err != nil {
						return fmt.Errorf("version as JSON: %w", err)
					}
					return printJSON(a.out, text)
				}
				a.print("apollo %s\n", visible(a.version))
				return nil
			}
		},
	}
}

package cli

import (
	"context"
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
		row := plain(n.Node, n.State, "", strconv.Itoa(int(n.Queued)), strconv.Itoa(int(n.Running)), n.Board, n.Version,
			labelText(n.Labels), n.Reason)
		row[1], row[2] = stateCell(n.State), cell{text: shortMoment(n.Since)}
		t.add(row...)
	}
	return t.write(a)
}

func labelText(labels map[string]string) string {
	list := make([]string, 0, len(labels))
	for k, value := range labels {
		list = append(list, k+"="+value)
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

func nodeShowCommand() *command {
	return &command{
		name:     "node show",
		short:    "show a node and the alarms that speak of it",
		usage:    "node show NODE",
		examples: []string{"apollo node show pump-1", "apollo node show pump-1 -o json"},
		words:    1,
		flags: func(*flag.FlagSet) run {
			return func(ctx context.Context, a *app, words []string) error {
				if len(words) == 0 || words[0] == "" {
					return misuse("which one? the node is missing").hint("usage: apollo node show NODE").hint("apollo node list shows them")
				}
				var n api.NodeDetail
				raw, err := a.client.get(ctx, "/v1/nodes/"+url.PathEscape(words[0]), &n)
				if err != nil {
					return a.client.explain(err)
				}
				if a.output == "json" {
					return printJSON(a.out, raw)
				}
				return showNode(a, n)
			}
		},
	}
}

func showNode(a *app, n api.NodeDetail) error {
	var t table
	field := func(name, value string) {
		if value != "" {
			t.add(cell{text: name}, cell{text: value})
		}
	}
	field("node", visible(n.Node))
	t.add(cell{text: "state"}, stateCell(n.State))
	field("reason", visible(n.Reason))
	field("since", moment(n.Since))
	field("running", strconv.Itoa(int(n.Running)))
	field("queued", strconv.Itoa(int(n.Queued)))
	field("in flight", strconv.Itoa(n.InFlight))
	field("labels", visible(labelText(n.Labels)))
	field("board", visible(n.Board))
	field("version", visible(n.Version))
	field("workers", strconv.Itoa(int(n.Workers)))
	field("intents", visible(strings.Join(n.Intents, ", ")))
	field("pins", visible(strings.Join(n.Pins, ", ")))
	if n.Local {
		field("LOCAL", "the switch is on: what would move something is refused")
	}
	for _, f := range n.Foreign {
		field("changed by hand", visible(fmt.Sprintf("%s is %d, commanded was %d", f.Pin, f.Found, f.Commanded)))
	}
	field("short id", visible(n.Short))
	field("first seen", moment(n.FirstSeen))
	field("last hello", moment(n.LastHello))
	if err := t.write(a); err != nil {
		return err
	}
	if len(n.Standing)+len(n.Recent) == 0 {
		return nil
	}
	a.print("\n")
	return listAlarms(a, api.Alarms{Standing: n.Standing, Recent: n.Recent})
}

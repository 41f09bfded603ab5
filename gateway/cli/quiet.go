package cli

import (
	"context"
	"flag"
	"net/http"
	"net/url"

	"github.com/apollo-11/apollo11/gateway/api"
)

const lookAtQuiet = "see apollo quiet status"

func quietOnCommand() *command {
	return &command{
		name:  "quiet on",
		short: "pause resends, retries and backlogs while you work by hand",
		usage: "quiet on --reason TEXT --for DURATION | --until TIME",
		long: `
Until it ends nothing is sent again, nothing is retried and no backlog is drained;
new tasks are still sent, and what an operator retries is as well. It ends by
itself, within a week at most. Beginning it again replaces reason and end.`,
		examples: []string{"apollo quiet on --reason 'valve 3 is being replaced' --for 2h",
			"apollo quiet on --reason 'works on the mast' --until 2026-03-01T18:00:00+01:00"},
		flags: func(fs *flag.FlagSet) run {
			reason := fs.String("reason", "", "why, a `TEXT` for everybody who wonders")
			length := fs.String("for", "", "end after `DURATION`, for example 2h")
			until := fs.String("until", "", "end at `TIME` (RFC 3339)")
			return func(ctx context.Context, a *app, _ []string) error {
				body := map[string]string{"reason": *reason}
				switch {
				case *reason == "":
					return misuse("a quiet period needs a reason").hint("for example --reason 'valve 3 is being replaced'")
				case (*length == "") == (*until == ""):
					return misuse("a quiet period needs its end").hint("give either --for 2h or --until TIME")
				case *length != "":
					body["for"] = *length
				default:
					body["until"] = *until
				}
				for name, value := range body {
					if err := isText("--"+name, value); err != nil {
						return err
					}
				}
				var d api.Done
				raw, err := a.change(ctx, http.MethodPut, "/v1/quiet", body, &d, lookAtQuiet)
				if err != nil {
					return a.client.explain(err)
				}
				if a.output == "json" {
					return printJSON(a.out, raw)
				}
				a.print("quiet until %s: %s\n", moment(d.Until), visible(d.Text))
				return nil
			}
		},
	}
}

func quietOffCommand() *command {
	return &command{
		name:     "quiet off",
		short:    "end the quiet period",
		usage:    "quiet off [--note TEXT]",
		examples: []string{"apollo quiet off", "apollo quiet off --note 'valve 3 is in place'"},
		flags: func(fs *flag.FlagSet) run {
			note := fs.String("note", "", "a `TEXT` for the audit trail")
			return func(ctx context.Context, a *app, _ []string) error {
				if err := isText("--note", *note); err != nil {
					return err
				}
				path := "/v1/quiet"
				if *note != "" {
					path += "?" + url.Values{"note": {*note}}.Encode()
				}
				var d api.Done
				raw, err := a.change(ctx, http.MethodDelete, path, nil, &d, lookAtQuiet)
				if err != nil {
					return a.client.explain(err)
				}
				return a.tellDone(raw, &d)
			}
		},
	}
}

func quietStatusCommand() *command {
	return &command{
		name:     "quiet status",
		short:    "show the quiet period",
		usage:    "quiet status",
		long:     "Exit code 0 whether there is one or not.",
		examples: []string{"apollo quiet status", "apollo quiet status -o json"},
		flags: func(*flag.FlagSet) run {
			return func(ctx context.Context, a *app, _ []string) error {
				var q api.Quiet
				raw, err := a.client.get(ctx, "/v1/quiet", &q)
				switch {
				case err != nil:
					return a.client.explain(err)
				case a.output == "json":
					return printJSON(a.out, raw)
				case !q.On:
					a.print("no quiet period\n")
					return nil
				}
				a.print("quiet until %s\n  since %s by %s: %s\n", moment(q.Until), moment(q.Since), visible(q.By), visible(q.Reason))
				return nil
			}
		},
	}
}

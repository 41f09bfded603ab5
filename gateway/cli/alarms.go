package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/gateway/api"
)

// watchPause is the time between two looks at the alarms: soon enough for people,
// and nothing to a gateway.
const watchPause = time.Second

func alarmsCommand() *command {
	return &command{
		name:  "alarms",
		short: "list what is not as it should be, and what happened",
		usage: "alarms [--watch]",
		long: `
Alarms stand until their cause is gone; incidents happened and are listed, the latest
last. Both begin with the gateway's process. What each kind means and what to do is
in docs/operator.md. With --watch, changes are shown until you interrupt it; then
-o json writes one document a line.`,
		examples: []string{"apollo alarms", "apollo alarms --watch", "apollo alarms -o json"},
		flags: func(fs *flag.FlagSet) run {
			watch := fs.Bool("watch", false, "show each change as it comes")
			return func(ctx context.Context, a *app, _ []string) error {
				if *watch {
					return watchAlarms(ctx, a)
				}
				var v api.Alarms
				raw, err := a.client.get(ctx, "/v1/alarms", &v)
				if err != nil {
					return a.client.explain(err)
				}
				if a.output == "json" {
					return printJSON(a.out, raw)
				}
				return listAlarms(a, v)
			}
		},
	}
}

func listAlarms(a *app, v api.Alarms) error {
	if len(v.Standing) == 0 {
		if len(v.Recent) > 0 {
			a.say("no alarm stands now; what happened:\n")
		} else {
			a.say("no alarms\n")
		}
	} else if err := alarmTable(a, "SINCE", v.Standing, "31"); err != nil {
		return err
	}
	if len(v.Recent) == 0 {
		return nil
	}
	if len(v.Standing) > 0 {
		a.print("\n")
	}
	return alarmTable(a, "HAPPENED", v.Recent, "")
}

func alarmTable(a *app, when string, list []api.Alarm, style string) error {
	var t table
	t.head("ALARM", "SUBJECT", when, "DETAIL")
	for _, x := range list {
		row := plain(x.Alarm, x.Subject, "", x.Detail)
		row[0].style, row[2] = style, cell{text: shortMoment(x.Raised)}
		t.add(row...)
	}
	return t.write(a)
}

// alarmKey names an alarm that stands.
type alarmKey struct{ alarm, subject string }

// watcher shows what is new.
type watcher struct {
	a        *app
	standing map[alarmKey]api.Alarm
	seen     map[api.Alarm]int // incidents, equal ones counted
}

// watchAlarms shows changes until ctx ends, which is no failure.
func watchAlarms(ctx context.Context, a *app) error {
	w := &watcher{a: a}
	w.forget()
	for lost := false; ; {
		var v api.Alarms
		_, err := a.client.get(ctx, "/v1/alarms", &v)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			if err := w.show(v); err != nil {
				return err
			}
			lost = false
		case !passing(err):
			return a.client.explain(err)
		case !lost:
			// It may be another process when it is back: what stands is told anew.
			a.say("the gateway cannot be reached; still trying\n")
			w.forget()
			lost = true
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return nil
		}
	}
}

func (w *watcher) forget() {
	w.standing, w.seen = map[alarmKey]api.Alarm{}, map[api.Alarm]int{}
}

func (w *watcher) show(v api.Alarms) error {
	now := map[alarmKey]api.Alarm{}
	for _, x := range v.Standing {
		k := alarmKey{x.Alarm, x.Subject}
		now[k] = x
		if old, ok := w.standing[k]; ok && old.Raised == x.Raised {
			continue
		}
		if err := w.tell("raised", "31", x); err != nil {
			return err
		}
	}
	counts := map[api.Alarm]int{}
	for _, x := range v.Recent {
		if counts[x]++; counts[x] <= w.seen[x] {
			continue
		}
		if err := w.tell("happened", "33", x); err != nil {
			return err
		}
	}
	for _, x := range w.gone(now) {
		if err := w.tell("cleared", "32", x); err != nil {
			return err
		}
	}
	w.standing, w.seen = now, counts
	return nil
}

// gone are those that stood and do so no longer, in a fixed order.
func (w *watcher) gone(now map[alarmKey]api.Alarm) []api.Alarm {
	var list []api.Alarm
	for k, x := range w.standing {
		if _, ok := now[k]; !ok {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(a, b api.Alarm) int {
		return cmp.Or(cmp.Compare(a.Alarm, b.Alarm), cmp.Compare(a.Subject, b.Subject))
	})
	return list
}

func (w *watcher) tell(what, style string, x api.Alarm) error {
	if w.a.output == "json" {
		line, err := json.Marshal(struct {
			Event string `json:"event"`
			api.Alarm
		}{what, x})
		if err != nil {
			return fmt.Errorf("alarm as JSON: %w", err)
		}
		return printJSONLine(w.a.out, line)
	}
	line := fmt.Sprintf("%s  %s  %s  %s", clock(x.Raised), w.a.paint(cell{what, style}), visible(x.Alarm), visible(x.Subject))
	if what != "cleared" {
		line += "  " + visible(x.Detail)
	}
	_, err := fmt.Fprintln(w.a.out, line)
	return err
}

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// doors is the HTTP door of a gateway, on this machine or on a board.
type doors struct {
	base string
	web  *http.Client
}

func newDoors(addr string) doors {
	return doors{"http://" + addr, &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 2}}}
}

// get reads a document; false means that there is none.
func (d doors) get(ctx context.Context, path string, into any) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.base+path, nil)
	if err != nil {
		return false, err
	}
	r, err := d.web.Do(req)
	if err != nil {
		return false, err
	}
	body, err := io.ReadAll(r.Body)
	err = errors.Join(err, r.Body.Close())
	switch {
	case err != nil:
		return false, err
	case r.StatusCode == http.StatusNotFound:
		return false, nil
	case r.StatusCode != http.StatusOK:
		return false, fmt.Errorf("GET %s: status %d: %s", path, r.StatusCode, body)
	}
	return true, json.Unmarshal(body, into)
}

// settled waits for the end of a task of one instruction.
func (d doors) settled(t *testing.T, id string) scada.InstructionView {
	t.Helper()
	var task scada.TaskView
	err := rig.Await(t.Context(), patience, "task "+id+" settled", func() (bool, error) {
		task = scada.TaskView{}
		found, err := d.get(t.Context(), "/v1/tasks/"+id, &task)
		if err == nil && !found {
			err = errors.New("the gateway does not know it")
		}
		return err == nil && task.Settled, err
	})
	if err != nil || len(task.Instructions) != 1 {
		t.Fatalf("%v: %+v", err, task)
	}
	return task.Instructions[0]
}

// done waits for the success of a task.
func (d doors) done(t *testing.T, id string) scada.InstructionView {
	t.Helper()
	i := d.settled(t, id)
	if i.State != "SUCCEEDED" {
		t.Fatalf("task %s ended as %s (%s, %s): %s", id, i.State, i.Reason, i.Code, i.Detail)
	}
	return i
}

// timeline names the steps of an instruction.
func (d doors) timeline(t *testing.T, i scada.InstructionView) string {
	t.Helper()
	var v api.Timeline
	if _, err := d.get(t.Context(), fmt.Sprintf("/v1/instructions/%d/timeline", i.Seq), &v); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range v.Entries {
		list = append(list, e.What)
	}
	return strings.Join(list, " ")
}

// node waits until a node is seen like this.
func (d doors) node(t *testing.T, id string, state scada.PresenceState) {
	t.Helper()
	err := rig.Await(t.Context(), patience, "node "+id+" "+string(state), func() (bool, error) {
		var n api.NodeDetail
		_, err := d.get(t.Context(), "/v1/nodes/"+id, &n)
		return n.State == string(state), err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// lossAlarms are alarms that tell of something that must not be lost.
func (d doors) lossAlarms(t *testing.T) []string {
	t.Helper()
	var a api.Alarms
	if _, err := d.get(t.Context(), "/v1/alarms", &a); err != nil {
		t.Fatal(err)
	}
	bad := map[string]bool{"agent_reset": true, "agent_rolled_back": true, "events_lost": true, "log_rolled_back": true,
		"illegal_transition": true, "unreadable_event": true, "implausible_numbers": true, "unknown_report": true}
	var list []string
	for _, one := range append(a.Standing, a.Recent...) {
		if bad[one.Alarm] {
			list = append(list, fmt.Sprintf("%s: %s: %s", one.Alarm, one.Subject, one.Detail))
		}
	}
	return list
}

// httpAddr is where a gateway says that its HTTP door is.
func httpAddr(t *testing.T, output string) string {
	t.Helper()
	for line := range strings.Lines(output) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "listening" && f[1] == "http" {
			return f[2]
		}
	}
	t.Fatalf("the gateway does not say where its HTTP door is:\n%s", output)
	return ""
}

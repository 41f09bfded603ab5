package lab

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// edges: what happens at an input while it is watched is reported, all of it, in
// order and with the kernel's times.
func (s *site) edges(l level) {
	const count, apart = 6, 80 * time.Millisecond
	s.must(s.board.Lines().Drive(l.in, false))
	listener, err := s.Client(s.t.Context(), "scada-"+l.name)
	s.must(err)
	defer listener.Close()
	s.must(listener.Subscribe("apollo/default/node/" + l.name + "/pin/in"))
	id := l.name + "-watch"
	s.publish(doc(id, "gpio.watch", l.name, `{"pin":"in","for":"3s","every":"200ms"}`))
	s.must(rig.Await(s.t.Context(), patience, "watch started", func() (bool, error) {
		var task scada.TaskView
		_, err := s.get(s.t.Context(), "/v1/tasks/"+id, &task)
		return err == nil && task.State == "RUNNING", err
	}))
	s.must(rig.Pause(s.t.Context(), 300*time.Millisecond)) // that it runs is told before the line is taken
	for n := range count {
		s.must(s.board.Lines().Drive(l.in, n%2 == 0))
		s.must(rig.Pause(s.t.Context(), apart))
	}
	if i := s.done(s.t, id); fmt.Sprint(i.Result["total"]) != fmt.Sprint(count) || fmt.Sprint(i.Result["missed"]) != "0" {
		s.t.Errorf("%d edges driven, the result is %v", count, i.Result)
	}
	told := toldEdges(s.t, listener, count)
	for n, e := range told {
		if level := float64(1 - n%2); e[0] != level || n > 0 && time.Duration(e[1]-told[n-1][1]) < apart/2 {
			s.t.Errorf("edge %d is %v after %v: want level %v, %v later", n, e, told[max(n-1, 0)], level, apart)
		}
	}
}

// toldEdges collects the edges that are told on a topic: level, kernel time in ns,
// time of day in ms.
func toldEdges(t *testing.T, c *rig.Client, count int) (list [][3]float64) {
	t.Helper()
	seen := map[string]bool{}
	for len(list) < count {
		_, payload, err := c.Next(patience)
		if err != nil {
			t.Fatalf("%d of %d edges were told: %v", len(list), count, err)
		}
		var v struct {
			EventID string `json:"event_id"`
			Watch   struct {
				Edges [][3]float64 `json:"edges"`
			} `json:"watch"`
		}
		if err := json.Unmarshal(payload, &v); err != nil {
			t.Fatalf("%s: %v", payload, err)
		}
		if !seen[v.EventID] { // an event comes again when a receipt was lost
			seen[v.EventID] = true
			list = append(list, v.Watch.Edges...)
		}
	}
	return list
}

package scada_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

// A20: a pulse may be as long as the document says without saying it twice, and a
// limit that would cut it is refused at its place. What is stored is what came.
func TestA20_TimeoutFitsThePulse(t *testing.T) {
	for name, c := range map[string]struct {
		doc   string
		ms    uint32
		limit time.Duration // 0: refused
	}{
		"by itself":                 {`"args":{"pin":"door","width":"3m"}`, 0, 3*time.Minute + wire.TimeoutRoom},
		"the longest":               {`"args":{"pin":"door","width":"1h"}`, 0, time.Hour + wire.TimeoutRoom},
		"longer":                    {`"timeout":"1h","args":{"pin":"door","width":"3m"}`, 3_600_000, time.Hour},
		"equal":                     {`"timeout":180,"args":{"pin":"door","width":"3m"}`, 180_000, 3*time.Minute + wire.TimeoutRoom},
		"shorter":                   {`"timeout":179,"args":{"pin":"door","width":"3m"}`, 0, 0},
		"shorter, behind the pulse": {`"args":{"pin":"door","width_ms":1500},"timeout":0.1`, 0, 0},
		"short pulse":               {`"args":{"pin":"door","width":"1s"}`, 0, wire.DefaultTimeout},
	} {
		spec, _, err := scada.ParseTask([]byte(`{"intent":"gpio.pulse","node":"a",`+c.doc+`}`), scada.JSON, scada.Options{})
		var fault *scada.Error
		if c.limit == 0 {
			if !errors.As(err, &fault) || fault.Field != "timeout" || fault.Line != 1 || fault.Hint == "" || !strings.Contains(fault.Problem, "pulse") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || spec.TimeoutMs != c.ms {
			t.Errorf("%s: stored with %d ms, %v", name, spec.TimeoutMs, err)
			continue
		}
		act, err := wire.ParseAct(spec.Intent, spec.Args)
		if got := time.Duration(wire.LimitMs(act, spec.TimeoutMs, wire.DefaultTimeout)) * time.Millisecond; err != nil || got != c.limit {
			t.Errorf("%s: it may take %v, want %v (%v)", name, got, c.limit, err)
		}
	}
}

// Every built-in intent is suggested to whoever misspells it.
func TestA19_EveryIntentIsSuggested(t *testing.T) {
	for _, d := range wire.Declarations() {
		for _, slip := range []string{d.Name[:len(d.Name)-1], strings.ToUpper(d.Name)} {
			_, warnings, err := scada.ParseTask([]byte(`{"task_id":"t","intent":"`+slip+`","node":"a"}`), scada.JSON, scada.Options{})
			text := ""
			if err != nil {
				text = err.Error()
			}
			for _, w := range warnings {
				text += w.Problem
			}
			if !strings.Contains(text, "did you mean "+d.Name+"?") {
				t.Errorf("%s: %q", slip, text)
			}
		}
	}
}

// What a door has read travels with the task: nobody behind it reads the arguments again.
func TestWhatADoorHasReadTravels(t *testing.T) {
	for _, d := range wire.Declarations() {
		for _, all := range []bool{true, false} {
			doc, err := json.Marshal(map[string]any{"intent": d.Name, "node": "a", "args": d.Example(all)})
			if err != nil {
				t.Fatal(err)
			}
			spec, _, err := scada.ParseTask(doc, scada.JSON, scada.Options{})
			if err != nil {
				t.Errorf("%s: its example %s is refused: %v", d.Name, doc, err)
				continue
			}
			want, err := wire.ParseAct(spec.Intent, spec.Args)
			spec.Args = wire.RawMap{0x80} // no map
			if got := spec.Act(); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, want %+v (%v)", d.Name, got, want, err)
			}
		}
	}
}

package scada_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

func TestVerbs(t *testing.T) {
	pin := encoded(t, map[string]any{"pin": "valve-1"})
	for name, c := range map[string]struct {
		intent, node, pin, why string
		want                   engine.Spec
		field                  string // of the refusal
	}{
		"safe of a node": {wire.IntentSafe, "pump-1", "", "",
			engine.Spec{Intent: wire.IntentSafe, Nodes: []string{"pump-1"}, Priority: wire.PriorityHigh}, ""},
		"safe of a pin": {wire.IntentSafe, "pump-1", "valve-1", "leak",
			engine.Spec{Intent: wire.IntentSafe, Args: pin, Nodes: []string{"pump-1"}, Priority: wire.PriorityHigh, Metadata: map[string]string{"reason": "leak"}}, ""},
		"release of a pin": {wire.IntentRelease, "pump-1", "valve-1", "",
			engine.Spec{Intent: wire.IntentRelease, Args: pin, Nodes: []string{"pump-1"}, Priority: wire.PriorityHigh}, ""},
		"a reason that just fits": {wire.IntentSafe, "pump-1", "", strings.Repeat("x", scada.MaxMetadataValue),
			engine.Spec{Intent: wire.IntentSafe, Nodes: []string{"pump-1"}, Priority: wire.PriorityHigh, Metadata: map[string]string{"reason": strings.Repeat("x", scada.MaxMetadataValue)}}, ""},
		"no node":               {wire.IntentSafe, "", "valve-1", "", engine.Spec{}, "node"},
		"a node with a slash":   {wire.IntentSafe, "a/b", "", "", engine.Spec{}, "node"},
		"a node that is long":   {wire.IntentSafe, strings.Repeat("x", wire.MaxNodeLen+1), "", "", engine.Spec{}, "node"},
		"a pin with markup":     {wire.IntentSafe, "pump-1", "<b>", "", engine.Spec{}, "pin"},
		"a pin that is long":    {wire.IntentRelease, "pump-1", strings.Repeat("x", wire.MaxPinLen+1), "", engine.Spec{}, "pin"},
		"a reason that is long": {wire.IntentSafe, "pump-1", "", strings.Repeat("x", scada.MaxMetadataValue+1), engine.Spec{}, "reason"},
	} {
		spec, err := scada.Verb(c.intent, c.node, c.pin, c.why)
		if c.field == "" {
			c.want.Means(c.want.Act())
		}
		var fault *scada.Error
		switch {
		case c.field == "" && (err != nil || !reflect.DeepEqual(spec, c.want)):
			t.Errorf("%s: %+v, %v", name, spec, err)
		case c.field != "" && (!errors.As(err, &fault) || fault.Field != c.field || fault.Hint == "" || fault.Problem == ""):
			t.Errorf("%s: %+v, %v", name, spec, err)
		}
	}
}

// A verb is the same task as its document.
func TestVerbsAreTasks(t *testing.T) {
	spec, err := scada.Verb(wire.IntentSafe, "pump-1", "valve-1", "leak")
	if err != nil {
		t.Fatal(err)
	}
	doc, _, err := scada.ParseTask([]byte(`{"intent":"gpio.safe","node":"pump-1","priority":"high","args":{"pin":"valve-1"},"metadata":{"reason":"leak"}}`),
		scada.JSON, scada.Options{})
	if err != nil || !reflect.DeepEqual(spec, doc) {
		t.Errorf("%+v\n%+v, %v", spec, doc, err)
	}
}

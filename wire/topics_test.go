package wire_test

import (
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

func topics(t *testing.T, site string) wire.Topics {
	t.Helper()
	tp, err := wire.NewTopics(site)
	if err != nil {
		t.Fatal(err)
	}
	return tp
}

func TestEveryTopicParsesBack(t *testing.T) {
	for _, site := range []string{"default", "task", "hall-2", "apollo", "n"} {
		tp := topics(t, site)
		if tp.Site() != site {
			t.Errorf("site %s became %s", site, tp.Site())
		}
		for _, tt := range []struct {
			topic string
			kind  wire.TopicKind
			arg   string
		}{
			{tp.Cmd("pump-1"), wire.TopicCmd, "pump-1"},
			{tp.Evt("pump-1"), wire.TopicEvt, "pump-1"},
			{tp.Task(), wire.TopicTask, ""},
			{tp.TaskStatus("collect-metrics-1712345678-b7e2"), wire.TopicTaskStatus, "collect-metrics-1712345678-b7e2"},
			{tp.TaskStatus("status"), wire.TopicTaskStatus, "status"},
			{tp.NodeState("state"), wire.TopicNodeState, "state"},
			{tp.NodePin("pump-1", "pinctrl-bcm2835:17"), wire.TopicNodePin, "pump-1"},
			{tp.Safe("pump-1", ""), wire.TopicSafe, "pump-1"},
			{tp.Safe("safe", "pinctrl-bcm2835:17"), wire.TopicSafe, "safe/pinctrl-bcm2835:17"},
			{tp.Alarm(), wire.TopicAlarm, ""},
			{tp.Reply("panel 1/±"), wire.TopicReply, "panel%201%2F%C2%B1"},
			{tp.Reply("mqttjs_0a1b"), wire.TopicReply, "mqttjs_0a1b"},
			{wire.NarrowbandUp(wire.Short("pump-1")), wire.TopicNarrowbandUp, wire.Short("pump-1")},
			{wire.NarrowbandDown(wire.Short("pump-1")), wire.TopicNarrowbandDown, wire.Short("pump-1")},
		} {
			kind, arg := tp.Parse(tt.topic)
			if kind != tt.kind || arg != tt.arg {
				t.Errorf("%s is (%d, %q), want (%d, %q)", tt.topic, kind, arg, tt.kind, tt.arg)
			}
			if other, _ := topics(t, "other").Parse(tt.topic); other != wire.TopicOther && !strings.HasPrefix(tt.topic, "n/") && !strings.HasPrefix(tt.topic, "d/") {
				t.Errorf("%s belongs to another site, too", tt.topic)
			}
		}
	}
}

// B10: what is not exactly one of our topics is none of them.
func TestB10_HostileTopics(t *testing.T) {
	tp := topics(t, "default")
	for _, s := range []string{
		"", "/", "//", "apollo", "apollo/", "apollo/default", "apollo/default/", "/apollo/default/task", "apollo//task",
		"apollo/default/task/", "apollo/default/Task", "APOLLO/default/task", "apollo/default /task", "apollo/default/task\x00",
		"apollo/default/task\n", "apollo/default/alarm/", "apollo/default/alarm/x", "apollo/defaultx/task", "apollo/defaul/task",
		"apollo/default/cmd", "apollo/default/cmd/", "apollo/default/cmd/a/b", "apollo/default/cmd/+", "apollo/default/cmd/#",
		"apollo/default/cmd/a b", "apollo/default/cmd/ä", "apollo/default/cmd/" + strings.Repeat("x", wire.MaxNodeLen+1),
		"apollo/default/evt/", "apollo/default/evt/$SYS", "apollo/default/evt/a/../b", "apollo/default/cmdx/a",
		"apollo/default/task//status", "apollo/default/task/a/b/status", "apollo/default/task/+/status", "apollo/default/task/a/status/",
		"apollo/default/task/a/Status", "apollo/default/task/" + strings.Repeat("x", wire.MaxTaskIDLen+1) + "/status",
		"apollo/default/safe", "apollo/default/safe/", "apollo/default/safe//", "apollo/default/safe//a", "apollo/default/safe/a/", "apollo/default/safe/a/b/c",
		"apollo/default/safe/+", "apollo/default/safe/#", "apollo/default/safe/a/+", "apollo/default/safe/a b", "apollo/default/safex/a", "apollo/default/Safe/a",
		"apollo/default/safe/" + strings.Repeat("x", wire.MaxNodeLen+1), "apollo/default/safe/a/" + strings.Repeat("x", wire.MaxPinLen+1),
		"apollo/default/node//state", "apollo/default/node/a", "apollo/default/node/a/state/x", "apollo/default/node/#",
		"apollo/default/reply/", "apollo/default/reply/a/b", "apollo/default/reply/+", "apollo/default/reply/#", "apollo/default/reply/a\x00",
		"apollo/default/reply/$x", "apollo/default/reply/a b", "apollo/default/reply/ö",
		"apollo/+/task", "apollo/#", "+/default/task", "#", "$SYS/broker/uptime", "$share/g/apollo/default/task",
		"n/", "n/00000", "n/0000000", "n/00000i", "n/+", "n/#", "n//00000", "d/", "d/000/00", "d/pump-1", "m/000000", "/n/000000", "n/000000/",
		strings.Repeat("a/", 32767), strings.Repeat("x", 65535),
	} {
		if kind, arg := tp.Parse(s); kind != wire.TopicOther || arg != "" {
			t.Errorf("%.60q is (%d, %q)", s, kind, arg)
		}
	}
}

func TestSafeTarget(t *testing.T) {
	tp := topics(t, "default")
	for _, want := range [][2]string{{"pump-1", ""}, {"pump-1", "valve-1"}, {"a", "pinctrl-bcm2835:17"}} {
		_, arg := tp.Parse(tp.Safe(want[0], want[1]))
		if node, pin := wire.SafeTarget(arg); node != want[0] || pin != want[1] {
			t.Errorf("%v became %q and %q", want, node, pin)
		}
	}
}

func TestBadSites(t *testing.T) {
	for _, s := range []string{"", "a/b", "+", "#", "$SYS", "hall 2", "süd", strings.Repeat("s", wire.MaxSiteLen+1)} {
		if _, err := wire.NewTopics(s); err == nil {
			t.Errorf("site %q was accepted", s)
		}
	}
}

// A client id may be anything; two different ones never share a reply topic.
func TestEscapeLevel(t *testing.T) {
	seen := map[string]string{}
	for _, s := range []string{"a", "A", "a/b", "a%2Fb", "a+b", "#", "$SYS", "%", "%25", " ", "\x00", "\xff", "ö", "<script>", strings.Repeat("/", 100)} {
		e := wire.EscapeLevel(s)
		if strings.ContainsAny(e, "/+#$ \x00") || wire.EscapeLevel(strings.ReplaceAll(e, "%", "")) != strings.ReplaceAll(e, "%", "") {
			t.Errorf("%q became %q", s, e)
		}
		if other, ok := seen[e]; ok {
			t.Errorf("%q and %q are both %q", s, other, e)
		}
		seen[e] = s
	}
	if e := wire.EscapeLevel("node-RED_1.2:x"); e != "node-RED_1.2:x" {
		t.Errorf("an ordinary id became %q", e)
	}
}

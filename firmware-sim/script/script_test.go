package script_test

import (
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/script"
)

var language = script.New(script.Kinds{"N": script.Number, "D": script.Duration, "PAIRS": script.Pairs, "NUMS": script.Numbers, "BYTE": script.Byte},
	"submit [dup] node=LIST [ttl=D] [count=N] [label=PAIRS]",
	"advance D [NODE...]",
	"narrowband NODE up|down",
	"ack [N] [gap]",
	"goodbye NODE [lost] [unstarted=NUMS]",
	"progress N BYTE",
	"stop",
)

func TestTakesWhatIsWritten(t *testing.T) {
	for line, words := range map[string]string{
		"submit node=a,b dup count=3 label=a:b,c:d": "dup",
		"submit dup ttl=1s node=a":                  "dup",
		"advance 3s":                                "3s",
		"advance 3s a b c":                          "3s a b c",
		"narrowband a down":                         "a down",
		"ack":                                       "",
		"ack gap":                                   "gap",
		"ack 7 gap":                                 "7 gap",
		"goodbye a unstarted=1,2 lost":              "a lost",
		"stop":                                      "",
	} {
		c, err := language.Parse("f.txt:1", line)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if got := strings.Join(c.Words, " "); got != words {
			t.Errorf("%s: words %q, want %q", line, got, words)
		}
	}
	c, err := language.Parse("f.txt:1", "submit ttl=1s node=a,b")
	if err != nil || c.Args["ttl"] != "1s" || c.Args["node"] != "a,b" || len(c.Args) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestRefusesWhatItDoesNotKnow(t *testing.T) {
	for line, why := range map[string]string{
		"":                         "no command",
		"submitt node=a":           "there is no command submitt; there are ack, advance, goodbye, narrowband, progress, stop, submit",
		"submit nod=a":             "there is no argument nod; it is written submit [dup]",
		"submit":                   "node is missing",
		"submit node=":             "node= is not LIST: it is empty",
		"submit node=a node=b":     "node is given twice",
		"submit node=a ttl=5":      "ttl=5 is not D",
		"submit node=a count=-1":   "count=-1 is not N",
		"submit node=a label=role": `"role" is not KEY:VALUE`,
		"submit node=a dupp":       `"dupp" is not dup`,
		"submit node=a dup dup":    `"dup" is too much`,
		"advance":                  "D is missing",
		"advance a 3s":             `"a" is not D`,
		"narrowband a":             "up|down is missing",
		"narrowband a sideways":    `"sideways" is not up|down`,
		"narrowband a up up":       `"up" is too much`,
		"ack gap 7":                `"7" is too much`,
		"ack x":                    `"x" is not gap`,
		"goodbye a unstarted=1,,2": "unstarted=1,,2 is not NUMS",
		"progress 1 256":           `"256" is not BYTE`,
		"stop now":                 `"now" is too much`,
		"stop in=3":                "there is no argument in",
	} {
		_, err := language.Parse("f.txt:12", line)
		if err == nil {
			t.Errorf("%q was taken", line)
			continue
		}
		if !strings.HasPrefix(err.Error(), "f.txt:12: ") || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", line, err, why)
		}
	}
}

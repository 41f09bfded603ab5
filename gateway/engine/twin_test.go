package engine_test

import (
	"fmt"
	"strings"
	"testing"
)

// twinProven reports whether the hellos, each "NONCE NEXT [more]" and each on a new
// connection, raise the alarm about two boards.
func twinProven(t *testing.T, between string, hellos ...string) (bool, *harness) {
	h := newHarness(t)
	proven := false
	for k, s := range hellos {
		f := strings.Fields(s)
		if k > 0 {
			h.block("goodbye a lost")
		}
		out := h.block(fmt.Sprintf("hello a nonce=%s next=%s first=%s %s", f[0], f[1], f[1], strings.Join(f[2:], " ")))
		proven = proven || strings.Contains(out, "alarm raised twin a")
		if between != "" {
			h.block(between)
		}
	}
	return proven, h
}

// TestB28_WhoComesBackAfterAnotherIsATwin: and nobody else is.
func TestB28_WhoComesBackAfterAnotherIsATwin(t *testing.T) {
	for name, c := range map[string]struct {
		hellos  []string
		between string
		want    bool
	}{
		"one board":                          {[]string{"1 1", "1 1", "1 1"}, "", false},
		"started again":                      {[]string{"1 1", "2 1"}, "", false},
		"started again and again":            {[]string{"1 1", "2 1", "3 1", "4 1", "5 1", "6 1", "7 1"}, "", false},
		"two":                                {[]string{"1 1", "2 1", "1 1"}, "", true},
		"two, slowly":                        {[]string{"1 1", "2 1", "1 1"}, "advance 12s", true},
		"two, and one starts in between":     {[]string{"1 1", "2 1", "3 1", "1 1"}, "", true},
		"without a nonce":                    {[]string{"0 1", "0 1", "0 1"}, "", false},
		"a second board with its own memory": {[]string{"1 1", "2 1 incarnation=9", "1 1 incarnation=1"}, "", false},
	} {
		if got, _ := twinProven(t, c.between, c.hellos...); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestB28_AHelloThatWasOvertakenProvesNothing: it is one of a session that has ended.
func TestB28_AHelloThatWasOvertakenProvesNothing(t *testing.T) {
	h := newHarness(t)
	h.block("hello a nonce=1 session=5")
	h.block("goodbye a session=5 lost\nhello a nonce=2 session=6")
	if out := h.block("hello a nonce=1 session=5"); strings.Contains(out, "twin") {
		t.Errorf("%s", out)
	}
}

// TestB28_AnOlderCopyWaitsUntilTheOtherIsSilent: else it would be told to forget, and
// what the first is doing would be given up.
func TestB28_AnOlderCopyWaitsUntilTheOtherIsSilent(t *testing.T) {
	h := newHarness(t)
	h.block("hello a nonce=1\nsubmit node=a intent=gpio.pulse")
	h.block("event a seq=1 started")
	h.block("goodbye a lost")
	out := h.block("hello a nonce=2 next=1 first=1")
	if !strings.Contains(out, "newer copy of this journal") || strings.Contains(out, "agent_rolled_back") {
		t.Errorf("believed at once:\n%s", out)
	}
	h.block("advance 16s")
	if out := h.block("hello a nonce=2 next=1 first=1"); !strings.Contains(out, "agent_rolled_back") || strings.Contains(out, "refused=") {
		t.Errorf("and never let in:\n%s", out)
	}
}

// TestB28_NothingRunsOnTwoBoards: however the two take turns, what moves something is
// handed out to neither, and to one of them when the other is gone.
func TestB28_NothingRunsOnTwoBoards(t *testing.T) {
	_, h := twinProven(t, "", "1 1", "2 1", "1 1")
	h.block("submit node=a intent=gpio.pulse")
	session := uint64(100)
	for range 20 {
		for nonce := 1; nonce <= 2; nonce++ {
			session++
			out := h.block(fmt.Sprintf("goodbye a lost\nhello a nonce=%d session=%d next=1 first=1", nonce, session)) + h.block("advance 700ms")
			if strings.Contains(out, "-> send a instruction") || strings.Contains(out, "alarm raised node_offline") {
				t.Fatalf("%s", out)
			}
		}
	}
	session++
	h.block(fmt.Sprintf("goodbye a lost\nhello a nonce=1 session=%d next=1 first=1", session))
	if out := h.block("advance 59s a"); strings.Contains(out, "-> send a instruction") {
		t.Errorf("too soon:\n%s", out)
	}
	if out := h.block("advance 8s a"); !strings.Contains(out, "-> send a instruction 1") || !strings.Contains(out, "alarm cleared twin") {
		t.Errorf("the other is gone:\n%s", out)
	}
}

// TestB28_TheOtherTakesItsPlace when the first is gone.
func TestB28_TheOtherTakesItsPlace(t *testing.T) {
	_, h := twinProven(t, "", "1 1", "2 1", "1 1")
	if out := h.block("goodbye a lost\nhello a nonce=2 next=1 first=1"); !strings.Contains(out, "this is the second") {
		t.Fatalf("%s", out)
	}
	if out := h.block("advance 16s"); !strings.Contains(out, "alarm raised node_offline") {
		t.Errorf("silent, and no alarm:\n%s", out)
	}
	if out := h.block("hello a nonce=2 next=1 first=1"); strings.Contains(out, "refused=") || !strings.Contains(out, "alarm cleared node_offline") {
		t.Errorf("%s", out)
	}
}

// TestB28_WhatARefusedBoardSaysIsNoSignOfLife: neither its answers nor its events count
// as those of the node whose name it uses. Else the silence that it is told to wait for
// never comes, and the real board's replacement stays refused for ever.
func TestB28_WhatARefusedBoardSaysIsNoSignOfLife(t *testing.T) {
	for name, says := range map[string]string{
		"answers":            "report a seq=1 driven",
		"questions' answers": "report a seq=1 running",
		"events":             "event a seq=1 no=2 started",
		"starts of events":   "event a seq=1 no=1 received",
		"heartbeats":         "heartbeat a session=8",
		"digests":            "digest a session=8",
		"a goodbye":          "goodbye a session=8 lost",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.block("hello a incarnation=1 session=7\nsubmit node=a pin=lamp")
			h.block("event a seq=1 received")
			if out := h.block("hello a incarnation=2 session=8 next=1 first=1"); !strings.Contains(out, "refused=") {
				t.Fatalf("%s", out)
			}
			for range 4 {
				h.block("advance 3s")
				if out := h.block(says); strings.Contains(out, "instruction 1 v") || strings.Contains(out, "cursor a") || strings.Contains(out, "-> send a") {
					t.Fatalf("taken for the node's word:\n%s", out)
				}
			}
			if out := h.block("advance 4s"); !strings.Contains(out, "alarm raised node_offline a no sign of life") {
				t.Fatalf("the node is silent, and nobody says so:\n%s", out)
			}
			if out := h.block("hello a incarnation=2 session=9 next=1 first=1"); strings.Contains(out, "refused=") {
				t.Errorf("the replacement stays refused:\n%s", out)
			}
		})
	}
}

// TestB28_TheNodeIsHeardAgainAfterARefusal: in its own session, by its next hello, and
// by whatever names its session.
func TestB28_TheNodeIsHeardAgainAfterARefusal(t *testing.T) {
	for name, back := range map[string]string{
		"a heartbeat of its session":   "heartbeat a session=7",
		"a hello after the connection": "hello a incarnation=1 session=9 next=2 first=2",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.block("hello a incarnation=1 session=7\nsubmit node=a pin=lamp")
			h.block("event a seq=1 received")
			h.block("hello a incarnation=2 session=8 next=1 first=1")
			h.block("advance 10s")
			h.block(back)
			if out := h.block("event a seq=1 no=2 processed ok"); !strings.Contains(out, "SUCCEEDED") {
				t.Errorf("not heard:\n%s", out)
			}
			if out := h.block("advance 14s"); strings.Contains(out, "node_offline") {
				t.Errorf("%s", out)
			}
		})
	}
}

// TestB28_AnOlderCopyIsNotHeardEither: it has the node's own incarnation and numbers.
func TestB28_AnOlderCopyIsNotHeardEither(t *testing.T) {
	h := newHarness(t)
	h.block("hello a nonce=1 session=7\nsubmit node=a intent=gpio.pulse")
	h.block("event a seq=1 received")
	h.block("event a seq=1 started")
	if out := h.block("hello a nonce=2 session=8 next=1 first=1"); !strings.Contains(out, "newer copy of this journal") {
		t.Fatalf("%s", out)
	}
	for range 4 {
		h.block("advance 3s")
		if out := h.block("report a seq=1 never"); strings.Contains(out, "instruction 1 v") {
			t.Fatalf("it speaks for the node:\n%s", out)
		}
	}
	if out := h.block("advance 4s"); !strings.Contains(out, "alarm raised node_offline a") {
		t.Errorf("%s", out)
	}
}

// TestB28_TheOneThatLacksSomethingIsTheSecond: what the other one has told since it would
// have to forget, be it one event.
func TestB28_TheOneThatLacksSomethingIsTheSecond(t *testing.T) {
	for next, second := range map[int]bool{1: true, 2: false} {
		h := newHarness(t)
		h.block("hello a nonce=1")
		h.block("goodbye a lost\nhello a nonce=2\nsubmit node=a intent=gpio.pulse")
		h.block("event a seq=1 no=1 received")
		h.block("advance 1s a\ngoodbye a lost")
		out := h.block(fmt.Sprintf("hello a nonce=1 next=%d first=%[1]d", next))
		if !strings.Contains(out, "alarm raised twin a") || strings.Contains(out, "this is the second") != second {
			t.Errorf("its next event is %d:\n%s", next, out)
		}
	}
}

// TestB28_TheOtherGetsTheLatestWaysToSafe, and none that was taken back since.
func TestB28_TheOtherGetsTheLatestWaysToSafe(t *testing.T) {
	h := newHarness(t)
	const pins = "pins=p1:0,p2:0,p3:0,p4:0,p5:0,p6:0,p7:0,p8:0,p9:0"
	h.block("hello a nonce=1 " + pins)
	for k := 1; k <= 9; k++ {
		h.block(fmt.Sprintf("submit node=a intent=gpio.safe pin=p%d", k))
		h.block(fmt.Sprintf("event a seq=%d processed ok", k))
	}
	h.block("goodbye a lost\nhello a nonce=2 next=10 first=10 " + pins)
	h.block("goodbye a lost\nhello a nonce=1 next=10 first=10 " + pins)
	h.block("submit node=a intent=gpio.safe pin=p1\nsubmit node=a intent=gpio.safe pin=p2")
	h.block("cancel seq=10")
	out := h.block("goodbye a lost\nhello a nonce=2 next=10 first=10 " + pins)
	for seq, want := range map[int]bool{3: false, 4: true, 9: true, 10: false, 11: true} {
		if got := strings.Contains(out, fmt.Sprintf("-> send a instruction %d ", seq)); got != want {
			t.Errorf("instruction %d is sent: %v\n%s", seq, got, out)
		}
	}
}

// TestB28_NeverIsNoAnswer: who has not got a way to safe gets it again.
func TestB28_NeverIsNoAnswer(t *testing.T) {
	h := newHarness(t)
	h.block("hello a nonce=1 pins=p1:0\nsubmit node=a intent=gpio.safe pin=p1")
	h.block("event a seq=1 processed ok")
	h.block("goodbye a lost\nhello a nonce=2 next=2 first=2 pins=p1:0")
	h.block("goodbye a lost\nhello a nonce=1 next=2 first=2 pins=p1:0")
	for _, answer := range []string{"report a never seq=1", "report a done ok seq=1"} {
		if out := h.block("goodbye a lost\nhello a nonce=2 next=2 first=2 pins=p1:0"); !strings.Contains(out, "-> send a instruction 1 ") {
			t.Errorf("before %q it is not sent:\n%s", answer, out)
		}
		h.block(answer)
	}
	if out := h.block("goodbye a lost\nhello a nonce=2 next=2 first=2 pins=p1:0"); strings.Contains(out, "-> send a instruction 1 ") {
		t.Errorf("answered, and sent again:\n%s", out)
	}
}

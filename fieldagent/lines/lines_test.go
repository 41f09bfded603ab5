package lines_test

import (
	"maps"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// B25 (safety.md 2): a lower number never moves a line on which a higher one has begun;
// an equal one is the same instruction again.
func TestB25_OlderNumberIsSuperseded(t *testing.T) {
	w := newWorld(t)
	w.do(on(lamp, 7, "a"))
	w.do(off(lamp, 6, "b"))
	w.do(on(lamp, 7, "a2"))
	w.do(off(lamp, 0, "bench")) // without a number: no part of the order
	w.do(lines.Want{Line: lamp, Level: true, Order: 9, Unmarked: true, Cause: "c"})
	w.do(on(lamp, 8, "d"))
	w.want("@0s lamp high a", "@0s refused: superseded",
		"@0s lamp high a2", "@0s end lamp a: replaced, high",
		"@0s lamp low bench", "@0s end lamp a2: replaced, low",
		"@0s lamp high c", "@0s lamp high d", "@0s end lamp c: replaced, high")
	if m := w.c.Mark(lamp); m != 8 {
		t.Errorf("mark %d", m)
	}
}

// safety.md 5: what goes ahead of its record is no mark. Nothing older leads the line
// away from its safe level after it, through a reload; what leads there too is driven.
func TestAheadOfItsRecord(t *testing.T) {
	w := newWorld(t)
	ahead := func(order uint64) {
		w.do(lines.Want{Line: lamp, Safe: true, Order: order, Unmarked: true, Ahead: true, Cause: "now"})
	}
	w.do(on(lamp, 7, "a"))
	ahead(9)
	w.do(on(lamp, 8, "b"))
	w.do(off(lamp, 8, "c"))
	w.do(pulse(lamp, true, time.Second, 8, "d"))
	w.do(off(lamp, 9, "now")) // its instruction
	w.do(on(lamp, 10, "e"))
	ahead(9) // a late copy
	w.want("@0s lamp high a", "@0s lamp low now", "@0s end lamp a: replaced, low", "@0s refused: superseded", "@0s lamp low c",
		"@0s refused: superseded", "@0s lamp low now", "@0s lamp high e", "@0s refused: superseded")
	if m := w.c.Mark(lamp); m != 10 {
		t.Errorf("mark %d", m)
	}
}

// A2: the loss is a state. While it lasts nothing but the safe level is driven on such
// a line, whoever asks; it ends when the gateway is heard.
func TestA2_LostIsAState(t *testing.T) {
	w := newWorld(t)
	w.do(on(valve, 1, "a"))
	w.do(on(lamp, 2, "b"))
	w.wait(59 * time.Second)
	w.hears()
	w.wait(61 * time.Second)
	w.do(on(valve, 3, "c"))
	w.do(off(valve, 3, "c"))
	w.do(pulse(valve, false, time.Second, 4, "d")) // it would end high
	w.do(on(lamp, 5, "e"))
	w.hears()
	w.do(on(valve, 6, "f"))
	w.want("@0s valve high a", "@0s lamp high b",
		"@1m59s valve low a", "@1m59s end valve a: loss, low",
		"@2m0s refused: lost", "@2m0s valve low c", "@2m0s refused: lost", "@2m0s lamp high e", "@2m0s end lamp b: replaced, high",
		"@2m0s valve high f")
}

// A2: nobody is heard before it is: a word with a time that has not come counts as now.
func TestA2_HeardIsNeverAhead(t *testing.T) {
	w := newWorld(t)
	w.do(on(valve, 1, "a"))
	w.do(lines.Heard{At: time.Hour})
	w.wait(61 * time.Second)
	w.want("@0s valve high a", "@1m0s valve low a", "@1m0s end valve a: loss, low")
}

// A2, A8: a pulse towards the safe level leaves the line there when the gateway is lost
// meanwhile.
func TestA2_InversePulseDoesNotEnergiseAfterTheLoss(t *testing.T) {
	w := newWorld(t)
	w.do(pulse(valve, false, 2*time.Minute, 1, "a"))
	w.wait(time.Hour)
	w.want("@0s valve low a", "@1m0s valve low a", "@1m0s end valve a: loss, low")
}

// A8: what ends a pulse early ends it at the safe level, whichever way it went.
func TestA8_PulseCutShortEndsAtTheSafeLevel(t *testing.T) {
	for name, c := range map[string]struct {
		in  lines.Input
		end string
	}{
		"cancel":                   {lines.Cancel{Cause: "p"}, "cancelled"},
		"stop":                     {lines.Stop{}, "stopped"},
		"LOCAL":                    {lines.Local{Hands: lines.HandsOn}, "local"},
		"LOCAL, read back":         {lines.Local{Hands: lines.HandsOn, Read: map[wire.LineKey]bool{lamp: false}}, "local"},
		"towards safe":             {off(lamp, 2, "q"), "replaced"},
		"safe":                     {lines.Want{Line: lamp, Safe: true, Hold: true, Order: 2, Cause: "q"}, "replaced"},
		"held by the gateway":      {lines.Hold{Lines: []wire.LineKey{lamp}}, "replaced"},
		"closed by a reload":       {lines.Quiet{Lines: []wire.LineKey{lamp}}, "reload"},
		"cancel of something else": {lines.Cancel{Cause: "q"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, lines.Line{Key: lamp, Output: true, HasSafe: true})
			w.do(pulse(lamp, false, 30*time.Second, 1, "p"))
			w.wait(time.Second)
			w.log = nil
			var told []lines.End
			w.told = func(e lines.End) { told = append(told, e) }
			w.each = func(d lines.Drive) {
				if d.Level && c.end != "" {
					t.Errorf("%+v", d)
				}
			}
			w.do(c.in)
			w.wait(50 * time.Second)
			if c.end == "" {
				w.want("@30s lamp high p", "@30s end lamp p: expired, high") // its normal end
				return
			}
			if len(told) != 1 || told[0].Why.String() != c.end || told[0].Level || told[0].ID != 1 {
				t.Errorf("told %+v", told)
			}
		})
	}
}

// A8: on an output without a safe level a pulse ends at its off level, whatever ends it.
func TestA8_PulseWithoutASafeLevelEndsAtItsOffLevel(t *testing.T) {
	for _, in := range []lines.Input{lines.Cancel{Cause: "p"}, lines.Stop{}, lines.Local{Hands: lines.HandsOn}, lines.Quiet{Lines: []wire.LineKey{horn}}, lines.Tick{}} {
		w := newWorld(t, lines.Line{Key: horn, Output: true})
		w.do(pulse(horn, true, 5*time.Second, 1, "p"))
		w.do(off(horn, 2, "later")) // not towards safe: it waits for the end
		w.do(in)
		w.wait(10 * time.Second)
		if w.has[horn] || w.log[1] != "@0s refused: busy" || len(w.log) != 4 {
			t.Errorf("%T: %q", in, w.log)
		}
	}
}

// What a shell that dies must drive: safe levels, and where there is none the off level of
// a pulse, whatever the line has just now.
func TestRestIsWhereNothingMustBeLeft(t *testing.T) {
	w := newWorld(t)
	w.do(on(lamp, 1, "a"))
	w.do(pulse(fan, false, time.Minute, 1, "b"))
	if r := w.c.Rest(); !maps.Equal(r, map[wire.LineKey]bool{valve: false, lamp: false, fan: true}) {
		t.Errorf("%v", r)
	}
	for _, high := range []bool{true, false} {
		w := newWorld(t)
		w.do(pulse(horn, high, time.Minute, 2, "c"))
		if off, ok := w.c.Rest()[horn]; !ok || off == high {
			t.Errorf("a pulse to %v rests at %v, %v", high, off, ok)
		}
	}
}

func TestB31_PulseOfAnEarlierProcessIsEnded(t *testing.T) {
	w := newWorld(t)
	w.do(lines.Local{Hands: lines.HandsOn})
	w.do(lines.Leftover{Line: horn, Off: false})
	w.do(lines.Leftover{Line: lamp, Off: true}) // it has its safe level already
	w.wait(time.Second)
	w.want() // somebody works there
	w.do(lines.Local{})
	w.want("@1s horn low")
	if l := w.c.Level(horn); l != wire.LevelLow {
		t.Errorf("level %v", l)
	}
}

// safety.md 9: at the switch what runs is driven safe once, unless a hand has moved the
// line; from then on nothing moves but at a stop.
func TestLocalSwitch(t *testing.T) {
	w := newWorld(t)
	lease := func(l wire.LineKey, cause string) {
		w.do(lines.Want{Line: l, Level: l != fan, Order: 1, Cause: cause, For: 30 * time.Second})
	}
	lease(valve, "a")
	lease(lamp, "b")
	lease(fan, "c")
	w.log = nil
	w.fate = func(d lines.Drive) lines.Fate {
		if d.Line == fan && w.now == 0 {
			return lines.Doubtful
		}
		return lines.Moved
	}
	w.do(lines.Local{Hands: lines.HandsOn, Read: map[wire.LineKey]bool{valve: true, lamp: false}})
	w.do(off(lamp, 2, "d"))
	w.do(lines.Want{Line: lamp, Safe: true, Hold: true, Order: 2, Cause: "e"})
	w.wait(time.Hour)
	w.do(on(lamp, 1, "f"))
	w.do(lines.Local{Hands: lines.HandsUnknown})
	w.do(on(lamp, 1, "f"))
	w.do(off(lamp, 2, "g"))
	w.want("@0s valve low a", "@0s fan high c fails",
		"@0s end lamp b: hand, low", "@0s end valve a: local, low", "@0s end fan c: failed, low",
		"@0s refused: by hand", "@0s refused: by hand",
		"@1h0m0s refused: by hand",
		// Lost meanwhile: the valve; owed: the fan.
		"@1h0m0s valve low", "@1h0m0s fan high c", "@1h0m0s end fan c: local, high",
		"@1h0m0s refused: hands in doubt", "@1h0m0s lamp low g")
	w.do(lines.Local{Hands: lines.HandsOn})
	w.do(lines.Stop{})
	w.want("@1h0m0s valve low", "@1h0m0s lamp low", "@1h0m0s fan high")
}

// safety.md 6: what is held leaves its safe level for nobody until it is released.
func TestHold(t *testing.T) {
	w := newWorld(t)
	w.do(on(lamp, 1, "a"))
	w.do(lines.Want{Line: lamp, Safe: true, Hold: true, Order: 2, Cause: "b"})
	w.do(lines.Want{Line: horn, Safe: true, Hold: true, Order: 2, Cause: "b"})
	w.do(on(lamp, 3, "c"))
	w.do(pulse(lamp, false, time.Second, 3, "c"))
	w.do(off(lamp, 3, "c"))
	if l := w.c.Level(lamp); l != wire.LevelHeld {
		t.Errorf("level %v", l)
	}
	w.do(lines.Release{Lines: []wire.LineKey{lamp}})
	w.do(on(lamp, 4, "d"))
	w.do(lines.Seed{Marks: map[wire.LineKey]uint64{lamp: 9}, Holds: map[wire.LineKey]uint64{lamp: 9}})
	w.do(on(lamp, 8, "e"))
	w.do(lines.Release{})
	w.do(on(lamp, 9, "f"))
	w.want("@0s lamp high a", "@0s lamp low b", "@0s end lamp a: replaced, low", "@0s refused: no safe level",
		"@0s refused: held safe", "@0s refused: held safe", "@0s lamp low c", "@0s lamp high d",
		"@0s lamp low d", "@0s end lamp d: replaced, low", "@0s refused: superseded", "@0s lamp high f")
}

// safety.md 6: a hold ends by what is not older than it, whatever has happened since: the
// switch, another map, the gateway's word, a restart.
func TestHoldKeepsItsNumber(t *testing.T) {
	for name, inputs := range map[string][]lines.Input{
		"nothing":            nil,
		"LOCAL":              {lines.Local{Hands: lines.HandsOn}, lines.Local{}},
		"another map":        {lines.Remap{Lines: all()}},
		"the gateway's word": {lines.Hold{Lines: []wire.LineKey{lamp}}},
		"a restart":          nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.do(lines.Want{Line: lamp, Safe: true, Hold: true, Order: 7, Cause: "a"})
			if name == "a restart" {
				w = newWorld(t)
				inputs = []lines.Input{lines.Seed{Marks: map[wire.LineKey]uint64{lamp: 7}, Holds: map[wire.LineKey]uint64{lamp: 7}}}
			}
			for _, in := range inputs {
				w.do(in)
			}
			w.do(lines.Release{Order: 6})
			if !w.c.Held(lamp) {
				t.Error("an older release has ended it")
			}
			w.do(lines.Release{Order: 7})
			if w.c.Held(lamp) {
				t.Error("its own number has not ended it")
			}
		})
	}
}

// What the map does not have is remembered within bounds.
func TestWhatTheMapDoesNotHaveIsBounded(t *testing.T) {
	const n = 2 * lines.MaxRemembered
	in, next := lines.Seed{Marks: map[wire.LineKey]uint64{lamp: 1}, Holds: map[wire.LineKey]uint64{lamp: 1}}, []lines.Line(nil)
	for k := range wire.LineKey(n) {
		in.Marks[100+k], in.Holds[100+k] = 1, 1
		next = append(next, lines.Line{Key: 100 + k, Output: true, HasSafe: true})
	}
	w := newWorld(t, lines.Line{Key: lamp, Output: true, HasSafe: true})
	w.do(in)
	w.do(lines.Remap{Lines: append(next, lines.Line{Key: lamp, Output: true, HasSafe: true})})
	marks, holds := 0, 0
	for k := range wire.LineKey(n) {
		marks += int(w.c.Mark(100 + k))
		if w.c.Held(100 + k) {
			holds++
		}
	}
	if marks > lines.MaxRemembered || holds > lines.MaxRemembered || marks == 0 || holds == 0 || !w.c.Held(lamp) || w.c.Mark(lamp) != 1 {
		t.Errorf("%d marks and %d holds of lines that the map does not have; the one that it has: %d, held %v", marks, holds, w.c.Mark(lamp), w.c.Held(lamp))
	}
}

// B27: a plain level that the board ends by itself is told; one that is at the safe
// level is not.
func TestB27_PlainLevelEndedByTheBoardIsTold(t *testing.T) {
	w := newWorld(t)
	w.do(on(lamp, 1, "a"))
	w.do(on(fan, 2, "b"))
	w.do(on(horn, 3, "c"))
	w.log = nil
	w.do(lines.Stop{})
	w.want("@0s valve low", "@0s lamp low a", "@0s fan high", "@0s end lamp a: stopped, low")
}

func TestFallThatFailsIsTriedUntilItWorks(t *testing.T) {
	w := newWorld(t)
	w.do(lines.Want{Line: lamp, Level: true, Cause: "a", For: time.Second})
	w.log = nil
	w.fate = func(lines.Drive) lines.Fate {
		if w.now < 1300*time.Millisecond {
			return lines.Unmoved
		}
		return lines.Moved
	}
	w.wait(10 * time.Second)
	w.want("@1s lamp low a fails", "@1s end lamp a: failed, high", "@1.2s lamp low a fails",
		"@1.4s lamp low a", "@1.4s end lamp a: expired, low")
}

// What is asked towards the safe level is owed from then on, also when it fails.
func TestSafeLevelIsOwedUntilReached(t *testing.T) {
	w := newWorld(t)
	w.do(lines.Want{Line: lamp, Level: true, Cause: "a"})
	w.fate = func(lines.Drive) lines.Fate {
		if w.now == 0 {
			return lines.Doubtful
		}
		return lines.Moved
	}
	w.do(off(lamp, 1, "b"))
	w.wait(time.Second)
	w.want("@0s lamp high a", "@0s lamp low b fails", "@0s end lamp a: failed, high", "@200ms lamp low a", "@200ms end lamp a: replaced, low")
}

// B27: how a line stands whose drive is in doubt nobody says, until one has worked.
func TestLevelIsUnknownWhileADriveIsInDoubt(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		fate lines.Fate
		want wire.Level
	}{{lines.Moved, wire.LevelHigh}, {lines.Unmoved, wire.LevelHigh}, {lines.Doubtful, wire.LevelUnknown}, {lines.Unmoved, wire.LevelUnknown}, {lines.Moved, wire.LevelHigh}} {
		w.fate = func(lines.Drive) lines.Fate { return c.fate }
		w.do(on(lamp, 0, "a"))
		if l := w.c.Level(lamp); l != c.want {
			t.Errorf("after %v: %v, want %v", c.fate, l, c.want)
		}
	}
}

// A pulse whose beginning is in doubt is ended; one that has certainly not begun is not.
func TestPulseThatMayHaveBegunIsEnded(t *testing.T) {
	for _, fate := range []lines.Fate{lines.Doubtful, lines.Unmoved} {
		w := newWorld(t)
		w.fate = func(d lines.Drive) lines.Fate {
			if d.Level {
				return fate
			}
			return lines.Moved
		}
		w.do(pulse(horn, true, time.Minute, 1, "a"))
		w.wait(time.Minute)
		if began := fate == lines.Doubtful; began != (len(w.log) == 3) { // with the valve, which is lost
			t.Errorf("%v: %q", fate, w.log)
		}
		if w.has[horn] || w.c.Unsettled()[horn] != 0 {
			t.Errorf("%v: %q", fate, w.log)
		}
	}
}

// A lease that may have worked falls back as if it had.
func TestLeaseInDoubtFallsBack(t *testing.T) {
	w := newWorld(t)
	w.fate = func(d lines.Drive) lines.Fate {
		if d.Level {
			return lines.Doubtful
		}
		return lines.Moved
	}
	w.do(lines.Want{Line: lamp, Level: true, Cause: "a", For: time.Second})
	w.wait(time.Minute)
	w.want("@0s lamp high a fails", "@1s lamp low a", "@1m0s valve low")
}

// The limit of the map holds for whatever sets a line, also for what a pulse leaves.
func TestMaxOnHoldsForEverything(t *testing.T) {
	w := newWorld(t, lines.Line{Key: lamp, Output: true, HasSafe: true, MaxOn: time.Minute})
	w.do(on(lamp, 1, "a"))
	w.do(lines.Want{Line: lamp, Level: true, Cause: "b", For: 2 * time.Minute})
	w.do(pulse(lamp, true, 2*time.Minute, 2, "c"))
	w.wait(2 * time.Minute)
	w.do(pulse(lamp, false, 3*time.Minute, 3, "d"))
	w.wait(10 * time.Minute)
	w.want("@0s lamp high a", "@0s refused: too long", "@0s refused: too long", "@1m0s lamp low a", "@1m0s end lamp a: expired, low",
		"@2m0s lamp low d", "@5m0s lamp high d", "@5m0s end lamp d: expired, high", "@6m0s lamp low d", "@6m0s end lamp d: expired, low")
}

// The end of a pulse that leads away from safe is tried a few times, then the line is
// driven safe.
func TestInversePulseThatCannotEndStaysSafe(t *testing.T) {
	w := newWorld(t)
	w.do(pulse(lamp, false, time.Second, 1, "a"))
	w.log = nil
	w.fate = func(d lines.Drive) lines.Fate {
		if d.Level {
			return lines.Doubtful
		}
		return lines.Moved
	}
	w.wait(10 * time.Second)
	w.want("@1s lamp high a fails", "@1.2s lamp high a fails", "@1.4s lamp high a fails", "@1.6s lamp high a fails", "@1.8s lamp high a fails",
		"@1.8s end lamp a: failed, low", "@2s lamp low a", "@2s end lamp a: expired, low")
}

// A1: a reload changes names, never what runs at a line; and what is told is what was
// driven (A13).
func TestA1_A13_ReloadKeepsWhatRunsAtItsLine(t *testing.T) {
	w := newWorld(t)
	w.do(pulse(lamp, true, 30*time.Second, 1, "p"))
	w.do(lines.Want{Line: valve, Level: true, Order: 2, Cause: "l", For: 40 * time.Second})
	w.log = nil
	next := all()
	next[0].Safe = true // the valve: its lease is at the safe level now
	next[2].HasSafe = false
	w.do(lines.Remap{Lines: next[:4]})
	w.wait(50 * time.Second)
	w.want("@0s end valve l: reload, high", "@30s lamp low p", "@30s end lamp p: expired, low")

	w = newWorld(t)
	w.do(lines.Want{Line: fan, Order: 2, Cause: "l", For: 40 * time.Second})
	next[2].HasSafe, next[2].Safe, next[2].MaxOn = true, true, 10*time.Second
	w.do(lines.Remap{Lines: next})
	w.wait(20 * time.Second)
	w.want("@0s fan low l", "@10s fan high l", "@10s end fan l: expired, high")
}

// A line that is on when it gets a safe level and on_loss while the gateway is lost
// does not stay on.
func TestReloadDuringALoss(t *testing.T) {
	w := newWorld(t)
	w.do(on(lamp, 1, "a"))
	w.wait(2 * time.Minute)
	w.log = nil
	next := all()
	next[1].OnLoss = true
	w.do(lines.Remap{Lines: next})
	w.want("@2m0s valve low", "@2m0s lamp low a", "@2m0s end lamp a: loss, low")
}

func TestLineThatHadGoneComesBackSafe(t *testing.T) {
	w := newWorld(t)
	w.do(on(lamp, 1, "a"))
	w.do(lines.Reopened{Line: lamp})
	w.want("@0s lamp high a", "@0s end lamp a: restart, low")
	if l := w.c.Level(lamp); l != wire.LevelLow {
		t.Errorf("level %v", l)
	}
}

package lines_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// oracle says in words of its own what must hold, and looks at every drive.
type oracle struct {
	*world
	rnd     *rand.Rand
	cfg     map[wire.LineKey]lines.Line
	marks   map[wire.LineKey]uint64
	held    map[wire.LineKey]uint64 // by whose number, 0 for the gateway's word
	freed   map[wire.LineKey]uint64 // the newest release that named it or all
	driven  map[wire.LineKey]bool   // what was driven last
	hands   lines.Hands
	stopped bool
	contact time.Duration
	bad     float64 // how often a drive fails
	want    *lines.Want
	tokens  int
	// open are what lives, by cause: when it must have ended at the latest, 0 for never.
	open map[string]time.Duration
	told map[string]int // final ends
	all  map[string]wire.LineKey
}

func (o *oracle) lost() bool { return o.now-o.contact >= time.Minute }

func (o *oracle) isHeld(k wire.LineKey) bool {
	_, held := o.held[k]
	return held
}

// heldAreSafe checks that what is held is at its safe level, or is tried on, unless
// somebody works there.
func (o *oracle) heldAreSafe() {
	for k := range o.held {
		if l := o.cfg[k]; l.HasSafe && o.hands != lines.HandsOn && o.driven[k] != l.Safe && o.c.Unsettled()[k] == 0 {
			o.t.Errorf("%s is held and not at its safe level: %q", names[k], o.log[max(0, len(o.log)-30):])
		}
	}
}

// refused checks that there was a reason, and that nothing but a beginning leaves a mark.
func (o *oracle) refused(w lines.Want, r lines.Refusal) {
	ok := true
	switch r.Reason {
	case lines.HeldSafe:
		ok = o.isHeld(w.Line)
	case lines.Superseded:
		ok = w.Order < o.marks[w.Line] && r.By == o.marks[w.Line]
	case lines.ByHand:
		ok = o.hands == lines.HandsOn
	case lines.HandsDoubt:
		ok = o.hands == lines.HandsUnknown
	case lines.Lost:
		ok = o.lost()
	}
	if l := o.cfg[w.Line]; w.Order > 0 && w.Order < o.marks[w.Line] && l.Output && (l.HasSafe || !w.Safe && w.For == 0) {
		ok = r.Reason == lines.Superseded // whatever else would refuse it
	}
	if !ok {
		o.t.Errorf("refused without a reason: %+v: %+v", w, r)
	}
	if m := o.c.Mark(w.Line); m != o.marks[w.Line] {
		o.t.Errorf("the mark is %d, the newest that has begun is %d: %+v, %+v", m, o.marks[w.Line], w, r)
	}
}

// drove checks a drive before it is done.
func (o *oracle) drove(d lines.Drive) {
	l, w := o.cfg[d.Line], o.want
	away := l.HasSafe && d.Level != l.Safe
	own := w == nil || d.Why != lines.WhyWant
	fail := func(rule string) { o.t.Errorf("%s: %+v\n%s", rule, d, o.log[max(0, len(o.log)-30):]) }
	switch {
	case !l.Output:
		fail("an input was driven")
	case away && l.OnLoss && o.lost():
		fail("away from safe while the gateway is lost")
	case away && o.isHeld(d.Line):
		fail("away from safe while it is held")
	case away && o.hands != lines.HandsOff:
		fail("away from safe while somebody works there")
	case o.stopped && away:
		fail("away from safe at a stop")
	case o.hands == lines.HandsOn && !o.stopped && (!own || d.Why != lines.WhyLocal):
		fail("moved under LOCAL")
	case !own && w.Order > 0 && w.Order < o.marks[d.Line]:
		fail("an older number")
	case own && away && d.Why != lines.WhyPulse:
		fail("away from safe by itself")
	}
	if !own && w.Order > 0 && !w.Unmarked {
		o.marks[d.Line] = max(o.marks[d.Line], w.Order)
	}
}

func (o *oracle) ended(e lines.End) {
	if _, ok := o.all[e.Cause]; !ok {
		o.t.Errorf("an end of what nobody began: %+v", e)
	}
	if e.Why == wire.LeaseFailed {
		return
	}
	// An inverse pulse leaves a level, which may end as well.
	if o.told[e.Cause]++; o.told[e.Cause] > 2 {
		o.t.Errorf("told %d times: %+v", o.told[e.Cause], e)
	}
	if l := o.cfg[e.Line]; e.Why != wire.LeaseReplaced && e.Why != wire.LeaseHand && e.Why != wire.LeaseReload && e.ID == 0 && l.HasSafe && e.Level != l.Safe {
		o.t.Errorf("told as ended away from safe: %+v", e)
	}
	if e.Why != wire.LeaseHand && o.driven[e.Line] != e.Level {
		o.t.Errorf("told %v, driven was %v: %+v", e.Level, o.driven[e.Line], e)
	}
	delete(o.open, e.Cause)
}

// play is one random life of a board.
func play(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 11))
	o := &oracle{world: newWorld(t), rnd: rnd, cfg: map[wire.LineKey]lines.Line{}, marks: map[wire.LineKey]uint64{}, held: map[wire.LineKey]uint64{},
		freed: map[wire.LineKey]uint64{}, driven: map[wire.LineKey]bool{fan: true}, open: map[string]time.Duration{}, told: map[string]int{}, all: map[string]wire.LineKey{}}
	for _, l := range all() {
		o.cfg[l.Key] = l
	}
	o.bad = []float64{0, 0, 0.05, 0.5}[rnd.IntN(4)]
	o.fate = func(d lines.Drive) lines.Fate {
		if rnd.Float64() < o.bad {
			return lines.Unmoved + lines.Fate(rnd.IntN(2))
		}
		o.driven[d.Line] = d.Level
		return lines.Moved
	}
	o.each, o.world.told = o.drove, o.ended
	for range 300 {
		o.step()
		o.heldAreSafe()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	// The calm phase: whatever was begun ends, at the latest at a stop.
	o.bad, o.want = 0, nil
	o.hands = lines.HandsOff
	o.do(lines.Local{})
	o.stopped = true
	o.do(lines.Stop{})
	o.wait(time.Minute)
	for cause, due := range o.open {
		t.Errorf("seed %d: %s at %s has not ended (due %v)\n%s", seed, cause, names[o.all[cause]], due, o.log[max(0, len(o.log)-30):])
	}
	for k, l := range o.cfg {
		if l.HasSafe && o.has[k] != l.Safe {
			t.Errorf("seed %d: %s is not safe at the end", seed, names[k])
		}
	}
	if left := o.c.Unsettled(); len(left) > 0 {
		t.Errorf("seed %d: %v is not settled", seed, left)
	}
}

func (o *oracle) step() {
	o.want = nil
	if o.rnd.IntN(3) > 0 {
		o.ask()
		return
	}
	switch o.rnd.IntN(10) {
	case 0, 1, 2:
		o.wait(time.Duration(o.rnd.Int64N(int64(20 * time.Second))))
	case 3:
		o.wait(time.Duration(o.rnd.Int64N(int64(3 * time.Minute))))
	case 4, 5:
		o.contact = o.now
		o.hears()
	case 6:
		o.hands = lines.Hands(o.rnd.IntN(3))
		read := map[wire.LineKey]bool{}
		for k := range o.cfg {
			if o.rnd.IntN(4) > 0 {
				read[k] = o.has[k]
			}
			if o.rnd.IntN(8) == 0 { // somebody has moved it
				o.has[k] = !o.has[k]
				read[k] = o.has[k]
			}
		}
		o.do(lines.Local{Hands: o.hands, Read: read})
		if o.hands == lines.HandsOn {
			o.settled()
		}
	case 7:
		o.release()
	case 8:
		if o.tokens > 0 {
			o.do(lines.Cancel{Cause: fmt.Sprint("t", 1+o.rnd.IntN(o.tokens))})
		}
	case 9:
		o.reload()
	}
}

// release ends holds that are not newer; now and then the gateway holds a line.
func (o *oracle) release() {
	k := o.line()
	if o.rnd.IntN(3) == 0 {
		o.do(lines.Hold{Lines: []wire.LineKey{k}})
		if !o.isHeld(k) {
			o.held[k] = 0
		}
		return
	}
	r := lines.Release{Lines: []wire.LineKey{k}}
	if o.rnd.IntN(4) == 0 {
		r.Lines = nil
	}
	if o.rnd.IntN(2) == 0 { // an older one is as likely as a newer one
		r.Order = max(o.held[k], 1) + 1 - uint64(o.rnd.IntN(3))
	}
	o.do(r)
	for key := range o.cfg {
		if r.Lines == nil || key == k {
			o.freed[key] = max(o.freed[key], r.Order)
		}
	}
	for held, order := range o.held {
		if (r.Lines == nil || held == k) && (r.Order == 0 || order <= r.Order) {
			delete(o.held, held)
		}
	}
}

// reload gives a line another safe level, or none, where nothing runs.
func (o *oracle) reload() {
	k := o.line()
	l := o.cfg[k]
	if !l.Output || o.c.Unsettled()[k] != 0 {
		return
	}
	switch o.rnd.IntN(3) {
	case 0:
		l.OnLoss = l.HasSafe && !l.OnLoss
	case 1:
		l.MaxOn = 0
		if l.HasSafe {
			l.MaxOn = time.Duration(1+o.rnd.IntN(600)) * time.Second
		}
	case 2:
		l.Safe = l.HasSafe && !l.Safe
	}
	o.cfg[k] = l
	var all []lines.Line
	for _, k := range []wire.LineKey{valve, lamp, fan, horn, door} {
		all = append(all, o.cfg[k])
	}
	o.do(lines.Remap{Lines: all})
}

// settled checks that nothing has a time under LOCAL: it was driven safe, or left to
// the hand.
func (o *oracle) settled() {
	for cause, due := range o.open {
		if due > 0 && o.bad == 0 {
			o.t.Errorf("%s goes on under LOCAL", cause)
		}
	}
}

func (o *oracle) line() wire.LineKey {
	return []wire.LineKey{valve, lamp, fan, horn, door}[o.rnd.IntN(5)]
}

func (o *oracle) ask() {
	o.tokens++
	k := o.line()
	l := o.cfg[k]
	w := lines.Want{Line: k, Level: o.rnd.IntN(2) == 0, Cause: fmt.Sprint("t", o.tokens)}
	switch o.rnd.IntN(5) {
	case 0:
		w.Safe, w.Hold = true, o.rnd.IntN(4) == 0
	case 1:
		w.For = time.Duration(1+o.rnd.IntN(200)) * time.Second
	case 2:
		w.Width, w.ID = time.Duration(1+o.rnd.IntN(100))*time.Second, uint64(o.tokens)
	}
	switch o.rnd.IntN(5) {
	case 0: // late
		w.Order = max(o.marks[k], 4) - uint64(o.rnd.IntN(4))
	case 1:
		w.Unmarked = true
		w.Order = uint64(o.tokens)
	default:
		w.Order = uint64(o.tokens)
	}
	o.want, o.all[w.Cause] = &w, k
	n := len(o.log)
	refused := o.do(w)
	o.refused(w, refused)
	if o.want = nil; refused.Reason != lines.NotRefused {
		return
	}
	if w.Hold && l.HasSafe && (w.Order == 0 || w.Order >= o.freed[k]) { // one that was released before it came holds nothing
		o.held[k] = max(o.held[k], w.Order)
	}
	// What is told later on: see the rules in doc.go. A failed one is told nothing.
	failed := slices.ContainsFunc(o.log[n:], func(s string) bool { return len(s) > 5 && s[len(s)-5:] == "fails" })
	away := l.HasSafe && w.Level != l.Safe && !w.Safe
	if failed || o.told[w.Cause] > 0 {
		return
	}
	switch {
	case w.Width > 0:
		o.open[w.Cause] = o.now + w.Width
	case away && w.For > 0:
		o.open[w.Cause] = o.now + w.For
	case away:
		o.open[w.Cause] = 0
	}
}

// What the package promises, with random inputs: never away from safe while that is
// forbidden, never an older number, and every end told once, as what was driven.
func TestPromisesHold(t *testing.T) {
	n := uint64(2000)
	if testing.Short() {
		n = 200
	}
	for seed := range n {
		play(t, seed)
		if t.Failed() {
			return
		}
	}
}

package trial

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

const (
	// tellLimit is how long after a trial the ends of all its offs are waited for.
	tellLimit = 40 * time.Second
	// leastOffs is how many offs of a kind there are before one must have found its output on.
	leastOffs = 20
	// maxOffFaults bounds the list of what is wrong.
	maxOffFaults = maxFaults
)

// OffsResult is what became of one off a second.
type OffsResult struct {
	// All are all of them, and Kinds those that met each kind of trouble: one that meets
	// two counts in both.
	All     OffsCount     `json:"all"`
	Kinds   []OffsCount   `json:"kinds"`
	Took    time.Duration `json:"took_ns"`
	Skipped []string      `json:"skipped,omitempty"` // kinds of trouble that can't be made here
	Faults  []string      `json:"faults,omitempty"`  // the first of what is wrong
}

// OK reports whether every off was in time, or its alarm, and stood.
func (r *OffsResult) OK() bool { return r.All.OK() }

// OffsCount is what became of some offs.
type OffsCount struct {
	Name string `json:"name"`
	Offs int    `json:"offs"` // acknowledged
	Met  int    `json:"met"`  // that found their output on
	// InTime were at the pin within the limit; Reach is how long those took.
	InTime int    `json:"in_time"`
	Reach  Spread `json:"reach"`
	// Away met a time in which their board could not be reached or did not run, and were
	// at the pin within the limit after it, before an alarm was due. Alarmed did so later:
	// all that was possible is the alarm, and it stood in time. Longest is the longest
	// time that any of both took, Alarm the longest until an alarm stood.
	Away    int           `json:"away"`
	Alarmed int           `json:"alarmed"`
	Longest time.Duration `json:"longest_ns"`
	Alarm   time.Duration `json:"alarm_ns"`
	// Late took longer than the limit with their board there; Mute had no alarm in time;
	// Risen outputs went on again by something older; Untold did not end as driven or
	// stood for by a newer off of the output; Idle is 1 if none of many found its output
	// on, which is no trial. They must be 0.
	Late   int `json:"late"`
	Mute   int `json:"mute"`
	Risen  int `json:"risen"`
	Untold int `json:"untold"`
	Idle   int `json:"idle"`

	reach []time.Duration
}

// OK reports whether nothing is wrong with them.
func (c *OffsCount) OK() bool { return c.Late+c.Mute+c.Risen+c.Untold+c.Idle == 0 }

// verdict is what became of one off.
type offVerdict struct {
	found  bool          // its output on
	took   time.Duration // until it was at the pin
	blind  time.Duration // of that its board could not be reached or did not run
	alarm  time.Duration // until the alarm stood; -1 for never
	risen  string        // what switched its output on again
	untold string        // how it ended, if that is wrong
}

// count adds one, and says what is wrong with it.
func (c *OffsCount) count(v offVerdict) (wrong string) {
	c.Offs++
	if v.found {
		c.Met++
	}
	switch net := v.took - v.blind; {
	case v.took <= OffLimit:
		c.InTime++
		c.reach = append(c.reach, v.took)
	case net > OffLimit:
		c.Late++
		wrong = fmt.Sprintf("was at the pin after %v, of which its board could not be reached for %v", ms(v.took), ms(v.blind))
	case v.took <= AlarmLimit:
		c.Away++
		c.Longest = max(c.Longest, v.took)
	case v.alarm < 0 || v.alarm > AlarmLimit:
		c.Mute++
		wrong = fmt.Sprintf("was at the pin after %v, and no alarm stood within %v", ms(v.took), AlarmLimit)
	default:
		c.Alarmed++
		c.Longest, c.Alarm = max(c.Longest, v.took), max(c.Alarm, v.alarm)
	}
	if v.risen != "" {
		c.Risen++
		wrong += " " + v.risen
	}
	if v.untold != "" {
		c.Untold++
		wrong += " " + v.untold
	}
	return wrong
}

func (c *OffsCount) end() {
	c.Reach = NewSpread(c.reach)
	if c.Offs >= leastOffs && c.Met == 0 {
		c.Idle = 1
	}
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// judge holds the pins' moves against the offs.
func (t *offTrial) judge(ctx context.Context, r *OffsResult, kinds []int) error {
	acts, err := t.s.Actuations(orderNode)
	if err != nil {
		return err
	}
	t.blind = union(t.blind)
	r.All.Name = "all"
	of := map[int]int{}
	for _, k := range kinds {
		of[k] = len(r.Kinds)
		r.Kinds = append(r.Kinds, OffsCount{Name: troubles[k].name})
	}
	told, cancel := context.WithTimeout(ctx, tellLimit)
	defer cancel()
	for k, o := range t.offs {
		if o.until.IsZero() {
			o.until = time.Now()
		}
		v := t.reached(acts, o)
		a := &Account{ID: o.id}
		if err := a.read(told, t.s); err != nil && told.Err() == nil {
			return err
		}
		superseded := a.End.Reason == "superseded" && slices.ContainsFunc(t.offs[k+1:], func(n off) bool { return n.pin == o.pin })
		if !a.Found || !a.Settled || a.End.State != succeeded && !superseded {
			v.untold = fmt.Sprintf("found %t, settled %t: %s %s (%s)", a.Found, a.Settled, a.End.State, a.End.Reason, a.End.Detail)
		}
		for _, kind := range o.kinds {
			r.Kinds[of[kind]].count(v)
		}
		if wrong := r.All.count(v); wrong != "" && len(r.Faults) < maxOffFaults {
			r.Faults = append(r.Faults, fmt.Sprintf("%s for valve-%d at %s, %s: %s", o.id, o.pin, o.at.Format("15:04:05.000"), names(o.kinds), wrong))
		}
	}
	r.All.end()
	for k := range r.Kinds {
		r.Kinds[k].end()
		r.All.Idle += r.Kinds[k].Idle
	}
	return nil
}

// reached is how long an off took to its pin, whoever drove it there, and what became of
// the pin after that.
func (t *offTrial) reached(acts []gpio.Actuation, o off) (v offVerdict) {
	name, reached, early := fmt.Sprintf("GPIO%d", o.pin), false, false
	for _, a := range acts {
		at := time.Unix(0, a.At)
		switch {
		case a.Pin != name:
		case at.Before(o.sent):
			v.found = bool(a.Level)
		case !reached && a.Level == gpio.Low:
			// Before its receipt that may be something else, before the gateway had it.
			reached, early = true, at.Before(o.at)
			v.took = max(0, at.Sub(o.at))
			v.blind = t.excused(o.at, at)
		case !at.Before(o.until):
		case early && a.Level == gpio.High:
			reached, early, v.found = false, false, true
		case reached && a.Level == gpio.High:
			v.risen = fmt.Sprintf("went on again %v after it, by %s", ms(at.Sub(o.at)), a.Cause)
		}
	}
	if !reached {
		v.took = time.Since(o.at)
		v.blind = t.excused(o.at, time.Now())
	}
	v.alarm = -1
	for _, s := range t.alarms {
		if s.to.After(o.at) && (v.alarm < 0 || s.from.Sub(o.at) < v.alarm) {
			v.alarm = max(0, s.from.Sub(o.at))
		}
	}
	return v
}

// excused is how much of a time the board could not be reached or did not run.
func (t *offTrial) excused(from, to time.Time) (d time.Duration) {
	for _, b := range t.blind {
		lo, hi := b.from, b.to
		if lo.Before(from) {
			lo = from
		}
		if hi.After(to) {
			hi = to
		}
		if hi.After(lo) {
			d += hi.Sub(lo)
		}
	}
	return max(0, min(d, to.Sub(from)))
}

// union sorts times and joins those that overlap.
func union(list []span) (sum []span) {
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.from.UnixNano(), b.from.UnixNano()) })
	for _, s := range list {
		if k := len(sum) - 1; k >= 0 && !s.from.After(sum[k].to) {
			if s.to.After(sum[k].to) {
				sum[k].to = s.to
			}
			continue
		}
		sum = append(sum, s)
	}
	return sum
}

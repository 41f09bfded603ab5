package gpio

import (
	"maps"
	"slices"
	"time"
)

// lookPause is the time between two looks at what outputs really have: well
// within a heartbeat, and nothing in terms of load.
const lookPause = time.Second

// Foreign is an output that somebody else has changed.
type Foreign struct {
	Pin       string
	Commanded Level
	Found     Level
	Since     time.Time // when it was first seen
}

// Foreign lists the outputs that have another level than the one that was
// commanded: a person or another program has changed them. They are looked at
// once a second and never fought: the next command for the pin ends it. Only back
// ends that can read an output without disturbing it take part.
func (o *Owner) Foreign() []Foreign { return slices.Clone(*o.foreign.Load()) }

// actual returns the pin if it is an output that can be compared.
func (p *openPin) actual() ActualPin {
	if p.mode != Output || p.commanded == nil {
		return nil
	}
	a, _ := p.Pin.(ActualPin)
	return a
}

// looks reports whether there is anything to look at.
func (o *Owner) looks() bool {
	if len(o.missing) > 0 {
		return true
	}
	for _, p := range o.open {
		if p.actual() != nil {
			return true
		}
	}
	return false
}

// lookBack reads the outputs back if it is time.
func (o *Owner) lookBack(now time.Time) {
	if now.Before(o.lookAt) {
		return
	}
	o.lookAt = now.Add(lookPause)
	o.seek()
	known := map[string]Foreign{}
	for _, f := range *o.foreign.Load() {
		known[f.Pin] = f
	}
	found := []Foreign{}
	for _, key := range slices.Sorted(maps.Keys(o.open)) {
		p := o.open[key]
		a := p.actual()
		if a == nil {
			continue
		}
		name := o.pins.Load().shown(key)
		level, err := a.Actual()
		if err != nil {
			// Nothing is known about it; a command for the pin will meet the error.
			continue
		}
		if level == *p.commanded {
			continue
		}
		f := Foreign{Pin: name, Commanded: *p.commanded, Found: level, Since: now}
		if old, ok := known[name]; ok && old.Found == level && old.Commanded == f.Commanded {
			f.Since = old.Since
		}
		found = append(found, f)
	}
	o.foreign.Store(&found)
}

// forget takes a pin off the list: it was commanded or closed.
func (o *Owner) forget(key string) {
	old := *o.foreign.Load()
	if len(old) == 0 {
		return
	}
	name := o.pins.Load().shown(key)
	kept := slices.DeleteFunc(slices.Clone(old), func(f Foreign) bool { return f.Pin == name })
	o.foreign.Store(&kept)
}

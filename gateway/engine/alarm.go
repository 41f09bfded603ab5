package engine

import (
	"cmp"
	"slices"
)

// Alarms that stand until they are cleared.
const (
	alarmOffline = "node_offline" // subject: node
	alarmRefused = "node_refused" // subject: node
	alarmQuiet   = "quiet_period" // subject: gateway
)

type alarmKey struct{ kind, subject string }

// maxIncidents bounds the incidents that are remembered in order not to be told
// again. The oldest is forgotten: it may be told a second time, but nothing new
// is ever kept back.
const maxIncidents = 1000

// maxRecent bounds the incidents that are listed.
const maxRecent = 200

// Alarms returns the conditions that stand, by kind and subject, and the latest
// incidents, oldest first. Both are of this process: a restart raises anew what
// still is.
func (e *Engine) Alarms() (standing, recent []Alarm) {
	for _, a := range e.alarms.standing {
		standing = append(standing, a)
	}
	slices.SortFunc(standing, func(a, b Alarm) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Subject, b.Subject))
	})
	return standing, slices.Clone(e.alarms.recent)
}

// alarms are those that have been raised.
type alarms struct {
	standing map[alarmKey]Alarm // conditions: at most seven a node
	recent   []Alarm            // the latest incidents, oldest first, at most maxRecent
	told     map[alarmKey]bool  // incidents that repeat
	ring     []alarmKey         // told, oldest at next once it is full
	next     int
}

func newAlarms() alarms {
	return alarms{standing: map[alarmKey]Alarm{}, told: map[alarmKey]bool{}}
}

func (e *Engine) raise(now Now, k alarmKey, text string) {
	e.effects.Alarms = append(e.effects.Alarms, Alarm{At: now.Wall, Kind: k.kind, Subject: k.subject, Text: text, Raised: true})
}

// incident tells of something that happened and cannot be cleared.
func (e *Engine) incident(now Now, kind, subject, text string) {
	e.raise(now, alarmKey{kind, subject}, text)
	r := &e.alarms.recent
	if len(*r) == maxRecent {
		*r = append((*r)[:0], (*r)[1:]...)
	}
	*r = append(*r, Alarm{At: now.Wall, Kind: kind, Subject: subject, Text: text, Raised: true})
}

// alarm tells of an incident that a faulty agent may repeat at will: once for
// each subject.
func (e *Engine) alarm(now Now, kind, subject, text string) {
	a, k := &e.alarms, alarmKey{kind, subject}
	if a.told[k] {
		return
	}
	if len(a.ring) < maxIncidents {
		a.ring = append(a.ring, k)
	} else {
		delete(a.told, a.ring[a.next])
		a.ring[a.next] = k
		a.next = (a.next + 1) % maxIncidents
	}
	a.told[k] = true
	e.incident(now, kind, subject, text)
}

// condition raises an alarm that stands until clear.
func (e *Engine) condition(now Now, kind, subject, text string) {
	k := alarmKey{kind, subject}
	if _, ok := e.alarms.standing[k]; !ok {
		e.alarms.standing[k] = Alarm{At: now.Wall, Kind: kind, Subject: subject, Text: text, Raised: true}
		e.raise(now, k, text)
	}
}

// restate raises a condition, or gives the one that stands another text: it is not
// cleared for that.
func (e *Engine) restate(now Now, kind, subject, text string) {
	k := alarmKey{kind, subject}
	a, ok := e.alarms.standing[k]
	if !ok {
		e.condition(now, kind, subject, text)
		return
	}
	if a.Text != text {
		a.Text = text
		e.alarms.standing[k] = a
		e.raise(now, k, text)
	}
}

// stands reports whether a condition does.
func (e *Engine) stands(kind, subject string) bool {
	_, ok := e.alarms.standing[alarmKey{kind, subject}]
	return ok
}

// clear ends a condition, if it stands.
func (e *Engine) clear(now Now, kind, subject string) {
	k := alarmKey{kind, subject}
	if _, ok := e.alarms.standing[k]; ok {
		delete(e.alarms.standing, k)
		e.effects.Alarms = append(e.effects.Alarms, Alarm{At: now.Wall, Kind: kind, Subject: subject})
	}
}

package engine

type alarmKey struct{ kind, subject string }

// maxAlarms bounds the alarms that stand at a time.
const maxAlarms = 1000

// alarm raises an alarm. One that stands already is not raised again.
func (e *Engine) alarm(now Now, kind, subject, text string) {
	k := alarmKey{kind, subject}
	if e.alarms[k] || len(e.alarms) >= maxAlarms {
		return
	}
	e.alarms[k] = true
	e.effects.Alarms = append(e.effects.Alarms, Alarm{At: now.Wall, Kind: kind, Subject: subject, Text: text, Raised: true})
}

// alarmOff clears an alarm, if it stands.
func (e *Engine) alarmOff(now Now, kind, subject string) {
	k := alarmKey{kind, subject}
	if !e.alarms[k] {
		return
	}
	delete(e.alarms, k)
	e.effects.Alarms = append(e.effects.Alarms, Alarm{At: now.Wall, Kind: kind, Subject: subject})
}

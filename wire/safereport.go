package wire

// SafeReport is what a gpio.safe or a gpio.release has done, in the payload of its
// result. Names are those of the pin map.
type SafeReport struct {
	// Driven are at their safe levels, and held there.
	Driven []string
	// Newer were not touched, because something newer has begun on their lines.
	Newer []string
	// NotMoved are outputs without a safe level: there is no way to safe for them, and
	// whoever asked for one must hear that.
	NotMoved []string
	// Released are those that a gpio.release has let go of; nil if that is not known.
	Released []string
	// Unlisted counts the names for which the payload has no room.
	Unlisted int
}

// maxReportBytes is what the names may take of a payload: some of it is for whatever
// else the result says.
const maxReportBytes = MaxPayloadBytes - 1<<10

// Map is the payload. It has room for 100 names of full length and for all 256 of
// ordinary length; those that nobody must go and look for are left out first.
func (r SafeReport) Map() map[string]any {
	m := map[string]any{}
	room, left := maxReportBytes, r.Unlisted
	for _, l := range []struct {
		key   string
		names []string
	}{{"not_moved", r.NotMoved}, {"newer", r.Newer}, {"driven", r.Driven}, {"pins", r.Released}} {
		var list []any
		for _, name := range l.names {
			if room -= len(name) + 2; room < 0 { // two bytes are the longest head of a name
				left++
				continue
			}
			list = append(list, name)
		}
		if list != nil {
			m[l.key] = list
		}
		if l.key == "pins" && l.names != nil && list == nil {
			m[l.key] = []any{}
		}
	}
	if left > 0 {
		m["unlisted"] = uint64(left)
	}
	return m
}

// SafeReportOf reads a payload, as CBOR or JSON decoders give it (json.Number as well).
// What it does not understand it leaves out.
func SafeReportOf(m map[string]any) SafeReport {
	v := m["unlisted"]
	if exact, ok := v.(interface{ Int64() (int64, error) }); ok {
		if n, err := exact.Int64(); err == nil {
			v = n
		}
	}
	n, ok := wholeNumber(v)
	if !ok || n < 0 {
		n = 0
	}
	r := SafeReport{Driven: nameList(m["driven"]), Newer: nameList(m["newer"]), NotMoved: nameList(m["not_moved"]), Unlisted: int(n)}
	if list, ok := m["pins"].([]any); ok {
		r.Released = append([]string{}, nameList(list)...)
	}
	return r
}

func nameList(v any) []string {
	list, _ := v.([]any)
	var names []string
	for _, e := range list {
		if s, ok := e.(string); ok {
			names = append(names, s)
		}
	}
	return names
}

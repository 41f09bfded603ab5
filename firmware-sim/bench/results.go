package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// aim is what a ratio is held against: least is the proposed target, aim what
// this project wants. For a cost (lower is better) the signs turn.
type aim struct {
	least, aim float64
	lower      bool
}

// results collects every round's figures under their names, in order of first
// appearance.
type results struct {
	names  []string
	values map[string][]float64
	kind   map[string]string // rate, time, ratio
	aims   map[string]aim
}

func newResults() *results {
	return &results{values: map[string][]float64{}, kind: map[string]string{}, aims: map[string]aim{}}
}

func (r *results) add(kind, name string, v float64) {
	if _, ok := r.values[name]; !ok {
		r.names = append(r.names, name)
	}
	r.values[name] = append(r.values[name], v)
	r.kind[name] = kind
}

func (r *results) rate(name string, perSecond float64) { r.add("rate", name, perSecond) }
func (r *results) time(name string, d time.Duration)   { r.add("time", name, float64(d.Microseconds())) }
func (r *results) ratio(name string, v float64, a aim) { r.add("ratio", name, v); r.aims[name] = a }

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}

// quantile of durations, q from 0 to 1.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(d))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

func (r *results) print(w io.Writer) {
	_, _ = fmt.Fprintf(w, "\nRatios, median of the rounds (what this is about)\n\n")
	_, _ = fmt.Fprintf(w, "  %-58s %8s  %8s %8s  %s\n", "measure", "ratio", "target", "aim", "")
	for _, name := range r.names {
		if r.kind[name] != "ratio" {
			continue
		}
		a, m := r.aims[name], median(r.values[name])
		verdict := "below target"
		switch {
		case !a.lower && m >= a.aim, a.lower && m <= a.aim:
			verdict = "aim reached"
		case !a.lower && m >= a.least, a.lower && m <= a.least:
			verdict = "target reached"
		}
		_, _ = fmt.Fprintf(w, "  %-58s %8.2f  %8.2f %8.2f  %s\n", name, m, a.least, a.aim, verdict)
	}
	_, _ = fmt.Fprintf(w, "\nAbsolute figures of this machine (for orientation only)\n\n")
	for _, name := range r.names {
		switch m := median(r.values[name]); r.kind[name] {
		case "rate":
			_, _ = fmt.Fprintf(w, "  %-58s %10.0f /s\n", name, m)
		case "time":
			_, _ = fmt.Fprintf(w, "  %-58s %10.0f us\n", name, m)
		}
	}
}

func (r *results) json(w io.Writer) error {
	type row struct {
		Name   string    `json:"name"`
		Kind   string    `json:"kind"`
		Median float64   `json:"median"`
		Rounds []float64 `json:"rounds"`
		Target float64   `json:"target,omitempty"`
		Aim    float64   `json:"aim,omitempty"`
	}
	rows := make([]row, 0, len(r.names))
	for _, name := range r.names {
		a := r.aims[name]
		rows = append(rows, row{name, r.kind[name], median(r.values[name]), r.values[name], a.least, a.aim})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(rows)
}

package explore

// Shrink leaves out steps of a failing run as long as the same rule still breaks,
// and returns the smallest run that it found within a number of tries. What
// remains is a plan that a person can read.
func Shrink(r Result, tries int) (Result, error) {
	if r.Violation == nil {
		return r, nil
	}
	s := shrinker{best: r, tries: tries}
	all := make([]int, 0, r.Steps)
	skipped := map[int]bool{}
	for _, k := range r.Options.Skip {
		skipped[k] = true
	}
	for k := range r.Steps {
		if !skipped[k] {
			all = append(all, k)
		}
	}
	s.keep = all
	for size := (len(all) + 1) / 2; size >= 1 && s.err == nil; size /= 2 {
		for at := 0; at < len(s.keep) && s.tries > 0 && s.err == nil; {
			if !s.without(at, min(at+size, len(s.keep))) {
				at += size
			}
		}
	}
	return s.best, s.err
}

type shrinker struct {
	best  Result
	keep  []int // steps that are still played
	tries int
	err   error
}

// without tries the run without some of the kept steps, and stays with it if the
// same rule breaks.
func (s *shrinker) without(from, to int) bool {
	s.tries--
	kept := append(append([]int{}, s.keep[:from]...), s.keep[to:]...)
	o := s.best.Options
	o.Trace, o.Skip = nil, nil
	o.Span = s.best.Span // leaving out steps must not move the calm phase
	for k, n := 0, 0; k < s.best.Steps; k++ {
		if n < len(kept) && kept[n] == k {
			n++
			continue
		}
		o.Skip = append(o.Skip, k)
	}
	r, err := Run(o)
	if err != nil {
		s.err = err
		return false
	}
	if r.Violation == nil || r.Violation.Rule != s.best.Violation.Rule {
		return false
	}
	s.best, s.keep = r, kept
	return true
}

// shrinkTries bounds how often a failing run is played again: a few seconds.
const shrinkTries = 400

// traceTail is how many lines of the trace a report shows.
const traceTail = 60

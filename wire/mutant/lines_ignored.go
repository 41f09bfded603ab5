//go:build mutant_lines_ignored

package mutant

// Active is the fault that was planted.
const Active = LinesIgnored

//go:build mutant_version_not_raised

package mutant

// Active is the fault that was planted.
const Active = VersionNotRaised

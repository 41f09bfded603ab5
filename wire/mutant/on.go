//go:build mutants

package mutant

import "sync/atomic"

var planted atomic.Uint32

// On reports whether a fault is planted.
func On(f Fault) bool { return Fault(planted.Load()) == f }

// Plant plants one fault in the whole process and takes out the one before.
func Plant(f Fault) { planted.Store(uint32(f)) }

// Package mutanttest shows that the tests of a package notice planted faults: what they
// demand holds without a fault and breaks with it. It does something with the build tag
// mutants alone.
package mutanttest

//go:build !mutants

package main

import "flag"

// plantFlag adds nothing: there are no faults in a product.
func plantFlag(*flag.FlagSet) {}

//go:build mutants

package main

import (
	"flag"
	"fmt"

	"github.com/apollo-11/apollo11/wire/mutant"
)

// plantFlag lets a fault of wire/mutant be planted by its name.
func plantFlag(set *flag.FlagSet) {
	set.Func("plant", "plant a `FAULT` of wire/mutant into the product", func(name string) error {
		for _, f := range mutant.All() {
			if f.String() == name {
				mutant.Plant(f)
				return nil
			}
		}
		return fmt.Errorf("there is no fault of the name %q", name)
	})
}

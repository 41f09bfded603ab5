//go:build !race

package explore_test

const defaultSeeds = 300

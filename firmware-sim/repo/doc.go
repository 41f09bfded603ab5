// Package repo holds the rules of the repository as tests: which room may import
// which, what a pure core may not do, what lies at the top level, and that
// documents keep their word.
package repo

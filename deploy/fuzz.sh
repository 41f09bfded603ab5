#!/bin/sh
# Runs every fuzz target of the repository for FUZZTIME each.
set -eu
for file in $(git ls-files '*_test.go' | xargs grep -l '^func Fuzz'); do
	dir=./$(dirname "$file")
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "== $dir $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" "$dir"
	done
done

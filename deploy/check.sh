#!/bin/sh
# What `make check` runs: gofmt and go vet over everything, and the quick tests of
# what has changed, so that it is over within a minute on a small machine. It proves
# little beside `make test`, but it is cheap enough for every step.
#
#   BASE=revision   compare with this one instead of with the main branch
#   GO=go           the go command
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}

# Left out by name: harnesses that start processes, machines or whole campaigns. A
# package that is not quick belongs here, with its reason.
slow() {
	case $1 in
	firmware-sim/e2e | firmware-sim/e2e/*) echo "starts the real programs" ;;
	firmware-sim/lab | firmware-sim/lab/*) echo "emulates boards" ;;
	firmware-sim/torture | firmware-sim/torture/*) echo "kills the real programs under load" ;;
	firmware-sim/explore | firmware-sim/explore/*) echo "plays whole simulated sites" ;;
	firmware-sim/bench) echo "measures" ;;
	esac
}

now() { date +%s; }
began=$(now)
step=$began
took() {
	echo "      took $(($(now) - step)) s"
	step=$(now)
}

echo "check: gofmt, all Go files that git knows or could know"
out=$(git ls-files -z --cached --others --exclude-standard -- '*.go' |
	xargs -0 sh -c 'for f do [ ! -e "$f" ] || echo "$f"; done' sh | xargs gofmt -l)
if [ -n "$out" ]; then
	echo "gofmt would change:"
	echo "$out"
	exit 1
fi
took

echo "check: go vet ./..."
$GO vet ./...
took

# The base: where this branch left main. On main itself what was pushed, or without
# that the commit before. In a clone of one commit only what is not committed counts.
if [ -z "${BASE:-}" ]; then
	head=$(git rev-parse HEAD)
	if [ "$(git symbolic-ref --short -q HEAD || true)" = main ]; then
		BASE=$(git merge-base HEAD origin/main 2>/dev/null || true)
		if [ -z "$BASE" ] || [ "$BASE" = "$head" ]; then
			BASE=$(git rev-parse --verify --quiet HEAD~ || echo "$head")
		fi
	else
		BASE=$(git merge-base HEAD main 2>/dev/null || git merge-base HEAD origin/main 2>/dev/null ||
			git rev-parse --verify --quiet HEAD~ || echo "$head")
	fi
fi
echo "check: tests of what changed since $(git log -1 --format='%h %s' "$BASE")"
files=$( (git diff --name-only "$BASE" -- && git ls-files --others --exclude-standard) | sort -u)
if [ -z "$files" ]; then
	echo "      nothing has changed, so there is nothing to test"
	echo "check: all well after $(($(now) - began)) s"
	exit 0
fi

# A file belongs to the nearest directory above it that is a package: testdata,
# scripts and documents that a test reads change that package too.
module=$($GO list -m)
packages=$($GO list -f '{{$p := .ImportPath}}{{$p}}{{range .Imports}} {{.}}{{end}}{{range .TestImports}} {{.}}{{end}}{{range .XTestImports}} {{.}}{{end}}' ./...)
if echo "$files" | grep -q -E '^go\.(mod|sum)$'; then
	echo "      go.mod or go.sum has changed: every package counts as changed"
	changed=$(echo "$packages" | cut -d ' ' -f 1)
else
	changed=$(echo "$files" | awk -v module="$module" -v packages="$packages" '
		BEGIN { n = split(packages, lines, "\n"); for (k = 1; k <= n; k++) { split(lines[k], w, " "); is[w[1]] = 1 } }
		{ for (d = $0; sub("/[^/]*$", "", d); ) if ((module "/" d) in is) { print module "/" d; break } }' | sort -u)
fi
# Those that import a changed package directly, in their tests or not.
chosen=$(echo "$packages" | awk -v changed="$changed" '
	BEGIN { n = split(changed, c, "\n"); for (k = 1; k <= n; k++) if (c[k] != "") is[c[k]] = 1 }
	{ for (k = 1; k <= NF; k++) if ($k in is) { print $1; next } }')

# The rules of the repository itself are quick and concern every file.
chosen=$( (echo "$chosen"; echo "$module/firmware-sim/repo") | grep -v '^$' | sort -u)
tested=
for p in $chosen; do
	why=$(slow "${p#"$module"/}")
	if [ -n "$why" ]; then
		echo "      left out: ${p#"$module"/} ($why; make test runs it)"
		continue
	fi
	tested="$tested $p"
done
echo "      with -short, without the race detector: what is long in a package is left to make test"
# shellcheck disable=SC2086 # a list of packages
$GO test -short -timeout 5m $tested
took
echo "check: all well after $(($(now) - began)) s"

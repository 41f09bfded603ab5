#!/bin/sh
# Static, stripped binaries for field boards and gateways into $DIST (dist/), with
# checksums. The file name states the processor level: a binary for ARMv7 does
# not run on a Raspberry Pi Zero, which needs the one for ARMv6.
#
#   sh deploy/cross.sh                  everything
#   sh deploy/cross.sh apollo-agent     that program only
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
version=${VERSION:-dev}
dist=${DIST:-dist}
only=${1:-}
mkdir -p "$dist"
rm -f "$dist"/apollo* "$dist"/SHA256SUMS # never a checksum over an old build

build() { # program, package, GOARCH, GOARM, suffix
	[ -z "$only" ] || [ "$only" = "$1" ] || return 0
	echo "building $1-linux-$5"
	CGO_ENABLED=0 GOOS=linux GOARCH=$3 GOARM=$4 "$go" build -trimpath -ldflags "-s -w -X main.version=$version" \
		-o "$dist/$1-linux-$5" "$2"
}
build apollo-agent ./fieldagent/cmd/apollo-agent arm 6 armv6
build apollo-agent ./fieldagent/cmd/apollo-agent arm 7 armv7
build apollo-agent ./fieldagent/cmd/apollo-agent arm64 '' arm64
build apollo-gateway ./gateway/cmd/apollo-gateway arm64 '' arm64
build apollo-gateway ./gateway/cmd/apollo-gateway amd64 '' amd64
build apollo ./gateway/cmd/apollo arm64 '' arm64
build apollo ./gateway/cmd/apollo amd64 '' amd64

cd "$dist"
[ "$(ls | grep -c '^apollo')" -gt 0 ] || { echo "no program is called $only" >&2; exit 2; }
sha256sum apollo* >SHA256SUMS
echo
for f in apollo*; do
	printf '%-30s %6.1f MiB\n' "$f" "$(wc -c <"$f" | awk '{print $1/1048576}')"
done
echo "checksums in $dist/SHA256SUMS: verify with  cd $dist && sha256sum -c SHA256SUMS"

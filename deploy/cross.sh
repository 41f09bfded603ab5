#!/bin/sh
# Static, stripped binaries for field boards and gateways into dist/, with
# checksums. The file name states the processor level: a binary for ARMv7 does
# not run on a Raspberry Pi Zero.
set -eu
version=${VERSION:-dev}
mkdir -p dist
build() { # program, package, GOARCH, GOARM, suffix
	echo "building $1-linux-$5"
	CGO_ENABLED=0 GOOS=linux GOARCH=$3 GOARM=$4 go build -trimpath -ldflags "-s -w -X main.version=$version" \
		-o "dist/$1-linux-$5" "$2"
}
build apollo-agent ./fieldagent/cmd/apollo-agent arm 6 armv6
build apollo-agent ./fieldagent/cmd/apollo-agent arm 7 armv7
build apollo-agent ./fieldagent/cmd/apollo-agent arm64 '' arm64
build apollo-gateway ./gateway/cmd/apollo-gateway arm64 '' arm64
build apollo-gateway ./gateway/cmd/apollo-gateway amd64 '' amd64
build apollo ./gateway/cmd/apollo arm64 '' arm64
build apollo ./gateway/cmd/apollo amd64 '' amd64
(cd dist && sha256sum apollo-* >SHA256SUMS)
echo
(cd dist && for f in apollo-*; do
	printf '%-30s %6.1f MiB\n' "$f" "$(wc -c <"$f" | awk '{print $1/1048576}')"
done)
echo "checksums in dist/SHA256SUMS"

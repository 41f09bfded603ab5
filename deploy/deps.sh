#!/bin/sh
# Installs the programs that tests and demo use beside Go, or says what is missing.
# In CI a missing one is a failure; elsewhere its tests are skipped and say so.
#
#   sh deploy/deps.sh                  all
#   sh deploy/deps.sh mosquitto_pub    only the package of that program
set -u
only=${1:-}
missing=""
need() { # program, Debian package
	[ -z "$only" ] || [ "$only" = "$1" ] || return 0
	command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need mosquitto_pub mosquitto-clients
need qemu-arm-static qemu-user-static
need qemu-system-aarch64 qemu-system-arm
need mke2fs e2fsprogs
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing$missing"
	(apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing) >/dev/null 2>&1 && exit 0
	echo "could not install$missing with apt-get"
fi
echo "missing:$missing"
echo "on Debian or Ubuntu: sudo apt-get install$missing"
[ "${CI:-}" = true ] && exit 1
[ -n "$only" ] || echo "going on without; the tests that need them will be skipped and say so"

#!/bin/sh
# Installs what the part link of torture uses, or says what is missing. In CI a
# missing one is a failure; elsewhere the part is left out and says so.
set -u
missing=""
command -v ip >/dev/null 2>&1 || missing="$missing iproute2"
command -v nft >/dev/null 2>&1 || missing="$missing nftables"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing$missing"
	(apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing) >/dev/null 2>&1 && exit 0
	echo "could not install$missing with apt-get"
fi
echo "missing:$missing"
echo "on Debian or Ubuntu: sudo apt-get install$missing"
[ "${CI:-}" = true ] && exit 1
exit 0

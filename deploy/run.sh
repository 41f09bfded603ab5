#!/bin/sh
# A gateway and one simulated agent, in the foreground, on the usual ports; data
# goes to ./data. Ctrl-C ends both; if one of them ends, so does the other.
# MQTT, NARROWBAND, WS, HTTP (host:port) and DATA (a directory) change that.
set -eu
cd "$(dirname "$0")/.."
bin=${BIN:-bin} data=${DATA:-data}
mqtt=${MQTT:-127.0.0.1:1883} narrow=${NARROWBAND:-127.0.0.1:1884} ws=${WS:-127.0.0.1:8083} http=${HTTP:-127.0.0.1:8080}
for p in apollo-gateway apollo-agent; do
	[ -x "$bin/$p" ] || { echo "run: $bin/$p is missing: use make run, which builds it" >&2; exit 1; }
done
mkdir -p "$data"
gateway='' agent=''
finish() {
	for p in $agent $gateway; do kill "$p" 2>/dev/null || :; done
	wait 2>/dev/null || :
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$bin"/apollo-gateway --data "$data/gateway" --mqtt "$mqtt" --narrowband "$narrow" --ws "$ws" --http "$http" &
gateway=$!
"$bin"/apollo-agent --gateway "tcp://$mqtt" --narrowband "tcp://$narrow" \
	--node pump-1 --label role=worker --gpio sim --gpio-trace "$data/pins" --data "$data/agent" &
agent=$!
cat >&2 <<EOF

  Another terminal:
    export APOLLO_GATEWAY=http://$http
    $bin/apollo task submit --intent gpio.write --node pump-1 --arg pin=GPIO17 --arg level=1 --ttl 30s --wait
    $bin/apollo task list
    $bin/apollo timeline TASK
    tail $data/pins            (each actuation of the simulated pins)
  Ctrl-C ends both.

EOF
while kill -0 "$gateway" 2>/dev/null && kill -0 "$agent" 2>/dev/null; do sleep 1; done
kill -0 "$agent" 2>/dev/null || agent=''
if ! kill -0 "$gateway" 2>/dev/null; then
	code=0
	wait "$gateway" || code=$?
	gateway=''
	echo "run: the gateway has ended ($code)" >&2
	exit "$code"
fi
echo "run: the agent has ended" >&2
exit 1

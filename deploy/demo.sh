#!/bin/sh
# The way of one command, shown with the real programs: a JSON task published by
# an MQTT client becomes a durable record, a CBOR instruction, a pin level, an
# acknowledgement and a timeline. Everything runs on loopback in a temporary
# directory and is gone afterwards.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
gateway='' agent='' sub=''
finish() {
	for p in $sub $agent $gateway; do kill "$p" 2>/dev/null || :; done
	wait 2>/dev/null || :
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM

step() { printf '\n\033[1m%s\033[0m\n' "$*" | { [ -t 1 ] && cat || sed 's/\x1b\[[0-9;]*m//g'; }; }
fail() { echo "demo: $*" >&2; echo "--- gateway log"; tail -20 "$dir/gateway.log"; echo "--- agent log"; tail -20 "$dir/agent.log" 2>/dev/null; exit 1; }
until_ok() { # seconds, what, command...
	n=$(($1 * 10)); what=$2; shift 2
	while ! "$@" >/dev/null 2>&1; do
		n=$((n - 1)); [ $n -gt 0 ] || fail "$what did not happen in time"
		sleep 0.1
	done
}

sh deploy/deps.sh >"$dir/deps.log" 2>&1 || :
if ! command -v mosquitto_pub >/dev/null 2>&1; then
	cat "$dir/deps.log"
	echo "the demo publishes with mosquitto_pub, a stock MQTT client: install mosquitto-clients and run it again"
	exit 1
fi

bin/apollo-gateway --data "$dir/gateway" --mqtt 127.0.0.1:0 --ws off --narrowband 127.0.0.1:0 --http 127.0.0.1:0 \
	>"$dir/gateway.out" 2>"$dir/gateway.log" &
gateway=$!
until_ok 30 "the gateway's start" grep -q '^ready' "$dir/gateway.out"
addr() { awk -v d="$1" '$2==d{print $3}' "$dir/gateway.out"; }
mqtt=$(addr mqtt) narrow=$(addr narrowband)
export APOLLO_GATEWAY="http://$(addr http)"
host=${mqtt%:*} port=${mqtt##*:}

step "1. The gateway is up; its log is in a directory of its own"
cat "$dir/gateway.out"

step "2. A SCADA tool publishes a command; the board is still switched off"
task='{"task_id":"demo-1","intent":"gpio.write","node":"pump-1","args":{"pin":"GPIO17","level":1},"ttl":"60s"}'
echo "mosquitto_pub -q 1 -t apollo/default/task -m '$task'"
mosquitto_sub -h "$host" -p "$port" -t 'apollo/default/task/+/status' -F '%t %p' >"$dir/status" &
sub=$!
mosquitto_pub -h "$host" -p "$port" -q 1 -t apollo/default/task -m "$task" || fail "mosquitto_pub was refused"
echo "mosquitto_pub returned: the command is on the gateway's disk"
bin/apollo task status demo-1

step "3. Power cut at the gateway (SIGKILL), and a restart"
kill -9 $gateway; wait $gateway 2>/dev/null || :
bin/apollo-gateway --data "$dir/gateway" --mqtt "$mqtt" --ws off --narrowband "$narrow" --http "${APOLLO_GATEWAY#http://}" \
	>"$dir/gateway.out" 2>>"$dir/gateway.log" &
gateway=$!
until_ok 30 "the gateway's restart" grep -q '^ready' "$dir/gateway.out"
kill $sub 2>/dev/null || :
mosquitto_sub -h "$host" -p "$port" -t 'apollo/default/task/+/status' -F '%t %p' >>"$dir/status" &
sub=$!

step "4. The board is switched on; the command finds it"
bin/apollo-agent --gateway "tcp://$mqtt" --narrowband "tcp://$narrow" --node pump-1 --label role=worker \
	--gpio sim --gpio-trace "$dir/pins" --data "$dir/agent" 2>"$dir/agent.log" &
agent=$!
until_ok 30 "the command" sh -c "bin/apollo task status demo-1 | grep -q SUCCEEDED"
bin/apollo task status demo-1

step "5. What happened at the pin (each line is one actuation)"
cat "$dir/pins"

step "6. The same task again: it is known, nothing moves twice"
mosquitto_pub -h "$host" -p "$port" -q 1 -t apollo/default/task -m "$task"
echo "actuations of the pin: $(grep -c GPIO17 "$dir/pins")"

step "7. A task for every board with a label, from a file"
bin/apollo task submit --file deploy/examples/collect-metrics.yaml --wait

step "8. What the status topic showed"
cut -c1-150 "$dir/status"

step "9. The timeline of the command"
bin/apollo timeline demo-1

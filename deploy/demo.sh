#!/bin/sh
# The way of one command, shown with the real programs: a JSON task published by
# an MQTT client becomes a durable record, a CBOR instruction, a pin level, an
# acknowledgement and a timeline. Everything runs on loopback, on free ports, in
# a temporary directory, and is gone afterwards.
set -eu
cd "$(dirname "$0")/.."
bin=${BIN:-bin}
for p in apollo apollo-gateway apollo-agent; do
	[ -x "$bin/$p" ] || { echo "demo: $bin/$p is missing: run make demo, which builds it" >&2; exit 1; }
done
sh deploy/deps.sh mosquitto_pub || :
if ! command -v mosquitto_pub >/dev/null 2>&1; then
	echo "demo: it publishes with mosquitto_pub, a stock MQTT client: install mosquitto-clients and run it again" >&2
	exit 1
fi

dir=$(mktemp -d)
gateway='' agent='' sub=''
finish() {
	for p in $sub $agent $gateway; do kill "$p" 2>/dev/null || :; done
	wait 2>/dev/null || :
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); else bold='' plain=''; fi
step() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
shown() { echo "\$ $*"; } # the command as a reader would type it
fail() {
	echo "demo: $*" >&2
	for f in gateway agent; do
		[ ! -s "$dir/$f.log" ] || { echo "--- log of the $f"; tail -n 20 "$dir/$f.log"; } >&2
	done
	exit 1
}
alive() { # pid, what
	kill -0 "$1" 2>/dev/null || fail "the $2 has ended"
}
until_ok() { # seconds, what, command...
	n=$(($1 * 10)) what=$2
	shift 2
	while ! "$@" >/dev/null 2>&1; do
		n=$((n - 1))
		[ $n -gt 0 ] || fail "$what did not happen in time"
		[ -z "$gateway" ] || alive "$gateway" gateway
		[ -z "$agent" ] || alive "$agent" agent
		sleep 0.1
	done
}
state() { "$bin"/apollo task status "$1" | grep -q "^state *$2"; }

mqtt=127.0.0.1:0 narrow=127.0.0.1:0 http=127.0.0.1:0 # free ports, kept over the restart
start_gateway() {
	rm -f "$dir/gateway.out" # what the one before has said
	"$bin"/apollo-gateway --data "$dir/gateway" --mqtt $mqtt --ws off --narrowband $narrow --http $http \
		>"$dir/gateway.out" 2>>"$dir/gateway.log" &
	gateway=$!
	until_ok 30 "the gateway's start" grep -q '^ready' "$dir/gateway.out"
	mqtt=$(addr mqtt) narrow=$(addr narrowband) http=$(addr http)
	export APOLLO_GATEWAY="http://$http"
	host=${mqtt%:*} port=${mqtt##*:}
	mosquitto_sub -i scada-panel -h "$host" -p "$port" -t 'apollo/default/task/+/status' -F '@H:@M:@S %p' >>"$dir/status" &
	sub=$!
}
addr() { awk -v d="$1" '$2==d{print $3}' "$dir/gateway.out"; }
publish() { mosquitto_pub -i scada -h "$host" -p "$port" -q 1 -t apollo/default/task -m "$1" || fail "mosquitto_pub was refused"; }

step "1. A gateway starts; everything it knows is in its log on disk"
start_gateway
cat "$dir/gateway.out"

step "2. A SCADA tool publishes a command; the board is still switched off"
task='{"task_id":"demo-1","intent":"gpio.write","node":"pump-1","args":{"pin":"GPIO17","level":1},"ttl":"60s"}'
shown "mosquitto_pub -q 1 -t apollo/default/task -m '$task'"
publish "$task"
echo "mosquitto_pub has returned: the command is fsync'd in the gateway's log"
shown "apollo task status demo-1"
"$bin"/apollo task status demo-1

step "3. A second one, good for one second only"
late='{"task_id":"demo-late","intent":"gpio.write","node":"pump-1","args":{"pin":"GPIO27","level":1},"ttl":"1s"}'
shown "mosquitto_pub -q 1 -t apollo/default/task -m '$late'"
publish "$late"
until_ok 30 "its expiry" state demo-late TIMEOUT

step "4. Power cut at the gateway (kill -9), and a restart"
kill $sub 2>/dev/null || :
kill -9 "$gateway"
wait "$gateway" 2>/dev/null || :
start_gateway
sed -n 's/.*msg="log recovered".* unfinished=\([0-9]*\).* took=\([^ ]*\).*/recovered in \2: \1 unfinished command/p' "$dir/gateway.log" | tail -n 1

step "5. The board is switched on; the command finds it"
"$bin"/apollo-agent --gateway "tcp://$mqtt" --narrowband "tcp://$narrow" --node pump-1 --label role=worker \
	--gpio sim --gpio-trace "$dir/pins" --data "$dir/agent" 2>"$dir/agent.log" &
agent=$!
until_ok 30 "the command" state demo-1 SUCCEEDED
shown "apollo task list"
"$bin"/apollo task list

step "6. What happened at the pins: one line an actuation, nothing of the late command"
cat "$dir/pins"

step "7. The first command again: it is known, nothing moves twice"
publish "$task"
echo "actuations of GPIO17: $(grep -c '"GPIO17"' "$dir/pins")"

step "8. A task for every board with the label role=worker, from a file"
shown "apollo task submit --file deploy/examples/collect-metrics.yaml --wait"
"$bin"/apollo task submit --file deploy/examples/collect-metrics.yaml --wait

step "9. What the panel saw on apollo/default/task/+/status"
until_ok 10 "the last status" sh -c "tail -n 1 '$dir/status' | grep -q '\"state\":\"SUCCEEDED\"'"
sed -n 's/^\([^ ]*\) .*"task_id":"\([^"]*\)".*"state":"\([^"]*\)".*"reason":"\([^"]*\)".*/\1  \2  \3 \4/p' "$dir/status"

step "10. The timeline of the first command: every step, its time, actor, token and path"
shown "apollo timeline demo-1"
"$bin"/apollo timeline demo-1

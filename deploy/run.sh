#!/bin/sh
# A gateway and one simulated agent, in the foreground. Data goes to ./data.
set -eu
cd "$(dirname "$0")/.."
mkdir -p data
bin/apollo-gateway --data data/gateway &
gateway=$!
bin/apollo-agent --gateway tcp://127.0.0.1:1883 --narrowband tcp://127.0.0.1:1884 \
	--node pump-1 --label role=worker --gpio sim --data data/agent &
agent=$!
trap 'kill $agent $gateway 2>/dev/null; wait' INT TERM EXIT
wait $gateway

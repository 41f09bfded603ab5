# Apollo-11. `make` alone lists what there is.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
BUILD   := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)'

.DEFAULT_GOAL := help
.PHONY: help demo run check test lint bench torture lab lab-soak explore mutants nightly build agents deps fuzz clean

help: ## list the targets
	@echo "Apollo-11: targets"
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build ## a command's whole way, from an MQTT client to a pin and back, shown
	@sh deploy/demo.sh

run: build ## a gateway and a simulated agent in the foreground, until Ctrl-C
	@sh deploy/run.sh

check: ## format, vet and the quick tests of what changed since main, in a minute
	@GO='$(GO)' sh deploy/check.sh

test: deps ## all tests, with the race detector
	$(GO) test -race -timeout 20m ./...

lint: ## gofmt, go vet, staticcheck
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	GOOS=linux GOARCH=arm GOARM=6 $(GO) vet ./fieldagent/... ./wire/...
	$(GO) tool staticcheck ./...

bench: ## measures as ratios, side by side in one run (see docs/performance.md)
	$(GO) run ./firmware-sim/bench

explore: ## 2,000 simulated sites with all their faults; a broken rule prints its seed
	$(GO) run ./firmware-sim/explore/cmd --seeds 1-2000

mutants: ## the same with planted faults, each of which must be caught
	$(GO) test -tags mutants -run Mutants -v ./fieldagent/executor ./fieldagent/lines ./fieldagent/round ./fieldagent/gpio ./gateway/engine ./firmware-sim/explore

nightly: ## simulated sites for FOR (default 1h)
	$(GO) run ./firmware-sim/explore/cmd --seeds 1- --nodes 5 --for $${FOR:-1h}

torture: ## real processes killed, cut off and made deaf; what became of every command
	$(GO) run ./firmware-sim/torture

lab: deps ## emulated boards: real GPIO lines, pulled cables, power cuts (see docs/lab.md)
	APOLLO_LAB=1 $(GO) test -count=1 -timeout 30m -v ./firmware-sim/lab

lab-soak: deps ## the same with CUTS (default 100) power cuts and a cable pulled for two minutes
	APOLLO_LAB=1 APOLLO_LAB_CUTS=$${CUTS:-100} APOLLO_LAB_CABLE=2m $(GO) test -count=1 -timeout 4h -v ./firmware-sim/lab

build: ## bin/apollo-gateway, bin/apollo-agent, bin/apollo for this machine
	@mkdir -p bin
	$(BUILD) -o bin/ ./gateway/cmd/apollo-gateway ./gateway/cmd/apollo ./fieldagent/cmd/apollo-agent

agents: ## dist/: static agents for ARMv6, ARMv7, ARM64; gateways for ARM64, AMD64
	@VERSION='$(VERSION)' sh deploy/cross.sh

deps: ## what the tests use beside Go: mosquitto-clients, qemu, e2fsprogs, iproute2, nftables
	@sh deploy/deps.sh
	@sh firmware-sim/torture/deps.sh

fuzz: ## every fuzz target for FUZZTIME (default 30s) each
	@FUZZTIME=$${FUZZTIME:-30s} sh deploy/fuzz.sh

clean: ## remove bin/ and dist/
	rm -rf bin dist

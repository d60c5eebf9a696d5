# Everything is built with Go alone; `make help` lists what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/fairlead-dev/fairlead/pkg/version.Version=$(VERSION)
TOOLS   := go tool -modfile=hack/tools/go.mod

# Packages whose tests start control planes. Two run at a time, since they mostly wait; each takes up to 2.5 GB.
# The long ones come first. verify.sh vets them all.
LONG        = $(addprefix $(shell go list -m)/,integrationtests/resilience integrationtests/bench/hub integrationtests/hub \
	integrationtests/outage pkg/agent/controller cmd/fleetagent)
ON_CLUSTERS = $(shell go list -f '{{.ImportPath}} {{.Imports}} {{.TestImports}} {{.XTestImports}}' ./... | \
	grep -E 'integrationtests/(kube|stack)' | cut -d' ' -f1)
UNIT        = $(filter-out $(ON_CLUSTERS),$(shell go list ./...))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the three programs into bin/
	@mkdir -p bin
	go build -ldflags '$(LDFLAGS)' -o bin/fleet-controller ./cmd/fleetcontroller
	go build -ldflags '$(LDFLAGS)' -o bin/fleet-agent ./cmd/fleetagent
	go build -ldflags '$(LDFLAGS)' -o bin/fleet ./cmd/fleet

.PHONY: kube
kube: ## Build the control plane that tests and demo run on (once per version)
	@hack/kube/build.sh

.PHONY: generate
generate: ## Write generated files: deep copies and custom resource definitions
	go generate ./pkg/...

.PHONY: test
test: unit integration ## Run every test

.PHONY: unit
unit: ## Run the tests that need no cluster
	go test -ldflags=-w -vet=off $(UNIT)

.PHONY: integration
integration: kube ## Run the tests on real clusters
	go test -ldflags=-w -vet=off -p 2 -parallel 4 -timeout 25m $(LONG) $(filter-out $(LONG),$(ON_CLUSTERS))

.PHONY: demo
demo: ## Run a hub and three members with the examples; ONCE=1 runs through and stops
	@echo "compiling the demo (seconds, but for the first time) ..."
	@go run ./hack/demo $(if $(ONCE),-once)

.PHONY: demo-down
demo-down: ## Stop what a running demo started
	@go run ./hack/demo -down

.PHONY: bench
bench: kube ## Print the figures of docs/benchmarks.md, and write them to bin/bench*.json
	@mkdir -p bin
	BENCH_JSON='$(CURDIR)/bin/bench.json' BENCH_AGENT_JSON='$(CURDIR)/bin/bench-agent.json' \
		go test -p 1 -run '^$$' -bench . -benchtime 1x -timeout 60m ./pkg/bundle ./integrationtests/bench ./integrationtests/bench/agent

CLUSTERS ?= 200
BUNDLES  ?= 20

.PHONY: bench-hub
bench-hub: kube ## Measure the hub under CLUSTERS played clusters and BUNDLES bundles, into bin/bench-hub.json
	@mkdir -p bin
	CLUSTERS=$(CLUSTERS) BUNDLES=$(BUNDLES) MERGE=$(MERGE) BENCH_JSON='$(CURDIR)/bin/bench-hub.json' go test -run '^$$' -bench Hub -benchtime 1x -timeout 180m ./integrationtests/bench/hub

.PHONY: verify
verify: ## Check generated files, modules, vet, lint, layers and docs
	hack/verify.sh

.PHONY: lint
lint: ## Run the linters alone
	$(TOOLS) golangci-lint run --allow-parallel-runners ./...

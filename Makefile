# Two commands are all that a reader needs: `make run` and `make test`.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.ONESHELL:
.PHONY: help build run test race lint fuzz bench cover golden tapes training services services-stop integration e2e crash verify ci clean

GO ?= go
# What a target works on: make race PKG=./shared/eventlog/...
PKG ?= ./...
# The folders that hold Go code; a glob, as a tree grows.
SRC := $(wildcard cmd functions shared docs infra testdata)

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/mem and bin/fn
	@$(GO) build -o bin/ ./cmd/mem ./cmd/fn

run: build ## start Mneme on ./.mneme, upload the samples, print a cited answer, stay up
	@exec ./bin/mem up --dir ./.mneme --sample

test: ## every test, also against the servers of `make services` that run; what is skipped is named
	@eval "$$(infra/local/services/all.sh env $(SERVICES))"
	infra/local/services/all.sh versions | sed 's/^/tests talk to /'
	.ci/gotest -timeout 15m $(PKG)

race: ## the same under the race detector
	@$(GO) test -race -timeout 20m $(PKG)

lint: ## gofmt, vet, staticcheck and the import rules
	@bad=$$(find $(SRC) -name '*.go' -not -path '*/_*' -exec gofmt -l {} +)
	[ -z "$$bad" ] || { echo "gofmt -w these:"; echo "$$bad"; exit 1; }
	echo "gofmt: clean"
	$(GO) vet ./...
	echo "vet: clean"
	$(GO) tool staticcheck ./...
	echo "staticcheck: clean"
	$(GO) test -count=1 ./shared/archtest

FUZZTIME ?= 10s
fuzz: ## each fuzz law for FUZZTIME (10s)
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' $(SRC) | xargs -n1 dirname | sort -u); do
	  for law in $$(grep -ho --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c6-); do
	    echo "== $$dir $$law"
	    $(GO) test -run '^$$' -fuzz "^$$law\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s ./$$dir
	  done
	done

BENCH ?= .
BENCHTIME ?= 1s
bench: ## the figures of speed and memory; BENCH=regexp BENCHTIME=1s
	@dirs=$$(grep -rl --include='*_test.go' '^func Benchmark' $(SRC) | xargs -n1 dirname | sort -u | sed 's|^|./|')
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) -timeout 60m $$dirs

cover: ## statement coverage over all packages; writes cover.out
	@$(GO) test -coverprofile cover.out -coverpkg ./... -timeout 20m ./... >/dev/null
	$(GO) tool cover -func cover.out | tail -n 1

golden: ## write the golden files anew; read the diff before you commit it
	@for dir in $$(grep -rlE --include='*_test.go' 'flag\.Bool\("update"|golden\.Update' $(SRC) | xargs -rn1 dirname | sort -u); do $(GO) test -count=1 ./$$dir -update; done
	for dir in $$(grep -rl --include='*_test.go' 'cockroachdb/datadriven' $(SRC) | xargs -rn1 dirname | sort -u); do $(GO) test -count=1 ./$$dir -rewrite; done
	git --no-pager diff --stat

training: ## Python readers and trainers over exports, installed from PyPI into a throwaway environment (some 6 GB)
	MNEME_TEST_PYTHON=1 MNEME_TEST_TRL=1 MNEME_TEST_TRAINERS=1 MNEME_TEST_REQUIRE=python,trl $(GO) test -v -count=1 -timeout 60m ./shared/export -run '^Test(Python|TRL|Trainers)$$'

SERVICES ?= /var/tmp/mneme-services-$(shell id -u)
services: ## start versitygw, MinIO, PostgreSQL and OpenSearch for tests, which `make test` finds; services-stop ends them
	@infra/local/services/all.sh start $(SERVICES)

services-stop:
	@infra/local/services/all.sh stop $(SERVICES)

S3 ?= versitygw
tapes: ## record anew what a real model server answers, for tests; MNEME_TEST_OLLAMA=URL of a fresh infra/local/services/ollama.sh
	@MNEME_RECORD=1 $(GO) test -count=1 -p 1 -run 'Tape$$' ./shared/llm/ollama ./cmd/internal/wire

integration: ## the suites that need an S3 server, against S3=versitygw or S3=minio
	@suites=$$(grep -rlE --include='*_test.go' 'MNEME_TEST_S3' $(SRC) | xargs -rn1 dirname | sort -u | sed 's|^|./|' || true)
	[ -n "$$suites" ] || { echo "no suite reads MNEME_TEST_S3"; exit 1; }
	dir=$$(mktemp -d)
	trap 'infra/local/services/s3.sh $(S3) stop $$dir || true; rm -rf $$dir' EXIT
	MNEME_TEST_S3=$$(infra/local/services/s3.sh $(S3) start $$dir)
	export MNEME_TEST_S3 MNEME_TEST_REQUIRE=s3
	.ci/gotest -count=1 -timeout 20m $$suites

e2e: ## the whole program: command-line scripts, rebuild, order of events
	@.ci/gotest -count=1 -timeout 20m ./cmd/...

MNEME_CRASH_RUNS ?= 50
# Which of them; those that kill stores too need PostgreSQL and OpenSearch.
CRASH ?= ^TestCrash
crash: ## kill -9 at random moments of an ingest, MNEME_CRASH_RUNS times (50); with MNEME_TEST_PG and _OS also servers like those
	@MNEME_CRASH_RUNS=$(MNEME_CRASH_RUNS) $(GO) test ./cmd/mem -run '$(CRASH)' -count=1 -v -timeout 60m

verify: ## fail when a generated file or go.mod is stale
	@$(GO) mod verify
	$(GO) mod tidy -diff
	state() { { git status --porcelain; git diff; } | sha256sum; }
	before=$$(state)
	$(GO) generate ./...
	[ "$$(state)" = "$$before" ] || { echo "stale: go generate changed"; git --no-pager diff --stat; exit 1; }

ci: ## all that CI runs
	@.ci/run

clean: ## remove what the targets build; ./.mneme stays, it holds memories
	@rm -rf bin cover.out

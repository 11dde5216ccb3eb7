# Annals. `make help` lists every target.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV := .venv
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
unexport PYTHONPATH

PACKAGES := services/common services/storage services/context clients/python services/local
STUBS := services/common/src/annals
PROTOS := $(shell find proto -name '*.proto')
PIP := python -m pip install --quiet --disable-pip-version-check
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-header --no-annotate
PYTEST := python -m pytest
TESTS ?=

.PHONY: help
help: ## List every target
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "%-16s %s\n", $$1, $$2}'

# Installing ---------------------------------------------------------------------------------

.PHONY: install
install: $(VENV)/.packages ## Create .venv, install what is locked, generate the stubs

$(VENV)/.locked: requirements.lock requirements-assets.lock
	@$(PYTHON) -c 'import sys; sys.exit("Annals needs Python 3.11 or newer: make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) --require-hashes --no-deps -r requirements-assets.lock
	@touch $@

$(STUBS)/.generated: $(VENV)/.locked $(PROTOS)
	rm -rf $(STUBS) && mkdir -p $(STUBS)
	python -m grpc_tools.protoc -Iproto --python_out=$(dir $(STUBS)) --grpc_python_out=$(dir $(STUBS)) \
	  --mypy_out=quiet:$(dir $(STUBS)) --mypy_grpc_out=quiet:$(dir $(STUBS)) $(PROTOS)
	@touch $@

$(VENV)/.packages: $(STUBS)/.generated $(PACKAGES:%=%/pyproject.toml)
	$(PIP) --no-deps --no-build-isolation $(PACKAGES:%=-e %)
	@touch $@

.PHONY: proto
proto: $(STUBS)/.generated ## Generate the gRPC stubs from proto/

.PHONY: lock
lock: $(VENV)/.locked ## Resolve requirements*.in anew into requirements*.lock
	$(LOCK) --upgrade requirements.in -o requirements.lock
	$(LOCK) --upgrade --no-deps requirements-assets.in -o requirements-assets.lock
	$(MAKE) lock-images

.PHONY: lock-images
lock-images: $(VENV)/.locked ## What each image needs, at the versions of requirements.lock
	for name in storage context build; do \
	  python deploy/docker/requirements.py $$name \
	    | $(LOCK) - -c requirements.lock -o deploy/docker/requirements-$$name.lock; done

# Running ------------------------------------------------------------------------------------

.PHONY: run
run: install ## Start everything on this machine, ingest a sample, show a context, keep serving
	annals-local run

.PHONY: demo
demo: install ## The same with three questions, then exit
	annals-local demo

# Checking -----------------------------------------------------------------------------------

.PHONY: format
format: install ## Format the code
	ruff check --fix --quiet . || true
	ruff format --quiet .

.PHONY: lint
lint: install ## ruff, mypy, buf lint, buf breaking
	ruff check .
	ruff format --check .
	mypy
	buf lint
	python -m tests.house.breaking

.PHONY: test
test: lint ## Every check and every suite (TESTS=tests/unit for a part)
	$(PYTEST) --numprocesses=logical --maxprocesses=4 --dist=worksteal $(TESTS)

.PHONY: helm-test
helm-test: install ## The chart, alert rules and dashboards, with tools fetched into build/tools
	tests/helm/install_tools.sh
	$(PYTEST) -o python_files='check_*.py' tests/helm

.PHONY: images
images: ## Build both images (needs a container engine)
	docker build -f deploy/docker/storage.Dockerfile -t annals-storage:0.1.0 .
	docker build -f deploy/docker/context.Dockerfile -t annals-context:0.1.0 .

.PHONY: image-test
image-test: install ## Every stage of the images, in clean environments, without a container engine
	$(PYTEST) -o python_files='check_*.py' tests/image

.PHONY: helm-readme
helm-readme: install ## Write the chart's table of values anew
	python -m tests.helm.readme

.PHONY: model
model: install ## Conversations against a model of them (STEPS=10000, SEED=1, SHRINK=1)
	STEPS=$(or $(STEPS),10000) SEED=$(or $(SEED),1) $(if $(SHRINK),SHRINK=1) $(PYTEST) tests/model

.PHONY: chaos
chaos: install ## kill -9 of storage, an indexer and PostgreSQL under load (KILLS=20)
	KILLS=$(or $(KILLS),20) $(PYTEST) tests/chaos

.PHONY: fuzz
fuzz: install ## Long runs of the property and fuzz tests
	ANNALS_HYPOTHESIS_PROFILE=big ANNALS_FUZZ_EXAMPLES=$(or $(EXAMPLES),500) \
	  $(PYTEST) tests/unit/context tests/fuzz

.PHONY: contexts-fuzz
contexts-fuzz: install ## Contexts of generated conversations, every strategy and format (CASES=100000)
	ANNALS_HYPOTHESIS_PROFILE=$(or $(CASES),100000) $(PYTEST) --timeout=0 \
	  tests/unit/context/test_assembly_properties.py -k test_a_context_fits_and_is_accounted_for

.PHONY: contexts-page
contexts-page: install ## Write docs/contexts.md anew
	python -m tests.golden.context.page

.PHONY: schema
schema: install ## Write schema.sql anew from the migrations
	python -m tests.migration.dump_schema

# Measuring ----------------------------------------------------------------------------------

.PHONY: bench-write
bench-write: install ## Appends beside a bare ceiling and as a conversation grows, as JSON
	python -m tests.bench.write

.PHONY: bench-search
bench-search: install ## Search, reads and recall, as JSON (EVENTS=20000 TENANTS=100)
	python -m tests.bench.search --events $(or $(EVENTS),20000) --tenants $(or $(TENANTS),100)

.PHONY: bench-context
bench-context: install ## Contexts of short and long conversations, also beside writers, as JSON (EVENTS=100000)
	python -m tests.bench.context --events $(or $(EVENTS),100000)

.PHONY: bench-branch
bench-branch: install ## Pages of a deep branch beside those of a trunk, as JSON (EVENTS=100000)
	python -m tests.bench.branch --events $(or $(EVENTS),100000)

.PHONY: bench-index
bench-index: install ## The indexer beside the bare model, and bytes per chunk, as JSON (EVENTS=400)
	python -m tests.bench.index --events $(or $(EVENTS),400)

.PHONY: bench-quality
bench-quality: install ## Retrieval quality on LoCoMo and LongMemEval (DATA=path), as JSON
	python -m tests.bench.quality --data "$(DATA)" --questions $(or $(QUESTIONS),15) \
	  $(if $(KEEP),--keep "$(KEEP)")

.PHONY: bench-cached-context
bench-cached-context: install ## Contexts from the cache, and prefixes that stay (DATA=path), as JSON
	python -m tests.bench.cached_context $(if $(DATA),--data "$(DATA)")

.PHONY: bench-topics
bench-topics: install ## Topics of LoCoMo, and clustering at 100,000 events (DATA=path), as JSON
	python -m tests.bench.topics --data "$(DATA)" --events $(or $(EVENTS),100000)

.PHONY: bench-formats
bench-formats: install ## Real agent runs to each provider's format and back (DATA=path), as JSON
	python -m tests.bench.formats --data "$(DATA)"

.PHONY: bench-summaries
bench-summaries: install ## Summaries of LoCoMo's sessions beside lead-3 and TextRank (DATA=path), as JSON
	python -m tests.bench.summaries --data "$(DATA)"

.PHONY: bench
bench: install ## Every bench with short settings, and what falls short (DATA=path)
	python -m tests.bench.write --seconds 2 --rounds 2
	python -m tests.bench.search --events 5000 --tenants 10 --queries 50
	python -m tests.bench.context --events 5000 --queries 40
	python -m tests.bench.branch --events 20000 --reads 40
	python -m tests.bench.index --events 60 --rounds 3
	python -m tests.bench.quality --data "$(DATA)" --dialogues 2 --questions 3
	python -m tests.bench.formats --data "$(DATA)"
	python -m tests.bench.cached_context --asks 100
	python -m tests.bench.summaries --data "$(DATA)"
	python -m tests.bench.summary

.PHONY: clean
clean: ## Remove what was built, installed and stored here
	rm -rf build $(VENV) $(STUBS) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name '*.egg-info' -prune -exec rm -rf {} +

# Annals. `make help` lists every target.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
PACKAGES := services/common services/storage services/context clients/python services/local
STUBS := services/common/src/annals
PROTOS := $(shell find proto -name '*.proto')

.PHONY: help
help: ## List every target
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "%-18s %s\n", $$1, $$2}'

.PHONY: install
install: build/.installed ## Create .venv, install the locked packages, build the stubs

build/.venv: requirements.lock requirements-assets.lock
	@mkdir -p build
	$(PYTHON) -c 'import sys; sys.exit("Annals needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-assets.lock
	@touch $@

build/.stubs: build/.venv $(PROTOS)
	rm -rf $(STUBS) && mkdir -p $(STUBS)
	python -m grpc_tools.protoc -Iproto --python_out=services/common/src --grpc_python_out=services/common/src \
	  --mypy_out=quiet:services/common/src --mypy_grpc_out=quiet:services/common/src $(PROTOS)
	@touch $@

build/.installed: build/.venv build/.stubs $(PACKAGES:%=%/pyproject.toml)
	pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation $(PACKAGES:%=-e %)
	@touch $@

.PHONY: proto
proto: build/.stubs ## Generate the gRPC stubs from proto/

.PHONY: lock
lock: build/.venv ## Resolve requirements*.in anew into requirements*.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate --upgrade requirements.in -o requirements.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate --no-deps requirements-assets.in -o requirements-assets.lock

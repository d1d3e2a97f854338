# Every target makes the environment first; that takes no time when it is up to date.
# Settings: HEADRACE_VENV=/path (default .venv), PYTHON=python3.12, PYTEST_ARGS='-k storage', BENCH_ARGS='--help'.

VENV := $(or $(HEADRACE_VENV),.venv)
BIN := $(VENV)/bin
export HEADRACE_VENV PYTHON

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format bench wheel clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:  ## make the virtual environment, or bring it up to date
	@sh scripts/setup.sh

demo: setup  ## run the main job on this machine, offline
	@"$(BIN)/headrace" demo

test: lint  ## all checks, then the tests
	@"$(BIN)/python" -m pytest $(PYTEST_ARGS)

lint: setup  ## ruff and mypy
	@"$(BIN)/ruff" check
	@"$(BIN)/ruff" format --check
	@"$(BIN)/mypy"

format: setup  ## rewrite the code in the house format
	@"$(BIN)/ruff" check --fix
	@"$(BIN)/ruff" format

bench: setup  ## measure preparing data against other tools
	@"$(BIN)/python" bench/prepare.py $(BENCH_ARGS)

wheel: setup  ## build the wheel into dist/
	@"$(BIN)/python" -m pip wheel --no-deps --wheel-dir dist .

clean:  ## remove caches and dist/ (the environment stays)
	@rm -rf dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

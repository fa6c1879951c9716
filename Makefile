# Requires Python 3.11 or newer, and npm for `make conformance`. Set the interpreter with PYTHON= and options with ARGS=.
PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check --quiet
# uv takes seconds where pip takes a minute, but does not read the configuration of pip, which may name another index.
INSTALL  = $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r $(1) || $(PIP) install --require-hashes -r $(1)
RUNTIME := $(VENV)/.runtime-installed
DEV     := $(VENV)/.dev-installed
RELEASE := $(VENV)/.release-installed
SITE    := $(VENV)/.site-installed

COMPILE    := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
              --custom-compile-command "make lock"
EXTRAS     := --extra auth --extra examples --extra metrics --extra otel --extra postgres --extra redis --extra skills

# Compiled modules are kept, or every worker and every process of a test would compile them again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install serve test quick check conformance fuzz chaos bench instructions soak docs site dist scaffold audit format lock clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(SITE) $(RELEASE) ## Install what all other targets need

serve: $(RUNTIME) ## Serve the example tools over HTTP
	$(BIN)/axolotl serve --demo --transport http $(ARGS)

test: $(DEV) ## Run all tests
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

quick: $(DEV) ## Run the tests that start no processes
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" --hypothesis-profile quick \
	  tests/architecture tests/cli tests/core tests/server $(ARGS)

check: $(DEV) ## Check formatting, lint, types, imports and architecture
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest tests/architecture

conformance: $(DEV) ## Run the protocol's conformance suite
	$(BIN)/python -m tests.conformance $(ARGS)

fuzz: $(DEV) ## Send a million mutated messages (ARGS="--seed 7 --messages 20000" for others)
	$(BIN)/python -m tests.fuzz $(ARGS)
	$(if $(ARGS),,$(BIN)/python -m pytest -q --hypothesis-profile thorough tests/core/contract/test_contract_laws.py)

chaos: $(DEV) ## Kill and pause processes, stop Redis, fill the disk and more, under load (ARGS="--rounds 1" for a minute)
	$(BIN)/python -m tests.chaos $(ARGS)
	$(if $(ARGS),,AXOLOTL_HARD_TIMES=1 $(BIN)/python -m pytest -q tests/server/tasks/test_hard_times.py)

bench: $(DEV) ## Run the benchmarks
	$(BIN)/python -m benchmarks $(ARGS)

instructions: $(DEV) ## Count the instructions of calls and of the start, and fail if one has grown by 5 % (ARGS=--record to store them)
	$(BIN)/python -m benchmarks.instructions $(ARGS)

soak: $(DEV) ## Measure memory over long runs
	$(BIN)/python -m benchmarks.soak $(ARGS)

docs: $(DEV) ## Test the documentation
	$(BIN)/python -m pytest tests/docs $(ARGS)

site: $(SITE) ## Build the documentation site, and test it in a browser
	SITE=1 $(BIN)/python -m pytest tests/site $(ARGS)

dist: $(RELEASE) ## Build the sdist and the wheel, and verify that they are reproducible and work alone
	$(BIN)/python -m tests.release build $(ARGS)

scaffold: $(DEV) ## Create projects with the wheel alone, and run their tests, types, lint and server
	$(BIN)/python -m tests.release scaffold

audit: $(RELEASE) ## Look for known vulnerabilities in the lock files (ARGS=--strict fails if some could not be looked up)
	$(BIN)/python -m tests.release audit $(ARGS)

format: $(DEV) ## Format the code and fix lint errors
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

lock: $(BIN)/uv ## Update the lock files (ARGS=--upgrade for newer versions)
	$(COMPILE) $(ARGS) requirements/uv.in -o requirements/uv.lock
	$(COMPILE) $(ARGS) pyproject.toml requirements/build.in $(EXTRAS) -o requirements/runtime.lock
	$(COMPILE) $(ARGS) pyproject.toml requirements/build.in $(EXTRAS) --group dev -c requirements/runtime.lock -o requirements/dev.lock
	$(COMPILE) $(ARGS) --group docs -c requirements/dev.lock -o requirements/docs.lock
	$(COMPILE) $(ARGS) --group release -c requirements/dev.lock -o requirements/release.lock

clean: ## Remove the environment, caches and build output
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .conformance
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is installed again only if a lock file is newer than its stamp file.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Axolotl needs Python 3.11 or newer. Set one with PYTHON=" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): requirements/runtime.lock pyproject.toml | $(BIN)/python
	$(PIP) install --require-hashes -r requirements/runtime.lock
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

# It has everything that the lock file for production has.
$(DEV): requirements/dev.lock pyproject.toml | $(BIN)/uv
	$(call INSTALL,requirements/dev.lock)
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $(RUNTIME) $@

$(SITE): requirements/docs.lock $(DEV)
	$(call INSTALL,requirements/docs.lock)
	@touch $@

$(RELEASE): requirements/release.lock $(DEV)
	$(call INSTALL,requirements/release.lock)
	@touch $@

$(BIN)/uv: | $(BIN)/python
	$(PIP) install --require-hashes -r requirements/uv.lock

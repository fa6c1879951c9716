# Requires Python 3.11 or newer, and npm for `make conformance`. Set the interpreter with PYTHON= and options with ARGS=.
PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check --quiet
RUNTIME := $(VENV)/.runtime-installed
DEV     := $(VENV)/.dev-installed
COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
           --custom-compile-command "make lock"

# Compiled modules are kept, or every worker and every process of a test would compile them again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install serve test quick check conformance bench docs site release format lock clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(DEV) ## Install what all other targets need

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

bench: $(DEV) ## Run the benchmarks
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(DEV) ## Test the documentation
	$(BIN)/python -m pytest tests/docs $(ARGS)

site: $(DEV) ## Build the documentation site, and test it in a browser
	SITE=1 $(BIN)/python -m pytest tests/site $(ARGS)

release: $(DEV) ## Build and verify a release, use it in new projects, and look for known vulnerabilities
	$(BIN)/python -m tests.release build $(ARGS)
	$(BIN)/python -m tests.release scaffold
	$(BIN)/python -m tests.release audit

format: $(DEV) ## Format the code and fix lint errors
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

lock: $(DEV) ## Update the lock files (ARGS=--upgrade for newer versions)
	$(COMPILE) $(ARGS) pyproject.toml --extra all --extra examples --group build -o requirements/runtime.lock
	$(COMPILE) $(ARGS) pyproject.toml --all-extras --group dev -c requirements/runtime.lock -o requirements/dev.lock

clean: ## Remove the environment, caches and build output
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .conformance
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is installed again only if its lock file is newer than its stamp file.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Axolotl needs Python 3.11 or newer. Set one with PYTHON=" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): requirements/runtime.lock pyproject.toml | $(BIN)/python
	$(PIP) install --require-hashes -r requirements/runtime.lock
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

# Everything that the lock file for production has, and the tools. uv takes seconds where pip takes a minute, but does not
# read the configuration of pip, which may name another index.
$(DEV): requirements/dev.lock pyproject.toml | $(BIN)/python
	sed -n '/^uv==/,/# via/p' requirements/dev.lock > $(VENV)/uv.txt
	$(PIP) install --require-hashes -r $(VENV)/uv.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.lock \
	  || $(PIP) install --require-hashes -r requirements/dev.lock
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $(RUNTIME) $@

PYTHON ?= python3
# Words for the server, for example: make run SERVE_FLAGS="--port 9000"
SERVE_FLAGS ?=
# Words for the demo, for example: make demo DEMO_FLAGS="--port 9000"
DEMO_FLAGS ?=
# Which benchmark, and words for it: make bench NAME=peers BENCH_FLAGS="--quick --only headway,huey"
NAME := peers
BENCH_FLAGS ?=
# Words for the fuzzer, for example: make fuzz FUZZ_FLAGS="--seconds 60 --only feed"
FUZZ_FLAGS ?=
# Words for the resolver, for example: make lock LOCK_FLAGS=--upgrade
LOCK_FLAGS ?=

VENV := .venv
TOOLS := .venv-tools
BENCH := .venv-bench
BIN := $(VENV)/bin
# What a user runs, and what a developer needs beside it.
RUN := $(VENV)/.run
DEV := $(VENV)/.dev
LOCKS := requirements.lock requirements-dev.lock

# uv where it is there, pip otherwise. `$(call install,.venv)` is followed by what to install.
ifneq ($(shell command -v uv),)
venv = rm -rf $(1) && uv venv --quiet --python $(PYTHON) $(1)
install = uv pip install --quiet --python $(1)/bin/python
uninstall = uv pip uninstall --quiet --python $(1)/bin/python
ENSUREPIP :=
else
# An environment that uv has made has no pip. Twice quiet: errors are still shown. Nothing is
# compiled that is never imported.
venv = rm -rf $(1) && $(PYTHON) -m venv $(1)
install = { test -x $(1)/bin/pip || $(1)/bin/python -m ensurepip --default-pip >/dev/null; } && \
	$(1)/bin/python -m pip --disable-pip-version-check install --quiet --quiet --no-compile
uninstall = $(1)/bin/python -m pip uninstall --quiet --quiet --yes
ENSUREPIP := ensurepip
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

define require_python
@command -v $(PYTHON) >/dev/null || { \
	echo "error: '$(PYTHON)' was not found; name a Python 3.11 or newer with PYTHON=..." >&2; \
	exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	echo "error: Headway needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) -V 2>&1);" \
		"name another with PYTHON=..." >&2; \
	exit 1; }
@$(PYTHON) -c 'import venv, $(or $(ENSUREPIP),sys)' 2>/dev/null || { \
	echo "error: '$(PYTHON)' cannot make an environment; install uv or the package python3-venv," \
		"or name another Python with PYTHON=..." >&2; \
	exit 1; }
endef

# Made afresh when a lock has changed, so that nothing dropped from it stays behind.
$(VENV)/pyvenv.cfg: $(LOCKS)
	$(require_python)
	@echo "Installing into $(VENV)"
	@$(call venv,$(VENV))

# What Headway is built with goes again, and what some Pythons put into every environment.
$(RUN): $(VENV)/pyvenv.cfg pyproject.toml
	@$(call install,$(VENV)) --require-hashes -r requirements.lock
	@$(call install,$(VENV)) --no-deps --no-build-isolation -e .
	@$(call uninstall,$(VENV)) flit-core setuptools
	@touch $@

$(DEV): $(RUN)
	@echo "Adding to $(VENV) what tests and checks need"
	@$(call install,$(VENV)) --require-hashes -r requirements-dev.lock
	@touch $@

.PHONY: run
run: $(RUN) ## Serve Headway on http://127.0.0.1:8000, with its data in ./headway-data
	@$(BIN)/headway serve $(SERVE_FLAGS)

.PHONY: demo
demo: $(RUN) ## Show a small world on loopback that pushes back, gone when it ends
	@$(BIN)/headway demo $(DEMO_FLAGS)

# Tests are rewritten before they run, which takes longer than to collect them: it is kept, whatever
# the environment says about that.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

# More workers than cores: some tests wait for a browser, a program or a clock while others work.
.PHONY: test
test: $(DEV) ## Run every test that is not a soak test
	@$(BIN)/python -m tests.browser.chromium
	@$(PYTEST) -n 4 --dist worksteal

.PHONY: soak
soak: $(DEV) ## Run the long tests
	@$(BIN)/python -m tests.browser.chromium
	@$(PYTEST) -m soak --timeout=3600

.PHONY: check
check: $(DEV) ## Check format, lint, types, layers, dependencies and JavaScript
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy --strict
	@$(BIN)/lint-imports
	@$(BIN)/deptry src
	@$(BIN)/deptry bench examples tests tools --ignore DEP002,DEP004
	@$(BIN)/oxlint

.PHONY: format
format: $(DEV) ## Rewrite the code in the house format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

# Led by coverage if atheris is there: pip install it into .venv
.PHONY: fuzz
fuzz: $(DEV) ## Show every parser of outside data what it does not expect, some seconds each
	@$(BIN)/python -m tests.fuzz $(FUZZ_FLAGS)

.PHONY: reference
reference: $(DEV) ## Write docs/reference from the docstrings
	@$(BIN)/python -m tools.reference

.PHONY: screenshots
screenshots: $(DEV) ## Take pictures of each screen of the page into docs/images
	@$(BIN)/python -m tests.browser.chromium --fonts
	@$(BIN)/python -m tests.browser.screenshots

# The names, what follows some of them, and those that need the peers.
BENCHES := celery channels core fair feeds http learner million outoforder peers slots together
MODULE := $(if $(filter channels,$(NAME)),gateway,$(NAME))
THEN_channels := protection
THEN_slots := slot_latency
BESIDE_PEERS := $(filter peers slots,$(NAME))
BENCH_PYTHON := $(if $(BESIDE_PEERS),$(BENCH),$(VENV))/bin/python
ifeq ($(filter $(NAME),$(BENCHES)),)
$(error there is no benchmark '$(NAME)'; NAME is one of: $(BENCHES))
endif

.PHONY: bench
bench: $(if $(BESIDE_PEERS),$(BENCH)/.installed,$(DEV)) ## Measure beside peers, or something else: make bench NAME=core
	@$(BENCH_PYTHON) -m bench.$(MODULE) $(BENCH_FLAGS)
	@$(if $(THEN_$(NAME)),$(BENCH_PYTHON) -m bench.$(THEN_$(NAME)))

# Headway as it is locked, then the peers. One of them needs an environment of its own.
$(BENCH)/.installed: pyproject.toml $(LOCKS) $(wildcard bench/peers/*.txt)
	$(require_python)
	@echo "Installing into $(BENCH)"
	@$(call venv,$(BENCH))
	@$(call install,$(BENCH)) --require-hashes -r requirements-dev.lock
	@$(call install,$(BENCH)) -r bench/peers/requirements.txt
	@$(call install,$(BENCH)) --no-deps --no-build-isolation -e .
	@$(call venv,$(BENCH)/arq)
	@$(call install,$(BENCH)/arq) -r bench/peers/requirements-arq.txt
	@touch $@

# One resolution of everything; what a user runs is a part of it, with the same pins.
COMPILE := pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --no-emit-find-links

.PHONY: lock
lock: ## Resolve pyproject.toml into requirements.lock and requirements-dev.lock
	$(require_python)
	@$(call venv,$(TOOLS))
	@$(call install,$(TOOLS)) uv
	@$(TOOLS)/bin/uv $(COMPILE) --all-extras --group dev $(LOCK_FLAGS) --output-file requirements-dev.lock
	@cp requirements-dev.lock requirements.lock
	@$(TOOLS)/bin/uv $(COMPILE) --extra media --extra postgres --group build \
		--output-file requirements.lock

.PHONY: clean
clean: ## Remove everything that can be made again
	@rm -rf $(VENV) $(TOOLS) $(BENCH) build dist .hypothesis .import_linter_cache .mypy_cache \
		.pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

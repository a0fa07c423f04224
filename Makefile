PYTHON ?= python3
# Extra words for the resolver, for example: make lock LOCK_FLAGS=--upgrade
LOCK_FLAGS ?=
# Words for the benchmark, for example: make bench BENCH_FLAGS="--quick --only headway,huey"
BENCH_FLAGS ?=
# Words for the fuzzer, for example: make fuzz FUZZ_FLAGS="--seconds 60 --only feed"
FUZZ_FLAGS ?=
# Words for the mutants, for example: make mutants MUTANT_FLAGS="--sample 600 --seed 7"
MUTANT_FLAGS ?=
# Words for the server, for example: make run SERVE_FLAGS="--port 9000"
SERVE_FLAGS ?=

VENV := .venv
TOOLS := .venv-tools
BENCH := .venv-bench
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Twice quiet: errors are still shown.
PIP_INSTALL := -m pip --disable-pip-version-check install --quiet --quiet

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: require-python
require-python: ## Fail unless PYTHON is 3.11 or newer
	@command -v $(PYTHON) >/dev/null || { \
		echo "error: '$(PYTHON)' was not found; name a Python 3.11 or newer with PYTHON=..." >&2; \
		exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: Headway needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) -V 2>&1);" \
			"name another with PYTHON=..." >&2; \
		exit 1; }

.PHONY: install
install: $(STAMP) ## Make .venv with the locked dependencies and Headway itself

# The environment is made afresh, so that nothing dropped from the lock stays behind.
$(STAMP): pyproject.toml requirements.lock | require-python
	@echo "Installing into $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python $(PIP_INSTALL) --require-hashes -r requirements.lock
	@$(BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@test -x $(BIN)/headway
	@touch $@

.PHONY: run
run: install ## Serve Headway on http://127.0.0.1:8000, with its data in ./headway-data
	@$(BIN)/headway serve $(SERVE_FLAGS)

.PHONY: chromium
chromium: install ## Find the system's Chromium, or install it where that is allowed
	@$(BIN)/python -m tests.browser.chromium

# Tests are rewritten before they run, which takes longer than to collect them: it is kept, whatever
# the environment says about that.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

# More workers than cores: some tests wait for a browser, a program or a clock while others work.
.PHONY: test
test: install chromium ## Run every test that is not a soak test
	@$(PYTEST) -n 4 --dist worksteal

.PHONY: retest
retest: install ## Run again, one after the other, what failed in the last run
	@$(PYTEST) --last-failed --last-failed-no-failures none

.PHONY: soak
soak: install chromium ## Run the long tests
	@$(PYTEST) -m soak --timeout=3600

# Led by coverage if atheris is there: .venv/bin/pip install atheris
.PHONY: fuzz
fuzz: install ## Show every parser of outside data what it does not expect, some seconds each
	@$(BIN)/python -m tests.fuzz $(FUZZ_FLAGS)

.PHONY: mutants
mutants: install ## Change the core in small ways, and count what no test notices
	@$(BIN)/python -m tests.mutation $(MUTANT_FLAGS)

.PHONY: check
check: install ## Check format, lint, types and layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy --strict
	@$(BIN)/lint-imports

.PHONY: format
format: install ## Rewrite the code in the house format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: reference
reference: install ## Write docs/reference from the docstrings
	@$(BIN)/python -m tools.reference

.PHONY: screenshots
screenshots: install ## Take pictures of each screen of the page into docs/images
	@$(BIN)/python -m tests.browser.chromium --fonts
	@$(BIN)/python -m tests.browser.screenshots

.PHONY: bench-feeds
bench-feeds: install ## Measure how many feeds are refreshed in a second
	@$(BIN)/python -m bench.feeds $(BENCH_FLAGS)

.PHONY: bench-celery
bench-celery: install ## Measure Celery with Headway's admission beside plain Celery
	@$(BIN)/python -m bench.celery $(BENCH_FLAGS)

.PHONY: bench-core
bench-core: install ## Measure the core
	@$(BIN)/python -m bench.core

.PHONY: bench-million
bench-million: install ## Let one brain live through an hour with a million upstreams
	@$(BIN)/python -m bench.million $(BENCH_FLAGS)

.PHONY: bench-outoforder
bench-outoforder: install ## Measure how soon jobs are seen whose transactions commit in any order
	@$(BIN)/python -m bench.outoforder $(BENCH_FLAGS)

.PHONY: bench-together
bench-together: install ## Measure two servers on one store, and how soon another one leads
	@$(BIN)/python -m bench.together $(BENCH_FLAGS)

.PHONY: bench-fair
bench-fair: install ## Measure fairness
	@$(BIN)/python -m bench.fair

.PHONY: bench-learner
bench-learner: install ## Measure the learner against modelled upstreams, on virtual time
	@$(BIN)/python -m bench.learner $(BENCH_FLAGS)

.PHONY: bench-channels
bench-channels: install ## Measure what the gateway adds, and what a full queue does to online calls
	@$(BIN)/python -m bench.gateway $(BENCH_FLAGS)
	@$(BIN)/python -m bench.protection

.PHONY: bench-http
bench-http: install ## Measure enqueueing over HTTP (needs wrk)
	@$(BIN)/python -m bench.http $(BENCH_FLAGS)

.PHONY: bench-slots
bench-slots: $(BENCH)/.installed ## Measure slots side by side with lease peers, and how fast a grant arrives
	@$(BENCH)/bin/python -m bench.slots $(BENCH_FLAGS)
	@$(BENCH)/bin/python -m bench.slot_latency

.PHONY: bench
bench: $(BENCH)/.installed ## Measure Headway side by side with its peers
	@$(BENCH)/bin/python -m bench.peers $(BENCH_FLAGS)

# Headway as it is locked, then the peers. One of them needs an environment of its own.
$(BENCH)/.installed: pyproject.toml requirements.lock $(wildcard bench/peers/*.txt) | require-python
	@echo "Installing into $(BENCH)"
	@$(PYTHON) -m venv --clear $(BENCH)
	@$(BENCH)/bin/python $(PIP_INSTALL) --require-hashes -r requirements.lock
	@$(BENCH)/bin/python $(PIP_INSTALL) -r bench/peers/requirements.txt
	@$(BENCH)/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@$(PYTHON) -m venv $(BENCH)/arq
	@$(BENCH)/arq/bin/python $(PIP_INSTALL) -r bench/peers/requirements-arq.txt
	@touch $@

.PHONY: lock
lock: require-python ## Resolve pyproject.toml into requirements.lock
	@$(PYTHON) -m venv --clear $(TOOLS)
	@$(TOOLS)/bin/python $(PIP_INSTALL) uv
	@$(TOOLS)/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
		--extra dev --generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
		$(LOCK_FLAGS) --output-file requirements.lock

.PHONY: clean
clean: ## Remove everything that can be made again
	@rm -rf $(VENV) $(TOOLS) $(BENCH) build dist .hypothesis .import_linter_cache .mypy_cache \
		.pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# make run: see Pulse at work on this machine.  make test: set up and pass all tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export UPULSE_HOME ?= $(HOME)/.upulse
# Images often forbid bytecode: then each of the thousands of processes of a run compiles what it imports.
export PYTHONDONTWRITEBYTECODE :=
# Of long tables each run does a share, and another one each hour, as of what is left to dice and of the order of tests;
# pytest by itself does the whole: tests/long_form.py.
export PULSE_SAMPLE ?= $(shell expr $$(date +%s) / 3600)

.PHONY: run test check style types collect bench campaign setup setup-dev docs clean

run: setup ## set up, make a home if there is none, and run the daemon here in the foreground
	@test -e "$(UPULSE_HOME)/config.toml" || $(BIN)/upulse init --demo --quiet --home "$(UPULSE_HOME)"
	@exec $(BIN)/upulse daemon start --foreground --home "$(UPULSE_HOME)"

test: setup-dev ## set up and pass all tests; make test TESTS=tests/unit passes some
	$(BIN)/pytest -n 4 --dist worksteal --randomly-seed=$(PULSE_SAMPLE) $(TESTS)

check: setup-dev ## everything CI checks: lint, format, types, imports, tests
	@$(MAKE) --no-print-directory --jobs=2 --output-sync types style collect
	@$(MAKE) --no-print-directory test

style: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: setup-dev
	$(BIN)/mypy

# Rewrites the assertions of tests, which each process of a run would otherwise do for itself.
collect: setup-dev
	@$(BIN)/pytest --collect-only -qq $(TESTS) > /dev/null || true

bench: setup-dev ## how fast and how small, beside raw limits measured in the same run
	$(BIN)/python -m tests.benchmarks

campaign: setup-dev ## the long forms: simulation with many seeds, hundreds of kills, every attack
	$(BIN)/python -m tests.campaign

docs: setup-dev ## write the generated pages of docs/ anew
	$(BIN)/python -m docs.generate

setup: $(VENV)/run.stamp

setup-dev: $(VENV)/dev.stamp

# A venv without pip was left half-made, as by a Debian without python3-venv.
make-venv = @$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)

$(VENV)/run.stamp: pyproject.toml
	$(make-venv)
	@echo "Installing Pulse into $(VENV) …"
	@$(BIN)/python -m pip install --disable-pip-version-check --editable '.[engine]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml
	$(make-venv)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/run.stamp

clean: ## remove what setup made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

# `make demo` shows Hopline on the example vault; `make test` is everything that CI runs.

# 3.11 is what the constraints were tested with; newer ones are taken where it is missing.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
RUN = $(VENV)/bin/python -m
CONSTRAINTS = -c constraints/base.txt -c constraints/tracing.txt -c constraints/dev.txt
PYTEST_FLAGS ?=
# Most of the tests' time is waiting, and each worker has engines of its own; `make test WORKERS=0` runs them in one process.
WORKERS ?= 3

# Tests start processes by the hundred, and each would compile all of Hopline anew where an image forbids to keep that.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-down lint format test soak test-gpu bench clean

help:
	@echo 'make demo       set up, start Hopline on examples/vault, search it (make demo-down stops it)'
	@echo 'make test       everything that CI runs: lint, types, layers, tests with real engines'
	@echo 'make lint       the first three of these only'
	@echo 'make soak       the long form of the storm test; bench: speed; test-gpu: the torch embedder (extra `gpu`)'
	@echo 'make clean      remove what the others made, the environment included'

# The mark is newer than what it was made from, so that a second run costs nothing.
setup: $(VENV)/.hopline-setup

$(VENV)/.hopline-setup: pyproject.toml constraints/base.txt constraints/tracing.txt constraints/dev.txt
	@test -n '$(PYTHON)' || { echo 'Python 3.11 or newer is needed: apt-get install python3 python3-venv' >&2; exit 1; }
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV) || { \
		echo 'the module venv is missing: apt-get install python3-venv' >&2; exit 1; }
	@echo 'setting up $(VENV): downloading about 150 MB of Python packages; a minute or two, the first time only'
	@# Dependency groups need pip 25.1.
	@$(RUN) pip install --quiet --disable-pip-version-check 'pip>=25.1'
	@# An editable installation is what is wanted; setuptools warns of each.
	@PYTHONWARNINGS='ignore:Editable installation' \
		$(RUN) pip install --quiet --disable-pip-version-check $(CONSTRAINTS) -e . --group dev
	@touch $@

demo: setup
	@$(RUN) hopline demo

demo-down: setup
	@$(RUN) hopline demo --down

lint: setup
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(VENV)/bin/lint-imports

format: setup
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

test: lint
	$(RUN) pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(PYTEST_FLAGS)

soak: setup
	$(RUN) pytest -m soak -o log_cli=true $(PYTEST_FLAGS)

bench: setup
	@# All of them, whatever one says; each ends with 1 where it misses its target.
	@status=0; for bench in ingest query rescan extract extract_quality resolve hub; do $(RUN) bench.$$bench || status=1; done; exit $$status

# Its own environment: torch weighs 5 GB. torch goes first and pinned, or another one would come along.
test-gpu:
	@$(MAKE) --no-print-directory VENV=.venv-gpu setup
	@.venv-gpu/bin/python -m pip install --quiet -c constraints/gpu.txt torch
	@.venv-gpu/bin/python -m pip install --quiet -c constraints/gpu.txt $(CONSTRAINTS) -e '.[gpu]' --group test-gpu
	.venv-gpu/bin/python -m pytest -m gpu $(PYTEST_FLAGS)

clean:
	rm -rf build dist *.egg-info $(VENV) .venv-gpu .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo 'Left as they are: data of the demo (~/.local/share/hopline-demo, /var/lib/hopline-demo for root), of'
	@echo '`hopline up` (…/hopline beside it) and the engines (~/.cache/hopline, /var/cache/hopline). When nothing runs'
	@echo '(make demo-down, hopline down) they may be removed by hand.'

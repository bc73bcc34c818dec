# Everything starts from a clone, Python and make. Each target sets up .venv with what it needs.
#
#   make demo       models on real data, and a report on each of them: build/demo/index.html
#   make test       all tests and the examples in docstrings
#   make test-browser  the pages of reports, in Chromium: installed from the system's packages where we may
#   make picture    the first screen of a report, for the README: docs/_static/report.png
#   make lint       ruff, pyright, import layers
#   make docs       HTML pages in docs/_build/html, examples run and checked
#   make linkcheck  links to other sites
#   make bench      one table: every engine and peer side by side; an error if a stored ratio has fallen
#   make fuzz       10,000 calls with wrong arguments, 6,000 broken files: each ends with a result or an error that helps
#   make reproduce  the paper's experiments beside its published numbers: docs/reproduction.md
#   make clean      remove .venv and everything built

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= auto
BIN := $(VENV)/bin
SPHINX = $(BIN)/sphinx-build -W --keep-going -q -d docs/_build/doctrees

# A development environment can do what the smaller ones can: use it where it is there.
DEV := $(VENV)/.installed-dev
DEMO := $(if $(wildcard $(DEV)),$(DEV),$(VENV)/.installed-demo)
DOCS := $(if $(wildcard $(DEV)),$(DEV),$(VENV)/.installed-docs)

# One thread for each test process: the processes already fill the cores.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMEXPR_NUM_THREADS=1

# Memory that arrays give back is kept for the next ones: the system would hand it out page by page again, which
# took a thirtieth of the time. Read by the C library of Linux; others do not know these names.
KEEP_MEMORY := MALLOC_TRIM_THRESHOLD_=1000000000 MALLOC_MMAP_THRESHOLD_=1000000000

# Bytecode is kept, whatever the environment says: tests start many processes, and each would compile everything anew.
KEEP_BYTECODE := PYTHONDONTWRITEBYTECODE=

.PHONY: help demo test test-browser picture lint docs linkcheck bench fuzz reproduce clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^#   //p' Makefile

demo: $(DEMO)
	@$(BIN)/python -m wellcal.demo

test: $(DEV)
	$(KEEP_BYTECODE) $(KEEP_MEMORY) $(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --doctest-modules tests src reproduction --ignore=tests/browser $(ARGS)

# `make test` needs Python alone.
test-browser: $(DEV)
	@$(BIN)/python tests/browser/chromium.py
	$(ONE_THREAD) $(BIN)/python -m pytest tests/browser $(ARGS)

picture: $(DEV)
	@$(BIN)/python tests/browser/chromium.py
	@$(BIN)/python -m wellcal.demo
	$(BIN)/python tests/browser/screenshot.py build/demo/digits.html docs/_static/report.png

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

docs: $(DOCS)
	@# What was built is kept, and only what has changed is built again. Examples are run anew when the package has changed.
	@mkdir -p docs/_build && if [ -n "$$(find src examples/gallery docs/_ext -newer docs/_build/.run -print -quit 2>&1)" ]; \
	    then rm -rf docs/gallery docs/_build/doctrees; touch docs/_build/.run; fi
	$(SPHINX) -b html docs docs/_build/html
	$(SPHINX) -b doctest docs docs/_build/doctest
	@echo "open docs/_build/html/index.html"

# Addresses of other sites, which need a network; links between our own pages are checked whenever they are built.
linkcheck: $(DOCS)
	$(SPHINX) -b linkcheck docs docs/_build/linkcheck

# Three hours of one core, shared among those there are; ARGS=--quick for two minutes of one, and then under build.
# An interrupted run goes on where it stopped. It ends with an error if a published number is not matched, or an
# error that is planted on purpose is not caught. `python -m reproduction.compute` makes the results elsewhere.
reproduce: $(DEV)
	$(BIN)/python -m reproduction $(ARGS)

fuzz: $(DEV)
	$(ONE_THREAD) $(BIN)/python -m fuzz $(ARGS)
	WELLCAL_FUZZED_FILES=2000 $(ONE_THREAD) $(BIN)/python -m pytest -q -k 'bytes or anything' \
		tests/unit/test_broken_files.py tests/unit/cli/test_broken_files.py

# ARGS=--quick for small sizes, ARGS=--all for all benchmarks and studies, which take hours.
bench: $(VENV)/.tried-keops $(VENV)/.tried-peers
	$(BIN)/python -m benchmarks $(ARGS)

# One of the implementations compared with. Timings go on without it where it does not install.
$(VENV)/.tried-keops: | $(DEV)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check pykeops
	@touch $@

# Other libraries that measures are compared with: the table says who is absent where one of them does not install.
$(VENV)/.tried-peers: pyproject.toml | $(DEV)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

clean:
	rm -rf $(VENV) build dist docs/_build docs/api/generated docs/gallery .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests reproduction benchmarks -name __pycache__ -type d -exec rm -rf {} +

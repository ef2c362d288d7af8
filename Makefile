# Every target does its own set-up: a virtual environment in .venv, made again when pyproject.toml changes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help demo test lint format bench clean

help:
	@echo "make demo   a synthetic object, end to end; results in demo/"
	@echo "make test   all tests"
	@echo "make lint   ruff and mypy"
	@echo "make bench  benchmarks (minutes)"

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(READY)

demo: $(READY)
	$(BIN)/photostereo demo --out demo --force

test: $(READY)
	sh tools/prepare-tests.sh $(BIN)/python
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) demo build dist

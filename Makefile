# Everything here works on a fresh machine with Python and make: .venv is made when it is missing.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed

.PHONY: gate test lint types clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . --group dev
	touch $(STAMP)

gate: $(STAMP)
	$(PY) -m examples.dflash.gate

lint: $(STAMP)
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .

types: $(STAMP)
	$(PY) -m mypy

test: lint types
	$(PY) -m pytest -n 2 --dist worksteal -m "not gpu and not alone"
	$(PY) -m pytest -m "alone and not gpu"

clean:
	rm -rf $(VENV) .tokbudget

# Every target makes and uses .venv itself. `make demo` and `make test` are all a newcomer needs.
VENV   := .venv
PYTHON := $(VENV)/bin/python
STAMP  := $(VENV)/.installed
FLARE  := $(VENV)/bin/flare

.PHONY: install models demo test check format coverage bench clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(PYTHON) || python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

models: install
	$(FLARE) models pull

demo: models
	$(PYTHON) data/harbor/demo.py

test: models
	OMP_NUM_THREADS=2 $(PYTHON) -m coverage run -m pytest -q
	$(PYTHON) -m coverage report --include='critic/*,flare_runtime/*' --fail-under=95

check: models
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(MAKE) test

format: install
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

bench: models
	$(PYTHON) tests/benchmarks/bench_search.py
	$(PYTHON) tests/benchmarks/bench_untriggered.py

clean:
	rm -rf $(VENV) demo

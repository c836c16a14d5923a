# Every target makes and uses .venv itself. `make demo` and `make test` are all a newcomer needs.
VENV   := .venv
PYTHON := $(VENV)/bin/python
STAMP  := $(VENV)/.installed
FLARE  := $(VENV)/bin/flare
ASK    := $(FLARE) ask --index demo/index --config data/harbor/flare.toml --record demo/traces.jsonl

.PHONY: install models demo test check format coverage bench clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(PYTHON) || python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --constraint constraints.txt --editable '.[dev,export]'
	touch $(STAMP)

models: install
	$(FLARE) models pull
	$(FLARE) models build smollm2-135m all-minilm-l6-v2

demo: models
	$(FLARE) index data/harbor/docs -o demo/index
	rm -f demo/traces.jsonl
	@echo; echo '--- A question that the first search answers'
	$(ASK) 'How long does the practice incident take?'
	@echo; echo '--- A procedure, with the trigger of the FLARE paper: it pauses, looks up, and goes on'
	$(ASK) --trigger min_logprob 'How do I roll back Nightjar, and to which tag?'
	@echo; echo '--- A question that the handbook does not answer (exit code 3: abstained)'
	$(ASK) --trigger min_logprob 'Who founded Harbor Engineering?' || test $$? -eq 3
	@echo; echo 'Each turn is recorded in demo/traces.jsonl; ask your own:'
	@echo "  $(FLARE) ask --index demo/index --config data/harbor/flare.toml 'How many days of holiday do I get?'"

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
	$(PYTHON) tests/benchmarks/bench_decode.py
	$(PYTHON) tests/benchmarks/bench_context.py

clean:
	rm -rf $(VENV) demo

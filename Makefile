# Everything a person types. `make demo` and `make test` set up what they need.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python
# The CPU build of torch: from a folder of wheels where pip is told of one, else by uv's own choice of backend.
TORCH_FROM := $(if $(PIP_FIND_LINKS),--find-links "$(PIP_FIND_LINKS)",--torch-backend cpu)

.DEFAULT_GOAL := help
.PHONY: help demo test check pytest nightly frameworks release lock clean

help:  ## what there is to make
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

demo: .venv/core  ## run the offline tournament and print its leaderboard
	$(BIN)/ragleague demo

test: .venv/dev  ## all checks and tests, side by side
	$(MAKE) --no-print-directory --jobs 2 pytest check

check: .venv/dev  ## format, types and imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

pytest: .venv/dev  ## the tests alone; more workers than two cores, since tests wait for servers and processes
	$(BIN)/python -m compileall -q arena judges ragleague retrieval_eval ui  # commands are started by the hundred
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest --collect-only >/dev/null  # rewrites assertions once, not once a worker
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder

nightly: .venv/dev  ## the long tests that 'make test' leaves out: Ray, sign-in in a browser, PostgreSQL, types of the wheel
	$(BIN)/pytest -m nightly --numprocesses 2 --dist loadfile

frameworks: .venv/frameworks/tested  ## agents, data and traces of other tools, with the real packages
	.venv/frameworks/bin/python -m pytest -rA tests/retrieval_eval/agents/test_agents_of_frameworks.py \
	  tests/ragleague/test_loading.py tests/arena/data/test_traces.py

release: .venv/dev  ## build wheel and sdist into dist/, check them, run the demo from the wheel in an empty environment
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv dist/empty
	$(BIN)/uv pip install --quiet --python dist/empty/bin/python --require-hashes -r requirements/core.txt
	$(BIN)/uv pip install --quiet --python dist/empty/bin/python --no-deps dist/*.whl
	cd dist/empty && bin/ragleague --version && bin/ragleague demo
	rm -rf dist/empty

lock:  ## resolve the locked versions anew
	sh requirements/lock.sh

clean:  ## remove the environment and caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.venv/bootstrap: requirements/bootstrap.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ragleague needs Python 3.11 or later")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@touch $@

.venv/core: .venv/bootstrap requirements/core.txt pyproject.toml
	$(UV) --compile-bytecode --require-hashes -r requirements/core.txt
	$(UV) --no-build-isolation --no-deps --editable .
	@touch $@

.venv/dev: .venv/core requirements/dev.txt
	$(UV) --require-hashes -r requirements/dev.txt
	$(UV) $(TORCH_FROM) torch==2.13.0
	# Of these packages little is imported: to compile that alone takes a fifth of the time for all.
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -c 'import ray; from transformers import AutoModelForCausalLM, \
	  AutoTokenizer, BertForQuestionAnswering, LlamaForCausalLM, T5ForConditionalGeneration'
	sh tests/support/browser.sh
	@touch $@

# An environment of its own, before the one for tests: some of these packages add plugins to pytest.
.venv/frameworks/tested: .venv/dev requirements/frameworks.txt
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv/frameworks
	$(BIN)/uv pip install --quiet --python .venv/frameworks/bin/python --no-deps --require-hashes -r requirements/frameworks.txt
	echo "import site; site.addsitedir('$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')')" \
	  > $$(.venv/frameworks/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tests.pth
	@touch $@

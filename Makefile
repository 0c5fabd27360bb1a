# Every target sets itself up: from a fresh clone, `make demo` and `make test` are enough.
# PYTHON chooses the interpreter of a new environment, VENV where it lives.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
SECONDS ?= 60

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.installed-bench

# One thread for each process: these networks are small, and two threads on a busy machine are
# several times slower than one. The test runner starts its own processes.
export OMP_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Compiled files are kept, whatever the shell says: compiling the tests takes seconds in each process.
export PYTHONDONTWRITEBYTECODE :=

say = @printf '\033[1m==> %s\033[0m\n' $(1)

.DEFAULT_GOAL := help
.PHONY: help setup demo test fuzz lint types format docs bench results-page audit clean

help:  ## list the targets
	@echo "Targets:"
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  \1|/' | column -t -s '|'

$(STAMP): pyproject.toml constraints.txt
	$(call say,"Installing vaca and its tools into $(VENV) (about a minute with a warm package cache)")
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq -c constraints.txt -e '.[dev]'
	@touch $@

$(BENCH_STAMP): $(STAMP)
	$(call say,"Installing the peers that the benchmarks compare with")
	@$(BIN)/python -m pip install -qq -c constraints.txt -e '.[bench]'
	@touch $@

setup: $(STAMP)  ## make the environment in .venv
	$(call say,"Ready: $(BIN)/vaca --help")

demo: $(STAMP)  ## walk through the whole thing on an example and write a page
	$(call say,"Running the demo")
	@$(BIN)/python examples/demo.py --out demo-output

test: $(STAMP)  ## run the tests (JOBS processes)
	$(call say,"Running the tests and every documented example in $(JOBS) processes")
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(ARGS)

fuzz: $(STAMP)  ## throw changed files at every reader, for SECONDS=60
	$(call say,"Changing files of every kind for $(SECONDS) s")
	@$(BIN)/python -m tests.fuzz.run --seconds $(SECONDS) $(ARGS)

lint: $(STAMP)  ## check style, formatting and types
	$(call say,"Checking style (ruff check)")
	@$(BIN)/ruff check .
	$(call say,"Checking formatting (ruff format)")
	@$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory types

types: $(STAMP)
	$(call say,"Checking types (basedpyright)")
	@$(BIN)/basedpyright --pythonpath $(BIN)/python

format: $(STAMP)  ## rewrite the code in the project's style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(STAMP)  ## build the documentation into site/
	$(call say,"Building the documentation into site/ (a warning is an error)")
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(call say,"Open site/index.html")

bench: $(BENCH_STAMP)  ## run every benchmark; results go to benchmarks/results/
	@for script in benchmarks/bench_*.py; do \
		printf '\033[1m==> %s\033[0m\n' "$$script"; \
		$(BIN)/python "$$script" || exit 1; \
	done

results-page: $(STAMP)  ## rebuild docs/results.md and the README's results from the stored results
	$(call say,"Writing docs/results.md and the results in README.md")
	@$(BIN)/python scripts/results_page.py

audit: $(STAMP)  ## look for known weaknesses in what is installed; write dist/sbom.json
	@$(BIN)/python scripts/audit.py --out dist

clean:  ## remove what the other targets made, except the environment
	@rm -rf site demo-output build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis

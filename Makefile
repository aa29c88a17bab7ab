# Everything a fresh machine needs: Python 3.11+, pip and make. `make help` lists the targets.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PARALLEL := -n 2 --dist loadfile  # processes that share the tests, a file at a time

.PHONY: help demo test test-all lint format docs bench bench-full bench-worlds bench-dag bench-solve bench-memory bench-plan bench-batch bench-labelled clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# The stamp is renewed whenever the dependencies change.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.installed  ## show a world, count what can happen in it, solve it, and write a page to look through it
	$(BIN)/python examples/first_world.py
	$(BIN)/python examples/phase2_backward_induction.py --steps 12 --beta-r 50
	$(BIN)/empo-bi solve asymmetric_freeing --steps 12 -p gamma_h=0.99 -p gamma_r=0.99 -p zeta=2 -p beta_r=50 --out runs/demo --quiet
	$(BIN)/empo-bi report runs/demo --out runs/demo.html --force
	@echo "Open runs/demo.html in a browser to look through it."

test: lint  ## lint, type check and the default tests (a few minutes)
	$(BIN)/python -m pytest $(PARALLEL)

test-all: lint  ## the default tests and the slow ones
	$(BIN)/python -m pytest $(PARALLEL) -m ''

lint: $(VENV)/.installed  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed  ## let ruff tidy the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed  ## build the site of README and docs/ into build/site; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo build/site/index.html

bench: $(VENV)/.installed  ## measure against peers and against the machine; writes docs/benchmarks.md (some minutes)
	$(BIN)/python -m benchmarks

bench-full: $(VENV)/.installed  ## the same, the long ones too (half an hour)
	$(BIN)/python -m benchmarks --full

bench-worlds: $(VENV)/.installed  ## measure the compiled worlds, what objects cost, and the start
	$(BIN)/python benchmarks/bench_worlds.py

bench-dag: $(VENV)/.installed  ## measure enumeration: time, memory, disk (several minutes)
	$(BIN)/python benchmarks/bench_dag.py

bench-solve: $(VENV)/.installed  ## measure solving: time, memory, disk, workers (several minutes)
	$(BIN)/python benchmarks/bench_solve.py

bench-memory: $(VENV)/.installed  ## how small DAGs and solutions of the shipped worlds are stored (some minutes)
	$(BIN)/python benchmarks/memory_table.py

bench-plan: $(VENV)/.installed  ## hold the planner's predictions to real runs (several minutes)
	$(BIN)/python benchmarks/bench_plan.py

bench-batch: $(VENV)/.installed  ## measure a batch against a shell loop of single commands (some minutes)
	$(BIN)/python benchmarks/bench_batch.py

bench-labelled: $(VENV)/.installed  ## look at one level of 23 million states: time, memory (two minutes, 1.8 GB of disk)
	$(BIN)/python benchmarks/bench_labelled.py

clean:  ## remove the virtual environment and all caches
	rm -rf $(VENV) build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

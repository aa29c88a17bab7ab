# Everything a fresh machine needs: Python 3.11+, pip and make. `make help` lists the targets.
# `make test PYTHON=python3.13` chooses another Python; with VENV=.venv-3.13 as well, it is kept beside the first one.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Byte code is made when a module is first imported.
INSTALL  := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder  # processes that share the tests, a file at a time, long ones first

.NOTPARALLEL:  # two targets may install into the same folder
.PHONY: help same-python demo test test-all lint lint-and-compile format docs clean
.PHONY: bench bench-full bench-worlds bench-dag bench-solve bench-memory bench-plan bench-batch bench-labelled bench-translation

help:  ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# A virtual environment keeps the Python that it was made with: refuse, rather than test with another one than was asked for.
same-python:
ifneq ($(origin PYTHON),file)
	@version='import sys; print("%d.%d" % sys.version_info[:2])'; \
	wanted=$$($(PYTHON) -c "$$version") || exit 1; \
	found=$$($(BIN)/python -c "$$version" 2>/dev/null || echo "$$wanted"); \
	[ "$$found" = "$$wanted" ] || { \
		echo "$(VENV) has Python $$found, and PYTHON=$(PYTHON) is $$wanted. Either run 'make clean' first, which removes $(VENV)," \
			"or keep both: add VENV=.venv-$$wanted" >&2; exit 1; }
endif

# What the demo needs is soon there; what developers need takes minutes. Stamps are renewed when the dependencies change.
$(VENV)/.demo: pyproject.toml | same-python
	@echo "Installing numpy, scipy, numba, zarr and what they need into $(VENV): 420 MB, about half a minute ..."
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.installed: pyproject.toml | same-python
	@echo "Installing all that developers need into $(VENV): 1.8 GB, some minutes ..."
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable '.[dev]'
	@touch $(VENV)/.demo $@

# While the first world is shown, which compiles the rules of worlds, another process compiles what planning needs.
demo: $(VENV)/.demo  ## show a world, count what can happen in it, solve it, and write a page to look through it
	@mkdir -p runs
	@echo "Showing two worlds. The first time, the rules of worlds are compiled for this machine, which takes about 15 s ..."
	@$(BIN)/python tests/compile_kernels.py demo & compiling=$$!; \
	$(BIN)/python examples/first_world.py --picture runs/demo.png; shown=$$?; \
	wait $$compiling && exit $$shown
	@printf '\nSolving the second one, and writing a page to look through the solution ...\n'
	$(BIN)/empo-bi solve asymmetric_freeing --steps 12 -p gamma_h=0.99 -p gamma_r=0.99 -p zeta=2 -p beta_r=50 --out runs/demo
	$(BIN)/empo-bi report runs/demo --out runs/demo.html --force
	@printf '\nThe same from Python, in numbers ...\n'
	$(BIN)/python examples/phase2_backward_induction.py --steps 12 --beta-r 50 --eta 1
	@echo "Open runs/demo.html in a browser to look through it; runs/demo.png is a picture of its world."

test: lint-and-compile  ## lint, type check and the default tests (about eleven minutes on two cores)
	$(BIN)/python -m pytest $(PARALLEL)

test-all: lint-and-compile  ## the default tests and the slow ones
	$(BIN)/python -m pytest $(PARALLEL) -m ''

# mypy keeps one core busy; meanwhile the others compile the kernels once for all processes that share the tests.
lint-and-compile: $(VENV)/.installed
	$(BIN)/python tests/compile_kernels.py & compiling=$$!; \
	$(MAKE) --no-print-directory lint; linted=$$?; \
	wait $$compiling && exit $$linted

lint: $(VENV)/.installed  ## ruff, mypy, and which room imports which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

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

bench-translation: $(VENV)/.installed  ## translate environments of EMPO: a sweep against asking them (two minutes)
	$(BIN)/python benchmarks/bench_translation.py

clean:  ## remove the virtual environment and all caches
	rm -rf $(VENV) build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
TORCH := 2.13.0

.PHONY: env demo test test-all lint bench docs wheel check-wheel clean

env: $(VENV)/.installed

# Without a GPU the CPU build of torch is taken (some 200 MB instead of several GB); elsewhere the ordinary one.
$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c "import torch" 2>/dev/null \
	  || { ! command -v nvidia-smi >/dev/null && $(PIP) install --quiet --retries 0 --timeout 15 \
	       --extra-index-url https://download.pytorch.org/whl/cpu -c constraints.txt "torch==$(TORCH)+cpu"; } \
	  || $(PIP) install --quiet -c constraints.txt "torch==$(TORCH)"
	$(PIP) install --quiet -c constraints.txt -e ".[dev,view,docs]"
	touch $@

demo: env
	$(BIN)/acnn demo --out demo

# One process a core, each with one thread; a file's tests stay together and share what they set up. Long files first.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test: env
	$(PYTEST) -m "not slow"

test-all: env
	$(PYTEST)

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: env
	$(PIP) install --quiet -c constraints.txt -e ".[bench]"
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python benchmarks/layer.py

# The site needs no network, neither to build nor to read. Searching it needs a server: python -m http.server -d site
docs: env
	$(BIN)/python -c "import mkdocs, mkdocstrings" 2>/dev/null || $(PIP) install --quiet -c constraints.txt -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html"

wheel: env
	$(PIP) install --quiet build
	$(BIN)/python -m build --wheel --outdir dist .

# The built wheel in an environment of its own, outside the checkout.
check-wheel: wheel
	rm -rf build/wheel-env build/wheel-demo
	$(PYTHON) -m venv build/wheel-env
	build/wheel-env/bin/python -m pip --disable-pip-version-check install --quiet -c constraints.txt "torch==$(TORCH)"
	build/wheel-env/bin/python -m pip --disable-pip-version-check install --quiet -c constraints.txt dist/acnn-*.whl
	mkdir -p build/wheel-demo && cd build/wheel-demo && ../wheel-env/bin/acnn demo --out demo

clean:
	rm -rf $(VENV) build dist demo site

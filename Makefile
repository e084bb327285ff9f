# The two commands are `make up` and `make test`; everything else is a part of them. Needs Python >= 3.11 with venv.
PYTHON ?= python3
SETUP = $(PYTHON) signalbox/local/setup.py
SIGNALBOX = $(SETUP) && .venv/bin/signalbox
CHECK = .venv/bin/python -m tests.tiers.check
# What `make bench` measures: all, or with arguments, which are one program's own, what OF names.
OF ?= rendezvous $(if $(ARGS),,splitting exchange live)
BENCHMARKS = $(filter-out __init__,$(basename $(notdir $(wildcard benchmarks/*.py))))
MINUTES ?= 10
# Images of Python often set it; without bytecode each program compiles its packages again, which takes longer than its work.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help up down check test release format bench soak deploy wheels clean

help: ; @sed -n 's,^\([a-z]*\): .* [#][#] ,make \1\t,p' Makefile
up: ; @$(SIGNALBOX) local up $(ARGS) ## start the emulator, deploy, run the demo: 2 minutes and 1 GB at first, then seconds (ARGS="--port 4567 -c key=value")
down: ; @$(SIGNALBOX) local down --yes ## stop everything that `make up` started
check: ; @$(SETUP) && $(CHECK) check ## format, lint, types, contracts, fast tests, synth, documents: 3 minutes on two quiet cores
test: ; @$(SETUP) && $(CHECK) test ## that, and each capability on a stage, the page in a browser, and Spark: 10 minutes, 400 MB at first
release: ; @$(SETUP) && $(CHECK) release $(PART) ## everything else, in parts; 100 minutes; goes on after those that have passed (PART="core soak")
format: ; @$(SETUP) && .venv/bin/ruff format . && .venv/bin/ruff check --fix . && .venv/bin/python -m tests.tiers.javascript ## put the code into the house format
bench: ; @$(if $(filter-out $(BENCHMARKS),$(OF)),$(error OF: expected $(BENCHMARKS)))$(SETUP) && for of in $(OF); do .venv/bin/python -m benchmarks.$$of $(ARGS) || exit 1; done ## measure, side by side with the originals
soak: ; @$(SETUP) && .venv/bin/python -m tests.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(ARGS) ## load and kill everything under injected faults, then account for each message (MINUTES=10 SEED=1)
deploy: ; @$(SIGNALBOX) deploy $(ARGS) ## deploy to the AWS account of your credentials
wheels: ; @$(SETUP) && for of in . packages/*/; do .venv/bin/uv build --quiet --wheel --out-dir dist $$of || exit 1; done ## build the distributions of this repository into dist/
clean: ; @$(PYTHON) signalbox/local/setup.py --remove ## remove what the other targets made in this folder

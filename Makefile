# Kafka Durability Audit. `make help` lists the commands; everything they need is set up on the way, once.
#
# Options are variables: `make audit BOOTSTRAP=host:9092 OUT=reports`. They reach the program through its environment
# and never become part of a shell line.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules

export BOOTSTRAP COMMAND_CONFIG CLUSTER CLUSTERS TOPOLOGY POLICY WAIVERS OUT LAKE FAIL_ON BASELINE ROUNDS SIZE SEED PLACEMENT PARTITIONS RESULTS

STATE := .state
UV := $(STATE)/uv/bin/uv
PY := .venv/bin/python
UV_STAMP := $(STATE)/uv.stamp
ENV_STAMP := $(STATE)/environment.stamp
READY := $(STATE)/ready.stamp

# Finds a Python 3.11 or 3.12 that really runs (a version manager's shim may not) and can make environments.
define FIND_PYTHON
python=
for candidate in "$${PYTHON:-}" python3.11 python3.12 python3; do
  if [ -n "$$candidate" ] && "$$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null
  then python=$$candidate; break; fi
done
if [ -z "$$python" ]; then
  echo "make: Python 3.11 or 3.12 is needed and none was found. On Debian: sudo apt-get install python3.11 python3.11-venv" >&2
  exit 2
fi
if ! "$$python" -c 'import ensurepip' 2>/dev/null; then
  echo "make: $$python can't make virtual environments. On Debian: sudo apt-get install python3-venv" >&2
  exit 2
fi
endef

define FIND_JAVA
java=$${JAVA_HOME:+$$JAVA_HOME/bin/}java
version=$$("$$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' || true)
if [ "$$version" != 17 ] && [ "$$version" != 21 ]; then
  echo "make: Java 17 or 21 is needed, found $${version:-none}. On Debian: sudo apt-get install openjdk-17-jre-headless" >&2
  exit 2
fi
endef

.PHONY: help
help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16
	echo "Options of audit: BOOTSTRAP=host:port CLUSTER=name TOPOLOGY=file-or-folder POLICY= WAIVERS= OUT=out LAKE= FAIL_ON=critical|warning|unknown|never"
	echo "More about them, and audits without Airflow: .venv/bin/kafka-durability audit --help"

# A mistyped option would otherwise audit something else than was meant.
OPTIONS := BOOTSTRAP COMMAND_CONFIG CLUSTER CLUSTERS TOPOLOGY POLICY WAIVERS OUT LAKE FAIL_ON BASELINE PYTHON ROUNDS SIZE SEED PLACEMENT PARTITIONS RESULTS
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
UNKNOWN := $(filter-out $(OPTIONS),$(GIVEN))
ifneq ($(UNKNOWN),)
$(error unknown option $(firstword $(UNKNOWN)); there are $(OPTIONS))
endif

.PHONY: audit
audit: $(READY)  ## run the nightly audit once: of the embedded cluster, of BOOTSTRAP=, or of TOPOLOGY=
	@exec $(PY) -m durability.cli audit --airflow

.PHONY: test
test: $(READY)  ## run all the tests
	@exec $(PY) -m pytest --numprocesses 2 --no-loadscope-reorder

.PHONY: up
up: $(READY)  ## start Airflow with its pages on this machine
	@exec $(PY) -m durability.cli up

.PHONY: restore
restore: $(READY)  ## make the catalog of a lake that has lost it anew from the tables' files: LAKE=
	@exec $(PY) -m durability.cli restore

.PHONY: demo
demo: $(READY)  ## run the embedded cluster by itself until Ctrl-C, to audit it with BOOTSTRAP=
	@exec $(PY) -m durability.cli demo

.PHONY: bench
bench: $(READY)  ## measure an audit against its floor, with SIZE= each step over two made-up fleets of so many partitions (PLACEMENT=kafka|neighbours: over one), with PARTITIONS= collecting a live cluster
	@exec $(PY) -m bench.$(if $(PARTITIONS),collect,$(if $(SIZE),scale,floor))

.PHONY: lint
lint: $(ENV_STAMP)  ## check style, types, and that imports point one way
	@$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	PYTHONPATH=plugins .venv/bin/lint-imports --no-cache --no-logo

.PHONY: docs
docs: $(ENV_STAMP)  ## build the documentation as a site, into build/site
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

.PHONY: setup
setup: $(READY)  ## set everything up and stop

.PHONY: lock
lock: $(UV_STAMP)  ## resolve the dependencies again
	@$(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --group dev --all-extras \
	  --python-version 3.11 --custom-compile-command "make lock" pyproject.toml -o requirements.lock
	$(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --constraints requirements.lock \
	  --python-version 3.11 --custom-compile-command "make lock" deploy/requirements.txt -o deploy/requirements.lock

.PHONY: catalogue
catalogue: $(ENV_STAMP)  ## what is made of the control catalogue: docs/controls.md, the README's table, the JSON Schemas
	@$(PY) -m durability.catalogue.page
	$(PY) -m durability.schemas

.PHONY: clean
clean:  ## remove what set-up and runs made here, the lake and the downloads kept
	@rm -rf .venv $(UV_STAMP) $(ENV_STAMP) $(READY) $(STATE)/uv $(STATE)/airflow $(STATE)/runs build *.egg-info

$(UV_STAMP): requirements-uv.lock
	@$(FIND_PYTHON)
	echo "Setting up with $$("$$python" --version)"
	mkdir -p $(STATE)
	"$$python" -m venv --clear $(STATE)/uv
	$(STATE)/uv/bin/python -m pip install --quiet --require-hashes --no-deps -r requirements-uv.lock
	touch $@

$(ENV_STAMP): requirements.lock pyproject.toml $(UV_STAMP)
	@$(FIND_PYTHON)
	$(FIND_JAVA)
	[ -x $(PY) ] || $(UV) venv --quiet --python "$$(command -v "$$python")" .venv
	echo "Installing the environment from requirements.lock"
	$(UV) pip sync --quiet --python $(PY) --require-hashes --compile-bytecode requirements.lock
	$(UV) pip install --quiet --python $(PY) --no-deps --no-build-isolation --editable .
	touch $@

# The jars and Airflow's database have nothing to do with each other: side by side. Without the archive runs are as good.
$(READY): $(ENV_STAMP) durability/runtime/jars.lock durability/cli/classes.py
	@echo "Fetching jars, starting Spark once for an archive of its classes, preparing Airflow's database"
	( $(PY) -m durability.runtime.jars ensure spark kafka-4.3.1
	  $(PY) -m durability.cli classes || echo "make: no archive then; every run loads its classes from the jars" >&2 ) & jars=$$!
	$(PY) -m durability.cli migrate & database=$$!
	failed=0
	wait $$jars || failed=1
	wait $$database || failed=1
	[ $$failed = 0 ]
	touch $@

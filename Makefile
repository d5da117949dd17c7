# Kafka Durability Audit. `make help` lists the commands. The first command sets up everything that it needs.
#
# Options are variables: `make audit BOOTSTRAP=host:9092 OUT=reports`. The program reads them from its environment, so they
# never become part of a shell line.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules

export BOOTSTRAP COMMAND_CONFIG LOSE VERSION ELR MARGIN MAX VOTERS WAVE BROKERS FINDINGS CONTROL TOPIC AVOID BATCH BATCH_BYTES MARGIN_DISK UNDO CLUSTER CLUSTERS TOPOLOGY POLICY WAIVERS FRAMEWORK OUT LAKE FAIL_ON BASELINE SIGNING_KEY ROUNDS SIZE SEED PLACEMENT PARTITIONS RESULTS

STATE := .state
UV := $(STATE)/uv/bin/uv
PY := .venv/bin/python
UV_STAMP := $(STATE)/uv.stamp
ENV_STAMP := $(STATE)/environment.stamp
READY := $(STATE)/ready.stamp

# Finds a Python 3.11 or 3.12 that runs (a version manager's shim may not) and can create virtual environments.
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
  echo "make: $$python can't create virtual environments. On Debian: sudo apt-get install python3-venv" >&2
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
help:  ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24
	echo "Options of audit: BOOTSTRAP=host:port CLUSTER=name TOPOLOGY=file-or-folder POLICY= WAIVERS= FRAMEWORK= OUT=out LAKE= FAIL_ON=critical|warning|unknown|never"
	echo "All options, and audits without Airflow: .venv/bin/kafka-durability audit --help"

# Without this check, a mistyped option would audit the wrong thing.
OPTIONS := BOOTSTRAP COMMAND_CONFIG CLUSTER CLUSTERS TOPOLOGY POLICY WAIVERS FRAMEWORK OUT LAKE FAIL_ON BASELINE SIGNING_KEY PYTHON ROUNDS SIZE SEED PLACEMENT PARTITIONS RESULTS LOSE VERSION ELR MARGIN MAX VOTERS WAVE BROKERS FINDINGS CONTROL TOPIC AVOID BATCH BATCH_BYTES MARGIN_DISK UNDO
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
UNKNOWN := $(filter-out $(OPTIONS),$(GIVEN))
ifneq ($(UNKNOWN),)
$(error unknown option $(firstword $(UNKNOWN)); there are $(OPTIONS))
endif

.PHONY: audit
audit: $(READY)  ## audit once: the embedded cluster, BOOTSTRAP= or TOPOLOGY=
	@exec $(PY) -m durability.cli audit --airflow

.PHONY: whatif
whatif: $(READY)  ## predict a loss: LOSE=broker:3,rack:az2 [BOOTSTRAP= | TOPOLOGY= | LAKE=]
	@exec $(PY) -m durability.cli whatif --airflow

.PHONY: drill
drill: $(READY)  ## rehearse a loss on an embedded cluster: LOSE=rack:az1 [TOPOLOGY=] [VERSION=4.3.1] [ELR=on] [LAKE=]
	@exec $(PY) -m durability.cli drill

.PHONY: restart-plan
restart-plan: $(READY)  ## plan in which waves brokers restart: [BOOTSTRAP= | TOPOLOGY= | LAKE=] [MARGIN=0] [MAX=] [VOTERS=1]
	@exec $(PY) -m durability.cli restart-plan

.PHONY: restart-check
restart-check: $(READY)  ## say whether a wave may restart now: BOOTSTRAP= WAVE=2 or BROKERS=7,8
	@exec $(PY) -m durability.cli restart-check

.PHONY: plan
plan: $(READY)  ## plan changes that fix findings: [BOOTSTRAP= | TOPOLOGY= | LAKE=] [FINDINGS= CONTROL= TOPIC= AVOID=broker:3] or UNDO=plan
	@exec $(PY) -m durability.cli plan

.PHONY: test
test: $(READY)  ## run all tests
	@exec $(PY) -m pytest --numprocesses 3 --no-loadscope-reorder --durations=50 --durations-min=5

.PHONY: up
up: $(READY)  ## run Airflow with its pages on this machine
	@exec $(PY) -m durability.cli up

.PHONY: restore
restore: $(READY)  ## restore the lost catalog of the lake LAKE=
	@exec $(PY) -m durability.cli restore

.PHONY: demo
demo: $(READY)  ## run the embedded cluster until Ctrl-C
	@exec $(PY) -m durability.cli demo

.PHONY: bench
bench: $(READY)  ## measure a small audit, with SIZE= the steps over generated fleets, with PARTITIONS= a collection, with BROKERS= losses, restarts and moves (docs/commands.md)
	@exec $(PY) -m bench.$(if $(BROKERS),failures,$(if $(PARTITIONS),collect,$(if $(SIZE),scale,floor)))

.PHONY: lint
lint: $(ENV_STAMP)  ## check style, types and the direction of imports
	@$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	PYTHONPATH=plugins .venv/bin/lint-imports --no-cache --no-logo

.PHONY: docs
docs: $(ENV_STAMP)  ## build the documentation into build/site
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

.PHONY: setup
setup: $(READY)  ## set everything up

.PHONY: lock
lock: $(UV_STAMP)  ## resolve the dependencies again
	@$(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --group dev --all-extras \
	  --python-version 3.11 --custom-compile-command "make lock" pyproject.toml -o requirements.lock
	$(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --constraints requirements.lock \
	  --python-version 3.11 --custom-compile-command "make lock" deploy/requirements.txt -o deploy/requirements.lock

.PHONY: catalogue
catalogue: $(ENV_STAMP)  ## generate docs/controls.md, the README's table and the JSON Schemas
	@$(PY) -m durability.catalogue.page
	$(PY) -m durability.schemas

.PHONY: clean
clean:  ## delete the environment and files of runs; keep the lake and downloads
	@rm -rf .venv $(UV_STAMP) $(ENV_STAMP) $(READY) $(STATE)/uv $(STATE)/airflow $(STATE)/runs build *.egg-info

$(UV_STAMP): requirements-uv.lock
	@$(FIND_PYTHON)
	echo "Setting up with $$("$$python" --version)"
	mkdir -p -m 700 $(STATE)
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

# The jars and Airflow's database are independent, so both are prepared at once. Runs also work without the archive.
$(READY): $(ENV_STAMP) durability/runtime/jars.lock durability/cli/classes.py
	@echo "Fetching jars, starting Spark and Kafka once for archives of their classes, preparing Airflow's database"
	( $(PY) -m durability.runtime.jars ensure spark kafka-4.3.1
	  $(PY) -m durability.cli classes || echo "make: not every archive of classes was made; each run loads its classes from the jars" >&2 ) & jars=$$!
	$(PY) -m durability.cli migrate & database=$$!
	failed=0
	wait $$jars || failed=1
	wait $$database || failed=1
	[ $$failed = 0 ]
	touch $@

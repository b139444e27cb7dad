# trainium.cluster: what a newcomer and CI run. `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help setup
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/.ready ## install everything into .venv, nothing else

# The checkout is made visible as ansible_collections.trainium.cluster by a link and a .pth file, so that
# Ansible, pytest and mypy find it without any environment variable.
$(VENV)/.ready: requirements.txt requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --requirement requirements-dev.txt
	mkdir -p $(VENV)/collections/ansible_collections/trainium
	ln -sfn ../../../.. $(VENV)/collections/ansible_collections/trainium/cluster
	echo "$(CURDIR)/$(VENV)/collections" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/trainium_cluster.pth"
	touch $@

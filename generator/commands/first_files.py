"""The files of a new repository that people go on to write themselves; values enter in few places."""

from generator import __version__
from generator.structs.settings import Controller

EXAMPLE = "peak"
"""The name of the sweep that a new repository begins with."""

PROGRAM = '''\
"""A program that knows nothing of sweeps: arguments in, one line `score=…` out. Put your own here."""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--rate", type=float, default=0.1)
arguments = parser.parse_args()
print(f"score={1 - (arguments.x - 2) ** 2 - arguments.rate}")
'''

SETTINGS = """\
# Settings of this repository, for every sweep in it. A spec may choose among what is named here only.
# `sweep schema settings` prints every key; what is not set has a default.
version: 1
namespace: sweeps          # where trials run
controller: {controller}

# What holds for sweeps that say nothing else. `local`: programs run from the locked code, without an image.
# defaults: {{image: trainer, pool: cpu, retries: 1, timeout: 1h}}

# Images by name; `sweep pin trainer --tag v1` asks the registry for the digest and writes it here.
# images:
#   trainer: {{repository: registry.example.org/team/trainer, tag: v1}}

# Data by name; `sweep data digest FOLDER` computes the digest.
# datasets:
#   digits: {{claim: digits, digest: "sha256:…"}}

# Nodes by name: a queue of Kueue, or a selector and tolerations.
# pools:
#   cpu: {{selector: {{pool: cpu}}, node: {{cpu: 16, memory: 64Gi}}, max_nodes: 4}}

# results: {{claim: sweep-results}}
# limits: {{max_trials: 1000, max_gpu_hours: 500}}
"""

README = """\
# {name}

Hyperparameter sweeps as reviewed commits, made with [sweepledger](https://pypi.org/project/sweepledger/).
What to try stands in `sweeps/`, what runs in `overlays/active/`, what came of it in `results/`; `git log` is
the history.

## Five commands

```
pip install -r requirements.txt
git remote add origin URL && git push -u origin main

sweep try {example}              # one trial, here and now
sweep generate {example}         # writes the next batch; commit it in a pull request
sweep check                 # everything that must hold before a merge: let CI run it
{run}
sweep results {example}          # the trials, best first
```

`sweep new NAME` begins another sweep. A batch runs the committed code of its `run.code.path`, here `code/`,
and nothing else.
{platform}
## What lies where

| folder | holds | written by |
|---|---|---|
| `sweeps/` | specs: what to try, what to measure, how to run it | people |
| `code/` | the program | people |
| `sweepledger.yaml` | settings: images, data, nodes, limits | the platform team |
| `base/` | Kubernetes building blocks; frozen once a batch refers to them | `sweep`, the platform team |
| `overlays/active/` | one folder a batch: what the cluster is asked to run | `sweep generate` |
| `overlays/archive/` | the same folders, recorded or cancelled | the collector, `sweep cancel` |
| `results/` | records, summary, report and figure | the collector alone |
"""

RUNS = {
    Controller.NONE: "sweep local --once          # runs what main asks for, and records it; then `git pull`",
    Controller.ARGOCD: "sweep status {example}           # once merged, Argo CD runs it and it is recorded",
    Controller.FLUX: "sweep status {example}           # once merged, Flux runs it and it is recorded",
}

PLATFORM = """
## The cluster

`sweep bootstrap {controller} --repo URL --branch main` writes `clusters/`: what the controller is pointed at,
and the platform that trials need. Until then `sweep local --once` plays the cluster on one machine.
"""

OWNERS = """\
# Who must approve what. Put your teams in place of these names, and switch the rule on where branches are
# protected.
# /sweepledger.yaml  @your-org/platform
# /base/             @your-org/platform
# /clusters/         @your-org/platform
# /.github/          @your-org/platform
"""

PULL_REQUEST = """\
## The question

What should this sweep answer, and what decides when it is enough?

- [ ] `sweep plan` says what it comes to: trials, hours, GPU hours
- [ ] `sweep check` finds nothing
"""

ATTRIBUTES = """\
# Digests are taken over bytes: the same on every system.
* text=auto eol=lf
base/** -text
overlays/** -text linguist-generated
results/** -text linguist-generated
"""

REQUIREMENTS = """\
# What makes the files of this repository: one version for everyone.
sweepledger=={version}
"""

IGNORED = """\
.sweepledger/
.venv/
__pycache__/
"""


def first_files(name: str, controller: Controller) -> dict[str, bytes]:
    """Give what a person finds in a new repository, beside its spec and its bases."""
    run = RUNS[controller].format(example=EXAMPLE)
    platform = "" if controller is Controller.NONE else PLATFORM.format(controller=controller)
    texts = {
        ".gitattributes": ATTRIBUTES,
        ".github/CODEOWNERS": OWNERS,
        ".github/pull_request_template.md": PULL_REQUEST,
        ".gitignore": IGNORED,
        "README.md": README.format(name=name, example=EXAMPLE, run=run, platform=platform),
        "code/train.py": PROGRAM,
        "requirements.txt": REQUIREMENTS.format(version=__version__),
        "sweepledger.yaml": SETTINGS.format(controller=controller),
    }
    return {path: text.encode() for path, text in texts.items()}

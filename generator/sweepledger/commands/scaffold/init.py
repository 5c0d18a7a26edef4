"""`sweep cluster init`: a complete new repository of sweeps; `sweep new`: a commented spec."""

import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from sweepledger import __version__, storage
from sweepledger.commands.repository import base_files
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.scaffold import command_line
from sweepledger.engine.local import machine
from sweepledger.errors import RepositoryError, SpecError, UsageError
from sweepledger.problems import Problem, Severity
from sweepledger.repo import files
from sweepledger.repo.files import base_folder, workflows_folder
from sweepledger.repo.git import Repository, create_repository
from sweepledger.search.adaptive.model_based import is_installed
from sweepledger.spec.parser import parse
from sweepledger.spec.program_options import UNKNOWN, read_options
from sweepledger.spec.schemas import schema_text
from sweepledger.spec.starter import MNIST, PARALLELISM, PLAIN, SCHEMA_FILE, Starter, starter_spec
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs import names
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.methods import LARGER_SEARCH
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
# `sweep schema --settings` prints every key; keys that are not set have a default.
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
        base_files.ATTRIBUTES_FILE: (base_files.with_attribute_lines(ATTRIBUTES.encode()) or b"").decode(),
        **_host_files(host),
        ".gitignore": IGNORED,
        "README.md": readme,
        "code/train.py": PROGRAM,
        "sweepledger.yaml": SETTINGS.format(
            namespace=names.repository_namespace(name),
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


BRANCH = "main"
REPOSITORY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
"""Pattern of a repository's name, which is quoted in prose."""

ON_MERGE = frozenset({".github/workflows/generate.yaml", ".gitlab/ci/generate.yml"})
BY_WORKFLOW = frozenset({".github/workflows/next.yaml", ".gitlab/ci/next.yml"})
"""The workflows that write to the branch; optional."""
PAGES = frozenset({".github/workflows/site.yaml", ".github/workflows/preview.yaml", ".gitlab/ci/site.yml"})
"""The workflows that publish the site, and that of a change as an artifact; optional, because pages are public."""

COPIED_BASES = re.compile(r"(?:trial|jobs|launcher|components/[a-z0-9-]+)/v[1-9][0-9]*/", re.ASCII)
"""Bases of any batch. Those of distributed shapes come with their first batch, and those of the platform with
`sweep cluster bootstrap`.
"""


RUNNER, CHECKS_APP = "ubuntu-24.04", 15368
"""Where workflows run, and whose word counts as the check: a label and an app of GitHub.com."""
RUNNER_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


@dataclass(frozen=True)
class NewRepository:
    """A new repository."""

    folder: Path
    commit: str
    files: tuple[str, ...]


def init(
    folder: Path,
    *,
    name: str | None = None,
    controller: str = "none",
    generate: str = GenerateMode.IN_PULL_REQUEST,
    next_: str = NextRoundMode.REVIEW,
    pages: bool = False,
    host: str = Host.GITHUB,
    runner: str | None = None,
    checks_app: int | None = None,
) -> NewRepository:
    """Create a repository in a new or empty folder, with its first commit on `main`; `pages` publishes its site.

    `runner` is the label of the machines that run the workflows, `checks_app` the id of the server's Actions app.
    Raises UsageError for a folder that is not empty, RepositoryError inside another repository, StorageError;
    nothing is left then.
    """
    called = name or folder.resolve().name
    if not REPOSITORY_NAME.fullmatch(called):
        raise UsageError(
            f"{called!r} is not a valid name for a repository",
            hint="letters, digits, hyphens, underscores and dots: --name",
        )
    if runner is not None and not RUNNER_LABEL.fullmatch(runner):
        raise UsageError(f"{runner!r} is not a valid label of a runner", hint="one label: --runner gpu-less")
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise UsageError(f"{folder} is not an empty folder", hint="choose another, or empty it")
    storage.output_path(folder)
    above = next(place for place in (folder.resolve(), *folder.resolve().parents) if place.is_dir())
    around = None
    with suppress(RepositoryError):
        around = Repository.find(above).folder
    if around is not None:
        raise RepositoryError(
            f"{folder} would be inside the repository {around}", hint="choose a folder outside of it"
        )
    modes = Controller(controller), GenerateMode(generate), NextRoundMode(next_)
    tree = first_tree(called, *modes, pages=pages, host=Host(host))
    tree = FileTree({path: _for_server(path, content, runner, checks_app) for path, content in tree})
    commit = ""

    def finish(made: Path) -> None:
        nonlocal commit
        commit = create_repository(made, BRANCH, "Start a repository of sweeps\n")

    files.make_folder(folder.resolve(), tree, finish)
    return NewRepository(folder, commit, tuple(path for path, _ in tree))


def first_tree(
    name: str,
    controller: Controller,
    generate: GenerateMode,
    next_: NextRoundMode,
    *,
    pages: bool = False,
    host: Host = Host.GITHUB,
) -> FileTree:
    """Return every file of a new repository; `sweep cluster bootstrap`, which knows its URL, adds `clusters/`."""
    chosen = ((ON_MERGE, generate is GenerateMode.ON_MERGE), (BY_WORKFLOW, next_ is NextRoundMode.WORKFLOW))
    unasked = {path for paths, is_chosen in (*chosen, (PAGES, pages)) if not is_chosen for path in paths}
    return FileTree(
        {
            **first_files(name, controller, generate, next_, host),
            **{
                path: content
                for path, content in files.read_sources(workflows_folder())
                if path.startswith(f".{host}") and path not in unasked
            },
            f"{names.SPECS}/{SCHEMA_FILE}": schema_text("sweep").encode(),
            f"{names.SPECS}/{EXAMPLE}.yaml": starter_spec(EXAMPLE).encode(),
            **dict.fromkeys(base_files.KEEP_FILES, b""),
            **{
                f"base/{path}": content
                for path, content in files.read_sources(base_folder())
                if COPIED_BASES.match(path)
            },
        }
    )


def _for_server(path: str, content: bytes, runner: str | None, checks_app: int | None) -> bytes:
    """Return a file with the runner and the app of the server in the place of those of GitHub.com."""
    if runner is not None and path.startswith(".github/workflows/"):
        return content.replace(f"runs-on: {RUNNER}\n".encode(), f"runs-on: {runner}\n".encode())
    if runner is not None and path == ".gitlab-ci.yml":
        return content + f"  tags: [{runner}]\n".encode()
    if checks_app is not None and path.startswith(".github/rulesets/"):
        return content.replace(
            f'"integration_id": {CHECKS_APP}'.encode(), f'"integration_id": {checks_app}'.encode()
        )
    return content


FIRST_SETTINGS = b"""\
# Settings of this repository, for every sweep in it: `sweep schema --settings` prints every key.
version: 1
"""


@dataclass(frozen=True)
class NewSpec:
    """What `sweep new` wrote."""

    paths: tuple[Path, ...]
    warnings: tuple[Problem, ...] = ()


def new_spec(workspace: Workspace, name: str, starter: Starter | None = None) -> NewSpec:
    """Write `sweeps/<name>.yaml`, and the schema that editors explain its keys by; return what was written.

    With a `starter` the spec runs its command, and the repository gets settings if it has none. Raises UsageError
    if the name is invalid or taken, StorageError if `sweeps/` is a link, SpecError for a spec that cannot run.
    """
    if name in names.RESERVED_SWEEP_NAMES:
        raise UsageError(f"{name!r} is reserved", hint="choose another name")
    if not names.is_sweep_name(name):
        raise UsageError(
            f"{name!r} is not a valid sweep name",
            hint=f"lower-case letters, digits and dashes, a letter first, at most {names.MAX_SWEEP_NAME_LENGTH}",
        )
    path = workspace.root / names.SPECS / f"{name}.yaml"
    files.refuse_links(workspace.root, names.SPECS)
    if os.path.lexists(path):
        raise UsageError(f"{names.SPECS}/{name}.yaml exists", hint="choose another name, or edit it")
    settings = workspace.settings
    has_mnist = "mnist" in settings.trials.datasets and (workspace.root / "trainer").is_dir()
    warnings: tuple[Problem, ...] = ()
    if starter is None:
        text = starter_spec(name, example=MNIST if has_mnist else PLAIN, clones=settings.git.code is not None)
    else:
        text, warnings = _spec_of_command(workspace, name, starter)
    # Committed beside the specs, so that every clone has the right version offline.
    storage.write_file(path.with_name(SCHEMA_FILE), schema_text("sweep").encode())
    storage.write_file(path, text.encode())
    written = [path]
    settings_path = workspace.root / names.SETTINGS_FILE
    if starter is not None and not os.path.lexists(settings_path):
        storage.write_file(settings_path, FIRST_SETTINGS)
        written.append(settings_path)
    if base_files.write_attribute_lines(workspace.root):
        written.append(workspace.root / base_files.ATTRIBUTES_FILE)
    return NewSpec(tuple(written), warnings)


def _spec_of_command(workspace: Workspace, name: str, starter: Starter) -> tuple[str, tuple[Problem, ...]]:
    """Return a spec for a command, and warnings. Raises UsageError, and SpecError for a spec that cannot run."""
    program = command_line.find_program(workspace, starter.command)
    is_module = command_line.module_name(starter.command) is not None
    code = command_line.code_folder(workspace, program, is_module=is_module)
    options = UNKNOWN
    if program is not None and program.endswith(".py"):
        options = read_options(files.read_input(workspace.root / program))
    try:
        text = starter.spec(
            name, code=code, search=_search_here(starter), options=options, memory=_memory_of_a_trial()
        )
    except ValueError as error:
        raise UsageError(f"--param {error}", hint="--param learning_rate=0.1,0.01") from error
    path = f"{names.SPECS}/{name}.yaml"
    parsed = parse(text.encode(), path, workspace.settings)
    if isinstance(parsed, tuple):
        raise SpecError(parsed)
    return text, tuple(
        replace(
            parsed.source.problem(
                f"must be an option of {program}, got {parameter!r}",
                *("parameters", parameter),
                code="program-option",
                hint=did_you_mean(parameter, options.kinds),
            ),
            severity=Severity.WARNING,
        )
        for parameter in starter.unknown_parameters(options)
    )


def _memory_of_a_trial() -> str:
    """Return what a trial may use if all that run at once leave a quarter of this machine."""
    share = machine.memory() * 3 // 4 // PARALLELISM
    return f"{share >> 30}Gi" if share >> 30 else f"{share >> 20}Mi"


def _search_here(starter: Starter) -> tuple[str, str]:
    """Return the method of a first search, whose library is installed here, and why it is that."""
    method, why = starter.method
    if is_installed(method):
        return method.name, why
    if is_installed(LARGER_SEARCH):
        return LARGER_SEARCH.name, f"{method} needs `pip install 'sweepledger[{method.extra}]'`"
    return method.name, f"it needs `pip install 'sweepledger[{method.extra}]'`"

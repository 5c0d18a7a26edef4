"""What varies, such as a sampler, a store of records or a git host, is files of its own and an entry in a table.

A copy of the package gets one of each; its suites, help, schema, import and export then work without another change.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import IMAGE, Sandbox

ROOT = Path(__file__).parents[2]

TRIANGULAR = """
from dataclasses import dataclass
from typing import ClassVar
from sweepledger.distributions.continuous import Continuous
from sweepledger.distributions.form import Form
from sweepledger.distributions.quantized import with_rounded
from sweepledger.distributions.rounding import ContinuousQuantile

@dataclass(frozen=True, slots=True)
class Triangular(Continuous):
    low: float
    high: float
    name: ClassVar[str] = "triangular"

    @property
    def support(self):
        return self.low, self.high

    @property
    def ends(self):
        return self.support

    @property
    def text(self):
        return f"{self.low:g} … {self.high:g}, triangular"

    def unrounded(self):
        low, high = self.support
        return ContinuousQuantile(lambda u: low + (high - low) * u**0.5, low=low, high=high)

    def below(self):
        low, high = self.support
        return lambda value: ((value - low) / (high - low)) ** 2

FORMS = with_rounded(
    {"triangular": Form("min max", "", lambda keys: Triangular(float(keys["min"]), float(keys["max"])))}
)
TEXT = "`triangular` (min, max)"
"""

STRATIFIED = """
from sweepledger.search.random_points import index_chunks
from sweepledger.search.rng import stream

def points(seed, names, _):
    streams = [stream(seed, name, purpose="stratified") for name in names]
    for numbers in index_chunks():
        yield [stream_.uniforms(numbers) for stream_ in streams]
"""

LAZY = """
from sweepledger.search.adaptive.successive_halving import rung_round, start_trials

def next_round(sweep, search, trials, number):
    return rung_round(sweep, search, trials, number, _suggest)

def _suggest(search, rungs, newcomers):
    yield from start_trials(rungs, newcomers, search.rounds.size, 0)
"""

DEADLINE = """
from dataclasses import dataclass
from sweepledger.structs.early_stopping import StopPolicy, StopType

@dataclass(frozen=True, slots=True)
class Deadline(StopPolicy):
    max_iter: int

    def rules(self, metric, curves):
        return ({"rule": "patience", "reports": self.max_iter, "margin": 0.0, "from": 1},)

TYPES = {
    "deadline": StopType(
        Deadline, "max_iter", "a trial stops at a step",
        required={"max_iter": "max_iter: 9"},
    )
}
"""

INBOX = """
from pathlib import Path

class InboxResults:
    counts_alone = True
    is_common = True

    def __init__(self, folder):
        self.folder = folder

    def _files(self, batch):
        folder = self.folder / batch
        return sorted(folder.iterdir()) if folder.is_dir() else []

    def records(self, batch, index, place):
        for path in self._files(batch):
            if path.name.startswith(f"{index}."):
                yield path.read_bytes()

    def thresholds(self, batch, place, digest):
        return None

    def unconfirmed(self, batch):
        return {}

    def has_begun(self, batch):
        return bool(self._files(batch))

    def has_every_trial(self, lock):
        return True

    def last_change(self, batch):
        return max((path.stat().st_mtime for path in self._files(batch)), default=None)

def open_store(results, repository, volume):
    return InboxResults(volume)
"""

WRITER_TO_INBOX = """
def write(folder, attempt):
    path = folder / attempt.lock.name / f"{attempt.index}.{attempt.uid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(attempt.content)
    return "", None
"""

INBOX_STORE = """
    INBOX = (
        "inbox",
        StoreFacts(
            module="sweepledger.operations.record_stores.inbox",
            foreign_keys=("bucket",),
            why="delete the key",
            holds_pods=False,
            has_claims=True,
            is_shared=True,
        ),
    )
"""

HAULER = """
from sweepledger.controllers.controller import GitOps, Sync, SyncState
from sweepledger.structs.platform import RequiredSecret
from sweepledger.structs.settings import Controller

class Hauler(GitOps):
    name = Controller.HAULER
    title = "Hauler"
    domain = "hauler.example.org"
    namespaces = frozenset({"hauler-system"})
    namespace_suffix = "-dock"
    files = {"cargo.yaml": "What it hauls", "lease.yaml": "Who collects"}
    conditions = {"Cargo": ("Ready", ())}
    side_files = r"\\.hauler"
    upkeep = "It hauls."
    repair = "it hauls again"
    batch_kind = "hauler.example.org/v1/Load"

    def batch_spec(self, batch):
        return {"path": f"overlays/active/{batch}"}

    def words(self, names, platform, egress, source):
        return {"kinds": [kind.kind for kind in source.batch_kinds]}

    def notification_words(self, names, platform, source):
        return None

    def secrets(self, names, platform, source):
        yield RequiredSecret("controller, read", self.namespace(names, platform), "cargo-read", source.credential_keys)

    def removal(self, names, platform):
        return "kubectl delete cargos --all"

    def observed(self, names, batch):
        return (("cargos", batch),)

    def sync(self, batch, *objects):
        return Sync(SyncState.WAITING, "it is on its way", "wait a moment")

CONTROLLER = Hauler()
"""
CARGO = """\
apiVersion: hauler.example.org/v1
kind: Cargo
metadata: {name: sweeps, namespace: <hauler>}
spec: {url: <url>, kinds: <kinds>}
"""

ENTRIES = {
    "structs/settings/stores.py": (("    # In object storage,", INBOX_STORE + "    # In object storage,"),),
    "structs/settings/platform.py": (('    FLUX = "flux"\n', '    FLUX = "flux"\n    HAULER = "hauler"\n'),),
    "controllers/__init__.py": (
        ("import argocd, flux\n", "import argocd, flux, hauler\n"),
        ("(argocd, flux)", "(argocd, flux, hauler)"),
    ),
    "distributions/__init__.py": (
        ("    beta,\n", "    beta,\n    triangular,\n"),
        (", beta)", ", beta, triangular)"),
    ),
    "stopping/__init__.py": (("target\n", "target, deadline\n"), (", target)", ", target, deadline)")),
    "structs/platform.py": (
        (
            "GIT_HOSTS = (\n",
            'GIT_HOSTS = (\n    GitHost("forge", "gitea", workflows=(".forge/",), runner=(": any\\n", ": {}\\n")),\n',
        ),
    ),
    "structs/run_config.py": (
        (
            "    JOB_SET =",
            """    RING_JOB = (
        "ring-job",
        Kind("ring.example.org", "v1alpha2", "RingJob", "ringjobs", ("spec",), True, JOB_SET.templates)
    )
    JOB_SET =""",
        ),
    ),
    "../../base/platform/admission/v1/workloads.yaml": (
        ('["jobset.x-k8s.io"]', '["jobset.x-k8s.io", "ring.example.org"]'),
        ('["jobsets"]', '["jobsets", "ringjobs"]'),
    ),
    "contract/schemas/custom.json": (
        (
            '"kinds":{',
            '"kinds":{"ring.example.org/v1alpha2 RingJob":[["ring v1","JobSet-jobset-v0.10.1"]],',
        ),
    ),
    "structs/methods.py": (
        (
            'Sampler("halton"',
            'Sampler("stratified", "sweepledger.search.stratified", "draws in strata"),\n        Sampler("halton"',
        ),
        (
            "for method in (\n",
            'for method in (\n        Method("lazy", "sweepledger.search.adaptive.lazy", "rounds of new trials"),\n',
        ),
    ),
}
MODULES = {
    "distributions/triangular.py": TRIANGULAR,
    "search/stratified.py": STRATIFIED,
    "search/adaptive/lazy.py": LAZY,
    "stopping/deadline.py": DEADLINE,
    "operations/record_stores/inbox.py": INBOX,
    "../writer_to_inbox.py": WRITER_TO_INBOX,
    "controllers/hauler.py": HAULER,
    "../../base/platform/hauler/v1/cargo.yaml": CARGO,
    "operations/scaffold/repository/forge.md": "The version is pinned in .forge/sweep.in\n",
    **{
        f"workflows/.forge/{name}.yaml": "runs: any\n"
        for name in ("check", "generate", "next", "results", "site")
    },
}

SPEC = """\
name: added
method: stratified
run_cap: 5
seed: 1
metric: {name: loss, goal: minimize, source: stdout}
early_terminate: {type: deadline, max_iter: 9}
parameters:
  lr: {distribution: triangular, min: 0.1, max: 0.5}
  momentum: {distribution: q_triangular, min: 0, max: 1, q: 0.1}
command: [python, train.py, "${args}"]
"""
DISTRIBUTED = f"""\
name: ring
method: grid
run_cap: 2
metric: {{name: loss, goal: minimize, source: stdout}}
parameters:
  lr: {{values: [0.1, 0.2]}}
command: [python, trainer/train.py, "${{args}}"]
run: {{shape: ring-job, nodes: 2, parallelism: 2, image: "{IMAGE}"}}
"""
SUITES = [
    *(
        f"tests/operations/test_record_stores.py::{test}[inbox]"
        for test in (
            "test_what_trials_leave_is_recorded_once",
            "test_a_record_that_was_cut_or_of_another_trial_is_no_result",
            "test_a_record_that_comes_late_takes_the_place_of_the_missing_one",
            "test_of_two_collectors_that_read_the_same_records_one_commits",
        )
    ),
    "tests/operations/test_init.py::test_each_git_host_has_its_workflows_runners_and_pinned_version[forge]",
    "tests/search/test_point_sets.py::test_a_seed_determines_the_draws[stratified]",
    "tests/search/test_point_sets.py::test_parameters_are_drawn_independently[stratified]",
    "tests/search/test_point_sets.py::test_zipped_parameters_move_together[stratified]",
    "tests/search/test_rounds_of_every_method.py::test_every_suggestion_is_legal_and_new[lazy]",
    "tests/spec/test_domain_rules.py::test_each_distribution_needs_its_keys_and_takes_them_alone[triangular]",
]


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the package and its tools, and add an instance of each kind."""
    root = tmp_path_factory.mktemp("extended")
    for folder in ("generator/sweepledger", "tools", "docs", "base", "trainer"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    package = root / "generator/sweepledger"
    for name, text in MODULES.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    shutil.copytree(root / "base/job-set", root / "base/ring-job")
    trial = root / "base/ring-job/v1/trial.yaml"
    text = trial.read_text(encoding="utf-8").replace("JobSet\n", "RingJob\n", 1)
    trial.write_text(text.replace("jobset.x-k8s.io", "ring.example.org"), encoding="utf-8")
    for name, changes in ENTRIES.items():
        text = (package / name).read_text(encoding="utf-8")
        for old, new in changes:
            assert old in text, f"{name} has no {old!r}"
            text = text.replace(old, new)
        (package / name).write_text(text, encoding="utf-8")
    run(root, "-m", "tools.json_schemas", cwd=root)
    return root


def run(root: Path, *arguments: str, cwd: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{root / 'generator'}:{root}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.full_suite("commands of added instances")
def test_the_commands_know_added_instances(extended: Path, sandbox: Sandbox) -> None:
    (sandbox.root / "sweeps").mkdir(exist_ok=True)
    (sandbox.root / "sweeps/added.yaml").write_text(SPEC, encoding="utf-8")

    def sweep(*arguments: str) -> str:
        start = "import sys; from sweepledger.cli.app import main; sys.exit(main())"
        return run(extended, "-c", start, *arguments, cwd=sandbox.root)

    assert "`triangular`" in sweep("schema", "--key", "distribution")
    assert "5 trials" in sweep("validate", "sweeps/added.yaml")
    schema = json.dumps(json.loads(sweep("schema")))
    assert all(f'"{name}"' in schema for name in ("q_triangular", "stratified", "lazy", "deadline"))
    exported = sweep("export", "wandb", "added")
    assert 'distribution: "q_triangular"' in exported
    (sandbox.root / "exported.yaml").write_text(exported, encoding="utf-8")
    imported = sweep("import", "wandb", "exported.yaml", "--name", "again")
    assert "distribution: triangular" in imported

    sandbox.commit("Add code", {"trainer/train.py": "", "sweeps/ring.yaml": DISTRIBUTED})
    assert "ring-job" in schema
    sweep("generate", "ring")
    (rendered,) = (sandbox.root / "overlays/active").glob("ring-b1-*/job.yaml")
    assert rendered.read_text(encoding="utf-8").count('kind: "RingJob"\n') == 2
    (sandbox.root / "sweeps/added.yaml").unlink()
    sweep("check")

    assert '"inbox"' in sweep("schema", "--settings")
    assert "argocd or flux or hauler" in " ".join(sweep("cluster", "bootstrap", "--help").split())
    assert '"hauler"' in sweep("schema", "--settings")
    assert "sweeps-dock/cargo-read" in sweep(
        "cluster", "bootstrap", "hauler", "--repo", "https://git.example.org/team/sweeps.git"
    )
    written = sandbox.root / "clusters/hauler"
    assert '- "RingJob"' in (written / "cargo.yaml").read_text(encoding="utf-8")
    sweep("generate", "ring")
    assert [path.stem for path in (written / "active").glob("*.yaml")] == [rendered.parent.name]
    sandbox.git("add", "clusters", "base", "sweepledger.yaml")
    with pytest.raises(
        AssertionError, match="settings-changed"
    ) as refused:  # a new batch beside new settings
        sweep("check")
    assert "clusters/" not in str(refused.value)

    assert "--host forge|github|gitlab" in sweep("cluster", "init", "--help")
    sweep("cluster", "init", str(extended / "lab"), "--host", "forge", "--runner", "pool-3")
    assert (extended / "lab/.forge/check.yaml").read_text(encoding="utf-8") == "runs: pool-3\n"


@pytest.mark.full_suite("suites of added instances")
def test_added_instances_pass_the_suites(extended: Path) -> None:
    options = ("-q", "-p", "no:cacheprovider", "-o", f"pythonpath={extended / 'generator'} {ROOT}")
    assert "." * len(SUITES) in run(extended, "-m", "pytest", *options, *SUITES, cwd=ROOT)

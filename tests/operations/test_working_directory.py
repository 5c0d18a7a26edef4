"""A program that starts in its own folder, reads a dataset at a fixed path, and leaves files that are kept."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweepledger import process_tree
from sweepledger.engine.local.pod_folders import StateFolders
from sweepledger.engine.local.pods import DAEMONS
from sweepledger.errors import SpecError
from sweepledger.operations.reports.reproduction import recipe, run_again
from sweepledger.problems import Severity
from sweepledger.repo import batches
from sweepledger.repo.state import create_state
from sweepledger.structs.values import as_data
from sweepledger.verbs.export import export
from sweepledger.verbs.show import trial_details
from sweepledger.verbs.try_ import try_trial
from tests.builders import present
from tests.repository import Sandbox, answer, check_specs, replace_in

PROGRAM = """import argparse, json, os, pathlib
import helper
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=int)
args = parser.parse_args()
digits = pathlib.Path({data!r}).read_text()
pathlib.Path("out").mkdir()
pathlib.Path("out/model.pt").write_text(f"{{digits}} {{args.x}}")
pathlib.Path("log.txt").write_text("not kept")
pathlib.Path(os.environ["SWEEP_RESULT"]).write_text(json.dumps({{"score": args.x}}))
"""
"""`out` exists already where another trial has started in the same folder."""

SPEC = """name: peak
method: grid
metric: {{name: score, goal: maximize}}
parameters: {{x: {{values: [1, 2]}}}}
program: train.py
run:
  code: {{path: {code}}}
{run}
  resources: {{cpu: 1, memory: 256Mi}}
  timeout: 1m
"""
LINE = f"{hashlib.sha256(b'digits').hexdigest()}  content\n"
DIGEST = f"sha256:{hashlib.sha256(LINE.encode()).hexdigest()}"
SETTINGS = f"""version: 1
datasets:
  mnist:
    claim: mnist
    digest: "{DIGEST}"
    prepare: [sh, -c, "printf digits > $SWEEP_DATA/content"]
  words: {{claim: words, digest: "{DIGEST}", prepare: [sh, -c, "printf digits > $SWEEP_DATA/content"]}}
"""
ALL = "  workdir: mnist\n  keep: [out/]\n  data: {mnist: ../data}"


def laptop(sandbox: Sandbox, run: str = ALL, *, code: str = ".", data: str = "../data/content") -> Sandbox:
    """Return a repository whose program is in `mnist`, and its sweep."""
    sandbox.write("sweepledger.yaml", SETTINGS)
    sandbox.write("mnist/train.py", PROGRAM.format(data=data))
    sandbox.write("mnist/helper.py", "")
    sandbox.write("sweeps/peak.yaml", SPEC.format(code=code, run=run))
    sandbox.name_person()
    sandbox.commit("Write the program")
    return sandbox


def run(sandbox: Sandbox) -> list[dict[str, Any]]:
    list(sandbox.run("peak"))
    (file,) = sandbox.root.glob("results/peak/records/*.jsonl")
    lines = map(json.loads, file.read_text().splitlines())
    return [line for line in lines if "status" in line]


def kept(record: dict[str, Any]) -> dict[str, str]:
    return {artifact["path"]: artifact["sha256"] for artifact in record["artifacts"]}


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_program_runs_in_its_folder(sandbox: Sandbox, needs_kustomize: None) -> None:
    laptop(sandbox)

    records = run(sandbox)

    assert [(record["status"], record["metrics"]["score"]) for record in records] == [("ok", 1), ("ok", 2)]
    assert [kept(record) for record in records] == [
        {"mnist/out/model.pt": sha256(f"digits {x}")} for x in (1, 2)
    ]
    (batch,) = sandbox.batches()
    program, trial = batch.lock.program, batch.rows[0].trial
    assert (program.command[-2], program.workdir) == ("train.py", "mnist")
    assert present(program.data).at == {"mnist": "../data"}
    assert run_again(sandbox.workspace, trial).is_equal
    assert trial_details(sandbox.workspace, trial).listed.batch.lock.program == program
    last = recipe(sandbox.workspace, trial).lines[-1]
    assert last.startswith(f"cd ../peak-{trial}/mnist && ln -s <folder of mnist> ../data && env ")


MESSY = """import argparse, os, pathlib
x = argparse.ArgumentParser()
x.add_argument("--x", type=int)
x = x.parse_args().x
state, helper, home = pathlib.Path("state.txt"), pathlib.Path("helper.py"), pathlib.Path(os.environ["HOME"])
places = [home, pathlib.Path(os.environ["TMPDIR"]), home.parent, home.parents[1], home.parents[2], home.parents[3]]
marks = [str(place) for place in places if (place / "mark").exists()]
before = [str(path) for path in sorted(pathlib.Path().rglob("*"))] + marks + [helper.read_text()]
for place in places[: 6 if x % 2 else 3]:
    (place / "mark").touch()
state.write_text(f"{x}")
helper.write_text(f"# {x}")
pathlib.Path("deep/er").mkdir(parents=True)
print(f"score={x}", f"numbers={os.stat('kept.py').st_ino}")
pathlib.Path(os.environ["SWEEP_ARTIFACTS"], "before.txt").write_text(repr(before))
os.link("train.py", "linked.py")
os.replace(places[1] / "mark", "deep/mark")
os.rename("parts", "deep/parts")
"""
HARM = """import os, pathlib
for stored in pathlib.Path(os.environ["CLONE"], ".sweepledger/code").glob("*/mnist/helper.py"):
    stored.chmod(0o600)
    stored.write_text("x = 9")
print("score=1")
"""


def wall() -> str:
    """Return the wall of trials on this machine, where no variable chooses it."""
    pid = os.fork()
    if pid == 0:
        os._exit(not process_tree.own_mounts())
    has_mounts = os.waitpid(pid, 0)[1] == 0
    return "namespace" if has_mounts and not any(map(os.path.exists, DAEMONS)) else "directory"


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """A sandbox on a disk: writes through mappings are not noted in memory, where each trial has a new copy."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        monkeypatch.setenv("XDG_CACHE_HOME", folder)
        yield Sandbox.create(Path(folder), is_patched=lambda: False)


@pytest.mark.parametrize("chosen", ["", "directory"])
def test_trials_in_turn_share_unchanged_files(
    chosen: str, on_disk: Sandbox, monkeypatch: pytest.MonkeyPatch, needs_kustomize: None
) -> None:
    monkeypatch.setenv("SWEEP_WALL", chosen)
    sandbox = on_disk
    laptop(sandbox, "  workdir: mnist\n  parallelism: 1")
    sandbox.write("mnist/train.py", MESSY)
    sandbox.write("mnist/kept.py", "")
    sandbox.write("mnist/parts/part.py", "")
    spec = (sandbox.root / "sweeps/peak.yaml").read_text().replace("[1, 2]", "[1, 2, 3, 4]")
    logged = "maximize, source: stdout}"
    sandbox.commit("Leave files behind", {"sweeps/peak.yaml": spec.replace("maximize}", logged)})

    records = run(sandbox)

    assert [record["metrics"]["score"] for record in records] == [1, 2, 3, 4]
    before = repr(["helper.py", "kept.py", "parts", "parts/part.py", "train.py", ""])
    assert [kept(record) for record in records] == [{"before.txt": sha256(before)}] * 4
    assert len({record["metrics"]["numbers"] for record in records}) < 4
    assert {record["details"]["wall"] for record in records} == {chosen or wall()}
    assert not StateFolders(create_state(sandbox.workspace.repository)).pods.parent.exists()


def test_code_that_changes_while_a_trial_could_read_it_gives_no_result(on_disk: Sandbox) -> None:
    laptop(on_disk, f"  workdir: mnist\n  parallelism: 1\n  environment: {{CLONE: {on_disk.root}}}")
    on_disk.write("mnist/train.py", HARM)
    spec = (on_disk.root / "sweeps/peak.yaml").read_text().replace("maximize}", "maximize, source: stdout}")
    on_disk.commit("Harm the stored code", {"sweeps/peak.yaml": spec})

    records = run(on_disk)

    # The first trial could see the change, unless it had a copy; the second one never starts.
    assert [record["reason"] for record in records] == [
        "code-changed" if wall() == "namespace" else None,
        "code-changed",
    ]


@pytest.mark.parametrize(
    ("run_keys", "data"),
    [
        ("  workdir: mnist\n  data: {mnist: ../../data}", "../../data/content"),
        ("  workdir: mnist\n  data: {mnist: deep/er/data, words: null}", "deep/er/data/content"),
    ],
)
def test_a_dataset_is_where_the_program_looks(sandbox: Sandbox, run_keys: str, data: str) -> None:
    laptop(sandbox, run_keys, data=data)

    tried = try_trial(sandbox.workspace, "peak", 1, quiet=True)

    assert (tried.is_ok, tried.record and tried.record.metrics) == (True, {"score": 2.0})


def test_a_folder_of_the_code_may_be_where_trials_start(sandbox: Sandbox) -> None:
    run_keys = "  workdir: mnist\n  keep: ['*.txt']\n  data: {mnist: ../data}"
    laptop(sandbox, run_keys, code="mnist")

    tried = try_trial(sandbox.workspace, "peak", 0, quiet=True)

    assert [artifact.path for artifact in present(tried.record).artifacts] == ["mnist/log.txt"]
    assert tried.warnings == ()


def test_a_kept_folder(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tried").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tried"))
    laptop(sandbox, ALL.replace("keep: [out/]", "keep: [none]"))

    tried = try_trial(sandbox.workspace, "peak", 1, quiet=True, keep=True)

    assert (present(tried.folder) / "out/model.pt").read_text() == "digits 2"
    assert tried.as_data()["folder"] == str(tried.folder)
    assert try_trial(sandbox.workspace, "peak", 1, quiet=True).folder is None
    assert [*(tmp_path / "tried").iterdir()] == [present(tried.folder).parents[7]]


def test_exported_scripts_start_trials_in_the_same_folder(sandbox: Sandbox) -> None:
    laptop(sandbox)
    sandbox.commit_batches("Ask")
    answer(export, workspace=sandbox.workspace, foreign="shell", name="peak", output=sandbox.root / "peak.sh")
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    subprocess.run(["bash", "peak.sh"], cwd=sandbox.root, env={"PATH": search, "LANG": "C.UTF-8"}, check=True)

    found = sorted(sandbox.root.glob(".sweepledger/results/peak-*/*/artifacts/*/mnist/out/model.pt"))
    assert [path.read_text() for path in found] == ["digits 1", "digits 2"]


def test_what_a_trial_is_includes_folder_and_places_and_not_what_is_kept(sandbox: Sandbox) -> None:
    laptop(sandbox, "  data: mnist", code="mnist")
    plain = _program(sandbox)
    assert {"workdir", "at"}.isdisjoint([*plain, *plain["data"]])

    sandbox.write(
        "sweeps/peak.yaml", SPEC.format(code="mnist", run="  data: {mnist: null}\n  keep: ['*.pt']")
    )
    assert sandbox.generate()[0].trials == 2
    assert _program(sandbox) == plain
    sandbox.write("sweeps/peak.yaml", SPEC.format(code="mnist", run="  data: {mnist: ../data}"))
    assert _program(sandbox) == {**plain, "data": {**plain["data"], "at": {"mnist": "../data"}}}
    sandbox.write("sweeps/peak.yaml", SPEC.format(code="mnist", run="  data: mnist\n  workdir: mnist"))
    command = [element.removeprefix("mnist/") for element in plain["command"]]
    assert _program(sandbox) == {**plain, "command": command, "workdir": "mnist"}


def _program(sandbox: Sandbox) -> dict[str, Any]:
    sandbox.generate()
    newest = batches.newest(batches.of_sweep(sandbox.batches(), "peak"))
    return dict(as_data(present(newest).lock.program))


WRONG_FOLDER = "must be a folder of the committed code, got"
TAKEN = "must be at a path that the code does not have, got"


@pytest.mark.parametrize(
    ("run_keys", "message", "hint"),
    [
        ("mnits", f"{WRONG_FOLDER} 'mnits'", "did you mean 'mnist'?"),
        ("late", f"{WRONG_FOLDER} 'late'", "commit its files"),
        (
            "mnist\n  data: {mnist: helper.py/data}",
            f"{TAKEN} 'helper.py/data': there is mnist/helper.py",
            "run.code.exclude",
        ),
        ("code", "must name a committed file of code/, where trials start, got 'tarin.py'", "train.py"),
    ],
)
def test_missing_code_is_refused_first(sandbox: Sandbox, run_keys: str, message: str, hint: str) -> None:
    laptop(sandbox, f"  workdir: {run_keys}")
    sandbox.write(".git/info/exclude", "late/\n")
    sandbox.write("late/train.py", "")
    if run_keys == "code":
        replace_in(sandbox.root / "sweeps/peak.yaml", "program: train.py", "program: tarin.py")

    with pytest.raises(SpecError) as refused:
        sandbox.generate()

    (problem,) = refused.value.problems
    assert problem.message == message
    assert hint in (problem.hint or "")
    assert problem.line >= 5


def test_a_folder_that_is_not_written_yet_is_a_warning(sandbox: Sandbox) -> None:
    laptop(sandbox, "  workdir: later")

    (problem,) = check_specs(sandbox.workspace)[1]

    assert (problem.code, problem.path, problem.severity) == ("workdir", "run.workdir", Severity.WARNING)

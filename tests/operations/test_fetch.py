"""A trial's files are brought from a volume only as their record has them; its output from a pod as well."""

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.errors import IdleError, StorageError
from sweepledger.operations.collection.record_store import ReaderPodOptions
from sweepledger.operations.reports.outputs import fetch_artifacts, logs_by_pod
from sweepledger.repo.artifacts import artifact_paths
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.record import Artifact
from tests.operations.test_collect import leave
from tests.operations.test_read import newest
from tests.repository import IMAGE, Sandbox

FILES = {"model.bin": b"\x00weights", "plots/loss.svg": b"<svg/>"}

CLUSTER = """
import json, os, pathlib, subprocess, sys
volume = pathlib.Path(sys.argv[1])
words = [word for word in sys.argv[2:] if not word.startswith("--request-timeout")]
if words[0] == "create":
    print(sys.stdin.read())
elif words[0] == "get":
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "reader"}}
    print(json.dumps({**pod, "status": {"phase": "Running"}}))
elif words[0] == "exec":
    inside = words[words.index("--") + 1 :]
    here = [word.replace("/sweep/results", str(volume)) for word in inside]
    sys.exit(subprocess.run(here).returncode)
"""
"""Answers as a cluster with one pod would, of which this machine is the node."""


def record(path: str, content: bytes) -> dict[str, object]:
    return {"path": path, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def batch(sandbox: Sandbox, state: Path) -> StoredBatch:
    return recorded(sandbox, state, [record(*item) for item in FILES.items()])


def recorded(sandbox: Sandbox, state: Path, listed: object) -> StoredBatch:
    """Record a batch whose second trial kept some files."""
    sandbox.merged()
    made = newest(sandbox)
    for index in range(3):
        more = {"artifacts": listed} if index == 1 else {}
        leave(state / "results", made, index, **more)
    folder = state / "results" / made.name / "1"
    for path, content in FILES.items():
        place = folder / "artifacts/uid-1" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    (folder / "uid-1.out").write_text("epoch 1\n")
    assert sandbox.collect(state / "results", {made.name}, push=False)
    return made


@pytest.fixture
def pod(sandbox: Sandbox, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReaderPodOptions:
    script = tmp_path / "cluster.py"
    script.write_text(CLUSTER)
    monkeypatch.setenv("KUBECTL", shlex.join([sys.executable, str(script), str(state / "results")]))
    sandbox.write("sweepledger.yaml", f"version: 1\ndefaults: {{image: '{IMAGE}'}}\n")
    return ReaderPodOptions(sandbox.workspace, Kubectl(), None, 5)


def with_list(sandbox: Sandbox, state: Path, files: dict[str, bytes]) -> StoredBatch:
    """Record a batch whose second trial kept more files than its record lists."""
    text = json.dumps([record(*item) for item in files.items()]).encode()
    listed = {"count": len(files), "bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    made = recorded(sandbox, state, listed)
    (state / "results" / made.name / "1/uid-1.artifacts").write_bytes(text)
    return made


@pytest.mark.parametrize("is_long", [False, True], ids=["in the record", "beside it"])
def test_files_come_from_the_state_folder_and_through_a_pod(
    sandbox: Sandbox, state: Path, tmp_path: Path, pod: ReaderPodOptions, *, is_long: bool
) -> None:
    listed = [record(*item) for item in FILES.items()]
    made = with_list(sandbox, state, FILES) if is_long else recorded(sandbox, state, listed)
    trial = made.rows[1].trial

    for _ in range(2):
        here = fetch_artifacts(sandbox.workspace, trial, into=tmp_path / "here", state=state)
    fetch_artifacts(sandbox.workspace, trial, into=tmp_path / "by pod", state=tmp_path, pod=pod)
    output = logs_by_pod(sandbox.workspace, trial, pod)

    assert (here.uid, len(here.files)) == ("uid-1", 2)
    assert lie(tmp_path / "here") == lie(tmp_path / "by pod") == FILES
    assert [attempt.stdout for attempt in output.attempts] == ["epoch 1\n"]

    (tmp_path / "here/model.bin").write_bytes(b"mine")
    with pytest.raises(StorageError, match="with other content"):
        fetch_artifacts(sandbox.workspace, trial, into=tmp_path / "here", state=state)
    assert (tmp_path / "here/model.bin").read_bytes() == b"mine"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "edit", [lambda text: text.replace(b"model", b"nodel"), lambda text: text + b" ", None]
)
def test_a_list_that_changed_after_its_trial_brings_nothing(
    edit: Callable[[bytes], bytes] | None, sandbox: Sandbox, state: Path, tmp_path: Path
) -> None:
    made = with_list(sandbox, state, FILES)
    file = state / "results" / made.name / "1/uid-1.artifacts"
    if edit is None:
        file.rename(file.with_name("other"))
        file.symlink_to("other")
    else:
        file.write_bytes(edit(file.read_bytes()))

    with pytest.raises(StorageError):
        fetch_artifacts(sandbox.workspace, made.rows[1].trial, into=tmp_path / "got", state=state)

    assert not (tmp_path / "got").exists()


def lie(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("content", [b"\x00weightz", b"\x00w", b"\x00weights and more"])
def test_what_is_not_as_recorded_is_not_kept(
    sandbox: Sandbox, batch: StoredBatch, state: Path, tmp_path: Path, pod: ReaderPodOptions, content: bytes
) -> None:
    (state / "results" / batch.name / "1/artifacts/uid-1/model.bin").write_bytes(content)

    for chosen in (pod, None):
        with pytest.raises((StorageError, ClusterError), match=r"model\.bin|goes beyond|bytes"):
            fetch_artifacts(
                sandbox.workspace, batch.rows[1].trial, into=tmp_path / "got", state=state, pod=chosen
            )
        assert lie(tmp_path / "got") == {}


def link_to_a_secret(path: Path) -> None:
    secret = path.with_name("secret")
    secret.write_bytes(FILES["model.bin"])
    path.symlink_to(secret)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, link_to_a_secret], ids=["folder", "pipe", "link"])
def test_what_is_no_file_is_not_opened(
    make: Callable[[Path], None], sandbox: Sandbox, batch: StoredBatch, state: Path, tmp_path: Path
) -> None:
    place = state / "results" / batch.name / "1/artifacts/uid-1/model.bin"
    place.unlink()
    make(place)

    with pytest.raises(StorageError, match="does not exist"):
        fetch_artifacts(sandbox.workspace, batch.rows[1].trial, into=tmp_path / "got", state=state)


@pytest.mark.parametrize("path", ["../model.bin", "/etc/passwd", "a/../../b", "a//b", "line\nend"])
def test_a_hostile_name_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(StorageError, match="must be a plain path"):
        artifact_paths([Artifact(path, 1, "0" * 64)], tmp_path)


def test_the_command_says_what_it_brought(sandbox: Sandbox, batch: StoredBatch, state: Path) -> None:
    trial = batch.rows[1].trial

    done = sandbox.sweep("show", trial, "--fetch", "artifacts", "--state", str(state), "--format", "json")

    assert [file["path"] for file in json.loads(done.stdout)["data"]["files"]] == sorted(FILES)
    assert lie(sandbox.root / "artifacts") == FILES
    nothing = sandbox.sweep("show", batch.rows[0].trial, "--fetch", "none")
    assert (nothing.returncode, "its record names none" in nothing.stdout) == (0, True)
    with pytest.raises(IdleError):
        fetch_artifacts(sandbox.workspace, batch.rows[0].trial, into=sandbox.root / "none", state=state)


def test_results_are_written_for_other_programs(sandbox: Sandbox, batch: StoredBatch, tmp_path: Path) -> None:
    csv = sandbox.sweep("results", "peak", "--output", "csv")
    rows = json.loads(sandbox.sweep("results", "peak", "--output", "json", "--top", "2").stdout)
    to = sandbox.sweep("results", "peak", "--output", "csv", "--to", str(tmp_path / "a.csv"))

    lines = (sandbox.root / "results/peak/summary.csv").read_text().splitlines()
    assert csv.stdout.splitlines() == [lines[0], *reversed(lines[1:])]
    assert [row["metrics.score"] for row in rows] == [1.0, 0.5]
    assert (rows[0]["params.x"], rows[0]["status"]) == (3, "ok")
    assert (to.returncode, (tmp_path / "a.csv").read_text()) == (0, csv.stdout)


def test_parquet_needs_pyarrow_and_says_so(sandbox: Sandbox, batch: StoredBatch, tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text("raise ImportError\n")
    root = Path(__file__).parents[2]

    done = sandbox.sweep("results", "peak", "--output", "parquet", PYTHONPATH=f"{tmp_path}{os.pathsep}{root}")
    other = sandbox.sweep("results", "peak", "--output", "xls")

    assert (done.returncode, done.stdout) == (3, "")
    assert "pip install 'sweepledger[parquet]'" in done.stderr
    assert (other.returncode, "--output must be one of csv, json, parquet" in other.stderr) == (2, True)

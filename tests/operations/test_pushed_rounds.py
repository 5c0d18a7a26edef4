"""What the server lets the collector push of searches: the round that follows, and nothing like it."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from sweepledger.operations.rounds.round_commit import push_idle_rounds
from sweepledger.verbs.cluster.pause import pause
from sweepledger.verbs.cluster.resume import resume
from tests.operations.test_bootstrap import Fault, install, push, run_bootstrap
from tests.operations.test_several_datasets import BUCKET
from tests.repository import Sandbox, followed_by, replace_in
from tests.searches import active, begun, leave
from tests.tiers import parameters

RUNGS = "resource: {parameter: epochs, min: 1, max: 4, eta: 2}\n"
NOT_ACCEPTED = "`sweep check --hook` does not accept it"
"""What the hook says of a batch that the full guard refuses."""


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A search under Flux, one round of which is recorded and the next asked for; not pushed yet."""
    folder = tmp_path_factory.mktemp("searching")
    return followed(folder)


@pytest.fixture(scope="module")
def pristine_climb(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """The same with rungs: the trials of the next round go on from checkpoints."""
    return followed(tmp_path_factory.mktemp("climbing"), method="halving", size=4, more=RUNGS)


def followed(folder: Path, settings: str = "", **changes: Any) -> Sandbox:
    sandbox = Sandbox.create(folder)
    settings += followed_by("flux").removeprefix("version: 1\n") + "next: collector\n"
    first = begun(sandbox, settings=settings, **changes)
    run_bootstrap(sandbox)
    sandbox.publish("Bootstrap")
    (batch,) = active(sandbox.workspace)
    leave(folder / "results", batch)
    sandbox.collect(folder / "results", {first}, push=False)
    return sandbox


@pytest.fixture
def searching(pristine: Sandbox, tmp_path: Path) -> Sandbox:
    """A copy of that, whose server has the hook that bootstrap wrote."""
    return guarded(pristine, tmp_path)


@pytest.fixture
def climbing(pristine_climb: Sandbox, tmp_path: Path) -> Sandbox:
    return guarded(pristine_climb, tmp_path)


def guarded(pristine: Sandbox, tmp_path: Path) -> Sandbox:
    made = Sandbox(tmp_path / "remote.git", tmp_path / "work tree")
    made.copy_from(pristine)
    install(made)
    return made


def amended(sandbox: Sandbox) -> None:
    sandbox.amend()


def in_round(sandbox: Sandbox, path: str, old: str, new: str) -> None:
    (batch,) = sandbox.active()
    replace_in(sandbox.root / path.format(batch=batch), old.format(batch=batch), new)


def test_the_collector_may_push_the_round_that_follows_what_it_records(searching: Sandbox) -> None:
    assert push(searching) == ""


def test_the_collector_may_push_the_rung_that_goes_on_from_checkpoints(climbing: Sandbox) -> None:
    (batch,) = climbing.active()
    assert "SWEEP_PARENT" in (climbing.root / f"overlays/active/{batch}/job.yaml").read_text()

    assert push(climbing) == ""


def test_the_collector_may_let_no_sidecar_restore_another_folder(tmp_path: Path) -> None:
    sandbox = followed(tmp_path, settings=BUCKET, method="halving", size=4, more=RUNGS)
    install(sandbox)
    (batch,) = sandbox.active()
    job = sandbox.root / f"overlays/active/{batch}/job.yaml"
    folder = r'(name: "SWEEP_PARENT_FOLDER"\n *value: )"[^"]*"'
    forged, count = re.subn(folder, r'\1"other-b1-3f9a1c2e/7"', job.read_text(), count=1)
    assert count == 1
    job.write_text(forged)
    sandbox.amend()

    assert NOT_ACCEPTED in push(sandbox)


@pytest.fixture(scope="module")
def pristine_overlap(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A search with one of three active batches recorded; its commit, which adds the fourth, is not pushed yet."""
    folder = tmp_path_factory.mktemp("overlapping")
    sandbox = Sandbox.create(folder)
    settings = followed_by("flux").removeprefix("version: 1\n") + "next: collector\n"
    begun(sandbox, settings=settings, size="3, ahead: 3", rounds=9)
    run_bootstrap(sandbox)
    sandbox.publish("Bootstrap")
    list(push_idle_rounds(sandbox.target(push=False)))
    sandbox.push()
    _, second, _ = sorted(active(sandbox.workspace), key=lambda batch: batch.lock.number)
    leave(folder / "results", second)
    sandbox.collect(folder / "results", {second.name}, push=False)
    return sandbox


@pytest.fixture
def overlapping(pristine_overlap: Sandbox, tmp_path: Path) -> Sandbox:
    return guarded(pristine_overlap, tmp_path)


def newest(sandbox: Sandbox) -> Path:
    (folder,) = (sandbox.root / "overlays/active").glob("hill-b4-*")
    return folder


def without_a_result(sandbox: Sandbox) -> None:
    """Add the round, but record nothing: then four are active."""
    added = newest(sandbox)
    announced = sandbox.root / f"clusters/flux/active/{added.name}.yaml"
    kept = {path: path.read_bytes() for path in (*added.iterdir(), announced)}
    sandbox.git("reset", "-q", "--hard", "HEAD^")
    sandbox.git("commit", "-q", "--allow-empty", "-m", "Add a round")
    for path, content in kept.items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


def with_more_ahead(sandbox: Sandbox) -> None:
    replace_in(newest(sandbox) / "batch.json", '"ahead": 3,', '"ahead": 99,')


def after_another(sandbox: Sandbox) -> None:
    lock = newest(sandbox) / "batch.json"
    (first,) = (sandbox.root / "overlays/active").glob("hill-b1-*")
    (third,) = (sandbox.root / "overlays/active").glob("hill-b3-*")
    replace_in(lock, f'"parent": "{third.name}"', f'"parent": "{first.name}"')


def skipping_one(sandbox: Sandbox) -> None:
    replace_in(newest(sandbox) / "batch.json", '"round": 4,', '"round": 5,')


def test_the_collector_may_record_and_follow_batches_that_were_paused_and_resumed(tmp_path: Path) -> None:
    sandbox = Sandbox.create(tmp_path / "paused")
    settings = followed_by("flux").removeprefix("version: 1\n") + "next: collector\n"
    begun(sandbox, settings=settings, size="3, ahead: 2", rounds=9)
    run_bootstrap(sandbox)
    sandbox.publish("Bootstrap")
    list(push_idle_rounds(sandbox.target(push=False)))
    for change in (pause, resume):
        change(sandbox.workspace, "hill")
        sandbox.push()
    first, _ = sorted(active(sandbox.workspace), key=lambda batch: batch.lock.number)
    leave(tmp_path / "results", first)
    sandbox.collect(tmp_path / "results", {first.name}, push=False)
    assert len(sandbox.active()) == 2, "no round follows"
    install(sandbox)

    assert push(sandbox) == ""


TOO_MANY: dict[str, Fault] = {
    "more than the lock allows": without_a_result,
    "a lock that allows more": with_more_ahead,
    "a round after another than the newest": after_another,
    "another round than the next": skipping_one,
}


@pytest.mark.parametrize("fault", parameters(TOO_MANY, ("more than the lock allows",), "more attacks"))
def test_the_collector_may_push_no_other_round_beside_active_ones(fault: str, overlapping: Sandbox) -> None:
    TOO_MANY[fault](overlapping)
    amended(overlapping)

    assert NOT_ACCEPTED in push(overlapping)


PARENT = 'mountPath: "/sweep/parent"\n          readOnly: true\n          subPath: "hill-b1-'
FORGED_PARENTS = {
    "to write": PARENT.replace("true", "false"),
    "of another sweep": PARENT.replace("hill-", "dale-"),
    "elsewhere": PARENT.replace("/sweep/parent", "/sweep/elsewhere"),
    "another folder": PARENT.replace('"hill-b1-', '"../hill-b1-'),
    "another variable": PARENT.replace("readOnly", "name: LD_PRELOAD\n          readOnly"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("forged", parameters(FORGED_PARENTS, ("to write", "another folder"), "more attacks"))
def test_the_collector_may_mount_no_other_folder_as_a_parents(forged: str, climbing: Sandbox) -> None:
    in_round(climbing, "overlays/active/{batch}/job.yaml", PARENT, FORGED_PARENTS[forged])
    amended(climbing)

    assert NOT_ACCEPTED in push(climbing)


def second(sandbox: Sandbox) -> None:
    (batch,) = sandbox.active()
    folder = sandbox.root / "overlays/active"
    shutil.copytree(folder / batch, folder / f"{batch.rpartition('-')[0]}-00000000")


JOB, LOCK, LAUNCH, KUSTOMIZATION = "job.yaml", "batch.json", "launch.json", "kustomization.yaml"
EDITS = {
    "another image": (JOB, "registry.example.org/train", "registry.example.org/evil"),
    "another program": (LOCK, "code/train.py", "code/evil.py"),
    "another command": (LAUNCH, "code/train.py", "code/evil.py"),
    "another launcher": (KUSTOMIZATION, "base/launcher/v1", "base/launcher/v2"),
    "another account": (JOB, "sweep-trial", "sweep-collector"),
    "another volume": (JOB, "claimName: ", "claimName: x"),
    "a host's folder": (JOB, "emptyDir:", "hostPath:"),
    "a batch that is no round": (LOCK, '"round": 2', '"row": 2'),
    "a round of another past": (LOCK, '"parent": "hill-', '"parent": "dale-'),
    "a Kustomization with other rights": (None, "serviceAccountName: ", "serviceAccountName: x"),
    "a Kustomization of another path": (None, "./overlays/active/{batch}", "./base"),
}
"""A file of the round, or None for that of Flux, what it has, and what stands there instead."""


def edit_round(sandbox: Sandbox, file: str | None, old: str, new: str) -> None:
    path = f"overlays/active/{{batch}}/{file}" if file else "clusters/flux/active/{batch}.yaml"
    in_round(sandbox, path, old, new)


FORGED: dict[str, Fault] = {
    **{name: lambda sandbox, edit=edit: edit_round(sandbox, *edit) for name, edit in EDITS.items()},  # type: ignore[misc]
    "a further file": lambda one: one.write(f"overlays/active/{one.active()[0]}/rbac.yaml", "kind: Role\n"),
    "a folder below": lambda one: one.write(f"overlays/active/{one.active()[0]}/x/job.yaml", "kind: Role\n"),
    "two rounds at once": second,
}


FORGED_BY_DEFAULT = (
    *("another image", "another command", "a further file", "two rounds at once"),
    *("a batch that is no round", "a Kustomization of another path"),
)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault", parameters(FORGED, FORGED_BY_DEFAULT, "more attacks"))
def test_the_collector_may_push_no_other_round(fault: str, searching: Sandbox) -> None:
    FORGED[fault](searching)
    amended(searching)

    assert "the collector may push nothing but results" in push(searching)


def test_where_a_person_asks_for_rounds_the_collector_may_push_none(searching: Sandbox) -> None:
    replace_in(searching.remote / "hooks/pre-receive", "next='collector'", "next='review'")

    assert "is new" in push(searching)


def test_where_the_server_has_no_full_guard_no_round_comes_and_results_do(searching: Sandbox) -> None:
    (searching.remote / "hooks/sweep").unlink()

    assert NOT_ACCEPTED in push(searching)

    (batch,) = searching.active()
    searching.git("rm", "-rqf", f"overlays/active/{batch}", f"clusters/flux/active/{batch}.yaml")
    amended(searching)
    assert push(searching) == ""

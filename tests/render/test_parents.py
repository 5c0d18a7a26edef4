"""Checkpoints that a trial goes on from: one mount, to read, of one folder, and nothing like it."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.structs.batch import Batch
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Settings
from tests.render.building import built
from tests.render.judging import check_batch, refusals
from tests.render.platforms import a_platform, the
from tests.sweeps import FULL_SETTINGS, SETTINGS, a_batch, a_full_sweep

PARENT = "lr-b1-b3f9a1c2/7"
IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64


def going_on(settings: Settings = SETTINGS) -> Batch:
    """Make a batch whose first trial goes on from another's checkpoints."""
    changes: dict[str, Any] = {} if settings is SETTINGS else {"sweep": a_full_sweep(), "image": IMAGE}
    batch = a_batch(Shape.JOBS, **changes)
    return replace(batch, number=2, parents={0: "t00000000007"}, parent_folders={0: PARENT})


def rendered(folder: Path, settings: Settings) -> tuple[str, list[Any]]:
    made = list(built(going_on(settings), folder, settings))
    return str(first_of(made)["metadata"]["labels"]["sweepledger.dev/batch"]), made


def first_of(made: list[Any], row: str = "0") -> Any:
    """Give the Job of a row: kustomize sorts them by name."""
    return next(item for item in made if item["metadata"]["labels"].get("sweepledger.dev/index") == row)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Any]]:
    return rendered(tmp_path_factory.mktemp("plain"), SETTINGS)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Any]]:
    return rendered(tmp_path_factory.mktemp("full"), FULL_SETTINGS)


def parents(manifest: Any) -> list[Any]:
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    return [each for each in container["volumeMounts"] if each["mountPath"] == "/sweep/parent"]


def test_only_the_trial_with_a_parent_reads_its_checkpoints(plain: tuple[str, list[Any]]) -> None:
    first, second = first_of(plain[1]), first_of(plain[1], "1")
    (trial,) = first["spec"]["template"]["spec"]["containers"]

    assert parents(first) == [
        {
            "name": "results",
            "mountPath": "/sweep/parent",
            "readOnly": True,
            "subPath": f"{PARENT}/checkpoints",
        }
    ]
    assert {"name": "SWEEP_PARENT", "value": "/sweep/parent"} in trial["env"]
    assert {"name": "SWEEP_PARENT_ID", "value": "t00000000007"} in trial["env"]
    assert parents(second) == []


def test_checkpoints_on_a_volume_of_their_own_are_read_there(full: tuple[str, list[Any]]) -> None:
    assert parents(first_of(full[1]))[0]["name"] == "checkpoints"


@pytest.mark.parametrize("settings", [SETTINGS, FULL_SETTINGS], ids=["plain", "full"])
def test_policy_and_admission_let_exactly_that_mount_through(
    settings: Settings, plain: tuple[str, list[Any]], full: tuple[str, list[Any]]
) -> None:
    name, made = plain if settings is SETTINGS else full

    problems = check_batch(name, settings, tuple(made), file="x", parent_folders={0: PARENT})

    assert problems == ()
    if settings is FULL_SETTINGS:
        assert refusals(the_policy(), first_of(made)) == set()


def the_policy() -> Any:
    return the("ValidatingAdmissionPolicy", "research-trials", a_platform())


FAULTS: dict[str, Callable[[Any], object]] = {
    "to write": lambda mount: mount.pop("readOnly"),
    "another trial's": lambda mount: mount.update(subPath="lr-b1-b3f9a1c2/8/checkpoints"),
    "more than checkpoints": lambda mount: mount.update(subPath=PARENT),
    "by an expression": lambda mount: mount.update(subPathExpr=mount.pop("subPath")),
    "another sweep's": lambda mount: mount.update(subPath="other-b1-b3f9a1c2/7/checkpoints"),
    "another place": lambda mount: mount.update(mountPath="/sweep/other"),
    "all": lambda mount: mount.pop("subPath"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_like_it_is_let_through(fault: str, full: tuple[str, list[Any]]) -> None:
    name, made = full[0], copy.deepcopy(full[1])

    FAULTS[fault](parents(first_of(made))[0])
    problems = check_batch(name, FULL_SETTINGS, tuple(made), file="x", parent_folders={0: PARENT})

    assert {problem.code for problem in problems} == {"volume-not-allowed"}
    if fault != "another trial's":  # which of its sweep's trials, admission cannot know
        (message,) = refusals(the_policy(), first_of(made))
        assert "checkpoints of its sweep" in message


def test_a_trial_without_a_parent_may_read_no_ones(plain: tuple[str, list[Any]]) -> None:
    name, made = plain

    problems = check_batch(name, SETTINGS, tuple(made), file="x", parent_folders={1: PARENT})

    assert {problem.code for problem in problems} == {"volume-not-allowed"}


def test_a_label_of_another_sweep_opens_nothing(full: tuple[str, list[Any]]) -> None:
    first = copy.deepcopy(first_of(full[1]))
    first["spec"]["template"]["metadata"]["labels"]["sweepledger.dev/sweep"] = "other"
    parents(first)[0]["subPath"] = "other-b1-b3f9a1c2/7/checkpoints"

    assert any("checkpoints of its sweep" in message for message in refusals(the_policy(), first))

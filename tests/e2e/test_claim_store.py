"""Results on a disk of one node: files stay on it, and records come from pods, so the collector mounts nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.children import until
from tests.e2e import outcomes
from tests.e2e.controllers import Controller
from tests.e2e.founding import Ground
from tests.e2e.held_pods import HeldPods
from tests.e2e.losses import FIRST
from tests.e2e.storage import GROUP, disk
from tests.e2e.stores import SECONDS, held, in_store, trials_see_only_their_own_files
from tests.e2e.team import NAMESPACE, Team
from tests.e2e.test_bucket_store import KEEPING

pytestmark = pytest.mark.full

CLAIM = "sweep-disk"


@pytest.fixture(scope="module")
def folder(ground: Ground) -> Path:
    """A folder of root's, on which nobody has changed anything for trials."""
    made = ground.machine.folder / "disk"
    made.mkdir(mode=0o755)
    return made


@pytest.fixture(scope="module", autouse=True)
def _on_a_disk(team: Team, controller: Controller, folder: Path) -> Iterator[None]:
    team.server.apply(*disk(NAMESPACE, CLAIM, folder, FIRST))
    team.have_program("code/keep.py", KEEPING)
    with in_store(team, controller, f"results: {{store: claim, claim: {CLAIM},"):
        yield


def test_trials_are_recorded_once_by_a_collector_that_mounts_nothing(team: Team, folder: Path) -> None:
    scores = [number / 10 for number in range(10)]
    team.write_spec("on-disk", parameters={"x": scores}, parallelism=4, shape="indexed", timeout="5m")
    (batch,) = team.merge_specs("on-disk")

    team.until_recorded(batch)

    outcomes.is_recorded_once(team, batch, *scores)
    until("no pod is held", lambda: not held(team, batch), seconds=SECONDS)
    assert folder.stat().st_gid == GROUP, "the kubelet has given the disk to the group of the pods"
    assert len(list((folder / batch.name).glob("*/*.json"))) == len(scores)


def test_trials_that_write_files_report_their_own_numbers(team: Team) -> None:
    trials_see_only_their_own_files(team, "claim")


def test_the_second_attempt_goes_on_from_the_checkpoint_and_its_files_are_fetched(team: Team) -> None:
    run: dict[str, Any] = {"retries": 1, "resources": {"cpu": "100m", "memory": "128Mi", "scratch": "64Mi"}}
    team.write_spec(
        "disk-kept", parameters={"x": [1.0]}, command=("python3", "code/keep.py", "${args}"), **run
    )
    (batch,) = team.merge_specs("disk-kept")

    team.until_recorded(batch)

    assert [record["status"] for record in team.records(batch)] == ["failed", "ok"]
    (row,) = team.summary(batch.sweep)
    team.sweep("show", row["trial"], "--fetch", "artifacts", "--by-pod")
    assert (team.root / "artifacts/model").stat().st_size == 1000
    assert "went on" in team.sweep("logs", row["trial"], "--by-pod").stdout


class TestHeldPods(HeldPods):
    """The launcher of a Job that is made anew finds the records of the one before on the disk."""

    store = "claim"
    keeps_records = True

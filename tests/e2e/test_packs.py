"""Pods that run several trials: whatever one of them does to its pod, those beside it end as they would alone."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.children import until
from tests.e2e.ends import PROGRAM, SCRIPT, Hand, PlannedBatch
from tests.e2e.founding import Ground
from tests.e2e.team import Batch, Team

pytestmark = pytest.mark.full

SECONDS = 1500
TIMEOUT = 75
"""Seconds: a kubelet looks every ten seconds at how much a pod has on its disk, and every ten whom to evict."""
SLOW = 8
"""Seconds of a trial that runs beside one that ends their pod."""
COMMAND = ("python3", SCRIPT, "${args}")
TROUBLE = ("deleted", "killed", "evicted", "oom", "launcher-oom", "disk", "bad", "fails", "late")
"""What the first trial of a pod does, or what is done to the pod while it runs."""
BESIDE = ("beside", "after")
"""One that runs at the same time, and one that runs when the first place is free."""
HOWS = tuple(how for trouble in TROUBLE for how in (trouble, *(f"{each}-{trouble}" for each in BESIDE)))
STOPPED = ("stops", "beside-stops", "after-stops", "waits")
RUN: Mapping[str, Any] = {
    "resources": {"cpu": "100m", "memory": "64Mi", "scratch": "16Mi"},
    "retries": 1,
    "max_disruptions": 1,
    "pack": {"trials": 3, "at_once": 2},
}
SWEEPS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Any]]] = {
    "packs": (HOWS, {"parallelism": 2 * len(TROUBLE), "timeout": f"{TIMEOUT}s"}),
    "packs-all": (STOPPED, {"parallelism": 2, "timeout": "10m"}),
}
BESIDE_PROGRAM = PROGRAM.replace(
    "once = (", f'if how.startswith("beside"):\n    time.sleep({SLOW})\nonce = ('
)


@dataclass(frozen=True)
class Row:
    """What the summary says of a trial."""

    status: str
    reason: str
    attempts: int


@dataclass
class Packs:
    """What came of the sweeps."""

    hand: "PackHand"
    planned: Mapping[str, PlannedBatch]
    failed: dict[str, str] = field(default_factory=dict)
    rows: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    records: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def row(self, how: str, sweep: str = "packs") -> Row:
        index = self.planned[sweep].hows.index(how)
        (results,) = (row for row in self.rows[sweep] if int(row["index"]) == index)
        return Row(results["status"], results["reason"], int(results["attempts"]))

    def pods(self, how: str, sweep: str = "packs") -> int:
        return len(self.hand.pods[self.planned[sweep].batch.name, how])


class PackHand(Hand):
    """Ends pods of three trials, once the first of them has begun."""

    def _how(self, item: PlannedBatch, index: int) -> str:
        return item.hows[3 * index]

    def _mark(self, batch: Batch, index: int) -> Path:
        return self.results / batch.name / f"{index}/{3 * index}" / "checkpoints/begun"


@pytest.fixture(scope="module")
def packs(team: Team, ground: Ground) -> Iterator[Packs]:
    """Two sweeps, from the merge to their results."""
    team.write(SCRIPT, BESIDE_PROGRAM)
    team.commit("Let trials of one pod end in many ways")
    for name, (hows, run) in SWEEPS.items():
        team.write_spec(name, parameters={"how": hows}, command=COMMAND, **{**RUN, **run})
    batches = team.merge_specs(*SWEEPS)
    planned = {batch.sweep: PlannedBatch(batch, SWEEPS[batch.sweep][0]) for batch in batches}
    result = Packs(PackHand(team, ground.storage.results), planned)
    follow(team, result)
    yield result
    until("the Jobs are pruned", lambda: not any(map(team.jobs, batches)), seconds=300, pause=1)


def follow(team: Team, result: Packs) -> None:
    began, waiting = time.monotonic(), dict(result.planned)
    while waiting:
        assert time.monotonic() < began + SECONDS, f"not recorded: {sorted(waiting)}"
        result.hand.pass_over(waiting.values())
        for name, planned in list(waiting.items()):
            for job in team.jobs(planned.batch):
                for condition in job["status"].get("conditions", ()):
                    if condition["type"] == "Failed":
                        result.failed[name] = condition["reason"]
            if team.is_recorded(planned.batch):
                print(f"{name} is recorded after {time.monotonic() - began:.0f} s", flush=True)
                result.rows[name] = team.summary(name)
                result.records[name] = team.records(planned.batch)
                del waiting[name]
        time.sleep(1)
    team.pull()
    for name, rows in result.rows.items():
        for row in rows:
            print(name, row["index"], row["status"], row["reason"], row["attempts"], flush=True)
        print({how: len(uids) for (_, how), uids in result.hand.pods.items()}, flush=True)


@pytest.mark.parametrize("trouble", TROUBLE)
@pytest.mark.parametrize("beside", BESIDE)
def test_whatever_a_trial_does_others_end_well(packs: Packs, trouble: str, beside: str) -> None:
    row = packs.row(f"{beside}-{trouble}")

    assert (row.status, row.reason) == ("ok", "")


@pytest.mark.parametrize(
    ("how", "row", "pods"),
    [
        ("deleted", Row("ok", "", 2), 2),
        ("evicted", Row("ok", "", 2), 2),
        ("killed", Row("ok", "", 1), 2),
        ("bad", Row("diverged", "bad-hyperparameters", 1), 1),
        ("fails", Row("failed", "exit-7", 2), 2),
        ("late", Row("timeout", "timeout", 2), 2),
    ],
)
def test_a_trial_in_a_pack_ends_as_it_does_alone(packs: Packs, how: str, row: Row, pods: int) -> None:
    assert (packs.row(how), packs.pods(how)) == (row, pods)


@pytest.mark.parametrize("how", ["oom", "launcher-oom"])
def test_a_trial_with_too_much_memory_has_failed_whatever_the_kernel_kills(packs: Packs, how: str) -> None:
    # It may kill one process, or, by a setting of the kubelet, all of the container.
    assert packs.row(how) in {Row("oom", "oom", 2), Row("failed", "signal-9", 2)}


def test_a_trial_with_too_much_on_its_disk_runs_once_more_and_alone(packs: Packs) -> None:
    # The Job replaces every evicted pod. The launcher of the fourth sees that no attempt is left, and starts nothing.
    assert (packs.row("disk"), packs.pods("disk")) == (Row("evicted", "evicted", 3), 4)


def test_a_bad_sweep_stops_the_pods_that_have_not_begun(packs: Packs) -> None:
    assert packs.row("stops", "packs-all") == Row("failed", "bad-sweep", 1)
    assert packs.row("beside-stops", "packs-all").status == "ok"
    assert packs.row("after-stops", "packs-all").status == "ok"
    assert packs.failed["packs-all"] == "PodFailurePolicy"


PLACES = {"batch", "uid", "row", "started", "finished", "seconds", "node", "shared"}


def recorded(team: Team, batch: Batch) -> list[dict[str, Any]]:
    team.until_recorded(batch)
    return sorted(team.records(batch), key=lambda record: int(record["index"]))


def test_packed_and_unpacked_trials_leave_equal_records_but_for_times_and_places(team: Team) -> None:
    xs = {"x": [number / 4 for number in range(6)]}
    team.write_spec("alone", parameters=xs, shape="indexed", parallelism=2)
    team.write_spec("together", parameters=xs, parallelism=2, pack={"trials": 3, "at_once": 2})
    alone, together = (
        list(map(without_places, recorded(team, batch))) for batch in team.merge_specs("alone", "together")
    )

    assert len(alone) == 6
    assert alone == together


def without_places(record: dict[str, Any]) -> dict[str, Any]:
    """Leave out what says where and when an attempt ran, and beside how many."""
    details = {
        name: value for name, value in record["details"].items() if name not in {"peak_memory", "wall"}
    }
    return {name: value for name, value in record.items() if name not in PLACES} | {"details": details}

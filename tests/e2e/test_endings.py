"""However a trial's pod ends: the right number of attempts, and a row that says what it was."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cluster.children import until
from tests.e2e.ends import PROGRAM, SCRIPT, Hand, PlannedBatch
from tests.e2e.founding import Ground
from tests.e2e.team import Team

pytestmark = pytest.mark.full

SECONDS = 1200
TIMEOUT = 20
DEADLINE = 90
UNTIL_DEADLINE = {"ends-hung", "ends-nowhere"}
"""Sweeps whose pods only their deadline ends."""
COMMAND = ("python3", SCRIPT, "${args}")
RUN = {"resources": {"cpu": "100m", "memory": "128Mi", "scratch": "16Mi"}, "retries": 1}

FROM_OUTSIDE = (
    "well",
    "deleted",
    "vanishes",
    "killed",
    "evicted",
    "oom",
    "launcher-oom",
    "disk",
    "bad",
    "fails",
)
STOPPED = ("stops", "waits", "well")
FEW = ("fails", "fails-too", "waits", "well")
SINGLE = ("well", "stops", "bad", "fails", "killed", "launcher-oom")
SWEEPS: Mapping[str, tuple[tuple[str, ...], Mapping[str, object]]] = {
    "ends": (FROM_OUTSIDE, {"shape": "indexed", "parallelism": 10, "timeout": "10m"}),
    "ends-late": (("late",), {"shape": "indexed", "timeout": f"{TIMEOUT}s"}),
    "ends-hung": (("hangs",), {"shape": "indexed", "timeout": "10m"}),
    "ends-all": (STOPPED, {"shape": "indexed", "parallelism": 2, "timeout": "10m"}),
    "ends-few": (FEW, {"parallelism": 2, "timeout": "10m", "max_failed": 1, "retries": 0}),
    "ends-single": (SINGLE, {"shape": "jobs", "parallelism": 6, "timeout": "10m"}),
    "ends-nowhere": (("well",), {"shape": "indexed", "timeout": f"{TIMEOUT}s"}),
}
"""Everything at once, so that all of it costs one wait: by sweep how its trials end, and how they are run."""


@dataclass(frozen=True)
class Row:
    """What the summary says of a trial, and how many pods it had."""

    status: str
    reason: str
    attempts: int
    pods: int


@dataclass
class Endings:
    """What came of the sweeps."""

    team: Team
    hand: Hand
    planned: Mapping[str, PlannedBatch]
    failed: dict[str, str] = field(default_factory=dict)
    """By sweep the reason of its Job's condition Failed."""
    rows: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """The summaries."""
    records: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """What was recorded of the attempts."""

    def row(self, sweep: str, how: str) -> Row:
        planned = self.planned[sweep]
        (results,) = (row for row in self.rows[sweep] if int(row["index"]) == planned.hows.index(how))
        pods = len(self.hand.pods[planned.batch.name, how])
        return Row(results["status"], results["reason"], int(results["attempts"]), pods)


@pytest.fixture(scope="module")
def endings(team: Team, ground: Ground) -> Iterator[Endings]:
    """Seven sweeps, from the merge to their results."""
    team.write(SCRIPT, PROGRAM)
    team.commit("Let trials end in many ways")
    for name, (hows, run) in SWEEPS.items():
        image = {"image": nowhere(team)} if name == "ends-nowhere" else {}
        team.write_spec(name, parameters={"how": hows}, command=COMMAND, **{**RUN, **run, **image})
    batches = team.merge_specs(*SWEEPS)
    planned = {batch.sweep: PlannedBatch(batch, SWEEPS[batch.sweep][0]) for batch in batches}
    result = Endings(team, Hand(team, ground.storage.results), planned)
    follow(result)
    yield result
    until("the Jobs are pruned", lambda: not any(map(team.jobs, batches)), seconds=300, pause=1)


def nowhere(team: Team) -> str:
    """Name an image that no registry and no node has, in a repository that the settings allow."""
    return f"{team.image('trainer').rpartition('@')[0]}@sha256:{'0' * 64}"


def follow(result: Endings) -> None:
    began, waiting = time.monotonic(), dict(result.planned)
    while waiting:
        assert time.monotonic() < began + SECONDS, f"not recorded: {sorted(waiting)}"
        result.hand.pass_over(waiting.values())
        for name in UNTIL_DEADLINE & waiting.keys():
            for pod in result.team.pods(waiting[name].batch):
                result.team.shorten_deadline(pod, DEADLINE)
        for name, planned in list(waiting.items()):
            for job in result.team.jobs(planned.batch):
                for condition in job["status"].get("conditions", ()):
                    if condition["type"] == "Failed":
                        result.failed[name] = condition["reason"]
            if result.team.is_recorded(planned.batch):
                print(f"{name} is recorded after {time.monotonic() - began:.0f} s", flush=True)
                result.rows[name] = result.team.summary(name)
                result.records[name] = result.team.records(planned.batch)
                del waiting[name]
        time.sleep(1)
    result.team.pull()


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("deleted", id="deleted by force"),
        pytest.param("vanishes", id="deleted by force, and its launcher wrote nothing"),
        pytest.param("killed", id="its first process killed"),
        pytest.param("evicted", id="evicted by the API"),
    ],
)
def test_a_trial_whose_pod_was_taken_is_tried_again_and_ends_well(
    endings: Endings, how: str
) -> None:
    assert endings.row("ends", how) == Row("ok", "", 2, 2)


def test_a_trial_that_ends_well_beside_all_others_is_tried_once(endings: Endings) -> None:
    assert endings.row("ends", "well") == Row("ok", "", 1, 1)


@pytest.mark.parametrize(
    ("how", "status", "reason"),
    [
        pytest.param("oom", "oom", "oom", id="the command runs out of memory"),
        pytest.param("launcher-oom", "oom", "oom", id="the launcher is killed for want of memory"),
        pytest.param("disk", "evicted", "evicted", id="more than its scratch space"),
        pytest.param("fails", "failed", "exit-7", id="an exit code of its own"),
    ],
)
def test_a_trial_that_fails_again_says_why(
    endings: Endings, how: str, status: str, reason: str
) -> None:
    assert endings.row("ends", how) == Row(status, reason, 2, 2)


def test_bad_hyperparameters_are_not_tried_again(endings: Endings) -> None:
    assert endings.row("ends", "bad") == Row("diverged", "bad-hyperparameters", 1, 1)
    assert endings.row("ends-single", "bad") == Row("diverged", "bad-hyperparameters", 1, 1)


def test_without_a_limit_no_number_of_failures_stops_a_batch(endings: Endings) -> None:
    assert endings.failed["ends"] == "FailedIndexes"


def test_a_trial_over_its_time_is_ended_by_its_launcher_and_says_so(endings: Endings) -> None:
    assert endings.row("ends-late", "late") == Row("timeout", "timeout", 2, 2)


def test_a_trial_whose_launcher_hangs_is_ended_by_its_node_at_the_pods_deadline(endings: Endings) -> None:
    assert endings.row("ends-hung", "hangs") == Row("timeout", "timeout", 2, 2)
    for record in endings.records["ends-hung"]:
        assert "longer than the specified deadline" in record["details"]["said"]


def test_an_image_that_nobody_has_ends_at_the_deadline_and_nothing_began(
    endings: Endings,
) -> None:
    assert endings.row("ends-nowhere", "well") == Row("failed", "start-failed", 2, 2)
    for record in endings.records["ends-nowhere"]:
        assert record["ran"] == "nothing"
        assert "never started" in record["details"]["said"]


def test_a_bad_sweep_stops_its_batch_in_shape_indexed(endings: Endings) -> None:
    rows = {how: endings.row("ends-all", how) for how in STOPPED}

    assert rows["stops"] == Row("failed", "bad-sweep", 1, 1)
    assert rows["waits"].status in {"failed", "missing"}
    assert (rows["well"].status, rows["well"].attempts) == ("missing", 0)
    assert endings.failed["ends-all"] == "PodFailurePolicy"


def test_a_bad_sweep_stops_only_its_own_trial_in_shape_jobs(endings: Endings) -> None:
    assert endings.row("ends-single", "stops") == Row("failed", "bad-sweep", 1, 1)
    assert endings.row("ends-single", "well") == Row("ok", "", 1, 1)
    assert endings.row("ends-single", "fails") == Row("failed", "exit-7", 2, 2)
    assert endings.row("ends-single", "killed") == Row("ok", "", 2, 2)
    assert endings.row("ends-single", "launcher-oom") == Row("oom", "oom", 2, 2)


def test_one_failure_more_than_allowed_stops_a_batch(endings: Endings) -> None:
    rows = {how: endings.row("ends-few", how) for how in FEW}

    assert rows["fails"] == rows["fails-too"] == Row("failed", "exit-7", 1, 1)
    assert rows["waits"].status in {"failed", "missing"}
    assert (rows["well"].status, rows["well"].attempts) == ("missing", 0)
    assert endings.failed["ends-few"] == "MaxFailedIndexesExceeded"


def test_the_command_results_shows_every_trial_with_its_status_and_reason(endings: Endings) -> None:
    document = json.loads(endings.team.sweep("results", "ends", "--format=json").stdout)

    results = {(row["index"], row["status"], row["reason"]) for row in document["data"]["trials"]}
    rows = endings.rows["ends"]
    assert results == {(int(row["index"]), row["status"], row["reason"] or None) for row in rows}
    assert len(rows) == len(FROM_OUTSIDE)


def test_each_batch_was_recorded_by_one_commit(endings: Endings) -> None:
    for planned in endings.planned.values():
        assert len(endings.team.results_commits(planned.batch)) == 1

"""A trial in a cluster gives a reason that only the collector or the cluster can know."""

from pathlib import Path
from typing import cast

import pytest

from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.termination import OBSERVED_REASONS
from sweepledger.operations.collection.attempts import BatchAttempts
from sweepledger.operations.collection.cluster_evidence import PodStore
from sweepledger.operations.collection.collector import collect_from_state
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.repo.results_volume import VolumeResults
from tests.operations.test_collect import column, leave, stored
from tests.repository import Sandbox


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


def read_in_cluster(sandbox: Sandbox, results: Path, reason: str, **members: object) -> BatchAttempts:
    sandbox.merged()
    batch = stored(sandbox)
    leave(results, batch, 0, status="failed", reason=reason, metrics={}, **members)
    return BatchAttempts.read(VolumeResults(results), batch, by_engine=False)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("ran", ["process", "registry.example.org/train@sha256:" + "1" * 64])
@pytest.mark.parametrize("reason", sorted(OBSERVED_REASONS))
def test_a_foreign_reason_is_counted_so(reason: str, ran: str, sandbox: Sandbox, results: Path) -> None:
    read = read_in_cluster(sandbox, results, reason, ran=ran)

    assert read.records == ()
    assert read.passed_over == {0: ("foreign",)}


OF_THE_LAUNCHER = (
    "exit-1",
    "signal-9",
    "signal-15",
    "timeout",
    "metric-missing",
    "result-invalid",
    "bad-sweep",
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("reason", [*OF_THE_LAUNCHER, "disk-full"])
def test_reasons_of_the_launcher_are_read(reason: str, sandbox: Sandbox, results: Path) -> None:
    (record,) = read_in_cluster(sandbox, results, reason).records

    assert record.reason == reason


def test_a_trial_that_left_no_record_brings_none_when_recorded(sandbox: Sandbox, results: Path) -> None:
    name = sandbox.merged()
    batch = stored(sandbox)
    for index in range(3):
        leave(results, batch, index, status="failed", reason="no-record", metrics={})
    in_cluster = PodStore(cast("Kubectl", None), "sweeps", 0.0, on_volume(results))

    sandbox.collect(results, {name}, complete=lambda read: read, pods=in_cluster)

    assert column(sandbox, "status") == ["foreign"] * 3
    assert column(sandbox, "reason") == ["foreign"] * 3


def test_what_the_engine_of_this_machine_observed_is_recorded(sandbox: Sandbox, results: Path) -> None:
    name = sandbox.merged()
    leave(results, stored(sandbox), 0, status="failed", reason="oom", metrics={})

    collect_from_state(sandbox.target(), results, results / "none", over=frozenset({name}))

    assert column(sandbox, "reason")[0] == "oom"

"""Trials that infrastructure ended are requested again, within a bound, by whoever records them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sweepledger.commands.check import check
from sweepledger.commands.collect import collect_from_state
from sweepledger.commands.collection.results_commit import commit_results
from sweepledger.commands.generate import generate
from sweepledger.commands.next_ import next_
from sweepledger.commands.repository.workspace import Target
from sweepledger.commands.retry import retry
from sweepledger.commands.rounds.next_round import ResultsPending, RoundBlocked, RoundDue
from sweepledger.commands.rounds.round_commit import (
    PushedRepeat,
    PushedRound,
    push_due,
    push_repeats,
    step_trailers,
)
from sweepledger.commands.verify import verify
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from tests.commands.test_collect import leave, target
from tests.repository import Sandbox
from tests.searches import active, begun, followed
from tests.searches import leave as leave_search

REFUSED: Mapping[str, object] = {
    "status": "failed",
    "reason": "refused-by-node",
    "metrics": {},
    "seconds": 0.0,
    "ran": "nothing",
}
"""The record of a pod that its kubelet refused, as UnexpectedAdmissionError."""
FAILED: Mapping[str, object] = {"status": "failed", "reason": "exit-7", "metrics": {}}
BROKEN_GPU: Mapping[str, object] = {**FAILED, "reason": "exit-91"}
ALLOWED = "infrastructure: {retries: 2, exit_codes: [91]}"


def write_key(sandbox: Sandbox, text: str = ALLOWED) -> None:
    """Set `run.infrastructure` of the spec."""
    spec = sandbox.root / "sweeps/peak.yaml"
    lines = [line for line in spec.read_text().splitlines() if "infrastructure" not in line]
    place = next(number for number, line in enumerate(lines) if line.startswith("run:"))
    spec.write_text("\n".join([*lines[: place + 1], *([f"  {text}"] if text else []), *lines[place + 1 :], ""]))


def requested(sandbox: Sandbox, xs: str = "1, 2, 3") -> str:
    """Merge a sweep whose trials may be repeated; return the name of its batch."""
    sandbox.spec(xs=xs)
    write_key(sandbox)
    (made,) = generate(sandbox.workspace)
    assert made.batch is not None
    sandbox.commit("Request trials")
    sandbox.push()
    return made.batch.name


def play(sandbox: Sandbox, results: Path, name: str, *ends: Mapping[str, object]) -> None:
    """Let the trials of a batch end, each as said, and record that."""
    (batch,) = [item for item in batches.in_work_tree(sandbox.root) if item.name == name]
    assert len(ends) == batch.lock.trials
    for place, changes in enumerate(ends):
        leave(results, batch, place, **changes)
    assert commit_results(target(sandbox), results, {name})
    sandbox.pull()


def repeated(sandbox: Sandbox) -> StoredBatch | None:
    """Let the collector request what is due; return the batch that it added."""
    pushed = list(push_due(target(sandbox)))
    sandbox.pull()
    if not pushed:
        return None
    (repeat,) = pushed
    assert isinstance(repeat, PushedRepeat)
    (batch,) = [one for one in batches.in_work_tree(sandbox.root) if one.name == repeat.batch.name]
    return batch


def values(batch: StoredBatch | None) -> list[object]:
    return [] if batch is None else [row.values["x"] for row in batch.rows]


def statuses(sandbox: Sandbox) -> list[str]:
    lines = (sandbox.root / "results/peak/summary.csv").read_text().splitlines()[1:]
    return [line.split(",")[5] for line in lines]


@pytest.mark.parametrize(
    ("ending", "is_repeated"),
    [
        pytest.param(REFUSED, True, id="refused by a node"),
        pytest.param({**REFUSED, "reason": "image-not-pulled"}, True, id="a registry without the image"),
        pytest.param({**REFUSED, "reason": "start-failed"}, True, id="no container started"),
        pytest.param({**REFUSED, "reason": "node-lost"}, True, id="a lost node"),
        pytest.param({**REFUSED, "reason": "disrupted"}, True, id="too many disruptions"),
        pytest.param(BROKEN_GPU, True, id="an exit code that the spec names"),
        pytest.param(FAILED, False, id="another exit code"),
        pytest.param({**FAILED, "reason": "start-failed"}, False, id="a command that does not exist"),
        pytest.param({**FAILED, "reason": "evicted"}, False, id="too much scratch space"),
        pytest.param({**FAILED, "reason": "timeout"}, False, id="the timeout"),
        pytest.param({**FAILED, "reason": "oom"}, False, id="too much memory"),
        pytest.param(
            {**FAILED, "status": "diverged", "reason": "bad-hyperparameters"}, False, id="bad values"
        ),
        pytest.param({}, False, id="ok"),
    ],
)
def test_only_what_infrastructure_ended_is_repeated(
    sandbox: Sandbox, tmp_path: Path, ending: Mapping[str, object], is_repeated: bool
) -> None:
    first = requested(sandbox, xs="1, 2")

    play(sandbox, tmp_path, first, {}, ending)

    assert values(repeated(sandbox)) == ([2] if is_repeated else [])

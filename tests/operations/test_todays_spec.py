"""Which spec a sweep's results are held against, and when it has to be expanded for that."""

from pathlib import Path

import pytest

from tests.operations.test_collect import column, leave, stored
from tests.repository import Sandbox


@pytest.fixture
def merged(sandbox: Sandbox) -> Sandbox:
    sandbox.merged()
    return sandbox


def test_trials_are_looked_up_in_the_newest_spec(merged: Sandbox, results: Path) -> None:
    first = stored(merged)
    merged.merged(xs="1, 2, 7")
    both = merged.batches()
    for batch in both:
        for index in range(batch.lock.trials):
            leave(results, batch, index)

    merged.collect(results, {batch.name for batch in both})

    assert [batch.lock.trials for batch in both] == [3, 1]
    assert column(merged, "batch") == [first.name] * 3 + [both[1].name]
    assert column(merged, "in_spec") == ["true", "true", "false", "true"]


def test_a_file_of_assignments_belongs_to_its_spec(sandbox: Sandbox, results: Path) -> None:
    sandbox.write_spec("peak", method="list", assignments="points.csv")
    sandbox.write("sweeps/points.csv", "x\n1\n2\n")
    sandbox.commit_batches("Ask for two points")
    sandbox.publish("Ask for another", {"sweeps/points.csv": "x\n1\n7\n"})
    batch = stored(sandbox)
    for index in range(2):
        leave(results, batch, index)

    sandbox.collect(results, {batch.name})

    assert column(sandbox, "in_spec") == ["true", "false"]


def test_drawn_points_are_in_their_spec_of_today(sandbox: Sandbox, results: Path) -> None:
    keys = {"method": "sobol", "seed": 1, "parameters": {"x": {"min": 0.0, "max": 5.0}}}
    sandbox.write_spec("peak", run_cap=8, **keys)
    sandbox.commit_batches("Ask for points")
    batch = stored(sandbox)
    sandbox.write_spec("peak", run_cap=4, **keys)
    sandbox.publish("Ask for fewer")
    for index in range(8):
        leave(results, batch, index)

    sandbox.collect(results, {batch.name})

    assert column(sandbox, "in_spec") == ["true"] * 4 + ["false"] * 4

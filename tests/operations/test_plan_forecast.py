"""What `sweep plan` foresees, from what git holds: recorded trials of the program, and the pool's queue."""

import pytest

from sweepledger.operations.verification.batch_audit import SweepAudit
from sweepledger.plan.forecast import DurationSource, Forecast
from tests.builders import present
from tests.operations.recording import record_batch
from tests.repository import Sandbox, append_to

POOL = """version: 1
currency: EUR
pools:
  small: {node: {cpu: 4, memory: 16Gi}, max_nodes: 1, price: 0.6, startup: 1s}
defaults: {pool: small}
"""


def foreseen(sandbox: Sandbox, name: str = "peak") -> Forecast:
    (review,) = sandbox.plan(name).reviews
    assert review.forecast is not None
    return review.forecast


def test_trials_of_the_same_program_in_any_sweep_are_believed(sandbox: Sandbox) -> None:
    record_batch(sandbox, sandbox.merged("first", xs="1, 2, 3, 4"), lambda _: 20.0)
    append_to(sandbox.spec(xs="1, 2, 3, 4"), "  expected_minutes: 1\n")

    forecast = foreseen(sandbox)

    assert (forecast.source, forecast.records) == (DurationSource.RECORDS, 4)
    assert present(forecast.trial_seconds).median == pytest.approx(20, rel=0.1)
    sandbox.publish("Write another program", {"code/train.py": "print('another')\n"})
    sandbox.spec()
    assert foreseen(sandbox).source is DurationSource.UNKNOWN


def test_what_is_active_in_the_pool_comes_first(sandbox: Sandbox) -> None:
    sandbox.publish("Name a pool", {"sweepledger.yaml": POOL})
    record_batch(sandbox, sandbox.merged("first", xs="1, 2, 3, 4"), lambda _: 20.0)
    sandbox.spec(xs="1, 2")
    alone = foreseen(sandbox)
    (sandbox.root / "sweeps/peak.yaml").unlink()
    sandbox.merged("busy", xs="1, 2, 3, 4", parallelism=4)
    sandbox.spec(xs="1, 2")

    behind = foreseen(sandbox)

    assert (alone.ahead, behind.ahead, behind.uncounted) == (0, 1, 0)
    assert present(behind.completion_seconds).high > present(alone.completion_seconds).high
    assert present(behind.money).median == pytest.approx(2 * 20 / 3600 * 0.6 / 4, rel=0.15)


def test_the_best_of_what_is_recorded_is_remarked_on_where_it_lies_at_an_end(sandbox: Sandbox) -> None:
    name = sandbox.merged(xs="1, 2, 3")
    record_batch(sandbox, name, lambda _: 20.0, score=lambda values: float(str(values["x"])))
    files = SweepAudit(sandbox.workspace.repository, "HEAD", "peak").rebuilt_files()
    sandbox.publish("Summarise", {"results/peak/summary.csv": files["summary.csv"].decode()})

    def notes_at_an_end(xs: str) -> list[str]:
        sandbox.spec(xs=xs)
        (review,) = sandbox.plan("peak").reviews
        return [note.text.partition(",")[0] for note in review.notes if note.kind == "best-at-an-end"]

    assert notes_at_an_end("0.5, 1, 2, 3") == ["x=3 of the best trial so far"]
    assert notes_at_an_end("2, 3, 4") == []

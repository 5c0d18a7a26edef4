"""Many writers of one summary at once; benchmarks/writers.py has two hundred."""

from pathlib import Path

from tests.faults import writers
from tests.repository import Sandbox


def test_f1_every_row_of_writers_at_once_lands_exactly_once(sandbox: Sandbox, tmp_path: Path) -> None:
    places = writers.clones(sandbox.remote, tmp_path, 4)

    assert writers.race(places, slots=4) == []

    writers.judge(sandbox.remote, 4)


def test_f1_one_collector_records_what_many_trials_leave_in_few_commits(tmp_path: Path) -> None:
    sandbox = writers.many_batches(tmp_path, number=3, trials=4)

    assert writers.gather(sandbox, tmp_path / "results") <= 3

    sandbox.pull()
    rows = (sandbox.root / "results/peak/summary.csv").read_text().splitlines()[1:]
    assert len(rows) == len(set(rows)) == 12

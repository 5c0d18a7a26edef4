"""Records on a volume (`results.store: volume`) under faults: none is lost, none comes from anything but a launcher."""

import os
import random
import shutil
from collections.abc import Mapping
from csv import DictReader
from dataclasses import dataclass
from pathlib import Path

import pytest

from sweepledger.operations.collection.results_commit import ResultsCommit
from sweepledger.repo.batches import StoredBatch
from tests.operations.test_collect import leave
from tests.repository import Sandbox

FAULTS = (
    *("none", "partial file", "two attempts", "failed before", "ahead of time", "behind time", "seen late"),
    "forged",
)
FUTURE, PAST = "2099-01-01T00:00:0{}Z", "1999-01-01T00:00:0{}Z"
YEARS = 20 * 365 * 86_400
FORGED = 99.0
"""A score that no launcher wrote."""


@dataclass(frozen=True)
class Volume:
    """What lies on the volume, and what its reader does not see yet."""

    seen: Path
    late: Path

    def suffer(self, batch: StoredBatch, index: int, fault: str) -> None:
        """Leave what the attempts of a trial leave under a fault; the last of them ends well."""
        match fault:
            case "partial file":
                path = leave(self.seen, batch, index, uid="partial")
                path.write_text(path.read_text()[: path.stat().st_size // 2])
                (path.parent / ".partial.json.tmp").write_text('{"version"')
            case "two attempts":
                leave(self.seen, batch, index, uid="twin")
            case "failed before":
                leave(self.seen, batch, index, uid="before", status="failed", reason="exit-1", metrics={})
            case "forged":  # a record of another trial, in the only folder that this one can write to
                other = (index + 1) % batch.lock.trials
                forged = leave(self.late.parent / "forged", batch, other, metrics={"score": FORGED})
                place = self.seen / batch.name / batch.lock.place(index) / "forged.json"
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(forged.read_text())
        if fault in {"ahead of time", "behind time"}:
            form = FUTURE if fault == "ahead of time" else PAST
            path = leave(self.seen, batch, index, started=form.format(0), finished=form.format(2))
            moment = path.stat().st_mtime + (YEARS if form is FUTURE else -YEARS)
            os.utime(path, (moment, moment))
        else:
            leave(self.late if fault == "seen late" else self.seen, batch, index)

    def show(self) -> None:
        """Let the reader see everything."""
        shutil.copytree(self.late, self.seen, dirs_exist_ok=True)


def rows(sandbox: Sandbox) -> Mapping[tuple[str, int], dict[str, str]]:
    """Return the rows of all summaries, by batch and trial."""
    paths = sandbox.root.glob("results/*/summary.csv")
    read = [row for path in paths for row in DictReader(path.read_text().splitlines())]
    by_trial = {(row["batch"], int(row["index"])): row for row in read}
    assert len(by_trial) == len(read), "no trial has two rows"
    return by_trial


@pytest.mark.parametrize(
    ("number", "trials"),
    [(2, 20), pytest.param(10, 100, marks=pytest.mark.full_suite("1,000 trials"))],
    ids=["40 trials", "1,000 trials"],
)
def test_doubtful_records_are_said(number: int, trials: int, sandbox: Sandbox, tmp_path: Path) -> None:
    chance = random.Random(21)  # noqa: S311 - a choice of faults
    for count in range(number):
        sandbox.merged(f"faults-{count}", xs=", ".join(map(str, range(trials))))
    stored = sandbox.batches()
    volume = Volume(tmp_path / "seen", tmp_path / "late")
    faults = {
        (batch.name, index): chance.choice(FAULTS) for batch in stored for index in range(batch.lock.trials)
    }
    for batch in stored:
        for index in range(batch.lock.trials):
            volume.suffer(batch, index, faults[batch.name, index])
    names = {batch.name for batch in stored}
    away = stored[0].name
    (tmp_path / "away").mkdir()
    (volume.seen / away).rename(tmp_path / "away" / away)

    first = sandbox.collect(volume.seen, names - {away})
    (tmp_path / "away" / away).rename(volume.seen / away)
    volume.show()
    second = sandbox.collect(volume.seen, names, alive=())
    third = sandbox.collect(volume.seen, names, alive=())

    sandbox.pull()
    recorded = rows(sandbox)
    assert recorded.keys() == faults.keys()
    lost = {faults[key] for key, row in recorded.items() if row["status"] != "ok"}
    false = {faults[key] for key, row in recorded.items() if row["metrics.score"] != f"{key[1] / 2:g}"}
    assert (lost, false, third) == (set(), set(), ())
    said = doubts((*first, *second))
    assert said == sum(fault in {"partial file", "forged"} for fault in faults.values())


def doubts(commits: tuple[ResultsCommit, ...]) -> int:
    """Count the files of which commits say that they cannot be believed; a later commit says it again."""
    said: dict[tuple[str, ...], int] = {}
    for commit in commits:
        said[commit.batches] = max(said.get(commit.batches, 0), len(commit.corrupt))
    return sum(said.values())

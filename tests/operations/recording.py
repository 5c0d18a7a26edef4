"""Records of batches that nobody ran: as the collector would commit them, with the times a test wants."""

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

from sweepledger.formats import records_jsonl
from sweepledger.operations.repository.batch_records import expected_trials
from sweepledger.structs.record import Status
from sweepledger.structs.values import Value
from tests.builders import a_record
from tests.repository import Sandbox

LONGEST = 86_400.0
"""What a record claims beyond has passed on no clock."""
NOVEMBER = datetime(2026, 11, 3, 12, tzinfo=UTC)


def record_batch(
    sandbox: Sandbox,
    name: str,
    seconds: Callable[[Mapping[str, Value]], float],
    *,
    at_once: int = 2,
    began: datetime = NOVEMBER,
    failed: int = 0,
    recorded: str = "",
    score: Callable[[Mapping[str, Value]], float] = lambda _: 0.5,
) -> None:
    """Write a record for every trial, and move the batch; each of the first few failed once before.

    The commit is made as the last trial ends, or when it is said to be `recorded`.
    """
    (stored,) = [batch for batch in sandbox.batches() if batch.name == name]
    free, records = [0.0] * at_once, []
    for trial in expected_trials(stored):
        took, place = seconds(trial.assignment), trial.index % at_once
        attempts = 2 if trial.index < failed else 1
        for attempt in range(1, attempts + 1):
            start = began + timedelta(seconds=free[place])
            lasted = min(took, LONGEST)
            free[place] += lasted
            record = a_record(
                trial.index,
                trial=trial.trial,
                row=trial.row,
                batch=name,
                uid=f"pod-{trial.index}-{attempt}",
                attempt=attempt,
                status=Status.OK if attempt == attempts else Status.FAILED,
                seconds=took,
                started=_time(start),
                finished=_time(start + timedelta(seconds=lasted)),
                code=stored.lock.program.code.tree,
                data=None,
                metrics={"score": score(trial.assignment)},
            )
            records.append(record)
    sweep = stored.sweep
    (content,) = records_jsonl.write(records)
    sandbox.write(f"results/{sweep}/records/{name}.jsonl", content.decode())
    (sandbox.root / "overlays/archive").mkdir(parents=True, exist_ok=True)
    if stored.is_active:
        sandbox.git("mv", f"overlays/active/{name}", f"overlays/archive/{name}")
    with patch.dict(os.environ, GIT_COMMITTER_DATE=recorded or _time(began + timedelta(seconds=max(free)))):
        sandbox.commit(f"results({sweep}): recorded")
    sandbox.push()


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

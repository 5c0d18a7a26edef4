"""What `sweep cluster local` shows, and what it does not keep."""

import io
import weakref
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from sweepledger.cli.text.progress import ProgressDisplay
from sweepledger.engine.local import events
from sweepledger.operations.cluster_local import Built, Event, RemoteFailed, Running, Unpushed
from sweepledger.operations.collection import results_commit
from sweepledger.operations.repository import batch_records
from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.summary import summarise
from sweepledger.structs.record import Status
from tests.repository import Sandbox


def watch(width: int = 100) -> tuple[ProgressDisplay, io.StringIO]:
    screen = io.StringIO()
    return ProgressDisplay(Console(file=screen, width=width), is_remote=True), screen


def test_results_commits_are_yielded_and_not_kept(sandbox: Sandbox) -> None:
    sandbox.merged()
    (batch,) = sandbox.batches()
    results = BatchRecords(batch.lock, batch_records.expected_trials(batch), ())
    seen: list[weakref.ref[results_commit.ResultsCommit]] = []
    alive: list[int] = []

    def happening() -> Iterator[Event]:
        for _ in range(5):
            alive.append(sum(item() is not None for item in seen))
            commit = results_commit.ResultsCommit(("peak-b1-00000000",), summarise([results], description=""))
            seen.append(weakref.ref(commit))
            yield commit

    watching, _ = watch()
    output = [event.batches for event in watching.follow(happening())]

    assert output == [("peak-b1-00000000",)] * 5
    assert max(alive) <= 1  # the one that the loops still hold


def test_errors_of_the_remote_are_printed(tmp_path: Path) -> None:
    watching, screen = watch()

    assert list(watching.follow([RemoteFailed(f"git fetch failed: {tmp_path.name}")])) == []

    assert f"git fetch failed: {tmp_path.name}" in screen.getvalue()


def ended(batch: str, number: int, tries: int | None) -> events.PodEnded:
    attempt = events.PodAttempt(batch, 0, "t0123456789a", f"u{number}", number)
    return events.PodEnded(attempt, Status.FAILED, "exit-1", {}, 0.5, "", tries)


def test_an_attempt_that_another_follows_is_not_counted_and_does_not_look_final(sandbox: Sandbox) -> None:
    name = sandbox.merged()
    built = Built(sandbox.batch(), None, None, ())
    watching, screen = watch(200)
    running = Running({name: events.BatchProgress(total=6, ok=2, diverged=0, failed=0, running=1)})

    assert list(watching.follow([built, running, ended(name, 1, 2), ended(name, 2, None)])) == []

    again, final, hint = (line.split(" ", 1)[1] for line in screen.getvalue().splitlines()[1:])
    assert again == "t0123456789a failed (exit-1), will be retried (attempt 1 of 2)  0.5 s"
    assert final == "[3/6] peak t0123456789a failed (exit-1)  x=1  0.5 s"
    assert "sweep logs t0123456789a" in hint


def test_unpushed_batches_are_printed_with_a_hint() -> None:
    watching, screen = watch(200)

    assert list(watching.follow([Unpushed(("a", "b"), "origin/main", are_committed=False)])) == []

    words = "2 batches of your work tree are not on origin/main yet: commit and push them"
    assert words in screen.getvalue()

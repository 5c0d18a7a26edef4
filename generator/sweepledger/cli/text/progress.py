"""The events of `local`: progress bars on a terminal, lines elsewhere."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from sweepledger.cli.response import SHORT_COMMIT
from sweepledger.cli.text import results, rounds
from sweepledger.cli.text.style import status_with_reason
from sweepledger.cli.text.values import number_text
from sweepledger.commands.local import (
    Built,
    Event,
    Fetched,
    RefusedBatch,
    RemoteFailed,
    ResultsPushed,
    RoundPushed,
    Running,
    Unpushed,
)
from sweepledger.engine.local import events
from sweepledger.problems import Problem
from sweepledger.structs.metric import Metric
from sweepledger.structs.record import Status


class ProgressDisplay:
    """Prints events as lines, and shows a progress bar per batch on a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}
        self._metrics: dict[str, Metric] = {}
        self._best: dict[str, float] = {}
        self._done: dict[str, int] = {}
        self._total: dict[str, int] = {}
        self.printed_problems: set[Problem] = set()
        """Problems of refused batches that were printed."""

    @contextmanager
    def live(self) -> Iterator["ProgressDisplay"]:
        """Show the progress bars during the block."""
        with self._bars:
            yield self

    def follow(self, events: Iterable[Event]) -> Iterator[ResultsPushed]:
        """Show every event, and yield the results commits; none is stored, because they contain summaries."""
        for event in events:
            self._show(event)
            if isinstance(event, ResultsPushed):
                yield event

    def _show(self, event: Event) -> None:
        match event:
            case Fetched(commit, active):
                batches = ", ".join(active) if active else "nothing"
                self._print(Text(f"synced {commit[:SHORT_COMMIT]}: {batches} to run"))
            case Built(batch, metric, unverified):
                self._metrics[batch] = metric
                note = f"; data {unverified} is not verified: it has no digest" if unverified else ""
                self._print(Text(f"built {batch}{note}"))
            case RefusedBatch(_, problems):
                self.printed_problems.update(problems)
                self._print(Text("\n".join(map(str, problems)), "red"))
            case events.PodEnded():
                self._show_end(event)
            case events.EditRefused(batch, job):
                self._print(Text(f"{batch}: {job} was edited after its creation; the edit is ignored", "red"))
            case events.JobFinished(_, job, condition, reason):
                self._print(Text(f"job {job} {str(condition).lower()}: {reason}"))
            case RemoteFailed() | Unpushed():
                self._print(Text(_warning_text(event), "yellow"))
            case Running(progress):
                self._update_bars(progress)
            case ResultsPushed() | RoundPushed():
                self._print(Text(_pushed_text(event), "green"))
            case _:
                pass  # the progress bars show the other events

    def _show_end(self, event: events.PodEnded) -> None:
        attempt = event.attempt
        if event.attempts is not None:
            self._print(self._retried_line(event, event.attempts))
            return
        done, total = self._done.get(attempt.batch, 0) + 1, self._total.get(attempt.batch, 0)
        self._done[attempt.batch] = done
        line = Text(f"[{done}/{total}] {attempt.trial} ")
        line.append_text(status_with_reason(event.status, event.reason))
        metric = self._metrics[attempt.batch]
        value = event.metrics.get(metric.name)
        if value is not None:
            line.append(f"  {metric.name} {number_text(value)}")
            if event.status is Status.OK and self._is_best(attempt.batch, metric, value):
                line.append("  best so far", "bold")
        line.append(f"  {event.seconds:.1f} s", "dim")
        self._print(line)
        if event.status is Status.FAILED:
            self._print(Text(f"    `sweep logs {attempt.trial}` shows what it printed", "dim"))

    def _retried_line(self, event: events.PodEnded, attempts: int) -> Text:
        """Return the line of an attempt that another one follows, so the trial is not counted yet."""
        line = Text(f"{event.attempt.trial} ")
        line.append_text(status_with_reason(event.status, event.reason))
        line.append(f", will be retried (attempt {event.attempt.number} of {attempts})")
        return line.append(f"  {event.seconds:.1f} s", "dim")

    def _is_best(self, batch: str, metric: Metric, value: float) -> bool:
        best = self._best.get(batch)
        if best is not None and not metric.better(value, best):
            return False
        self._best[batch] = value
        return True

    def _update_bars(self, progress: Mapping[str, events.BatchProgress]) -> None:
        for batch, counts in progress.items():
            self._update_bar(batch, counts)

    def _update_bar(self, batch: str, counts: events.BatchProgress) -> None:
        done = counts.ok + counts.pruned + counts.diverged + counts.failed
        self._total[batch], self._done[batch] = counts.total, done
        state = f"{counts.running} running, {counts.failed + counts.diverged} failed"
        if counts.pruned:
            state += f", {counts.pruned} pruned"
        if batch in self._best:
            state += f", best {number_text(self._best[batch])}"
        if batch not in self._tasks:
            self._tasks[batch] = self._bars.add_task(Text(batch).plain, total=counts.total, state=state)
        self._bars.update(self._tasks[batch], completed=done, state=state)

    def _print(self, line: Text) -> None:
        timestamp = Text(time.strftime("%H:%M:%S "), "dim")
        (self._bars.console if self._console.is_terminal else self._console).print(timestamp + line)


def _pushed_text(event: ResultsPushed | RoundPushed) -> str:
    if isinstance(event, RoundPushed):
        return rounds.pushed_round_text(event.round)
    return f"{results.results_commit_text(event.commit)}; `git pull` fetches it"


def _warning_text(event: RemoteFailed | Unpushed) -> str:
    if isinstance(event, RemoteFailed):
        return event.message
    count = len(event.batches)
    subject, them = (
        ("1 batch of your work tree is", "it")
        if count == 1
        else (f"{count} batches of your work tree are", "them")
    )
    action = "push" if event.are_committed else "commit and push"
    return f"{subject} not on {event.branch} yet: {action} {them}"

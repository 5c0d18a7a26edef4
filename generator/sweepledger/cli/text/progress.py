"""The events of `run` and `local`: progress bars on a terminal, lines elsewhere."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from sweepledger.cli.response import SHORT_COMMIT, Format, Response, escape_control_characters, open_console
from sweepledger.cli.text import rounds
from sweepledger.cli.text.style import status_with_reason, untrusted_text
from sweepledger.cli.text.values import configuration_text, count_text, number_text, value_text
from sweepledger.engine.local import events
from sweepledger.errors import SpecError
from sweepledger.operations import cluster_local
from sweepledger.operations.collection.results_commit import ResultsCommit
from sweepledger.operations.rounds.next_round import RoundBlocked
from sweepledger.operations.rounds.round_commit import PushedBatch
from sweepledger.operations.run import BatchesCommitted, CodeCommitted, CodeLeftOut, RunEvent
from sweepledger.problems import Problem, list_names
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.record import Status

LONGEST_VALUES = 60
"""Characters of a trial's values in its line."""


@dataclass(frozen=True, slots=True)
class _ShownBatch:
    """The values that the lines of a batch's trials show besides results."""

    stored: StoredBatch
    varied: tuple[str, ...]
    """The parameters that differ between its trials."""

    @classmethod
    def of(cls, stored: StoredBatch) -> "_ShownBatch":
        """Return the values to show for a batch."""
        values = [row.values for row in stored.rows]
        names = dict.fromkeys(name for configuration in values for name in configuration)
        varied = tuple(
            name
            for name in names
            if len({value_text(one[name]) if name in one else "" for one in values}) > 1
        )
        return cls(stored, varied or tuple(names))

    @property
    def label(self) -> str:
        """The name of the sweep, and the number of the round if it is a search."""
        number = self.stored.lock.round
        return self.stored.sweep if number is None else f"{self.stored.sweep} round {number}"

    def values(self, index: int) -> str:
        """Return the values of a trial that distinguish it from others."""
        values = self.stored.rows[index].values
        text = configuration_text({name: values[name] for name in self.varied if name in values})
        return text if len(text) <= LONGEST_VALUES else f"{text[: LONGEST_VALUES - 1]}…"


class ProgressDisplay:
    """Prints events as lines, and shows a progress bar per batch on a terminal."""

    def __init__(self, console: Console, *, is_remote: bool) -> None:
        self._console = console
        self._is_remote = is_remote
        """Whether commits are pushed to a remote, from which the user pulls them."""
        self.bars = Progress(
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
        self._batches: dict[str, _ShownBatch] = {}
        self._best: dict[str, float] = {}
        """Best value by sweep."""
        self._done: dict[str, int] = {}
        self._total: dict[str, int] = {}
        self.printed_problems: set[Problem] = set()
        """Problems of refused batches that were printed."""
        self.blocked = cluster_local.BlockedSearches()

    def follow(self, events: Iterable[RunEvent]) -> Iterator[ResultsCommit]:
        """Show every event, and yield the results commits; they are not kept, because they contain summaries."""
        for event in events:
            self._show(event)
            self.blocked.add(event)
            if isinstance(event, ResultsCommit):
                yield event

    def _show(self, event: RunEvent) -> None:
        match event:
            case cluster_local.Fetched(_, ()) if not self._is_remote:
                pass  # a run of its own commits has come to its end
            case cluster_local.Built():
                self._show_built(event)
            case cluster_local.RefusedBatch(_, problems):
                self.printed_problems.update(problems)
                self._print(Text("\n".join(map(str, problems)), "red"))
            case events.PodEnded():
                self._show_end(event)
            case BatchesCommitted():
                self._show_batches(event)
            case cluster_local.Running(progress):
                for batch, counts in progress.items():
                    self._update_bar(batch, counts)
            case _:
                for text in _texts(event, is_remote=self._is_remote):
                    self._print(text)

    def _show_built(self, event: cluster_local.Built) -> None:
        self._batches[event.batch.name] = _ShownBatch.of(event.batch)
        if event.best is not None:
            self._best.setdefault(event.batch.sweep, event.best)
        unverified = event.unverified
        note = f"; data {unverified} is not verified: it has no digest" if unverified else ""
        self._print(Text(f"built {event.batch.name}{note}"))
        for line in event.outputs:
            self._print(Text(line))

    def _show_end(self, event: events.PodEnded) -> None:
        attempt = event.attempt
        if event.attempts is not None:
            # Another attempt follows, so the trial is not counted yet.
            line = Text(f"{attempt.trial} ").append_text(status_with_reason(event.status, event.reason))
            line.append(f", will be retried (attempt {attempt.number} of {event.attempts})")
            self._print(line.append(f"  {event.seconds:.1f} s", "dim"))
            return
        done, total = self._done.get(attempt.batch, 0) + 1, self._total.get(attempt.batch, 0)
        self._done[attempt.batch] = done
        shown = self._batches[attempt.batch]
        line = Text(f"[{done}/{total}] {shown.label} {attempt.trial} ")
        line.append_text(status_with_reason(event.status, event.reason))
        if values := shown.values(attempt.index):
            line.append(f"  {values}")
        sweep, metric = shown.stored.sweep, shown.stored.lock.metric
        value = event.metrics.get(metric.name)
        if value is not None:
            line.append(f"  {metric.name} {number_text(value)}")
        best = self._best.get(sweep)
        if value is not None and event.status is Status.OK and (best is None or metric.better(value, best)):
            self._best[sweep] = value
            line.append("  best so far", "bold")
        elif best is not None:
            line.append(f"  best {number_text(best)}", "dim")
        line.append(f"  {event.seconds:.1f} s", "dim")
        self._print(line)
        if event.status is Status.FAILED:
            if event.error:
                self._print(untrusted_text(f"    {event.error}", "red"))
            self._print(Text(f"    `sweep logs {attempt.trial}` shows what it printed", "dim"))

    def _show_batches(self, event: BatchesCommitted) -> None:
        for item in event.generated:
            new = f"{item.batch.lock.trials} in a new batch" if item.batch else "all in batches that exist"
            self._print(Text(f"{item.sweep.name}: {count_text(item.trials, 'trial')}, {new}"))
            why = f"--update requests nothing of {item.sweep.name}: {item.why_nothing}"
            for line in (*[why] * bool(item.why_nothing), *map(str, item.warnings)):
                self._print(untrusted_text(line, "yellow"))
        if event.commit is not None:
            names = ", ".join(item.batch.name for item in event.generated if item.batch) or "the spec"
            self._print(Text(f"committed {names} in {event.commit[:SHORT_COMMIT]}", "green"))

    def _update_bar(self, batch: str, counts: events.BatchProgress) -> None:
        self._total[batch], self._done[batch] = counts.total, counts.ended
        state = f"{counts.running} running, {counts.failed + counts.diverged} failed"
        if counts.pruned:
            state += f", {counts.pruned} pruned"
        sweep = self._batches[batch].stored.sweep if batch in self._batches else batch
        if sweep in self._best:
            state += f", best {number_text(self._best[sweep])}"
        if batch not in self._tasks:
            self._tasks[batch] = self.bars.add_task(Text(batch).plain, total=counts.total, state=state)
        self.bars.update(self._tasks[batch], completed=counts.ended, state=state)

    def _print(self, line: Text) -> None:
        text, console = Text(time.strftime("%H:%M:%S "), "dim") + line, self._console
        if console.is_terminal:
            self.bars.console.print(text)
        elif (
            console.color_system
            or len(text) > console.width
            or not (text.plain.isascii() and text.plain.isprintable())
        ):
            console.print(text)
        else:  # the same, in a tenth of the time
            console.file.write(f"{text.plain}\n")
            console.file.flush()


def _texts(event: RunEvent, *, is_remote: bool) -> Iterator[Text]:
    """Yield the text of an event that does not change the progress bars; these show other events."""
    match event:
        case cluster_local.Fetched(commit, active):
            yield Text(f"synced {commit[:SHORT_COMMIT]}: {', '.join(active) or 'nothing'} to run")
        case events.EditRefused():
            yield Text(f"{event.batch} was edited after its creation; the edit is ignored", "red")
        case events.JobFinished():
            yield Text(f"job {event.batch} {str(event.condition).lower()}: {event.reason}")
        case CodeCommitted(commit, paths):
            yield Text(f"committed code in {commit[:SHORT_COMMIT]}: {_few(paths)}", "green")
        case CodeLeftOut(paths):
            note = f"not committed, so trials run without it: {_few(paths)} (--commit-code commits it)"
            yield Text(note, "yellow")
        case cluster_local.RemoteFailed(message):
            yield Text(message, "yellow")
        case cluster_local.Unpushed():
            count = len(event.batches)
            subject = (
                "1 batch of your work tree is" if count == 1 else f"{count} batches of your work tree are"
            )
            action = "push" if event.are_committed else "commit and push"
            what = f"{action} {'it' if count == 1 else 'them'}"
            yield Text(f"{subject} not on {event.branch} yet: {what}", "yellow")
        case RoundBlocked() | PushedBatch():
            style = "yellow" if isinstance(event, RoundBlocked) else "green"
            yield Text(rounds.pushed_round_text(event), style)
        case ResultsCommit():
            fetched = "; `git pull` fetches it" if is_remote else ""
            lines = (f"{rounds.results_commit_text(event)}{fetched}", *map(str, event.problems))
            yield Text("\n".join(lines), "green")


def _few(paths: Sequence[str]) -> str:
    return list_names([escape_control_characters(path) for path in paths])


def show_events(events: Iterable[RunEvent], form: Format, *, is_remote: bool) -> Response:
    """Print events until there are no more, and return the results commits; a blocked search is a failure.

    Problems of a refused batch that were printed are not printed again.
    """
    display = ProgressDisplay(open_console(stderr=form is Format.JSON), is_remote=is_remote)
    with display.bars:
        try:
            commits = [*display.follow(events)]
            failures = display.blocked.failures
        except SpecError as error:
            if form is Format.JSON or not display.printed_problems.issuperset(error.problems):
                raise
            message = (
                "some batches could not run on this machine: see above; "
                "`sweep cancel NAME --batch BATCH` drops one that never will"
            )
            return Response({}, (message,), exit_code=error.exit_code)
        return Response({"collected": commits}, failures=failures)

"""Events of `sweep local` as they happen: bars on a terminal, lines elsewhere."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from generator.cli import rounds, show
from generator.commands.cluster import Refused
from generator.commands.local import Asked, Built, Collected, Event, Fetched, Running, Trouble, Unpushed
from generator.engine.local import events
from generator.problems import Problem
from generator.structs.record import Status
from generator.structs.sweep import Metric


class Watch:
    """Keeps what is on the screen; fed an event at a time."""

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
        self.said: set[Problem] = set()
        """Why batches were refused, as far as that was shown."""

    @contextmanager
    def live(self) -> Iterator["Watch"]:
        """Draw while the block runs."""
        with self._bars:
            yield self

    def follow(self, found: Iterable[Event]) -> Iterator[Collected]:
        """Show every event; hand on the results commits, and keep none: they hold whole summaries."""
        for event in found:
            self._tell(event)
            if isinstance(event, Collected):
                yield event

    def _tell(self, event: Event) -> None:
        match event:
            case Fetched(commit, active):
                asked = ", ".join(active) if active else "nothing"
                self._say(Text(f"synced {commit[: show.SHORT_ID]}: {asked} to run"))
            case Built(batch, metric, unverified):
                self._metrics[batch] = metric
                told = f"; data {unverified} is believed: only a digest can be verified" if unverified else ""
                self._say(Text(f"built {batch}{told}"))
            case Refused(_, problems):
                self.said.update(problems)
                self._say(Text("\n".join(map(str, problems)), "red"))
            case events.PodEnded():
                self._ended(event)
            case events.EditRefused(batch, job):
                self._say(Text(f"{batch}: {job} was edited after it was created; left as it is", "red"))
            case events.JobFinished(_, job, condition, reason):
                self._say(Text(f"job {job} {str(condition).lower()}: {reason}"))
            case Trouble() | Unpushed():
                self._say(Text(_worrying(event), "yellow"))
            case Running(progress):
                self._draw(progress)
            case Collected() | Asked():
                self._say(Text(_landed(event), "green"))
            case _:
                pass  # the bar shows the rest

    def _ended(self, event: events.PodEnded) -> None:
        attempt = event.attempt
        if event.tries is not None:
            self._say(self._again(event, event.tries))
            return
        done, total = self._done.get(attempt.batch, 0) + 1, self._total.get(attempt.batch, 0)
        self._done[attempt.batch] = done
        line = Text(f"[{done}/{total}] {attempt.trial} ").append_text(show.ending(event.status, event.reason))
        metric = self._metrics[attempt.batch]
        value = event.metrics.get(metric.name)
        if value is not None:
            line.append(f"  {metric.name} {show.number(value)}")
            if event.status is Status.OK and self._is_best(attempt.batch, metric, value):
                line.append("  best so far", "bold")
        line.append(f"  {event.seconds:.1f} s", "dim")
        self._say(line)
        if event.status is Status.FAILED:
            self._say(Text(f"    `sweep logs {attempt.trial}` shows what it printed", "dim"))

    def _again(self, event: events.PodEnded, tries: int) -> Text:
        """Tell of an end that is none: what it printed is kept, and the trial is not counted yet."""
        line = Text(f"{event.attempt.trial} ").append_text(show.ending(event.status, event.reason))
        line.append(f", will be tried again (attempt {event.attempt.number} of {tries})")
        return line.append(f"  {event.seconds:.1f} s", "dim")

    def _is_best(self, batch: str, metric: Metric, value: float) -> bool:
        leading = self._best.get(batch)
        if leading is not None and not metric.better(value, leading):
            return False
        self._best[batch] = value
        return True

    def _draw(self, progress: Mapping[str, events.Progress]) -> None:
        for batch, standing in progress.items():
            self._bar(batch, standing)

    def _bar(self, batch: str, standing: events.Progress) -> None:
        done = standing.ok + standing.pruned + standing.diverged + standing.failed
        self._total[batch], self._done[batch] = standing.total, done
        state = f"{standing.running} running, {standing.failed + standing.diverged} failed"
        if standing.pruned:
            state += f", {standing.pruned} pruned"
        if batch in self._best:
            state += f", best {show.number(self._best[batch])}"
        if batch not in self._tasks:
            self._tasks[batch] = self._bars.add_task(Text(batch).plain, total=standing.total, state=state)
        self._bars.update(self._tasks[batch], completed=done, state=state)

    def _say(self, line: Text) -> None:
        stamp = Text(time.strftime("%H:%M:%S "), "dim")
        (self._bars.console if self._console.is_terminal else self._console).print(stamp + line)


def _landed(event: Collected | Asked) -> str:
    if isinstance(event, Asked):
        return rounds.asked(event.found)
    return f"{show.recorded(event.found)}; `git pull` brings it here"


def _worrying(event: Trouble | Unpushed) -> str:
    if isinstance(event, Trouble):
        return event.message
    count = len(event.batches)
    named, them = ("1 batch", "it") if count == 1 else (f"{count} batches", "them")
    way = "push" if event.are_committed else "commit and push"
    return (
        f"{named} of your work tree {'is' if count == 1 else 'are'} not on {event.branch} yet: {way} {them}"
    )

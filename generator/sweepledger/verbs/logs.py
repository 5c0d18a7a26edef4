"""Show what each attempt of a trial printed.

Head and tail of it are stored next to the record.
"""

import codecs
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli import completion, options
from sweepledger.cli.options import argument, flag, option
from sweepledger.cli.response import Format, Response, open_console
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.local import store
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.formats import record_json
from sweepledger.operations.collection.record_store import ReaderPodOptions
from sweepledger.operations.reports.outputs import Logs, failed_logs, logs_by_pod, trial_logs
from sweepledger.operations.repository import catalog
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo import batches, results_volume
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.state import state_folder
from sweepledger.structs.names import split_batch_name
from sweepledger.structs.record import Record

POLL_SECONDS = 0.25
SHARE = 5
"""Looking for output takes at most one of so many seconds, however many trials there are."""
LONGEST_LINE = 65_536
"""Longer lines are shown in parts, so that output without line ends needs no memory."""
DECODER = codecs.getincrementaldecoder("utf-8")
FAILED_LINES = 15
"""Last lines of stderr that are shown of each failed trial: a traceback ends with its cause."""


def logs(
    workspace: Workspace,
    trial: str = argument(
        "TRIAL|NAME",
        "Trial id or the beginning of one, or SWEEP/TRIAL; with --failed or --follow, also a sweep.",
        autocompletion=completion.trials,
    ),
    failed: bool = flag("--failed", "Show the end of the output of each failed trial of a sweep."),
    follow: bool = option(
        "--follow -f",
        "Print what a trial, or each running trial of a sweep, prints on this machine, until it ends.",
        default=False,
    ),
    state: options.StateOption = None,
    by_pod: options.ByPodOption = False,
    context: options.ContextOption = None,
    image: options.ImageOption = None,
    patience: options.PatienceOption = 300,
    form: options.FormatOption = Format.TEXT,
) -> Response:
    folder = state_folder(workspace.repository, state)
    if follow:
        if failed or form is Format.JSON:
            raise UsageError(f"--follow cannot be combined with {'--failed' if failed else '--format json'}")
        if by_pod or context is not None:
            raise UsageError(
                "--follow reads trials of this machine, no volume of a cluster",
                hint="`kubectl logs --follow --selector=sweepledger.dev/sweep=NAME --prefix`, with the "
                f"namespace {workspace.settings.trials.namespace}, follows pods",
            )
        console = open_console()
        wanted = trial.rpartition("/")[2]
        for name, line in follow_output(workspace, trial, state=folder):
            is_one = name.startswith(wanted)  # else each line says of which trial it is
            console.print(line if is_one else Text(f"{name}  ", "dim") + line)
        return Response({})
    if failed and by_pod:
        raise UsageError("--failed cannot be combined with --by-pod", hint="name one trial instead")
    if failed:
        kept = failed_logs(workspace, trial, state=folder)
        lines: list[RenderableType] = []
        for each in kept:
            # The last attempt that wrote to stderr.
            text = next((attempt.stderr for attempt in reversed(each.attempts) if attempt.stderr), "")
            end = "\n".join(text.rstrip("\n").split("\n")[-FAILED_LINES:])
            lines.append(Text(f"-- {each.trial} of {each.batch}", "bold"))
            lines.append(end or each.error or "nothing on stderr is kept here")
        return Response({"trials": kept}, tuple(lines) or ("no trial has failed",))
    if by_pod:
        reader = ReaderPodOptions(workspace, Kubectl(context), image, patience)
        printed = logs_by_pod(workspace, trial, reader)
    else:
        printed = trial_logs(workspace, trial, state=folder)
    return Response(printed, logs_text(printed))


def logs_text(logs: Logs) -> tuple[RenderableType, ...]:
    """Return the output of each attempt."""
    parts: list[RenderableType] = []
    for attempt in logs.attempts:
        if not (attempt.stdout or attempt.stderr):
            parts.append(Text(f"-- {attempt.uid} printed nothing", "bold"))
        for name, text in (("stdout", attempt.stdout), ("stderr", attempt.stderr)):
            if text:
                parts += (Text(f"-- {attempt.uid} {name}", "bold"), text.rstrip("\n"))
    return tuple(parts)


OutputLine = tuple[str, str]
"""A trial, and a line that it printed."""


def follow_output(
    workspace: Workspace, reference: str, *, state: Path, wait: Callable[[float], object] = time.sleep
) -> Iterator[OutputLine]:
    """Yield the new output of a trial, or of each running trial of a sweep, until these have ended.

    For a trial, all attempts are shown; for a sweep, those without a record. Raises UsageError if there is nothing to
    show, RepositoryError if the engine ends first.
    """
    followed = _followed(workspace, reference, state)
    while True:
        began = time.monotonic()
        # Asked before the output is read, so that the last of it is not missed.
        is_over, is_abandoned = followed.is_over(), not store.is_engine_running(state)
        yield from followed.new_lines(is_last=is_over or is_abandoned)
        if is_over:
            return
        if is_abandoned:
            raise RepositoryError(
                f"nothing runs {reference} here any more, and it has not ended",
                hint=f"`sweep run {followed.sweep}` continues it",
            )
        wait(max(POLL_SECONDS, SHARE * (time.monotonic() - began)))


def _followed(workspace: Workspace, reference: str, state: Path) -> "_Followed":
    """Return the trials to follow. Raises UsageError if none of them has output here."""
    present = batches.in_work_tree(workspace.root)
    name = catalog.sweep_name(workspace.root, reference)
    stored = {batch.name: batch for batch in batches.readable(present)}
    if name in catalog.sweep_names(workspace, present):
        conditions = store.batch_conditions(state)
        own = {batch for batch in conditions if (split_batch_name(batch) or ("",))[0] == name}
        running = tuple(sorted(batch for batch in own if conditions[batch] is None))
        if not running or not store.is_engine_running(state):
            raise UsageError(
                f"no trial of {name!r} runs here",
                hint=f"`sweep run {name}` runs them; `sweep logs TRIAL` shows what a trial has printed",
            )
        followed = _Followed(state, name, running, stored)
        for _, stream, is_recorded in followed.streamed():  # what earlier attempts have printed is left out
            stream.is_complete = is_recorded
        return followed
    listed = catalog.find_trial(workspace.root, reference)
    batch = listed.batch
    alone = _Followed(state, listed.sweep, (batch.name,), stored, listed.index)
    kept = results_volume.trial_files(state / "results", batch.name, batch.lock.place(listed.index))
    if not any(map(_is_output, kept)) and not store.is_engine_running(state):
        raise UsageError(
            f"no output of {listed.id} is kept here, and nothing runs it here",
            hint=f"`sweep run {listed.sweep}` runs it; --by-pod reads the volume of a cluster",
        )
    return alone


@dataclass
class _Followed:
    """The output of some trials, and the position up to which it was shown."""

    state: Path
    sweep: str
    batches: tuple[str, ...]
    stored: dict[str, StoredBatch]
    """The batches by name, as far as the work tree has them."""
    index: int | None = None
    """The row of the only trial; None: all."""
    streams: dict[tuple[str, int, str], "OutputStream"] = field(default_factory=dict)
    """By batch, row and file."""

    @cached_property
    def results(self) -> Path:
        return self.state / "results"

    def is_over(self) -> bool:
        """Return whether the batches, or the only trial, have ended."""
        conditions = store.batch_conditions(self.state)
        # An engine forgets a batch after its results are committed.
        if all(conditions.get(batch, "forgotten") for batch in self.batches):
            return True
        if self.index is None:
            return False
        place, _ = self._place(self.batches[0], self.index)
        retries = self.stored[self.batches[0]].lock.run.retries
        contents = results_volume.attempt_records(self.results, self.batches[0], place)
        records = [
            record for content in contents if isinstance(record := record_json.read(content or b""), Record)
        ]
        return any(record.status.is_final for record in records) or len(records) > retries

    def new_lines(self, *, is_last: bool) -> Iterator[OutputLine]:
        """Yield the lines since the last call; if an attempt has ended, or with `is_last`, also an incomplete line."""
        for trial, stream, is_recorded in self.streamed():
            if not stream.is_complete:
                yield from ((trial, line) for line in stream.lines(is_last=is_last or is_recorded))
                stream.is_complete = is_recorded

    def streamed(self) -> Iterator[tuple[str, "OutputStream", bool]]:
        """Yield each output file with its trial, and whether the attempt has a record, which is written last."""
        for batch, index in self._begun():
            place, trial = self._place(batch, index)
            names = results_volume.trial_files(self.results, batch, place)
            outputs = sorted(filter(_is_output, names), key=lambda name: (name[:-4], name.endswith(".err")))
            for name in outputs:
                stream = OutputStream(partial(results_volume.read_output, self.results, batch, place, name))
                stream = self.streams.setdefault((batch, index, name), stream)
                yield trial, stream, f"{name[:-4]}.json" in names

    def _begun(self) -> Iterator[tuple[str, int]]:
        if self.index is not None:
            yield self.batches[0], self.index
            return
        for batch in self.batches:
            lock = self.stored[batch].lock if batch in self.stored else None
            pods = [None] if lock is None or lock.run.pack is None else range(lock.pods)
            for pod in pods:
                yield from ((batch, index) for index in results_volume.begun_trials(self.results, batch, pod))

    def _place(self, batch: str, index: int) -> tuple[str, str]:
        """Return the folder of a trial in its batch's folder, and the trial's id."""
        stored, unlisted = self.stored.get(batch), f"{batch}/{index}"
        if stored is None:
            return str(index), unlisted
        rows = stored.rows
        return stored.lock.place(index), rows[index].trial if index < len(rows) else unlisted


@dataclass
class OutputStream:
    """One file of output."""

    read: Callable[[int], bytes]
    """Returns what was written from a position on, in part."""
    position: int = 0
    decoder: codecs.IncrementalDecoder = field(default_factory=lambda: DECODER(errors="replace"))
    rest: str = ""
    """The beginning of a line that has no end yet."""
    is_complete: bool = False

    def lines(self, *, is_last: bool) -> Iterator[str]:
        """Yield the complete lines; a line that a progress bar rewrites is yielded as a terminal would show it now."""
        while content := self.read(self.position):
            self.position += len(content)
            yield from self._complete(self.decoder.decode(content))
            if not is_last:  # others have lines to show, too
                break
        if is_last and self.rest:
            yield _visible(self.rest)
            self.rest = ""

    def _complete(self, text: str) -> Iterator[str]:
        *complete, self.rest = (self.rest + text).split("\n")
        yield from map(_visible, complete)
        shown, carriage_return, rest = self.rest.rpartition("\r")
        if len(self.rest) > LONGEST_LINE:
            shown, carriage_return, rest = self.rest, "\r", ""
        if carriage_return and shown.strip("\r"):
            yield _visible(shown)
            self.rest = rest


def _visible(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]


def _is_output(name: str) -> bool:
    return name.endswith((".out", ".err"))

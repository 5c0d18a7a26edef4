"""The files of what a trial reports, and what they say at its end."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import stat
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from launch_contract import AMOUNT
from launch_files import KIBIBYTE, LARGEST_FILE, Refused, is_below, new_sha256
from launch_folders import MOST_FILES
from launch_json import open_regular, read_object
from launch_lines import LONGEST_LINE, MOST_GUESSES, SHOWN, Stream, format_of, no_value, would_find
from launch_metrics import METRIC_NAME, MOST_METRICS, Gathered, Report, wanted_of

if TYPE_CHECKING:
    from launch_processes import LastWords

LARGEST_STREAM = 64 * 1024 * KIBIBYTE  # of lines that a trial may have written
LARGEST_EVENTS = 1024 * 1024 * KIBIBYTE  # of one event file: pictures are skipped, but have to be read past
HEAD = 256  # bytes that tell a file from most others, and one that was written anew from what it was


class Before(NamedTuple):
    """What was in a file when the trial began."""

    size: int
    digest: str
    head: bytes = b""


class Files:
    """The files that a trial reports in: $SWEEP_RESULT, or those of metric.path that it has changed.

    Only files in the trial's own folders count, after all links. Of a file that was there before, only the
    appended part counts, or all of it if the trial wrote it anew. The same holds for a copy, under another
    name, of a file in the trial's folders or its parent's.
    """

    def __init__(
        self,
        result: str,
        pattern: str = "",
        roots: Sequence[str] = (),
        *,
        shown: str = "$SWEEP_RESULT",
        is_folder: bool = False,
    ) -> None:
        self.result, self.pattern, self.roots, self.is_folder = result, pattern, roots, is_folder
        self.shown = shown
        """How messages name the files."""
        self.why = ""
        """Why nothing that the pattern matches counts."""
        self.before = {path: before_of(path) for path, _ in self.candidates()} if pattern else {}
        others = [*roots, os.environ.get("SWEEP_PARENT", "")]
        self.copied = set(self.earlier(others)) if pattern else set()
        self.starts: dict[str, tuple[tuple[int, int, int], int | None]] = {}

    def candidates(self) -> Iterator[tuple[str, tuple[int, int, int]]]:
        """Yield the path of each file that the pattern matches, with what changes if it is written."""
        import glob

        matches: Iterable[str] = glob.iglob(self.pattern, recursive=True)
        if self.is_folder:
            matches = (path for match in matches for path in event_files(match))
        for path in itertools.islice(matches, MOST_FILES):
            with contextlib.suppress(OSError):
                state = os.lstat(path)
                if stat.S_ISREG(state.st_mode) and any(is_below(root, path) for root in self.roots):
                    yield path, (state.st_mtime_ns, state.st_size, state.st_ino)

    def current(self) -> list[str]:
        """List the files to read: all event files by name, else the newest file."""
        if not self.pattern:
            return [self.result]
        matches = list(self.candidates())
        changed = [(state, path) for path, state in matches if self.start(path, state) is not None]
        if not changed:
            self.why = UNCHANGED if matches else self.linked()
        if self.is_folder:
            return sorted({path for _, path in changed})
        return [max(changed)[1]] if changed else []

    def linked(self) -> str:
        """Return that the pattern matches a link, if it does: what a link names may be another trial's."""
        import glob

        return LINKED if any(map(os.path.islink, glob.iglob(self.pattern, recursive=True))) else ""

    def start(self, path: str, state: tuple[int, int, int] | None = None) -> int | None:
        """Return where what the trial has written begins in a file; None if it wrote nothing there."""
        before = self.before.get(path)
        if state is None:
            return self.starts[path][1] if path in self.starts else 0
        if path not in self.starts or self.starts[path][0] != state:
            size, end = state[1], self.end_of_earlier(path, state[1])
            self.starts[path] = (state, None if end == size and (size or before) else end)
        return self.starts[path][1]

    def earlier(self, folders: Sequence[str]) -> Iterator[Before]:
        """Yield what is in the files that a trial could copy: at most 10,000, and 1 GiB of them in all.

        Files that cannot report, such as weights, are told by their first bytes and not read further.
        """
        left = LARGEST_EVENTS
        walks = (entry for folder in filter(None, folders) for entry in os.walk(folder))
        paths = (os.path.join(parent, name) for parent, _, names in walks for name in names)
        for path in itertools.islice(paths, MOST_FILES):
            head, size = before_of(path, HEAD).head, 0
            with contextlib.suppress(OSError):
                size = os.lstat(path).st_size
            length = int.from_bytes(head[:8], "little")  # of the first event
            if 0 < size <= left and (length < size if self.is_folder else b"\0" not in head):
                left -= size
                yield before_of(path)

    def end_of_earlier(self, path: str, size: int) -> int:
        """Return where the longest earlier content that a file begins with ends; 0 if there is none.

        In a file of lines, content under another name ends with a line: a word alone hides nothing.
        """
        before = self.before.get(path)
        head = before_of(path, HEAD).head
        for each in sorted({*self.copied, *([before] if before else [])}, reverse=True):
            if not each.size <= size or not head.startswith(each.head) or before_of(path, each.size) != each:
                continue
            if each == before or self.is_folder or each.size == size:
                return each.size
            with contextlib.suppress(OSError, ValueError), open_regular(path) as file:
                file.seek(each.size - 1)
                if b"\n" in file.read(2):
                    return each.size
        return 0

    def header(self, path: str) -> bytes:
        """Return the first line of a file, which names the columns. Raises OSError, ValueError."""
        with open_regular(path) as file:
            return file.readline(LONGEST_LINE)


def before_of(path: str, most: int | None = None) -> Before:
    """Return size and digest of a file, or of its beginning; of one that cannot be read, those of nothing."""
    size, digest, head = 0, new_sha256(), b""
    with contextlib.suppress(OSError, ValueError), open_regular(path) as file:
        while most is None or size < most:
            chunk = file.read(LARGEST_FILE if most is None else min(LARGEST_FILE, most - size))
            if not chunk:
                break
            head = head or chunk[:HEAD]
            size += len(chunk)
            digest.update(chunk)
    return Before(size, digest.hexdigest(), head)


def event_files(path: str) -> Iterator[str]:
    """Yield the event files in a folder; a file is yielded as it is."""
    if not os.path.isdir(path):
        yield path
    for parent, folders, names in os.walk(path):
        folders.sort()
        yield from (os.path.join(parent, name) for name in sorted(names) if "tfevents" in name)


def files_of(
    metric: Mapping[str, Any], result: str, variables: Mapping[bytes, bytes], place: str, roots: Sequence[str]
) -> Files:
    """Return the files of a trial whose command has these variables, working directory and own folders."""
    if "path" not in metric:
        return Files(result)

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name.encode() not in variables:
            raise Refused(f"metric.path needs the environment variable {name}, which is not set")
        return os.fsdecode(variables[name.encode()])

    path = re.sub(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})", value, metric["path"])
    path = os.path.join(place, path)
    if not any(is_below(root, path.partition("*")[0]) for root in roots):
        raise Refused(
            "metric.path must be in the working directory or another folder of the trial, "
            f"got {metric['path']}"
        )
    return Files(result, path, roots, shown=metric["path"], is_folder=metric["format"] == "tensorboard")


def read_report(
    printed: Stream | None, files: Files, metric: Mapping[str, Any], words: LastWords | None = None
) -> Report:
    """Return what the trial reported, from where its sweep reads it."""
    if printed is None:
        if metric["format"] == "tensorboard":
            return report_of_events(files, metric)
        paths = files.current()
        if not paths:
            return no_file(files.shown, why=files.why)
        if metric["format"] == "json":
            return report_of_file(paths[0], wanted_of(metric), files.shown)
        return report_of_lines(paths[0], metric, files.shown, files.start(paths[0]) or 0)
    printed.finish()
    report = printed.report(f"on {metric['source']}", printed.other)
    if report.reason and not printed.other and os.path.lexists(files.result):
        return report._replace(
            message=f"{report.message}; there is a $SWEEP_RESULT, for metric.source: result"
        )
    if report.reason and words and words.has_metric(metric):
        return report._replace(message=f"{report.message}; stderr has it, for metric.source: output")
    return report


def report_of_lines(
    path: str, metric: Mapping[str, Any], shown: str = "$SWEEP_RESULT", start: int = 0
) -> Report:
    """Read a file line by line, from where the trial's own lines begin."""
    stream, wrong = Stream(metric, strict=True), ""
    try:
        with open_regular(path) as file:
            if start and metric["format"] == "csv":
                stream.feed(file.readline(LONGEST_LINE))  # the header
            file.seek(start)
            for chunk in iter(lambda: file.read(65536), b""):
                if file.tell() > LARGEST_STREAM:
                    raise ValueError("it is larger than 64 MiB")
                stream.feed(chunk)
        stream.finish()
    except FileNotFoundError:
        return no_file(shown)
    except (OSError, ValueError) as error:
        wrong = str(error)
    other = "json" if is_object_with(path, stream.objective) else stream.other
    if wrong and not other:
        head = format_of_file(path, stream.objective)
        other = "" if head == stream.form else head
    report = stream.report(f"in {shown}", other)
    if wrong:
        invalid = no_result(wrong + would_find(other), shown)
        return invalid._replace(metrics=report.metrics, curves=report.curves)
    return report


def report_of_events(files: Files, metric: Mapping[str, Any]) -> Report:
    """Read all event files."""
    from launch_events import Events

    gathered = Gathered(metric, no_value)
    events, wrong, paths = Events(gathered), "", files.current()
    for path in paths:
        events.begin()
        try:
            with open_regular(path) as file:
                file.seek(files.start(path) or 0)
                for chunk in iter(lambda: file.read(LARGEST_FILE), b""):
                    if file.tell() > LARGEST_EVENTS:
                        raise ValueError("it is larger than 1 GiB")
                    events.feed(chunk)
        except (OSError, ValueError) as error:
            wrong = f"{os.path.basename(path)}: {error}"
    if not paths:
        return no_file(files.shown, why=files.why)
    report = gathered.report(f"there is no {SHOWN['tensorboard'].format(metric['name'])} in {files.shown}")
    if events.skipped:
        report = report._replace(details={"events_skipped": events.skipped})
    if wrong and report.reason:
        return no_result(wrong, files.shown)._replace(metrics=report.metrics, details=report.details)
    return report


def is_object_with(path: str, objective: str) -> bool:
    """Return whether a file is one JSON object with the objective."""
    with contextlib.suppress(OSError, ValueError):
        members = read_object(path)
        inner = members.get("metrics", members)
        return isinstance(inner, dict) and type(inner.get(objective)) in AMOUNT
    return False


def format_of_file(path: str, objective: str) -> str:
    """Return the format in which the head of a file would have the objective; nothing if there is none."""
    with contextlib.suppress(OSError, ValueError), open_regular(path) as file:
        lines = file.read(LONGEST_LINE).decode("utf-8", "replace").splitlines()
        return next(filter(None, (format_of(line, objective) for line in lines[:MOST_GUESSES])), "")
    return ""


UNCHANGED = (
    ": the file existed before the trial started and its bytes did not change; remove it from the code"
)
LINKED = ": there is a link, which is not followed; write the file itself"


def no_file(shown: str, *, why: str = "") -> Report:
    """Return the report of a trial that did not write its file, or left nothing there that counts."""
    return Report({}, {}, "metric-missing", f"the trial wrote no {shown}{why}")


def no_result(why: str, shown: str) -> Report:
    """Return the report of a trial whose file is not valid."""
    return Report({}, {}, "result-invalid", f"{shown} is no valid result: {why}")


def report_of_file(path: str, wanted: Sequence[str], shown: str = "$SWEEP_RESULT") -> Report:
    """Read one JSON object: its numbers are metrics, the rest is details."""
    objective = wanted[0]
    try:
        members = read_object(path)
    except FileNotFoundError:
        return no_file(shown)
    except (OSError, ValueError) as error:
        return no_result(f"{error}{would_find(format_of_file(path, objective))}", shown)
    inner = members.pop("metrics") if "metrics" in members else members
    if not isinstance(inner, dict):
        return no_result(f"its member metrics must be an object, got {type(inner).__name__}", shown)
    metrics: dict[str, float] = {}
    details = {} if inner is members else members
    for name, value in inner.items():
        is_wanted = name in wanted or (len(metrics) < MOST_METRICS and METRIC_NAME.fullmatch(name))
        if is_wanted and type(value) in AMOUNT:
            metrics[name] = float(value)
        else:
            details.setdefault(name, value)
    if objective in metrics:
        return Report(metrics, details, None, "")
    names = ", ".join(sorted(metrics)[:10]) or "none"
    message = f"{shown} has no number {objective}; its numbers: {names}"
    return Report(metrics, details, "metric-missing", message)

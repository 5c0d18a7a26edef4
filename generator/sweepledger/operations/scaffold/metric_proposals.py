"""Finds a metric that is not where the spec expects it: numbers in a trial's output and in its files."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from sweepledger.errors import GeneratorError
from sweepledger.reader.launcher_parts import fields, plain_text
from sweepledger.repo.files import read_input
from sweepledger.structs.metric import DEFAULT_METRIC, METRIC_NAME, Metric, usual_goal, words_of

NUMBER = re.compile(r"(?<![\w.@])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
LABEL = re.compile(r"[^,;|()\[\]{}\t%]*(?:\([^()]*\)[\s:=]*)?\Z")
"""The words before a number, such as `F1 (macro):`."""
CELL = re.compile(r"(?:\||\A)\s*([A-Za-z][\w ./-]*?)\s*\|\s*\Z")
"""A cell of a table, whose next one has the number."""
BEFORE_A_COUNT = frozenset(
    {
        *("after", "at", "best", "epoch", "epochs", "for", "from", "in", "iteration", "of"),
        *("on", "over", "per", "step", "than", "the", "to", "top", "with"),
    }
)
"""The words before a number that says of what, or when, as in `accuracy after 10 epochs: 0.9`."""
COUNT = r"\d[\d.]*"
PART = re.compile(r"\b(?:bin|class|client|fold|label|layer|rank|split|worker)\b[\s#:=]*\d", re.IGNORECASE)
"""A line about a part of the whole."""
RANGE = re.compile(r"@[\d.]+:\Z")
"""The first half of a range, as in `mAP@0.5:0.95`."""
FRACTION = re.compile(r"\d+\s*/\s*\d+\s*\((?=[\d.]+\s*%)")
MORE_COLUMNS = re.compile(r"(?:\s+[-+]?\d[\d.]*){2,}\s*\Z")
TRAINING = re.compile(r"\btrain(?:ing)?\b", re.IGNORECASE)
LOG_PREFIX = re.compile(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b\W+(?:[\w.]+(?:\s*[:\]]\s*|\s+-\s+)(?=.*[A-Za-z]{2}))?"
)
"""Level and logger before the message of a log line."""
VALUE_GROUP = r"(?P<value>[-+.\w]+)"
MOST_FILES = 5000
MOST_LINES = 5
MOST_NAMES = 12
LONGEST_LABEL = 60
LONGEST_LINE = 300
EVENTS = "events.out.tfevents"
UNLIKELY = frozenset(
    {"epoch", "step", "iter", "iteration", "time", "seconds", "lr", "rate", "seed", "loss_scale"}
)
LIKELY = (
    *("accuracy", "score", "f1", "auc", "reward", "return", "r2", "bleu", "map", "iou"),
    *("loss", "error", "rmse", "mse", "mae", "perplexity", "regret"),
)
FILLERS = frozenset({"a", "is", "of", "on", "the"})
HELD_OUT = frozenset({"val", "test"})
SAME = {
    "valid": "val",
    "validation": "val",
    "eval": "val",
    "evaluation": "val",
    "acc": "accuracy",
    "ppl": "perplexity",
}
"""Words of one meaning."""


@dataclass(frozen=True, slots=True)
class Found:
    """A number that a trial wrote, with the name next to it."""

    name: str
    place: str
    """Stream or path, for people."""
    shown: str
    """The line, or the names in the file."""
    keys: Mapping[str, Any]
    """How a metric block reads it; empty where it is not that of the whole trial, or of several columns."""


@dataclass(frozen=True, slots=True)
class MetricProposal:
    """A metric block that reads a number of the trial, and the places of its other numbers."""

    block: Mapping[str, Any] | None
    """None if no number stands beside the metric's name, and which to take is the user's choice."""
    shown: tuple[tuple[str, str], ...]
    """Places and what stands there, the best first."""
    names: tuple[str, ...]
    """What the metric could be called."""


def propose(metric: Metric, stdout: str, stderr: str, folder: Path, code: Path) -> MetricProposal | None:
    """Return a metric block for the numbers that a trial wrote, best guess first; None if it wrote no number.

    `folder` is its working directory, `code` has the files that were there before. If the user named the metric, only
    a number with this name fits; for any other metric, a usual name, or the only number.
    """
    lines = {
        place: [plain_text(line.encode())[:LONGEST_LINE] for line in text.splitlines()]
        for place, text in (("stdout", stdout), ("stderr", stderr))
    }
    candidates = [*_printed(lines, metric.name), *_written(folder, code)]
    fitting = [each for each in candidates if _rank(each.name, metric.name) > 0]
    ranked = sorted(fitting, key=lambda each: -_rank(each.name, metric.name))
    if not ranked:
        return None
    shown = tuple(dict.fromkeys((each.place, each.shown) for each in ranked))[:MOST_LINES]
    slugs = dict.fromkeys(_slug(each.name) for each in ranked)
    names = tuple(filter(METRIC_NAME.fullmatch, slugs))[:MOST_LINES]
    for number, best in enumerate(ranked):
        is_named = _rank(best.name, metric.name) >= NAMED
        is_usual = bool({*LIKELY} & {*_words(best.name)})
        if not is_named and (metric.name != DEFAULT_METRIC or not (is_usual or len(ranked) == 1)):
            break
        rivals = (each.name for each in ranked[number + 1 :])
        if any(
            _rank(each, metric.name) == _rank(best.name, metric.name) and _words(each) != _words(best.name)
            for each in rivals
        ):
            break  # which of them is the user's choice
        keys = best.keys and _bounded(best, lines)
        if keys:
            name = best.name if "path" in keys else metric.name if is_named else _slug(best.name)
            goal = usual_goal(best.name) if is_usual and not is_named else metric.goal
            return MetricProposal({"name": name, "goal": str(goal), **keys}, shown, names)
    return MetricProposal(None, shown, names)


NAMED = 50
"""The rank from which a name is the metric's."""


def _rank(name: str, wanted: str) -> int:
    """Return how well a name fits: best the metric's own, then usual names of metrics, held-out data first."""
    words, own = _words(name), _words(wanted)
    if words == own:
        return 2 * NAMED
    if own and {*own} <= {*words}:
        return NAMED + 10 * bool(HELD_OUT & {*words}) + 10 - len(words)
    likely = next((len(LIKELY) - at for at, word in enumerate(LIKELY) if word in words), 0)
    if not likely and UNLIKELY & {*words}:
        return 0
    return 1 + likely + 10 * bool(HELD_OUT & {*words}) * bool(likely)


def _words(name: str) -> list[str]:
    return [SAME.get(word, word) for word in words_of(name.replace("mAP", "map"))]


def _slug(name: str) -> str:
    return "_".join(word for word in _words(name) if word not in FILLERS) or DEFAULT_METRIC


def _printed(lines: Mapping[str, list[str]], wanted: str) -> Iterator[Found]:
    """Yield the last number next to each label, or before the metric's name, with a pattern that reads it."""
    for place, printed in lines.items():
        last: dict[str, Found] = {}
        for line in printed:
            found = [(label, pattern, line[: number.start()]) for label, pattern, number in _labels(line)]
            as_unit = rf"(?<![\w.])(?P<value>[-+.\d][-+.\deE]*)\s*{re.escape(wanted)}\b(?!\s*[:=]?\s*[-+.\d])"
            if wanted not in (label for label, *_ in found) and re.search(as_unit, line):
                found.append((wanted, as_unit, ""))
            for label, pattern, before in found:
                if pattern and _read(pattern, line, wanted) is None:
                    continue
                words = _words(name := LOG_PREFIX.sub("", label))
                if TRAINING.search(before) and not (HELD_OUT | {"train", "training"}) & {*words}:
                    name = f"train {name}"  # the line says so
                source = "stdout" if place == "stdout" else "output"
                keys = {"source": source, "format": "regex", "patterns": [pattern]}
                last[name] = Found(name, place, line.strip(), keys if pattern else {})
        yield from last.values()


def _read(pattern: str, line: str, unit: str = "") -> str | None:
    """Return the number that the launcher reads with a pattern, the last of a line; `unit` may follow it."""
    numbers = (
        match["value"]
        for match in re.finditer(pattern, line, re.ASCII)
        if is_number(match["value"], line[match.end("value") :].removeprefix(unit))
    )
    return next(iter(reversed([*numbers])), None)


def _bounded(best: Found, lines: Mapping[str, list[str]]) -> Mapping[str, Any] | None:
    """Return a pattern that reads a number of this label only, not of `val_loss` for `loss`; None if there is none."""
    pattern = best.keys.get("patterns", [""])[0]
    if not pattern.endswith(VALUE_GROUP):
        return best.keys
    numbers: list[tuple[str, str | None]] = []
    for line in [*lines["stdout"], *(lines["stderr"] if best.place == "stderr" else ())]:
        labels = {
            before: number[0]
            for _label, before, number in _labels(line)
            if is_number(number[0], line[number.end() :])
        }
        numbers.append((line, labels.get(pattern)))
    for start in BOUNDS:
        values = (_read(start + pattern, line) for line, _number in numbers)
        if all(
            value == number or (number is None and value is not None and not NUMBER.fullmatch(value))  # nan
            for value, (_line, number) in zip(values, numbers, strict=True)
        ):
            return {**best.keys, "patterns": [start + pattern]}
    return None


BOUNDS = (r"\b", r"(?<![^\W\d]\s)\b", r"^\s*", "")
"""What can stand before a label in a pattern: the start of a word, of the first word, of the line, and anything."""


def _labels(line: str) -> Iterator[tuple[str, str, re.Match[str]]]:
    """Yield the words before each number of a line, a pattern for all text before it, and the number.

    The pattern is empty if the number belongs to a part, or is one of several columns.
    """
    number, start, label, before_number = NUMBER.search(line), 0, "", ""
    goes_on = False
    while number:
        before = line[start : number.start()]
        words = next(LABEL.finditer(before))[0]
        if cell := CELL.search(before):
            label, before_number = cell[1], _spaced(cell[1]) + r"\s*\|"
        elif goes_on and words == before and re.search(r"[A-Za-z]{2}|[:=]", words):
            label, before_number = (
                f"{label} {words.strip()}",
                rf"{before_number}\s+{COUNT}\s*{_spaced(words)}",
            )
        elif re.search(r"[A-Za-z]{2}", words):
            label = words.strip().lstrip(":=- ")
            before_number = _spaced(label)
        else:
            label = ""  # such as a deviation, or a further column of a table
        if fraction := FRACTION.match(line, number.start()):  # as in "Accuracy: 9000/10000 (90%)"
            before_number += r"\s*\d+\s*/\s*\d+\s*\("
            number = NUMBER.match(line, fraction.end()) or number
        start = number.end()
        *words_before, last = label.lower().split() or [""]
        goes_on = bool(words_before) and last in BEFORE_A_COUNT
        if label and not goes_on and len(LOG_PREFIX.sub("", label)) <= LONGEST_LABEL:
            is_plain = not (PART.search(line) or RANGE.search(before) or MORE_COLUMNS.match(line, start))
            yield label, rf"{before_number}\s*{VALUE_GROUP}" * is_plain, number
        number = NUMBER.search(line, start)


def _spaced(words: str) -> str:
    return r"\s+".join(map(re.escape, words.split()))


def is_number(text: str, rest: str) -> bool:
    """Return whether a text is a complete number in its line: the text after it is not part of the number."""
    try:
        float(text)
    except ValueError:
        return False
    return re.match(r"[\s;|)\]}%]|,(?!\d)|\Z", rest) is not None


def _written(folder: Path, code: Path) -> Iterator[Found]:
    for number, path in enumerate(sorted(folder.rglob("*"))):
        relative = path.relative_to(folder).as_posix()
        is_new = path.is_file() and not path.is_symlink() and not (code / relative).exists()
        if number >= MOST_FILES or not is_new:
            continue
        kind = "tensorboard" if EVENTS in path.name else path.suffix.removeprefix(".")
        names = NAMES.get(kind)
        if names is None:
            continue
        try:
            known = [name for name in names(read_input(path)) if METRIC_NAME.fullmatch(name)]
        except (GeneratorError, ValueError):
            continue
        shown = ", ".join(known[:MOST_NAMES]) + (
            f", and {len(known) - MOST_NAMES} more" * (len(known) > MOST_NAMES)
        )
        for name in known:
            keys = {"source": "result", "format": kind, "path": _pattern(relative, kind)}
            yield Found(name, relative, shown, keys)


def _pattern(path: str, kind: str) -> str:
    """Return a path pattern for a file of any trial: folders with a digit, such as a version or a time, may differ."""
    *folders, name = PurePosixPath(path).parts
    if kind == "tensorboard":
        return f"{folders[0]}/**" if folders else f"{EVENTS}*"
    varying = [re.search(r"\d", part) is not None for part in folders]
    kept = [*folders[: varying.index(True)], "**"] if any(varying) else folders
    return "/".join((*kept, name))


def _columns(content: bytes) -> list[str]:
    head, *rows = content.decode().splitlines()[:2]
    return [name.strip().strip('"') for name in head.split(",")] if rows and "," in head else []


def _members(content: bytes) -> list[str]:
    document = json.loads(content)
    inner = document.get("metrics", document) if isinstance(document, dict) else {}
    members = inner.items() if isinstance(inner, dict) else ()
    return [name for name, value in members if type(value) in {int, float}]


def _scalar_tags(content: bytes) -> list[str]:
    """Return the tags in an event file of TensorBoard, in order of first appearance."""
    tags: dict[str, None] = {}
    position = 0
    while position + EVENT_HEADER <= min(len(content), MOST_EVENT_BYTES):
        begin = position + EVENT_HEADER
        end = begin + int.from_bytes(content[position : position + 8], "little")
        if end > len(content):
            break
        with suppress(ValueError, IndexError, TypeError):
            summaries = [summary for number, summary in fields(content[begin:end]) if number == EVENT_SUMMARY]
            values = [value for summary in summaries for number, value in fields(summary) if number == 1]
            tags |= {tag.decode(): None for value in values for number, tag in fields(value) if number == 1}
        position = end + 4
    return [*tags]


EVENT_HEADER, EVENT_SUMMARY = 12, 5
"""Bytes before an event, and the number of its field with a summary, whose values and their tags have number 1."""
MOST_EVENT_BYTES = 64 * 1024 * 1024
NAMES: dict[str, Callable[[bytes], list[str]]] = {
    "csv": _columns,
    "json": _members,
    "jsonl": lambda content: [*dict.fromkeys(chain.from_iterable(map(_members, content.splitlines())))],
    "tensorboard": _scalar_tags,
}
"""How the names of the numbers in a file of a format are read."""

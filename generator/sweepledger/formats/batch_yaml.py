"""The lock file `batch.yaml` of an overlay."""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

from generator.formats import yaml
from generator.structs.batch import Lock
from generator.structs.program import Program
from generator.structs.reporting import MetricFormat, MetricSource, Reduce
from generator.structs.sweep import Goal, Metric, Shape

LOCK_FILE = "batch.yaml"
VERSION = 1
LONGEST_SHOWN = 80
"""Characters of a wrong value."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_ROW = re.compile(r"0|[1-9][0-9]{0,6}", re.ASCII)


def write(lock: Lock, *, banner: str) -> str:
    """Write the lock as batch.yaml holds it."""
    return yaml.dump(lock.as_data(), banner=banner)


class LockError(ValueError):
    """The text is no lock file of a version that this program knows."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line
        """From 1."""


def read(text: str | bytes) -> Lock:
    """Read a lock, merged by whomever. Raises LockError if it is not one."""
    try:
        data = yaml.load(text)
    except yaml.TextError as error:
        raise LockError(str(error), error.line) from error
    for path, rule, is_so in _forms(data):
        found = data
        for key in path:
            if not isinstance(found, dict) or key not in found:
                message = f"not a lock file of version {VERSION}: it lacks {'.'.join(path)}"
                raise LockError(message, yaml.line_of_key(text, *path))
            found = found[key]
        if not is_so(found):
            message = f"{'.'.join(path)} must be {rule}, got {str(found)[:LONGEST_SHOWN]!r}"
            raise LockError(message, yaml.line_of_key(text, *path))
    return _lock(data)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_text(text) for pair in value.items() for text in pair)


def _are_goals(value: Any) -> bool:
    return _is_table(value) and all(goal in list(Goal) for goal in value.values())


def _are_parents(value: Any) -> bool:
    return _is_table(value) and all(_ROW.fullmatch(row) for row in value)


def _are_digests(value: Any) -> bool:
    return _is_table(value) and all(map(_DIGEST.fullmatch, value.values()))


def _is_known(key: str, words: Collection[str]) -> Callable[[Any], bool]:
    """Tell whether what may stand under a key is one of these words."""
    return lambda value: isinstance(value, dict) and (key not in value or value[key] in words)


def _is_data(value: Any) -> bool:
    return value is None or (_is_table(value) and value.keys() >= {"name", "digest"})


_Form = tuple[tuple[str, ...], str, Callable[[Any], bool]]
_TEXTS = ("name", "digest", "sweep", "spec.path", "spec.digest", "metric.name", "program.image")
_FORMS: tuple[_Form, ...] = (
    (("version",), str(VERSION), lambda value: value == VERSION),
    *((tuple(name.split(".")), "text", _is_text) for name in _TEXTS),
    (("number",), "a whole number", _is_count),
    (("parent",), "text or null", lambda value: value is None or _is_text(value)),
    (("shape",), "a shape", lambda value: value in list(Shape)),
    (("trials",), "a whole number", _is_count),
    (("metric", "goal"), "a goal", lambda value: value in list(Goal)),
    (("metric", "source"), "a source", lambda value: value in list(MetricSource)),
    (("metric",), "with a known format", _is_known("format", list(MetricFormat))),
    (("metric",), "with a known reduce", _is_known("reduce", list(Reduce))),
    (("program", "command"), "a list of texts", _are_texts),
    (("program", "code", "path"), "text", _is_text),
    (("program", "code", "tree"), "text", _is_text),
    (("program", "data"), "a name and a digest, or null", _is_data),
    (("seed_base",), "a whole number", lambda value: type(value) is int),
    (("retries",), "a whole number", _is_count),
    (("generator",), "text", _is_text),
    (("bases",), "a list of texts", _are_texts),
    (("files",), "names and digests", _are_digests),
)
"""What each key must be, in the order in which they are told."""
_OPTIONAL: tuple[_Form, ...] = (
    (("pool",), "text", _is_text),
    (("other_metrics",), "names and goals", _are_goals),
    (("round",), "a whole number from 1", lambda value: type(value) is int and value >= 1),
    (("method",), "text", _is_text),
    (("engine",), "text", _is_text),
    (("parents",), "rows and trials", _are_parents),
)


def _forms(data: Any) -> Iterator[_Form]:
    # Once all of the first are told, it is known to be a mapping.
    yield from _FORMS
    yield from (form for form in _OPTIONAL if form[0][0] in data)


def _lock(data: dict[str, Any]) -> Lock:
    return Lock(
        name=data["name"],
        digest=data["digest"],
        sweep=data["sweep"],
        number=data["number"],
        parent=data["parent"],
        spec_path=data["spec"]["path"],
        spec_digest=data["spec"]["digest"],
        shape=Shape(data["shape"]),
        trials=data["trials"],
        metric=_metric(data["metric"]),
        program=Program.from_data(data["program"]),
        seed_base=data["seed_base"],
        retries=data["retries"],
        generator=data["generator"],
        bases=tuple(data["bases"]),
        files=dict(data["files"]),
        pool=data.get("pool"),
        other_metrics=tuple(Metric(name, Goal(goal)) for name, goal in data.get("other_metrics", {}).items()),
        round=data.get("round"),
        method=data.get("method"),
        engine=data.get("engine"),
        parents={int(row): trial for row, trial in data.get("parents", {}).items()},
    )


def _metric(data: dict[str, Any]) -> Metric:
    return Metric(
        data["name"],
        Goal(data["goal"]),
        MetricSource(data["source"]),
        MetricFormat(data["format"]) if "format" in data else None,
        Reduce(data.get("reduce", Reduce.LAST)),
    )

"""`batch.yaml`: the lock file of an overlay."""

import re
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import Any

from sweepledger.formats import yaml
from sweepledger.formats.hyperparams_csv import ColumnType
from sweepledger.problems import TextError
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.metric import Goal, Metric, MetricFormat, MetricSource, Reduce
from sweepledger.structs.names import is_cluster_name
from sweepledger.structs.program import CodeSelection, Program
from sweepledger.structs.run_config import Infrastructure, Pack, Shape
from sweepledger.structs.settings import ResultsStore

LOCK_FILE = "batch.yaml"
VERSION = 1
MAX_KEPT = 1000
"""Locks that are kept, about 10 KB each: a check reads most of them at the base commit and in the work tree."""
MAX_SHOWN_CHARACTERS = 80
"""Length to which a wrong value is truncated in messages."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_BLOB = re.compile(r"[0-9a-f]{40}", re.ASCII)
_ROW = re.compile(r"0|[1-9][0-9]{0,6}", re.ASCII)


def write(lock: BatchLock, *, banner: str) -> str:
    """Return the text of batch.yaml."""
    return yaml.dump(lock.as_data(), banner=banner)


class LockError(TextError):
    """The text is not a batch lock."""


@lru_cache(maxsize=MAX_KEPT)
def read(text: str | bytes) -> BatchLock:
    """Return the lock in an untrusted text, which is parsed once. Raises LockError."""
    try:
        data = yaml.load(text)
    except TextError as error:
        raise LockError(str(error), line=error.line) from error
    for path, rule, is_valid in _forms(data):
        value = data
        for key in path:
            if not isinstance(value, dict) or key not in value:
                message = f"not a lock file of version {VERSION}: it lacks {'.'.join(path)}"
                raise LockError(message, line=yaml.line_of_key(text, *path))
            value = value[key]
        if not is_valid(value):
            message = f"{'.'.join(path)} must be {rule}, got {str(value)[:MAX_SHOWN_CHARACTERS]!r}"
            raise LockError(message, line=yaml.line_of_key(text, *path))
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


def _are_columns(value: Any) -> bool:
    return _is_table(value) and all(kind in list(ColumnType) for kind in value.values())


def _are_blobs(value: Any) -> bool:
    return _is_table(value) and all(map(_BLOB.fullmatch, value.values()))


def _is_known(key: str, words: Collection[str]) -> Callable[[Any], bool]:
    """Return a check that an optional key has one of these words."""
    return lambda value: isinstance(value, dict) and (key not in value or value[key] in words)


def _is_reading(value: Any) -> bool:
    return (
        _is_text(value.get("path", ""))
        and _are_texts(value.get("patterns", []))
        and type(value.get("capture", False)) is bool
        and _is_text(value.get("curve", ""))
    )


def _is_pack(value: Any) -> bool:
    if not isinstance(value, dict) or value.keys() != {"trials", "at_once"}:
        return False
    return all(map(_is_count, value.values())) and 1 <= value["at_once"] <= value["trials"]


def _is_infrastructure(value: Any) -> bool:
    if not isinstance(value, dict) or not {"retries"} <= value.keys() <= {"retries", "exit_codes"}:
        return False
    codes = value.get("exit_codes", [])
    return _is_count(value["retries"]) and isinstance(codes, list) and all(map(_is_count, codes))


def _is_data(value: Any) -> bool:
    if not isinstance(value, dict):
        return value is None
    named = {key: text for key, text in value.items() if key != "at"}
    return _is_table(named) and named.keys() >= {"name", "digest"} and _is_table(value.get("at", {}))


def _is_code(value: Any) -> bool:
    selection = value.get("selection", {"paths": ["."]}) if isinstance(value, dict) else None
    if not isinstance(selection, dict) or not all(map(_are_texts, selection.values())):
        return False
    try:
        CodeSelection.from_data(selection)
    except (KeyError, ValueError):
        return False
    return _is_count(value.get("disk", 0)) and ("selection" not in value or value.get("path") == ".")


def _is_program(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    environment = value.get("environment", {"path": "", "digest": ""})
    is_locked = _is_table(environment) and environment.keys() == {"path", "digest"}
    return is_locked and _is_text(value.get("workdir", ""))


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
    (("metric",), "with a valid path, patterns and capture, if any", _is_reading),
    (("program", "command"), "a list of texts", _are_texts),
    (("program", "code", "path"), "text", _is_text),
    (("program", "code", "tree"), "text", _is_text),
    (("program",), "with a path and a digest of its environment, and a workdir, if any", _is_program),
    (("program", "code"), "with a valid selection at '.' and a size on disk, if any", _is_code),
    (("program", "data"), "a name, a digest and places, if any, or null", _is_data),
    (("seed_base",), "a whole number", lambda value: type(value) is int),
    (("retries",), "a whole number", _is_count),
    (("max_disruptions",), "a whole number", _is_count),
    (("generator",), "text", _is_text),
    (("bases",), "a list of texts", _are_texts),
    (("columns",), "names and types", _are_columns),
    (("files",), "names and digests", _are_digests),
    (("blobs",), "names and ids of git", _are_blobs),
)
"""Rule of each key, in the order in which problems are reported."""
_OPTIONAL: tuple[_Form, ...] = (
    (("pool",), "text", _is_text),
    (("cluster",), "the name of a cluster", lambda value: _is_text(value) and is_cluster_name(value)),
    (("other_metrics",), "names and goals", _are_goals),
    (("round",), "a whole number from 1", lambda value: type(value) is int and value >= 1),
    (("method",), "text", _is_text),
    (("engine",), "text", _is_text),
    (("unfitted",), "text", _is_text),
    (("ahead",), "a whole number from 1", lambda value: type(value) is int and value >= 1),
    (("parents",), "rows and trials", _are_parents),
    (("restarts",), "true or false", lambda value: type(value) is bool),
    (("pack",), "numbers of trials and at_once", _is_pack),
    (("infrastructure",), "a number of retries, and exit codes if any", _is_infrastructure),
    (("after_infrastructure",), "true or false", lambda value: type(value) is bool),
    (("repairs",), "true or false", lambda value: type(value) is bool),
    (("store",), "a store of results", lambda value: value in list(ResultsStore)),
)


def _forms(data: Any) -> Iterator[_Form]:
    # After the required keys, the data is known to be a mapping.
    yield from _FORMS
    yield from (form for form in _OPTIONAL if form[0][0] in data)


def _lock(data: dict[str, Any]) -> BatchLock:
    return BatchLock(
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
        max_disruptions=data["max_disruptions"],
        pool=data.get("pool"),
        other_metrics=tuple(Metric(name, Goal(goal)) for name, goal in data.get("other_metrics", {}).items()),
        round=data.get("round"),
        method=data.get("method"),
        engine=data.get("engine"),
        unfitted=data.get("unfitted"),
        ahead=data.get("ahead", 1),
        parents={int(row): trial for row, trial in data.get("parents", {}).items()},
        restarts=data.get("restarts", False),
        columns=dict(data["columns"]),
        blobs=dict(data["blobs"]),
        store=ResultsStore(data.get("store", ResultsStore.VOLUME)),
        cluster=data.get("cluster"),
        pack=Pack(**data["pack"]) if "pack" in data else None,
        infrastructure=Infrastructure.from_data(data["infrastructure"]) if "infrastructure" in data else None,
        after_infrastructure=data.get("after_infrastructure", False),
        repairs=data.get("repairs", False),
    )


def _metric(data: dict[str, Any]) -> Metric:
    return Metric(
        data["name"],
        Goal(data["goal"]),
        MetricSource(data["source"]),
        MetricFormat(data["format"]) if "format" in data else None,
        Reduce(data.get("reduce", Reduce.LAST)),
        path=data.get("path"),
        patterns=tuple(data.get("patterns", ())),
        capture=data.get("capture", False),
        curve=data.get("curve"),
    )

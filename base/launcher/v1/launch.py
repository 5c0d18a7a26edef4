"""Run the trials of a pod: read a row of the table, run the user's command, write one record.

One file that needs the standard library alone, in Python 3.8 or newer, and can be mounted into any image.
This is a summary of docs/launcher.md, which lists the variables of the command, too.

Arguments: none, or `--` and the command that a reviewer has read, which runs only if the row gives the same.

Environment
  SWEEP_LAUNCH    path of launch.json: columns, shards, command, metric, seed, timeout, limits and options
  SWEEP_TABLE     folder of the table's files; only the one with the row is opened, and its digest is verified
  SWEEP_CODE      folder of the locked code; the command starts in a private copy of it, and never here
  SWEEP_RESULTS   the trial's own folder on the results volume, created if it is missing
  SWEEP_SCRATCH   folder for temporary files
  SWEEP_INDEX     row, counted from 0; default: JOB_COMPLETION_INDEX
  SWEEP_ROWS      several rows instead, first and last: 20-39. Each has a process, a record and a folder
                  `<index>/` below SWEEP_RESULTS; its uid is the pod's, a hyphen and the index
  SWEEP_RANK      number of the pod within its trial, default 0; only rank 0 writes results
  SWEEP_CHECKPOINT_VOLUME, SWEEP_ARTIFACT_VOLUME
                  the trial's own folders on other volumes; default: SWEEP_RESULTS
  SWEEP_POD_UID   id of the attempt; default: a new one
  SWEEP_FAILURES  how often the trial has failed; default: the number of its records
  SWEEP_DISRUPTIONS  how often the cluster has ended a pod of the trial; default: 0
  SWEEP_PARENT       checkpoints of another trial, from which this one continues
  SWEEP_PARENT_ID    that trial, for the record
  SWEEP_RAN, SWEEP_NODE   what runs (default: process) and where, for the record
  SWEEP_TERMINATION_LOG   file for the termination message, if it exists; default: /dev/termination-log
  SWEEP_CODE_STATE, SWEEP_DATA_STATE   of the code and of SWEEP_DATA: if one changes, no result counts
  SWEEP_EARLIER   JSON file: by row, record, output and artifacts of an earlier attempt that exited with 0 and
                  without a metric; its output is read by the metric of launch.json, and no command starts
  SWEEP_COPIES    if set, no other launcher runs this trial, and what nobody changed of a copy is used again
  SWEEP_OVERLAY   folder of the attempt with all folders, the code by an overlay: nothing is copied
  SWEEP_ENVIRONMENTS  folder for the lists of distributions of several trials; default: environments/

Exit codes: 0 for ok and pruned, 42 diverged, 43 no trial could succeed, 44 too many disruptions, 70 a fault
of the launcher, 74 volume or scratch folder failed, 124 timeout, else the command's; of several the worst.
"""

from __future__ import annotations

import bisect
import contextlib
import errno
import fcntl
import gc
import itertools
import json
import math
import os
import re
import select
import signal
import stat
import subprocess
import sys
import threading
import time
from typing import IO, Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

try:  # loading OpenSSL, as hashlib does, costs 5 ms
    from _sha2 import sha256 as new_sha256  # type: ignore[import-not-found]
except ImportError:
    try:
        from _sha256 import sha256 as new_sha256  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256 as new_sha256

VERSION = 1  # of launch.json and of records
BAD_HYPERPARAMETERS, BAD_SWEEP, DISRUPTED = 42, 43, 44
LAUNCHER_FAULT, STORAGE_FAILED, TIMED_OUT = 70, 74, 124
STOPPED_EARLY = 125  # a cause, not an exit code
# A pruned trial has done its work: no Job of any kind retries 0 or counts it as failed.
FINAL = {"ok": 0, "pruned": 0, "diverged": BAD_HYPERPARAMETERS}
WORST_FIRST = (BAD_SWEEP, STORAGE_FAILED, DISRUPTED)

KIBIBYTE = 1024
LARGEST_FILE = 1024 * KIBIBYTE  # of JSON that a trial may have written
DEEPEST = 16  # nested containers in such JSON
LONGEST_INTEGER = 300  # digits: each such number is a finite float
LARGEST_STREAM = 64 * 1024 * KIBIBYTE  # of lines that a trial may have written
LARGEST_EVENTS = 1024 * 1024 * KIBIBYTE  # of one event file: pictures are skipped, but have to be read past
LARGEST_EVENT = 256 * KIBIBYTE  # that is searched for scalars
CHECKED_EVENT = 4 * KIBIBYTE  # whose checksum is compared even if it has no scalars
MOST_FILES = 10_000  # that a path with wildcards may match
CREATED_MODE = 0o644
FOR_LAUNCHER = (
    b"CODE CODE_STATE COPIES DATA_STATE EARLIER ENVIRONMENTS OVERLAY SCRATCH TERMINATION_LOG THRESHOLDS"
)
"""Variables without SWEEP_ that no command gets: they lead to what other trials have."""
MOST_CODE_FILES = 100_000  # of the code, which every trial copies
LARGEST_CODE = 1024 * 1024 * KIBIBYTE
LONGEST_TEMPORARY = 70  # bytes of TMPDIR: libraries put sockets there, whose paths end at 108
COPIED = "copied"  # a JSON file with the inode of each file of the code's copy, and when they were copied
COPY_TIMES = "/"  # its name in that file: the first and the last time of change that they have
OVERLAY = "SWEEP_OVERLAY"
MOST_SHARED = 5000  # files of a copy that a later attempt may take
MOST_WAITS = 40  # times half a millisecond
OLD_CHANGE = 10**10  # nanoseconds after which a folder that did not change has the time of its last change
SHORT_FOLDER, SHORT_PREFIX = "/tmp", "sweep-tmp-"  # noqa: S108 - of a link to a longer TMPDIR
MOST_METRICS = 100
MOST_POINTS = 200  # of a curve in the record
MOST_HELD = 4096  # points of the compared curve, and of the objective's, until the trial ends
HELD_BESIDE = 512  # points of any other curve
LEAST_POINTS = 8  # of a curve that is thinned for want of room
LARGEST_STEP = 2**53  # beyond it, readers that use doubles lose digits
MOST_GUESSES = 1000  # lines that are tried in another format
LONGEST_PATH = 500  # characters of an artifact's path in JSON
MOST_ARTIFACTS = 1000
LAST_WORDS = 16 * KIBIBYTE  # bytes of stderr in which the cause of a failure is sought
LONGEST_CAUSE = 300  # characters of it in the record
TRACEBACK = "Traceback (most recent call last):"
KEPT_OUTPUT = 256 * KIBIBYTE  # bytes of an output's head, and of its tail
LONGEST_LINE = 64 * KIBIBYTE  # that is searched for a metric
LONGEST_MATCH = 1000  # characters of a line that patterns are applied to
MOST_WAYS = 10 * LONGEST_MATCH**2  # of a pattern to divide a line: two long repeats and few short ones
HEAD = 256  # bytes that tell a file from most others, and one that was written anew from what it was
TERMINATION_BYTES = 4095  # Kubernetes keeps 4096
WHOLE_LIST = 1000  # rows of hyperparams.yml: PyYAML needs half a second to read so many
MOST_ROWS = 1000  # of one pod
PATIENCE = 2.0  # seconds for processes to end and pipes to empty after SIGKILL
LOOK = 1.0  # seconds between two looks at a growing file, if there are rules of early stopping

# Bounds of a record, which has at most 32 KiB.
FIRST_PART_BYTES = 4000  # with a digest it fits the termination message
DETAILS_BYTES = 8 * KIBIBYTE
CURVE_BYTES = 6 * KIBIBYTE
CURVES_BYTES = 10 * KIBIBYTE  # of all curves
ARTIFACTS_BYTES = 8 * KIBIBYTE
ENVIRONMENT_BYTES = 64 * KIBIBYTE
BEYOND_FIRST_PART = ("artifacts", "curves", "details", "environment", "stopped")

NAME = r"[A-Za-z][A-Za-z0-9_./@-]{0,62}"
METRIC_NAME = re.compile(NAME)
DECIMAL = (
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)"
)
# Patterns that many trials do not need are texts, which `re` compiles at their first use: that saves 8 ms.
GROUPS = "'\u2019\u00a0\u2009\u202f"  # what people put between groups of digits, and no program in a list
METRIC_TEXT = (  # whatever Katib's default filter matches, but no parts of `1,5`, `1'234` or `0x1f`
    rf"(?<![\w./@|-])({NAME})\s*=\s*({DECIMAL})(?![{GROUPS}][0-9])"
    r"(?=\.?(?:[\s;%|)\]}\"'(\[\x1b]|[,:](?![0-9])|$))"
)
# Colours and other sequences of terminals, and hyperlinks: no part of a text.
TERMINAL_CODES = r"\x1b(?:\[[0-9:;<=>?]*[ -/]*[@-~]|[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])"
# After a number it makes another of both: `1.2.3`, `1'234`, `1_000`, `0x10`, `1d-3`, `2^3`, `5k`, `2MB`.
MORE_OF_NUMBER = rf"\d|[._^\u00d7{GROUPS}]\d|[xXoObB][0-9a-fA-F]|[eEdD][+-]?[0-9]|[kKMGT]i?B?(?!\w)"
# The same before one, and a sign, but not that of `epoch-5`.
LESS_OF_NUMBER = (
    rf"\d(?:[.,_/^\u00d7{GROUPS}]|\.?[eEdD][+-]?)?$|(?<![0-9])0[xXoObB]$|(?<![\w.)\]])[-\u2212\u2013]$"
)
THOUSANDS = r"[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+"  # of `1.234,5`, if a comma and the rest follow
NO_DECIMAL = "which is no plain decimal number"
METADATA = re.compile(r"\.(?:dist|egg)-info\Z")
UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
TRIAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
CELL = re.compile(r'"([^"]*(?:""[^"]*)*)"|([^",]*)')
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
COUNT = re.compile(r"[0-9]{1,9}")
REASON = r"[a-z0-9][a-z0-9-]{0,63}"
# A rule with such a name could pass for an ending that only the launcher or the collector can observe.
RESERVED_REASON = (
    r"bad-command|bad-hyperparameters|bad-sweep|cancelled|code-changed|corrupt|data-changed|disk-full"
    r"|disrupted|evicted|exit-[0-9]+"
    r"|foreign|killed|metric-missing|metric-not-finite|missing|no-record|node-lost|oom|preempted"
    r"|result-invalid|signal-[0-9]+|start-failed|timeout|too-large|too-many"
)


class Refused(Exception):
    """The sweep itself is wrong: no attempt at any of its trials can succeed."""

    reason = "bad-sweep"


class BadCommand(Refused):
    """The command cannot be started."""

    reason = "bad-command"


class CodeChanged(Refused):
    """Something wrote to the stored code, so that the trial would run other code."""

    reason = "code-changed"


class Stopped(Exception):
    """A signal arrived before the command was started."""


# ----------------------------------------------------------- messages and files


def say(message: str) -> None:
    """Write one line to stderr, whatever the message contains; a closed stderr changes nothing."""
    line = "".join(letter if letter.isprintable() else " " for letter in message)
    with contextlib.suppress(OSError):
        os.write(2, f"launch.py: {line[:2000]}\n".encode())


def write_termination_message(text: str) -> bool:
    """Write the text that the node keeps when all volumes are gone; return whether it is complete."""
    path = os.environ.get("SWEEP_TERMINATION_LOG") or "/dev/termination-log"
    content = text.encode()
    with contextlib.suppress(OSError), open(path, "r+b") as file:  # r+: it must exist already
        file.write(content[:TERMINATION_BYTES])
        file.truncate()
        return len(content) <= TERMINATION_BYTES
    return False


def need(name: str) -> str:
    """Return a variable of the environment that must be set."""
    value = os.environ.get(name)
    if not value:
        raise Refused(f"the environment variable {name} must be set")
    return value


def count_from(variable: str, default: int) -> int:
    """Return the number in an annotation that Kubernetes sets; the default if it has none."""
    text = os.environ.get(variable, "")
    return int(text) if COUNT.fullmatch(text) else default


def create(path: str) -> int:
    """Open a file for writing from its start, never through a link or into a pipe that a trial has made."""
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
    file = os.open(path, flags, CREATED_MODE)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return file


def write_all(file: int, content: bytes) -> None:
    """Write every byte: an almost full disk accepts a part first and fails at the next call."""
    while content:
        content = content[os.write(file, content) :]


def write_new(path: str, content: bytes) -> None:
    """Write a file. Raises OSError."""
    file = create(path)
    try:
        write_all(file, content)
    finally:
        os.close(file)


def write_safely(path: str, content: bytes, suffix: str = ".tmp") -> None:
    """Write a file that is then complete and durable, or does not exist. Raises OSError."""
    temporary = path + suffix
    try:
        file = create(temporary)
        try:
            write_all(file, content)
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(temporary, path)
    except OSError as error:
        error.filename = path  # neither write nor fsync names one
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    """Make a rename survive a power failure, if the file system can."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # the answer of file systems that cannot
            raise
    finally:
        os.close(folder)


def write_once(folder: str, name: str, content: bytes) -> None:
    """Write a file that is named by its digest, unless it exists. A failure is only reported."""
    try:
        os.makedirs(folder, exist_ok=True)
        if not os.path.lexists(os.path.join(folder, name)):
            # Several launchers may write to a common folder; in its own, the next attempt writes over it.
            own = "SWEEP_ENVIRONMENTS" not in os.environ
            write_safely(os.path.join(folder, name), content, ".tmp" if own else f".{os.getpid()}.tmp")
    except OSError as error:
        say(f"{name} cannot be kept: {error}")


def make_temporary_folder(prefix: str) -> str:
    """Create a folder of our own in the scratch folder."""
    path = os.path.join(os.path.abspath(need("SWEEP_SCRATCH")), prefix + os.urandom(8).hex())
    os.mkdir(path, 0o700)
    return path


def sha256(content: bytes) -> str:
    """Return a digest in hexadecimal digits."""
    return str(new_sha256(content).hexdigest())


# ------------------------------------------------------------------ strict JSON


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object whose names are all different. Raises ValueError."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an object has the same name twice")
    return made


def whole(digits: str) -> int:
    """Read an integer of a length that every reader accepts. Raises ValueError."""
    if len(digits) > LONGEST_INTEGER:
        raise ValueError(f"a whole number has more than {LONGEST_INTEGER} digits")
    return int(digits)


def depth(value: Any) -> int:
    """Count nested containers."""
    if isinstance(value, (dict, list)):
        return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)
    return 0


def parse_object(content: bytes) -> dict[str, Any]:
    """Read one JSON object. Raises ValueError with the reason."""
    try:
        data = json.loads(content.decode(), object_pairs_hook=distinct, parse_int=whole)
        levels = depth(data)
    except RecursionError:
        levels = DEEPEST + 1
    if levels > DEEPEST:
        raise ValueError(f"it is nested deeper than {DEEPEST}")
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    return data


def open_regular(path: str) -> IO[bytes]:
    """Open a file that a trial may have written. Raises OSError, and ValueError for other kinds."""
    # Without O_NONBLOCK, a FIFO would block forever; a link could show files that are not the trial's.
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise ValueError("it is not a regular file")
    return open(file, "rb")


def read_object(path: str) -> dict[str, Any]:
    """Read a JSON file that a trial may have written. Raises OSError, and ValueError with the reason."""
    with open_regular(path) as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError("it is larger than 1 MiB")
    return parse_object(content)


def plain(value: Any) -> Any:
    """Turn numbers that standard JSON cannot express into text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def dump(value: Any) -> str:
    """Write a value as one line of canonical JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"


# ---------------------------------------------------- launch.json and the table

TEXT, AMOUNT = (str,), (int, float)
LAUNCH: Mapping[str, tuple[type, ...]] = {
    "batch": TEXT,
    "program": TEXT,
    "code": TEXT,
    "data": (str, type(None)),
    "columns": (list,),
    "shards": (list,),
    "command": (list,),
    "interpreter": TEXT,
    "metric": (dict,),
    "seed_base": (int,),
    "timeout_seconds": AMOUNT,
    "grace_seconds": AMOUNT,
    "max_disruptions": (int,),
}
OPTIONS: Mapping[str, tuple[type, ...]] = {
    "secrets": (dict,),
    "hyperparams_file": (bool,),
    "config": (dict,),
    "workdir": TEXT,
    "data_at": (dict,),
    "keep": (list,),
    "stop": (list,),
    "thresholds_file": TEXT,
    "keep_checkpoints": (bool,),
    "environment": (dict,),
    "pack": (dict,),
    "capture": (bool,),
}
COLUMN = {"name": TEXT, "type": TEXT}
CONFIG = {"format": TEXT, "text": TEXT}
SHARD = {"file": TEXT, "first": (int,), "count": (int,), "digest": TEXT}
METRIC = {"name": TEXT, "source": TEXT}
METRIC_OPTIONS = {"curve": TEXT, "path": TEXT, "patterns": (list,), "others": (list,)}
CHOICES = {
    "source": ("result", "stdout", "output"),
    "format": ("json", "jsonl", "text", "log", "csv", "regex", "tensorboard"),
    "reduce": ("last", "min", "max"),
}
FORMATS_OF_FILES = ("json", "csv", "tensorboard")  # which stdout is not
RULE = {"rule": TEXT, "goal": TEXT}
STEPS = {"from": (int,), "until": (int,)}  # outside of which a rule ends nothing
RULES: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "thresholds": {"thresholds": (list,), "value": TEXT},
    "reports": {"reports": (int,), "margin": AMOUNT},
    "reach": {"reach": AMOUNT},
}


class Row(NamedTuple):
    """One row of the table."""

    number: int
    trial: str
    digest: str
    values: dict[str, Any]
    replicate: int = 0


def check(value: Any, members: Mapping[str, tuple[type, ...]], where: str) -> None:
    """Refuse an object of launch.json that lacks a member, or has one of a wrong type."""
    if type(value) is not dict:
        raise Refused(f"launch.json: {where} must be an object, got {value!r}")
    for name, types in members.items():
        if name not in value or type(value[name]) not in types:
            wanted = " or ".join(each.__name__ for each in types)
            raise Refused(f"launch.json: {where}: {name} must be {wanted}, got {value.get(name)!r}")


def check_options(value: Mapping[str, Any], options: Mapping[str, tuple[type, ...]], where: str) -> None:
    """Refuse an object that has an optional member of a wrong type."""
    check(value, {name: types for name, types in options.items() if name in value}, where)


def read_launch(path: str) -> dict[str, Any]:
    """Read launch.json and check every member that is used."""
    try:
        with open(path, "rb") as file:
            launch = parse_object(file.read())
    except (OSError, ValueError) as error:
        raise Refused(f"launch.json cannot be read: {error}") from error
    if launch.get("version") != VERSION:
        raise Refused(f"launch.json must be of version {VERSION}, got {launch.get('version')!r}")
    check(launch, LAUNCH, "launch")
    check(launch["metric"], METRIC, "metric")
    check_options(launch, OPTIONS, "launch")
    check_places(launch)
    for column in launch["columns"]:
        check(column, COLUMN, "column")
    for shard in launch["shards"]:
        check(shard, SHARD, "shard")
    for rule in launch.get("stop", []):
        check_rule(rule)
    if "environment" in launch:
        check_lock(launch["environment"])
    if "pack" in launch:
        check_pack(launch["pack"])
    if "config" in launch:
        check(launch["config"], CONFIG, "config")
    metric = complete_metric(launch["metric"])
    if launch.get("capture") and (metric["source"], metric["format"], "path" in metric) != (
        "result",
        "jsonl",
        False,
    ):
        raise Refused(
            "launch.json: capture: metric must have the source result, the format jsonl and no path"
        )
    live = {"thresholds_file": os.environ["SWEEP_THRESHOLDS"]} if os.environ.get("SWEEP_THRESHOLDS") else {}
    return {**launch, **live, "metric": metric}


def check_places(launch: Mapping[str, Any]) -> None:
    """Refuse paths of secrets and datasets that are no text, and paths of the trial outside its code."""
    for name in ("secrets", "data_at"):
        check(launch.get(name, {}), dict.fromkeys(launch.get(name, {}), TEXT), name)
    for place in [*launch.get("keep", []), launch.get("workdir", ".")]:
        if type(place) is not str or os.path.isabs(place) or ".." in place.split("/"):
            raise Refused(f"launch.json: keep and workdir must be paths inside the code, got {place!r:.200}")


def check_rule(rule: Any) -> None:
    """Refuse a rule of early stopping that is not one of the three kinds, or has unsorted thresholds."""
    check(rule, RULE, "stop")
    kinds = [kind for kind in RULES if kind in rule]
    if len(kinds) != 1:
        raise Refused(
            f"launch.json: stop: exactly one of {', '.join(RULES)} must be given, got {sorted(rule)}"
        )
    check(rule, RULES[kinds[0]], "stop")
    check_options(rule, STEPS, "stop")
    if not re.fullmatch(REASON, rule["rule"]) or re.fullmatch(RESERVED_REASON, rule["rule"]):
        raise Refused(
            f"launch.json: stop: rule must be a word of its own in small letters, got {rule['rule']!r:.100}"
        )
    if rule["goal"] not in ("maximize", "minimize") or rule.get("value", "best") not in ("best", "last"):
        raise Refused(
            f"launch.json: stop: goal must be maximize or minimize, and value best or last, got {rule!r:.200}"
        )
    for point in rule.get("thresholds", []):
        if type(point) is not list or len(point) != 2 or not {type(each) for each in point} <= {*AMOUNT}:
            raise Refused(f"launch.json: stop: a threshold must be a step and a number, got {point!r:.100}")
    steps = [step for step, _ in rule.get("thresholds", [])]
    if steps != sorted(set(steps)):
        raise Refused("launch.json: stop: the thresholds must be in the order of their steps")


def check_lock(environment: Mapping[str, Any]) -> None:
    """Refuse a lock file that could be outside the code."""
    check(environment, {"lock": TEXT}, "environment")
    lock = environment["lock"]
    if os.path.isabs(lock) or ".." in lock.split("/") or not lock:
        raise Refused(f"launch.json: environment: lock must be a path inside the code, got {lock!r:.200}")


def check_pack(pack: Mapping[str, Any]) -> None:
    """Refuse numbers of rows that no pod can run."""
    check(pack, {"at_once": (int,)}, "pack")
    check_options(pack, {"rows": (int,)}, "pack")
    for name in ("at_once", "rows"):
        if not 1 <= pack.get(name, 1) <= MOST_ROWS:
            raise Refused(f"launch.json: pack: {name} must be from 1 to {MOST_ROWS}, got {pack[name]}")


def complete_metric(metric: Mapping[str, Any]) -> dict[str, Any]:
    """Add the defaults of how the trial reports."""
    check_options(metric, METRIC_OPTIONS, "metric")
    usual = "json" if metric["source"] == "result" else "text"
    metric = {"format": usual, "reduce": "last", **metric}
    for name, choices in CHOICES.items():
        if metric[name] not in choices:
            raise Refused(
                f"launch.json: metric: {name} must be one of {', '.join(choices)}, got {metric[name]!r}"
            )
    is_printed, form = metric["source"] != "result", metric["format"]
    if is_printed and (form in FORMATS_OF_FILES or "path" in metric):
        raise Refused(
            f"launch.json: metric: {'path' if 'path' in metric else f'the format {form}'} needs a file, "
            f"and {metric['source']} is none: source must be result"
        )
    if form == "tensorboard" and "path" not in metric:
        raise Refused("launch.json: metric: the format tensorboard needs a path")
    if (form == "regex") != bool(metric.get("patterns")):
        raise Refused("launch.json: metric: patterns and the format regex need each other")
    for pattern in metric.get("patterns", []):
        check_pattern(pattern)
    return metric


def check_pattern(pattern: Any) -> None:
    """Refuse a pattern that is not valid, lacks its group, or could take long on a line of limited length."""
    if isinstance(pattern, str) and len(pattern) > LONGEST_MATCH:
        raise Refused(f"launch.json: metric: a pattern has more than {LONGEST_MATCH} characters")
    try:
        groups = re.compile(pattern, re.ASCII).groupindex
    except (re.error, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise Refused(f"launch.json: metric: {pattern!r:.100} is not a pattern: {error}") from error
    if "value" not in groups or not set(groups) <= {"name", "value", "step"}:
        raise Refused(
            f"launch.json: metric: a pattern must have the group value, and may have name and step, "
            f"got {pattern!r:.100}"
        )
    try:
        from re import _parser as parser  # type: ignore[attr-defined]  # noqa: PLC0415 - from Python 3.11 on
    except ImportError:
        import sre_parse as parser  # noqa: PLC0415
    count_ways(parser.parse(pattern, re.ASCII), [0] * len(ALL))


def count_ways(sequence: Any, after: list[int], *, is_repeated: bool = False) -> list[int]:
    """Return, for each character that may come next, in how many ways a sequence can be tried until it fails.

    `after` has the same for what follows the sequence; zeros if nothing does, because then nothing can fail.
    The numbers are upper bounds. Raises Refused for what could be tried too often. Specs are checked for the
    same patterns.
    """
    ways = after
    for kind, argument in reversed(list(sequence)):
        name = str(kind)
        if name.startswith("GROUPREF") or (is_repeated and (name == "BRANCH" or name.endswith("REPEAT"))):
            raise Refused(
                "launch.json: metric: a pattern must not refer to its groups, "
                "nor repeat what has repeats or alternatives"
            )
        if name.endswith("REPEAT"):
            ways = count_repeat(argument, ways)
        elif name == "BRANCH":
            ways = [sum(counts) for counts in zip(*(count_ways(each, ways) for each in argument[1]))]
        elif name in ("SUBPATTERN", "ATOMIC_GROUP"):
            body = argument[-1] if name == "SUBPATTERN" else argument
            ways = count_ways(body, ways, is_repeated=is_repeated)
        elif name.startswith("ASSERT"):
            inside = max(count_ways(argument[1], [0] * len(ALL), is_repeated=is_repeated))
            ways = [1 + inside + count for count in ways]
        elif name == "AT":
            ways = [max(1, count) for count in ways]
        else:
            most, matched = max(1, *ways), characters(name, argument)
            ways = [most if code in matched else 0 for code in range(len(ALL))]
        if max(ways) > MOST_WAYS:
            raise Refused(
                "launch.json: metric: a pattern could take too long, because it can divide a line in more "
                f"than {MOST_WAYS} ways"
            )
    return ways


def count_repeat(argument: Any, after: list[int]) -> list[int]:
    """Return the ways of a repeat: wherever it may stop, what follows is tried at a character of its own."""
    low, high, body = int(argument[0]), int(argument[1]), argument[2]
    if high <= 1:
        once = count_ways(body, after)
        return once if low else [own + without for own, without in zip(once, after)]
    begins = count_ways(body, [1] * len(ALL), is_repeated=True)
    stops = min(high, LONGEST_MATCH) - min(low, LONGEST_MATCH)
    early = max((count for begin, count in zip(begins, after) if begin), default=0)
    ways = max(1, stops * early + max(after))
    return [ways if begin else 0 if low else count for begin, count in zip(begins, after)]


CATEGORIES = {
    "DIGIT": r"\d",
    "SPACE": r"\s",
    "WORD": r"\w",
    "NOT_DIGIT": r"\D",
    "NOT_SPACE": r"\S",
    "NOT_WORD": r"\W",
}
OTHERS = 128  # stands for all characters beyond ASCII
ALL = frozenset(range(OTHERS + 1))


def characters(name: str, argument: Any) -> frozenset[int]:
    """Return the ASCII characters, or OTHERS, that one part of a parsed pattern matches, in either case."""
    if name == "LITERAL":
        letter = chr(argument)
        return frozenset(min(ord(each), OTHERS) for each in (letter, letter.lower()[:1], letter.upper()[:1]))
    if name == "RANGE":
        return frozenset().union(
            *(
                characters("LITERAL", min(each, OTHERS))
                for each in range(min(argument[0], OTHERS), min(argument[1], OTHERS) + 1)
            )
        )
    if name == "CATEGORY":
        pattern = re.compile(CATEGORIES[str(argument).replace("CATEGORY_", "")], re.ASCII)
        return frozenset(each for each in ALL if pattern.match(chr(each)))
    if name == "IN":
        parts = [(str(kind), value) for kind, value in argument]
        found = frozenset().union(*(characters(*part) for part in parts if part[0] != "NEGATE"))
        return (ALL - found) | {OTHERS} if parts[0][0] == "NEGATE" else found
    return ALL  # ANY, NOT_LITERAL


class Rows(NamedTuple):
    """One verified file of the table."""

    file: str
    first: int
    columns: list[tuple[str, str]]
    header: str
    lines: list[str]


def count_rows(launch: Mapping[str, Any]) -> int:
    """Return the number of rows of the whole table."""
    return sum(shard["count"] for shard in launch["shards"])


def read_rows(launch: Mapping[str, Any], folder: str, index: int) -> Rows:
    """Read the file of the table that has a row, and verify it."""
    shards = [s for s in launch["shards"] if s["first"] <= index < s["first"] + s["count"]]
    if not shards:
        raise Refused(f"index {index} is beyond the table, which has {count_rows(launch)} rows")
    shard = shards[0]
    try:
        with open(os.path.join(folder, shard["file"]), "rb") as file:
            content = file.read()
    except OSError as error:
        raise Refused(f"the table cannot be read: {error}") from error
    digest = "sha256:" + sha256(content)
    if digest != shard["digest"]:
        raise Refused(f"{shard['file']} must have the digest {shard['digest']}, got {digest}")
    columns = [(column["name"], column["type"]) for column in launch["columns"]]
    header = ",".join(["trial", *(name for name, _ in columns)])
    try:
        lines = content.decode().split("\n")
        if lines[0] != header or lines[-1] or len(lines) != shard["count"] + 2:
            raise ValueError(
                f"it must have the header {header!r}, {shard['count']} rows and a final line end"
            )
    except ValueError as error:
        raise Refused(f"{shard['file']}: {error}") from error
    return Rows(shard["file"], shard["first"], columns, header, lines[1:-1])


def read_row(launch: Mapping[str, Any], folder: str, index: int) -> Row:
    """Read one row of the table."""
    rows = read_rows(launch, folder, index)
    line = rows.lines[index - rows.first]
    try:
        trial, values = parse_line(line, rows.columns)
        replicate = values.pop("replicate", None) if ("replicate", "number") in rows.columns else 0
        if type(replicate) is not int or replicate < 0:
            raise ValueError(f"the replicate must be a number from 0, got {replicate!r}")
    except ValueError as error:
        raise Refused(f"{rows.file}: {error}") from error
    digest = sha256(f"{launch['program']}\n{rows.header}\n{line}\n".encode())
    return Row(index, trial, digest, values, replicate)


def parse_line(line: str, columns: list[tuple[str, str]]) -> tuple[str, dict[str, Any]]:
    """Split a row: an empty cell is an absent parameter, `""` the empty text. Raises ValueError."""
    cells, position = [], 0
    while True:
        cell = CELL.match(line, position)
        assert cell  # an empty cell always matches
        cells.append(cell)
        position = cell.end() + 1
        if cell.end() == len(line):
            break
        if line[cell.end()] != ",":
            raise ValueError(f"a quote stands in the wrong place: {line!r}")
    if len(cells) != 1 + len(columns):
        raise ValueError(f"a row must have {1 + len(columns)} cells, got {line!r}")
    if not TRIAL.fullmatch(cells[0][0]):
        raise ValueError(f"a row must begin with its trial's id, got {line!r}")
    values = {}
    for (name, kind), cell in zip(columns, cells[1:]):
        if cell[0]:
            values[name] = parse_cell(cell[0], cell[1], kind, name)
    return cells[0][0], values


def parse_cell(cell: str, quoted: str | None, kind: str, name: str) -> Any:
    """Return a cell's value, exactly typed. Raises ValueError."""
    if quoted is None:
        number = NUMBER.fullmatch(cell) if kind == "number" else None
        if number:
            value = float(cell) if number[1] or number[2] else int(cell)
            if abs(value) != math.inf:
                return value
        if kind == "boolean" and cell in ("true", "false"):
            return cell == "true"
    elif kind in ("string", "json"):
        text = quoted.replace('""', '"')
        return text if kind == "string" else json.loads(text, object_pairs_hook=distinct)
    raise ValueError(f"{name} must be a cell of type {kind}, got {cell}")


# ------------------------------------------------------------------ the command

SPREAD: Mapping[str, Callable[[str, Any], list[str]]] = {
    "args": lambda name, value: [f"--{name}={value}"],
    "args_no_hyphens": lambda name, value: [f"{name}={value}"],
    "args_no_boolean_flags": lambda name, value: switch(name, value, []),
    "args_single_hyphen": lambda name, value: [f"-{name}", *words_of(value)],
    "args_spaced": lambda name, value: [f"--{name}", *words_of(value)],
    "args_switches": lambda name, value: switch(name, value, [f"--no-{name}"]),
}


def spread(macro: str, names: str | None, values: Mapping[str, Any], named: list[str | None]) -> list[str]:
    """Return the arguments of a macro: of the parameters that it names, else of all that no macro names."""
    chosen = names.split(",") if names else values.keys() - set(",".join(filter(None, named)).split(","))
    return [word for name in values if name in chosen for word in SPREAD[macro](name, values[name])]


def switch(name: str, value: Any, off: list[str]) -> list[str]:
    """Return the arguments of a value; those of false are `off`."""
    return [f"--{name}={value}"] if not isinstance(value, bool) else [f"--{name}"] if value else off


def words_of(value: Any) -> list[str]:
    """Return a value as arguments: each entry of a list is one."""
    return list(map(str, value if isinstance(value, list) else [value]))


def parameter_variables(values: Mapping[str, Any], columns: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the variable of each value; JSON columns stay JSON."""
    kinds = {column["name"]: column["type"] for column in columns}
    return {
        "SWEEP_PARAM_" + re.sub("[^A-Za-z0-9]", "_", name).upper(): (
            json.dumps(value) if kinds[name] == "json" else str(value)
        )
        for name, value in values.items()
    }


def expand(
    command: list[Any], values: Mapping[str, Any], single: Mapping[str, str], variables: Mapping[bytes, bytes]
) -> list[str]:
    """Replace a command's macros; those that give several arguments are alone in their element."""
    arguments: list[str] = []
    lists = [element if isinstance(element, list) else [element] for element in command]
    named = [part.get("argument") for parts in lists for part in parts if macro_of(part) in SPREAD]
    for parts in lists:
        macro = macro_of(parts[0]) if len(parts) == 1 else ""
        if macro in SPREAD:
            arguments += spread(macro, parts[0].get("argument"), values, named)
        else:
            arguments.append("".join(text_of(part, single, variables) for part in parts))
    if not arguments:
        raise BadCommand("the command is empty")
    return arguments


def macro_of(part: Any) -> str:
    """Return the name of the macro that a part of an element is; nothing for text."""
    return str(part.get("macro")) if isinstance(part, dict) else ""


def text_of(part: Any, single: Mapping[str, str], variables: Mapping[bytes, bytes]) -> str:
    """Return the text that a part of an element stands for."""
    if isinstance(part, str):
        return part
    macro = macro_of(part)
    if macro in single:
        return single[macro]
    if macro != "envvar":
        raise Refused(f"launch.json: command: {part!r} is not a part that this launcher knows")
    name = str(part.get("argument"))
    if name.encode() not in variables:
        raise Refused(f"the command needs the environment variable {name}, which is not set")
    return variables[name.encode()].decode("utf-8", "surrogateescape")


def placeholder_of(part: Any) -> str:
    """Return what a reviewer sees instead of a value that only the pod knows; nothing for other parts."""
    macro = macro_of(part)
    if macro == "envvar":
        return f"<envvar:{part.get('argument')}>"
    return f"<{macro}>" if macro in ("args_json_file", "config") else ""


def with_placeholders(command: list[Any]) -> list[Any]:
    """Return the command as a reviewer sees it."""
    lists = (element if isinstance(element, list) else [element] for element in command)
    return [[placeholder_of(part) or part for part in parts] for parts in lists]


def compare(shown: list[str], expanded: list[str]) -> None:
    """Refuse a command that is not the one that was shown."""
    if shown == expanded:
        return
    pairs = list(itertools.zip_longest(shown, expanded))
    place = next(place for place, (left, right) in enumerate(pairs) if left != right)
    left, right = ("nothing" if text is None else repr(text)[:400] for text in pairs[place])
    raise Refused(
        f"the command shown must be what the row gives: argument {place} is shown as {left}, got {right}"
    )


def read_secrets(paths: Mapping[str, str]) -> dict[bytes, bytes]:
    """Read the file of each variable. Its content is only ever in the command's environment."""
    secrets = {}
    for name, path in paths.items():
        try:
            with open(path, "rb") as file:
                content = file.read(LARGEST_FILE + 1)
        except OSError as error:
            raise Refused(f"the secret for {name} cannot be read: {path}: {error.strerror}") from error
        if len(content) > LARGEST_FILE or b"\0" in content:
            raise Refused(f"the secret for {name} must be text of at most 1 MiB: {path}")
        secrets[name.encode()] = content[:-1] if content.endswith(b"\n") else content
    return secrets


# -------------------------------------------------------------- hyperparams.yml

PLAIN = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_./+-]*", re.ASCII)
MISREAD = (  # PLAIN texts that YAML 1.1 does not read as text
    r"[+-]?0b[01_]+|[+-]?0[0-7_]+|[+-]?(?:0|[1-9][0-9_]*)|[+-]?0x[0-9a-fA-F_]+"
    r"|[+-]?[0-9][0-9_]*\.[0-9_]*(?:[eE][+-][0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}"
)
WORDS = {
    form
    for word in ("yes", "no", "true", "false", "on", "off", "null")
    for form in (word, word.title(), word.upper())
}


def yaml_scalar(value: Any) -> str:
    """Write a value as PyYAML does; text that is not a single word has other quotes, and equal value."""
    if isinstance(value, str) and PLAIN.fullmatch(value):
        return f"'{value}'" if value in WORDS or re.fullmatch(MISREAD, value, re.ASCII) else value
    if isinstance(value, float):
        text = repr(value)
        return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text
    if isinstance(value, list):
        return "[" + ", ".join(map(yaml_scalar, value)) + "]"
    return yaml_text(value) if isinstance(value, str) else json.dumps(value)


def yaml_text(text: str) -> str:
    """Write a text in quotes: JSON writes a letter beyond 16 bits as two, and YAML reads two."""
    return '"' + re.sub(r"[^ !#-\[\]-~]", lambda letter: f"\\U{ord(letter[0]):08X}", text) + '"'


def yaml_item(values: Mapping[str, Any]) -> str:
    """Write one set of the list."""
    lines = []
    for name, value in sorted(values.items()):
        shown = f"    {yaml_scalar(name)}:"
        if isinstance(value, list) and value:
            lines += [shown, *(f"    - {yaml_scalar(item)}" for item in value)]
        else:
            lines.append(f"{shown} {yaml_scalar(value)}")
    return "\n".join(["- hyperparam_set:" if lines else "- hyperparam_set: {}", *lines, ""])


def hyperparams(launch: Mapping[str, Any], row: Row) -> str:
    """Write the list whose item JOB_ID - 1 scripts look up: complete if short, else empty before that item.

    With a long list in every pod, the cost of a sweep would be quadratic in its trials.
    """
    if len(launch["shards"]) > 1 or launch["shards"][0]["count"] > WHOLE_LIST:
        return "-\n" * row.number + yaml_item(row.values)
    rows = read_rows(launch, need("SWEEP_TABLE"), row.number)
    sets = (parse_line(line, rows.columns)[1] for line in rows.lines)
    return "".join(
        yaml_item({name: value for name, value in values.items() if name != "replicate"}) for values in sets
    )


# ------------------------------------------------------- the configuration file


def config_value(value: Any, sign: str) -> str:
    """Write a value on one line, as YAML 1.1, YAML 1.2 and TOML read it if this sign follows names."""
    if isinstance(value, dict):
        pairs = (yaml_text(name) + sign + config_value(inner, sign) for name, inner in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(config_value(item, sign) for item in value) + "]"
    return yaml_text(value) if isinstance(value, str) else yaml_scalar(value)


def config_text(config: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Return the base file of `run.config`, given as JSON, with a trial's values at their dotted names."""
    data, form = parse_object(config["text"].encode()), config["format"]
    for name, value in values.items():
        *above, last = name.split(".")
        place = data
        for part in above:
            place = place.setdefault(part, {})
            if type(place) is not dict:
                raise Refused(f"run.config: {name} would be inside of {part}, which is no mapping")
        place[last] = value
        if value is None and form == "toml":
            raise Refused(f"run.config: {name} is null, which TOML lacks")
    if form == "json":
        return json.dumps(data, indent=2) + "\n"
    sign = " = " if form == "toml" else ": "
    lines = (f"{yaml_text(name)}{sign}{config_value(value, sign)}\n" for name, value in data.items())
    return "".join(lines)


# ------------------------------------------------------- the working directory


class Folders(NamedTuple):
    """The private folders of one attempt; they are deleted with it."""

    trial: str
    """The folder of all others, in the scratch."""
    work: str
    """A copy of the code, below a parent that nothing else uses."""
    home: str
    temporary: str
    code: str
    """The folder of the locked code."""
    note: bytes = b""
    """What is in the file `copied` if nobody has changed the copy; empty: no other attempt can have it."""

    def variables(self) -> dict[str, str]:
        """Return the variables that point programs to these folders."""
        home, temporary = self.home, self.temporary
        return {
            "HOME": home,
            "TMPDIR": temporary,
            "TMP": temporary,
            "TEMP": temporary,
            "XDG_CACHE_HOME": os.path.join(home, ".cache"),
            "XDG_CONFIG_HOME": os.path.join(home, ".config"),
            "XDG_DATA_HOME": os.path.join(home, ".local", "share"),
            "XDG_STATE_HOME": os.path.join(home, ".local", "state"),
            "XDG_RUNTIME_DIR": temporary,
            "GIT_CEILING_DIRECTORIES": self.trial,  # git must not find a repository around the scratch
        }


def short_link(trial: str) -> str:
    """Return the path of the link to a TMPDIR of a long path: all of a trial that is elsewhere."""
    return os.path.join(SHORT_FOLDER, SHORT_PREFIX + os.path.basename(trial))


def code_folder() -> str:
    """Return the folder of the locked code."""
    return os.path.realpath(need("SWEEP_CODE"))


def make_folders(trial: str) -> Folders:
    """Copy the code into the folder of an attempt, and add HOME and TMPDIR; an overlay has them."""
    work, home, temporary = (os.path.join(trial, name) for name in ("run/work", "home", "tmp"))
    is_copy = OVERLAY not in os.environ
    for folder in (os.path.dirname(work), home, temporary) if is_copy else ():
        os.mkdir(folder, 0o700)
    if len(os.fsencode(temporary)) > LONGEST_TEMPORARY:
        os.symlink(temporary, short_link(trial))
        temporary = short_link(trial)
    code = code_folder()
    if not os.environ.get("SWEEP_CODE_STATE") and not os.path.isdir(code):
        raise Refused(f"SWEEP_CODE: there is no folder {code}: the image must have the code there")
    if not is_copy:
        if time.monotonic() > COMPARED.get(code, 0.0) + 1:  # after the command, it is compared anyway
            compare_code(code)
        return Folders(trial, work, home, temporary, code)
    earlier, begin = earlier_copy(trial), changed_now(trial)
    try:
        state, numbers = copy_folder(code, work, earlier)
    except PermissionError as error:
        raise Refused(f"the code cannot be copied for the trial: {error}") from error
    finally:
        delete_folder(earlier.trial)
    compare_code(code, state)
    is_shared = "SWEEP_COPIES" in os.environ and len(numbers) <= MOST_SHARED
    note = note_of_copy(trial, numbers, begin) if is_shared else b""
    return Folders(trial, work, home, temporary, code, note)


COMPARED: dict[str, float] = {}  # by folder, when a process that runs several rows last had its state


def compare_code(code: str, state: str = "") -> None:
    """Compare the state of the code, if it is known, with what was locked. Raises CodeChanged."""
    expected = os.environ.get("SWEEP_CODE_STATE", "")
    if not state or expected.startswith(BY_CONTENT):
        state = state_of(code, expected)
    if expected and state != expected:
        raise CodeChanged("the stored code is no longer what was locked: something wrote to it")


def open_folder(path: str, parent: int | None = None) -> int:
    """Open a folder that is no link."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)


class Earlier(NamedTuple):
    """The copy that an ended attempt had: the inode of each file, and when they were copied or moved."""

    trial: str
    """The folder of that attempt."""
    numbers: Mapping[str, Any]
    begin: int
    end: int

    def open(self, folder: str) -> int:
        """Open a folder of the copy; -1: there is none. Links may name another attempt's."""
        file = -1
        for part in (self.trial, "run", "work", *filter(None, folder.split(os.sep))):
            parent = file
            try:
                file = open_folder(part, None if parent < 0 else parent)
            except OSError:
                file = -1
            if parent >= 0:
                os.close(parent)
            if file < 0:
                break
        return file

    def gives(self, name: str, number: int, original: os.stat_result, folder: int, target: int) -> bool:
        """Move a file of a folder to another one, if it is as it was copied; return whether it is there."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            file = os.open(name, flags, dir_fd=folder)
        except OSError:
            return False
        try:
            state = os.fstat(file)
            if (
                state.st_ino != number
                or not self.begin <= state.st_ctime_ns <= self.end
                or state.st_mtime_ns != original.st_mtime_ns
                or state.st_size != original.st_size
                or state.st_mode != stat.S_IFREG | mode_of_copy(original)
                or state.st_nlink != 1
            ):
                return False
            # Granted only if nobody else has the file open, or mapped: whoever has could still write to it.
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            os.rename(name, name, src_dir_fd=folder, dst_dir_fd=target)
        except OSError:
            return False
        finally:
            os.close(file)
        return True


NO_COPY = Earlier("", {}, 0, 0)


def changed_now(folder: str) -> int:
    """Return the time of change that the file system of a folder notes now."""
    os.utime(folder)
    return os.stat(folder).st_ctime_ns


def earlier_copy(trial: str) -> Earlier:
    """Return the copy that an ended attempt has left in this scratch, if there is one."""
    scratch = os.path.dirname(trial)
    for name in os.listdir(scratch) if "SWEEP_COPIES" in os.environ else ():
        folder = os.path.join(scratch, name)
        if name.startswith("trial-") and folder != trial:
            with contextlib.suppress(OSError, ValueError, TypeError, LookupError, RecursionError):
                with open_regular(os.path.join(folder, COPIED)) as file:
                    content = json.loads(file.read(LARGEST_FILE))
                begin, end = map(int, content[COPY_TIMES])
                return Earlier(folder, dict(content), begin, end)
            return Earlier(folder, {}, 0, 0)
    return NO_COPY


def note_of_copy(trial: str, numbers: Mapping[str, int], begin: int) -> bytes:
    """Return what the files of a copy are, if the file system notes each later write to them.

    First, the clock of the file system has to go on: where it has steps of seconds, waiting costs more than a
    copy.
    """
    end = changed_now(trial) if notes_writes(trial) else 0
    for _ in range(MOST_WAITS if end else 0):
        if changed_now(trial) > end:
            return json.dumps({**numbers, COPY_TIMES: [begin, end]}).encode()
        time.sleep(0.0005)
    return b""


def leave_note(trial: str, note: bytes) -> None:
    """Write what the files of a copy are, or nothing, when no process is left that could write it."""
    path = os.path.join(trial, COPIED)
    delete(path)
    if note:
        with contextlib.suppress(OSError):
            write_new(path, note)


NOTING: dict[int, bool] = {}  # by device, as far as somebody has tried it


def notes_writes(folder: str) -> bool:
    """Return whether the file system of a folder notes a write to a mapping that was read; tmpfs does not."""
    import mmap  # noqa: PLC0415 - laptops alone need it

    device = os.stat(folder).st_dev
    if device not in NOTING:
        NOTING[device] = False
        path = os.path.join(folder, "mapped")
        file = create(path)
        try:
            write_all(file, b"0")
            with contextlib.suppress(OSError, ValueError), mmap.mmap(
                file, 0
            ) as mapped:  # some have no mappings
                digit, written = mapped[0], os.fstat(file).st_ctime_ns
                for _ in range(MOST_WAITS):
                    if changed_now(folder) > written:
                        break
                    time.sleep(0.0005)
                mapped[0] = digit
                NOTING[device] = os.fstat(file).st_ctime_ns > written
        finally:
            os.close(file)
            os.unlink(path)
    return NOTING[device]


def copy_folder(
    source: str, target: str, earlier: Earlier = NO_COPY, *, is_code: bool = True
) -> tuple[str, dict[str, int]]:
    """Copy a folder so that no write to the copy reaches the original; return the state of the original.

    Also return the inode of each copied file. Files of an earlier copy that nobody has changed are moved.
    Folders are always new: a process outside the attempt that still has a folder of the earlier copy does not
    reach this one.
    """
    if is_code and is_below(source, os.path.dirname(target)):
        raise Refused(f"SWEEP_CODE: {source} contains the scratch folder {need('SWEEP_SCRATCH')}")
    states, numbers, size, waiting = [], {}, 0, [""]
    while waiting:
        folder = waiting.pop()
        listed = os.open(os.path.join(source, folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        states.append(facts_of(folder, os.fstat(listed)))
        place, prefix = (os.path.join(target, folder), folder + os.sep) if folder else (target, "")
        os.mkdir(place, 0o700)
        opened, new = earlier.open(folder), open_folder(place)
        given = earlier.numbers if opened >= 0 else {}
        with os.scandir(listed) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_file(follow_symlinks=False):
                    state = entry.stat(follow_symlinks=False)
                    number = given.get(name)
                    if number is None or not earlier.gives(entry.name, number, state, opened, new):
                        state, number = copy_file(os.path.join(source, name), entry.name, new)
                    numbers[name] = number
                    states.append(facts_of(name, state))
                    size += state.st_size
                elif entry.is_symlink():
                    states.append(facts_of(name, entry.stat(follow_symlinks=False)))
                    copy_link(name, source, target, is_code=is_code)
                elif entry.is_dir():
                    waiting.append(name)
                if is_code and (len(states) > MOST_CODE_FILES or size > LARGEST_CODE):
                    raise Refused(
                        f"the code has more than {MOST_CODE_FILES} files or {LARGEST_CODE >> 30} GiB, and"
                        " each trial has a copy: keep data in run.data, and the rest out of run.code"
                    )
        for file in filter(lambda file: file >= 0, (new, listed, opened)):
            os.close(file)
    return digest_of(states), numbers


def copy_link(name: str, source: str, target: str, *, is_code: bool) -> None:
    """Copy a link, or the file that a checkpoint names elsewhere: all that continue it would write there."""
    path, copy = os.path.join(source, name), os.path.join(target, name)
    if is_code or is_below(source, path):
        os.symlink(moved(os.readlink(path), source, target), copy)
    elif os.path.isfile(path):
        copy_file(os.path.realpath(path), copy)


def mode_of_copy(original: os.stat_result) -> int:
    """Return the permissions of the copy of a file: its owner may write."""
    return 0o600 | original.st_mode & 0o111


def copy_file(source: str, target: str, folder: int | None = None) -> tuple[os.stat_result, int]:
    """Copy a file, its time and whether it can run; return its state after it, and the copy's inode."""
    reader = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        state = os.fstat(reader)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        writer = os.open(target, flags, mode_of_copy(state), dir_fd=folder)
        try:
            copy_bytes(reader, writer, state.st_size)
            os.utime(writer, ns=(state.st_atime_ns, state.st_mtime_ns))
            number = os.fstat(writer).st_ino
        finally:
            os.close(writer)
        return os.fstat(reader), number
    finally:
        os.close(reader)


def copy_bytes(reader: int, writer: int, size: int) -> None:
    """Copy a file to its end, by the system or by sharing blocks if it can."""
    try:
        while size > 0 and hasattr(os, "copy_file_range"):
            count = os.copy_file_range(reader, writer, size)
            if not count:
                break
            size -= count
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM):
            raise
    for chunk in iter(lambda: os.read(reader, LARGEST_FILE), b""):  # what is left, of files that grow, too
        write_all(writer, chunk)


def facts_of(name: str, state: os.stat_result) -> tuple[Any, ...]:
    """Return what a write to a file or folder changes."""
    return name, state.st_ino, state.st_mode, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def digest_of(states: Iterable[tuple[Any, ...]], contents: Iterable[str] = ()) -> str:
    """Return one digest for the states of all files of a folder, and for their contents."""
    lines = [
        f"{name}\0{number} {mode:o} {size} {written} {changed}"
        for name, number, mode, size, written, changed in states
    ]
    return sha256("\n".join(sorted([*lines, *contents])).encode("utf-8", "surrogateescape"))


DIGESTS: dict[str, tuple[list[tuple[Any, ...]], str]] = {}
"""By folder, the states that a process that runs several rows had last, and their digest."""
BY_CONTENT = "content-"
"""Begins a state for which all files were read: their file system does not note each write to a file."""


def state_of(folder: str, expected: str = "", *, follows: bool = False) -> str:
    """Return the state of all files below a folder, by which a change is noticed, of the expected kind.

    If it follows links, also that of files elsewhere to which they lead, directly or in a folder.
    """
    kind = BY_CONTENT if expected.startswith(BY_CONTENT) else ""
    states: list[tuple[Any, ...]] = []
    contents: list[str] = []
    waiting: list[tuple[str, tuple[tuple[int, int], ...]]] = [("", ())]
    while waiting:
        parent, around = waiting.pop()
        state = os.stat(os.path.join(folder, parent))
        if (state.st_dev, state.st_ino) in around:  # a link to a folder around it
            continue
        around = (*around, (state.st_dev, state.st_ino))
        states.append(facts_of(parent, state))
        prefix = parent + os.sep if parent else ""
        with os.scandir(os.path.join(folder, parent)) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((name, around))
                    continue
                states.append(facts_of(name, entry.stat(follow_symlinks=False)))
                if follows and entry.is_symlink():
                    with contextlib.suppress(OSError):  # it leads nowhere
                        states.append(facts_of(name, entry.stat()))
                        if entry.is_dir():
                            waiting.append((name, around))
                if kind and entry.is_file(follow_symlinks=follows):
                    contents.append(f"{name}\0{describe(entry.path, name)['sha256']}")
    noted, digest = DIGESTS.get(folder, ([], ""))
    if contents or noted != states:
        digest = digest_of(states, contents)
        if not contents and len(states) <= MOST_SHARED:
            DIGESTS[folder] = states, digest
    return kind + digest


def has_data_changed() -> bool:
    """Return whether the data is no longer what it was when the trial began, if somebody said what it was."""
    expected = os.environ.get("SWEEP_DATA_STATE", "")
    try:
        return bool(expected) and state_of(need("SWEEP_DATA"), expected, follows=True) != expected
    except OSError:  # some of it is gone
        return True


def is_below(folder: str, path: str) -> bool:
    """Return whether a path is a folder or in it, after all links."""
    folder, path = os.path.realpath(folder), os.path.realpath(path)
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def moved(path: str, source: str, target: str) -> str:
    """Return where an absolute path is in the copy, if the source has it after all links; else the path."""
    if not os.path.isabs(path) or not is_below(source, path):
        return path
    return os.path.normpath(os.path.join(target, os.path.relpath(os.path.realpath(path), source)))


def working_directory(launch: Mapping[str, Any], folders: Folders) -> str:
    """Return the folder in which the command starts, with links to datasets where the sweep wants them."""
    place = os.path.normpath(os.path.join(folders.work, launch.get("workdir", ".")))
    if place != folders.work and not (os.path.isdir(place) and is_below(folders.work, place)):
        raise Refused(f"run.workdir: the code has no folder {launch['workdir']}")
    for name, path in sorted(launch.get("data_at", {}).items()):
        link = os.path.normpath(os.path.join(place, path))
        if not is_below(os.path.dirname(folders.work), os.path.dirname(link)) or os.path.lexists(link):
            raise Refused(f"run.data: {path} is in the code already, or more than one level up")
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(os.path.join(os.path.abspath(need("SWEEP_DATA")), name), link)
    return place


def keep_written(patterns: Iterable[str], work: str, source: str, target: str) -> None:
    """Move what the command has written to the artifacts, if a pattern of `run.keep` matches its path."""
    import filecmp  # noqa: PLC0415 - rarely needed
    import glob  # noqa: PLC0415
    import shutil  # noqa: PLC0415

    matches = (
        path for pattern in patterns for path in glob.iglob(os.path.join(work, pattern), recursive=True)
    )
    for path in itertools.islice(dict.fromkeys(matches), MOST_FILES):
        name = os.path.relpath(path, work)
        original, kept = os.path.join(source, name), os.path.join(target, name)
        if os.path.islink(path) or not os.path.isfile(path) or not is_below(work, path):
            continue
        if os.path.isfile(original) and filecmp.cmp(original, path, shallow=False):
            continue
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        if not os.path.lexists(kept):
            shutil.move(path, kept)


# ----------------------------------------------------- the environment's digest


class Environment(NamedTuple):
    """What identifies the software that a trial ran with."""

    kind: str
    content: bytes

    @property
    def member(self) -> dict[str, str]:
        """The member of the record."""
        return {"kind": self.kind, "digest": f"sha256:{sha256(self.content)}"}


def read_environment(launch: Mapping[str, Any]) -> Environment:
    """Return the lock file that launch.json names, else the distributions that the command can import."""
    if "environment" not in launch:
        return Environment("distributions", list_distributions(launch["interpreter"]))
    path = os.path.join(code_folder(), launch["environment"]["lock"])
    try:
        with open(path, "rb") as file:
            return Environment("lock", file.read())
    except OSError as error:
        raise Refused(f"the lock file of the environment cannot be read: {error}") from error


def list_distributions(interpreter: str) -> bytes:
    """List `name==version` of the distributions that an interpreter can import, by their folders."""
    versions: dict[str, str] = {}
    for folder in import_folders(interpreter):
        for name, version in installed_in(folder).distributions:
            versions.setdefault(name, version)  # of several the first is imported
    return "".join(f"{name}=={version}\n" for name, version in sorted(versions.items())).encode()


class Installed(NamedTuple):
    """What a folder of installed packages has."""

    distributions: list[tuple[str, str]]  # name and version
    path_files: list[str]


INSTALLED: dict[str, tuple[list[int], Installed]] = {}  # by folder, with its inode and times


def installed_in(folder: str) -> Installed:
    """Return what a folder has; a process that runs several rows lists it again only after a change."""
    try:
        found = os.stat(folder)
        state = [found.st_ino, found.st_ctime_ns, found.st_mtime_ns]
        noted, installed = INSTALLED.get(folder, ([], Installed([], [])))
        if noted == state:
            return installed
        entries = sorted(os.listdir(folder))
    except OSError:
        return Installed([], [])
    metadata = list(filter(METADATA.search, entries))
    pairs = (distribution_of(folder, entry) for entry in metadata)
    installed = Installed(
        [pair for pair in pairs if pair[0]], [entry for entry in entries if entry.endswith(".pth")]
    )
    # Other changes of the same moment would go unnoticed, as do those of files in an .egg-info.
    if time.time_ns() - found.st_ctime_ns > OLD_CHANGE and not any(
        entry.endswith(".egg-info") for entry in metadata
    ):
        INSTALLED[folder] = state, installed
    return installed


def distribution_of(folder: str, entry: str) -> tuple[str, str]:
    """Return the normalized name and the version of a metadata folder."""
    stem, _, suffix = entry.rpartition(".")
    name, _, rest = stem.partition("-")
    version = rest if suffix == "dist-info" else rest.partition("-py")[0]
    if not version:  # an egg that is being developed
        with contextlib.suppress(OSError), open(os.path.join(folder, entry, "PKG-INFO"), "rb") as file:
            found = re.search(rb"^Version: *(\S+)", file.read(LARGEST_FILE), re.MULTILINE)
            version = found[1].decode("utf-8", "replace") if found else ""
    return re.sub(r"[-_.]+", "-", name).lower(), version


def import_folders(interpreter: str) -> list[str]:
    """List the folders from which an interpreter imports distributions, without running any code in them."""
    own, path = sys.executable or "", which(interpreter)
    sites = None
    # To follow all links takes longer.
    beside = os.path.dirname(path) == os.path.dirname(own) and os.path.exists(own)
    is_own = (beside and os.path.samefile(path, own)) or os.path.realpath(path) == os.path.realpath(own)
    if path and not is_own:
        sites = ask_for_sites(path, venv_of(path)[0])
        path = path if sites else own
    venv, sees_base = venv_of(path or own)
    of_venv, of_user, of_base = sites or own_sites(venv)
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep) + of_venv
    if sees_base:
        folders += of_base if os.environ.get("PYTHONNOUSERSITE") else of_user + of_base
    return list(dict.fromkeys(each for folder in folders if folder for each in (folder, *linked(folder))))


def venv_of(path: str) -> tuple[str, bool]:
    """Return the virtual environment of an interpreter, or nothing, and whether it sees other packages."""
    venv = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    try:
        with open(os.path.join(venv, "pyvenv.cfg"), encoding="utf-8") as file:
            pairs = [line.lower().partition("=") for line in file]
    except (OSError, ValueError):
        return "", True
    return venv, ("include-system-site-packages", "true") in [
        (key.strip(), value.strip()) for key, _, value in pairs
    ]


def which(program: str) -> str:
    """Return the path of a program as a shell would find it; nothing if there is none."""
    if os.path.dirname(program):
        if not os.path.isabs(program):
            program = os.path.join(code_folder(), program)
        return program if os.access(program, os.X_OK) else ""
    paths = (
        os.path.join(folder, program) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder
    )
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), "")


# `site` is only asked for names here: importing it under -S runs nothing.
SITES = """
import site, sys
base = [sys.base_prefix, sys.base_exec_prefix]
print("\\t".join(site.getsitepackages([venv] if venv else [])))
print(site.getusersitepackages())
print("\\t".join(site.getsitepackages(base)))
"""


def ask_for_sites(path: str, venv: str) -> list[list[str]] | None:
    """Return what another interpreter says of its folders; None if it cannot be run."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        answer = subprocess.run(
            [path, "-I", "-S", "-c", f"venv = {venv!r}{SITES}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=10,
            check=True,
        )
        lines = answer.stdout.decode("utf-8", "surrogateescape").split("\n")
        if len(lines) == 4:
            return [line.split("\t") for line in lines[:3]]
    return None


def own_sites(venv: str) -> list[list[str]]:
    """Return what `ask_for_sites` would say of this interpreter."""
    import site  # noqa: PLC0415 - not loaded under -S

    base = [sys.base_prefix, sys.base_exec_prefix]
    of_venv = site.getsitepackages([venv]) if venv else []
    return [of_venv, [site.getusersitepackages()], site.getsitepackages(base)]


def linked(folder: str) -> Iterator[str]:
    """Yield the folders that the .pth files of a folder add, as editable installations have them."""
    with contextlib.suppress(OSError, ValueError):
        for entry in installed_in(folder).path_files:
            with open(os.path.join(folder, entry), encoding="utf-8") as file:
                for line in file.read(LARGEST_FILE).splitlines():
                    path = os.path.join(folder, line.strip())
                    if line.strip() and not line.startswith(("#", "import ")) and os.path.isdir(path):
                        yield path


# ------------------------------------------------- signals, processes and pipes


class Signals:
    """Signals as values to look at: a request to stop is remembered, and any signal ends a wait."""

    def __init__(self) -> None:
        self.stop = 0
        self.renew()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup stays nohup
                signal.signal(number, self.remember)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def renew(self) -> None:
        """Use a pipe of our own: after a fork, the old one would wake the parent."""
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)

    def remember(self, number: int, _frame: object) -> None:
        """Keep the first signal that requests the end."""
        self.stop = self.stop or number

    def wake(self) -> None:
        """End a wait from another thread."""
        with contextlib.suppress(BlockingIOError):  # full: it ends anyway
            os.write(self.writer, b"\0")

    def wait(self, seconds: float, outputs: Sequence[Tee] = ()) -> None:
        """Copy outputs until a signal arrives, the time is over, or a minute has passed."""
        until = time.monotonic() + min(max(seconds, 0), 60)
        while True:
            sources = [each for each in outputs if each.is_open]
            watched: list[int | Tee] = [self.reader, *sources]
            ready = select.select(watched, [], [], max(0.0, until - time.monotonic()))[0]
            for each in sources:
                if each in ready:
                    each.take()
            if self.reader in ready:
                os.read(self.reader, 4096)
                return
            if not ready or time.monotonic() >= until:
                return


def lock(folder: str, signals: Signals) -> None:
    """Wait for other launchers of this trial; the lock lasts as long as this process. Raises Stopped."""
    file = os.open(
        os.path.join(folder, ".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644
    )
    is_waiting = False
    while not signals.stop:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not is_waiting:
                say("another launcher of this trial is at work: waiting for it")
            is_waiting = True
            signals.wait(0.1)
        except OSError as error:
            say(f"the results volume has no locks, continuing without: {error}")
            return
        else:
            return
    raise Stopped(signals.stop)


class Tee(threading.Thread):
    """Passes on one output of the trial as it arrives, and keeps its head and its tail in a file."""

    def __init__(self, target: int, path: str, watch: Callable[[bytes], object], file: int = -1) -> None:
        super().__init__(daemon=True)
        self.target, self.path, self.watch = target, path, watch
        self.source = -1
        self.is_open = False
        """Whether others call `take` when there is something to read; else a thread of its own does."""
        self.file = file  # -1: not yet created
        self.total = self.head = 0
        self.tail = bytearray()
        self.failure: OSError | None = None

    def copy(self, source: IO[bytes] | None) -> None:
        """Start to copy from a pipe: in a thread, unless no write to the target can wait for its reader."""
        assert source  # Popen was given PIPE
        self.source = source.fileno()
        self.is_open = never_waits(self.target)
        if not self.is_open:
            self.start()

    def fileno(self) -> int:
        """Return the pipe that is read."""
        return self.source

    def run(self) -> None:
        """Read to the end, whatever happens to the copies."""
        while self.take():
            pass

    def take(self) -> bool:
        """Read once; return whether there may be more."""
        chunk = os.read(self.source, 65536)
        if not chunk:
            self.is_open = False
            return False
        self.keep(chunk)
        self.watch(chunk)
        self.pass_on(chunk)
        return True

    def keep(self, chunk: bytes) -> None:
        """Write the head to the file at once, and hold the tail in bounded memory."""
        head = chunk[: KEPT_OUTPUT - self.head]
        self.head += len(head)
        self.total += len(chunk)
        self.save(head)
        self.tail += chunk[len(head) :]
        if len(self.tail) > 2 * KEPT_OUTPUT:
            del self.tail[:-KEPT_OUTPUT]

    def save(self, content: bytes) -> None:
        """Write to the file until that fails."""
        if self.failure is None and content:
            try:
                if self.file < 0:
                    self.file = create(self.path)
                write_all(self.file, content)
            except OSError as error:
                self.failure = error

    def pass_on(self, chunk: bytes) -> None:
        """Copy to our own output until nobody reads it any more."""
        while chunk and self.target >= 0:
            try:
                chunk = chunk[os.write(self.target, chunk) :]
            except BlockingIOError:
                select.select([], [self.target], [])
            except OSError:
                self.target = -1

    def finish(self, until: float) -> None:
        """Wait for the end of the output, but not forever, and write the tail."""
        while self.is_open and select.select([self], [], [], max(0.0, until - time.monotonic()))[0]:
            self.take()
        if self.ident is not None:
            self.join(max(0.0, until - time.monotonic()))
        tail = bytes(self.tail[-KEPT_OUTPUT:])
        cut = self.total - self.head - len(tail)
        self.save((f"\n[launch.py cut {cut} bytes here]\n".encode() if cut else b"") + tail)
        if self.failure:
            say(f"the kept output {self.path} is not complete: {self.failure}")


def never_waits(target: int) -> bool:
    """Return whether writing to a descriptor waits for no reader: one of a file, or of /dev/null."""
    with contextlib.suppress(OSError):
        state = os.fstat(target)
        return stat.S_ISREG(state.st_mode) or (
            stat.S_ISCHR(state.st_mode) and state.st_rdev == os.stat(os.devnull).st_rdev
        )
    return False


class LastWords:
    """The end of the command's stderr, in which a line says why it failed."""

    def __init__(self) -> None:
        self.end = b""

    def feed(self, chunk: bytes) -> None:
        """Take the next part."""
        self.end = (self.end + chunk)[-LAST_WORDS:]

    def has_metric(self, metric: Mapping[str, Any]) -> bool:
        """Return whether a line has the metric."""
        stream = Stream(metric)
        stream.feed(self.end)
        stream.finish()
        return not stream.report("", "").reason

    def cause(self, secrets: Iterable[bytes]) -> str:
        """Return the last exception of a traceback, else the last line, without colours and secrets."""
        text, *values = (re.sub(TERMINAL_CODES.encode(), b"", shown) for shown in (self.end, *secrets))
        parts = [part for value in values for part in value.split(b"\n")]
        for part in sorted(parts, key=len, reverse=True):
            text = text.replace(part, b"***") if part else text
        lines = [line.rstrip() for line in text.decode(errors="replace").split("\n")]
        if len(self.end) == LAST_WORDS:
            del lines[0]  # its beginning is lost, and with it what a secret is recognized by
        line = next((line for line in reversed(lines) if line), "")
        for place, header in enumerate(lines):
            # What Python ignores while it ends is not why it ended.
            if header == TRACEBACK and not (place and lines[place - 1].startswith("Exception ignored")):
                line = next((line for line in lines[place + 1 :] if line[:1].strip()), line)
        return " ".join(line.split())[:LONGEST_CAUSE]


def descendants(spared: Iterable[int] = ()) -> list[int]:
    """List all processes that descend from this one, where the system shows them, but through none spared."""
    children: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as file:
                # pid (command) state parent …, and the command may contain anything, brackets included.
                parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    pids = [pid for pid in children.get(os.getpid(), []) if pid not in spared]
    for pid in pids:  # grows during the iteration
        pids += children.get(pid, [])
    return pids


def has_children() -> bool:
    """Return whether this process may have children, ended ones included; without any, no descendants."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    except AttributeError:  # macOS has no such call
        pass
    return True


PRCTL: list[Any] = []  # the function, once somebody has needed it


def load_prctl() -> None:
    """Load the function, if the system has it (Linux)."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # noqa: PLC0415 - slim images lack it

        if not PRCTL:
            PRCTL.append(ctypes.CDLL(None).prctl)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, where the system supports it."""
    load_prctl()
    for prctl in PRCTL:
        prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def warm_up() -> None:
    """Do once what the launcher of each trial would do: for programs that fork launchers."""
    load_prctl()
    re.compile(METRIC_TEXT)
    parameter_variables({"x": 0}, [{"name": "x", "type": "number"}])  # these compile patterns as well
    distribution_of("", "x-1.dist-info")


class Ended(NamedTuple):
    """How a child process ended."""

    code: int  # as in Popen: minus the signal
    peak: int
    """The most memory in bytes that it, or one of the processes for which it has waited, had at a time."""


def reap() -> dict[int, Ended]:
    """Collect all child processes that have ended, orphans too, by their ids."""
    ended: dict[int, Ended] = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                break
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            ended[pid] = Ended(code, usage.ru_maxrss * (1 if sys.platform == "darwin" else KIBIBYTE))
    return ended


class Command(subprocess.Popen):  # type: ignore[type-arg]
    """The user's command."""

    peak_memory = 0
    """The most memory in bytes that one of its processes had, of those that have ended."""


def reap_for(child: Command) -> None:
    """Collect all child processes that have ended, and note what is known of the command."""
    for pid, ended in reap().items():
        child.peak_memory = max(child.peak_memory, ended.peak)
        if pid == child.pid:
            child.returncode = ended.code


def forget_peak_memory() -> None:
    """Count the peak of our memory from now on, if the system can: that of a child begins with it."""
    with contextlib.suppress(OSError):
        file = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, b"5")
        finally:
            os.close(file)


def signal_group(child: Command, number: int) -> None:
    """Send a signal to all processes of the trial's group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def kill_all(pids: Iterable[int]) -> None:
    """Send SIGKILL to processes, some of which may have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def end_all(child: Command) -> bool:
    """Kill the trial's group and all descendants, in other sessions too; return whether none is left."""
    until = time.monotonic() + PATIENCE
    signal_group(child, signal.SIGKILL)
    while time.monotonic() < until:
        # To read all of /proc takes longer than all else here, and most programs leave no process behind.
        remaining = descendants() if has_children() else []
        if not remaining:
            return True
        kill_all(remaining)
        time.sleep(0.005)
        reap_for(child)
    say("processes of the trial do not end, continuing without them")
    return False


class Ending(NamedTuple):
    """How the command ended."""

    code: int  # as in Popen: minus the signal
    cause: int  # 0: by itself; TIMED_OUT; STOPPED_EARLY; else the signal that the launcher received
    seconds: float


def supervise(
    child: Command,
    launch: Mapping[str, Any],
    signals: Signals,
    follower: Follower | None,
    outputs: Sequence[Tee],
) -> Ending:
    """Wait for the command; end it at its timeout, by a rule, or when the launcher is to stop."""
    start = time.monotonic()
    stop_at, cause = start + launch["timeout_seconds"], 0
    while True:
        reap_for(child)
        now = time.monotonic()
        if child.returncode is not None:
            return Ending(child.returncode, cause, now - start)
        is_early = follower is not None and not cause and follower.look()
        if not cause and (signals.stop or is_early or now >= stop_at):
            cause = signals.stop or (STOPPED_EARLY if is_early else TIMED_OUT)
            stop_at = now + launch["grace_seconds"]
            signal_group(child, signal.SIGTERM)
        elif now >= stop_at:
            signal_group(child, signal.SIGKILL)
            stop_at = now + PATIENCE
        pause = stop_at - now
        signals.wait(min(pause, LOOK) if follower and follower.looks and not cause else pause, outputs)


# ------------------------------------------------------ what the trial reported


class Report(NamedTuple):
    """What the trial says of itself."""

    metrics: dict[str, float]  # finite or not
    details: dict[str, Any]
    reason: str | None  # why there is no objective
    message: str
    curves: Mapping[str, list[list[Any]]] = {}  # [step, value] by metric, the most important first


class Curve:
    """A metric by step, in memory that does not grow with the steps.

    A place is a step after how often steps have begun again, as they do for each fold of a cross-validation.
    """

    def __init__(self, most: int = MOST_HELD) -> None:
        self.most = most
        self.points: list[tuple[tuple[int, int], float]] = []
        self.count, self.stride, self.has_steps = 0, 1, False
        self.last_step, self.restarts = -1, 0
        self.last: tuple[tuple[int, int], float] | None = None
        self.low: tuple[tuple[int, int], float] | None = None
        self.high: tuple[tuple[int, int], float] | None = None

    def add(self, value: float, step: Any) -> tuple[int, float]:
        """Add the next number, and return its step and itself; one without a step is counted, from 1."""
        given = whole_step(step)
        if given is not None:
            self.has_steps = True
            self.restarts += given < self.last_step
            self.last_step = given
        place = self.count + 1 if given is None else given
        self.last = point = ((self.restarts, place), value)
        if self.count % self.stride == 0:
            self.points.append(point)
            if len(self.points) > self.most:
                self.points = self.points[::2]
                self.stride *= 2
        self.count += 1
        if math.isfinite(value):
            self.low = point if self.low is None or value < self.low[1] else self.low
            self.high = point if self.high is None or value > self.high[1] else self.high
        return place, value

    def thinned(self, room: int = CURVE_BYTES) -> list[list[Any]]:
        """Return the points for a record, in the order of their steps; the fewest may exceed the room."""
        most = MOST_POINTS
        while True:
            points = self.at_most(most)
            size = len(dump(points))
            if size <= room or most == LEAST_POINTS:
                return points
            most = max(LEAST_POINTS, min(most * room // size, most - 1))

    def at_most(self, most: int) -> list[list[Any]]:
        """Return the first, last, lowest and highest point, and others evenly between them."""
        marks = [point for point in (self.low, self.high, self.last) if point]
        held = dict([*self.points, *marks])  # of a step that is repeated the last counts
        places = sorted(held)
        if len(places) > most:
            room = most - len(marks)
            even = {places[number * (len(places) - 1) // (room - 1)] for number in range(room)}
            places = sorted(even | {place for place, _ in marks})
        return [[place[1], held[place] + 0.0 if math.isfinite(held[place]) else None] for place in places]


def whole_step(step: Any) -> int | None:
    """Return a step as the integer that it must be; None if it is none."""
    if type(step) in AMOUNT and math.isfinite(step) and 0 <= step <= LARGEST_STEP and step == int(step):
        return int(step)
    return None


def wanted_of(metric: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of all metrics that a trial must report, the objective first."""
    return (metric["name"], *metric.get("others", ()))


class Gathered:
    """The numbers and details that a trial reports, in bounded memory."""

    def __init__(self, metric: Mapping[str, Any], on_value: Callable[[int, float], object]) -> None:
        self.objective, self.reduce, self.on_value = metric["name"], metric["reduce"], on_value
        self.wanted = wanted_of(metric)
        self.metrics: dict[str, float] = {}
        self.details: dict[str, Any] = {}
        self.followed = metric.get("curve", self.objective)
        self.curve = Curve()
        self.curves = {self.followed: self.curve}
        self.curves.setdefault(self.objective, Curve())
        self.unread: set[str] = set()  # metrics with numbers that count and are not read

    def add(self, members: Mapping[str, Any], step: Any, keeps: Callable[[str], bool]) -> None:
        """Add what one line or event says; `keeps` decides which of what is not a number is a detail."""
        for name, value in members.items():
            is_known = name in self.wanted or name in self.metrics or name == self.followed
            is_number = type(value) in AMOUNT and METRIC_NAME.fullmatch(name)
            if is_number and (is_known or len(self.metrics) < MOST_METRICS):
                self.metrics[name] = float(value)
                if name not in self.curves:
                    self.curves[name] = Curve(HELD_BESIDE)
                point = self.curves[name].add(self.metrics[name], step)
                if name == self.followed and not self.curve.restarts:  # else steps do not say how far it is
                    self.on_value(*point)
                if name != self.objective or self.reduce == "last":
                    self.unread.discard(name)
            else:
                if isinstance(value, OtherNumber) and name in self.wanted:
                    self.unread.add(name)
                if keeps(name) and (name in self.details or len(self.details) < MOST_METRICS):
                    self.details[name] = value

    def begin_file(self) -> None:
        """Take the steps of another file beside those of the first."""
        for curve in self.curves.values():
            curve.last_step = -1

    def recorded(self) -> dict[str, list[list[Any]]]:
        """Return the curves for a record, the most important first; those without room are a detail.

        The compared one comes first, then the objective, the other metrics of the sweep, and the rest by
        name. What the first leaves is divided equally. One number alone is a curve only if it is compared
        and has a step.
        """
        names = [
            name
            for name in dict.fromkeys((self.followed, *self.wanted, *sorted(self.curves)))
            if name in self.curves
            for count in [self.curves[name].count]
            if count > 1 or (count and name == self.followed and self.curve.has_steps)
        ]
        kept: dict[str, list[list[Any]]] = {}
        room = CURVES_BYTES
        for place, name in enumerate(names):
            share = CURVE_BYTES if name == self.followed else room // (len(names) - place)
            points = self.curves[name].thinned(share - len(dump({name: 0})))
            size = len(dump({name: points}))
            if size <= room and len(kept) < MOST_METRICS:
                kept[name] = points
                room -= size
        if len(kept) < len(names):
            self.details["curves_left_out"] = len(names) - len(kept)
        return kept

    def report(self, missing: str, *, has_curves: bool = True) -> Report:
        """Return the report; `missing` is the message if there is no objective."""
        curves = self.recorded() if has_curves else {}
        for name in self.unread:
            self.metrics.pop(name, None)
        if self.objective not in self.metrics:
            return Report(self.metrics, self.details, "metric-missing", missing, curves)
        if self.curve.restarts:
            self.details["steps_restarted"] = self.curve.restarts
        own = self.curves[self.objective]
        best = {"min": own.low, "max": own.high}.get(self.reduce)
        if best:
            self.metrics[self.objective] = best[1]
        return Report(self.metrics, self.details, None, "", curves)


# ------------------------------------------------------------- formats of lines


class OtherNumber(str):
    """A number in another notation, which is not read."""

    __slots__ = ()


def number_or_text(text: str) -> Any:
    """Return the number that a text is, else the text."""
    if re.fullmatch(DECIMAL, text):
        return float(text)
    match = re.match(f"(?P<value>{DECIMAL})", text)
    return OtherNumber(text) if match and is_part_of(match) else text


def plain_text(line: bytes) -> str:
    """Return a line without the codes by which a terminal shows colours."""
    text = line.decode("utf-8", "replace")
    return re.sub(TERMINAL_CODES, "", text) if "\x1b" in text else text


def is_part_of(match: re.Match[str]) -> bool:
    """Return whether the value of a match is only a part of the number that a person would read there.

    What the pattern itself matches beside the value, its author has seen.
    """
    start, end = match.span("value")
    before = match.string[:start] if start == match.start() else ""
    after = match.string[end:LONGEST_MATCH] if end == match.end() else ""
    is_whole = match["value"].lstrip("+-").isdigit()
    return bool(
        re.match(MORE_OF_NUMBER, after)
        or (is_whole and re.match("[,/][0-9]", after))
        or (re.fullmatch(THOUSANDS, match["value"]) and re.match(r",[0-9]+(?![.0-9])", after))
        or re.search(LESS_OF_NUMBER, before)
    )


def text_members(line: str) -> dict[str, Any]:
    """Find every `name=value` of a line."""
    found: dict[str, Any] = {match[1]: float(match[2]) for match in re.finditer(METRIC_TEXT, line)}
    if line.count("=") > len(found):
        for name, text in re.findall(rf"(?<![\w./@|-])({NAME})\s*=\s*([0-9.+-][^ ]*)", line):
            if isinstance(number_or_text(text), OtherNumber):
                found.setdefault(name, OtherNumber(text))
    return found


def log_members(line: str) -> dict[str, Any]:
    """Split `key,value`. Raises ValueError."""
    key, comma, value = line.strip().rpartition(",")
    if not comma:
        raise ValueError("it has no comma between key and value")
    return {"_".join(key.split()): number_or_text(value.strip())}


def object_members(line: str) -> dict[str, Any]:
    """Read a line of JSON. Raises ValueError."""
    return parse_object(line.encode())


def csv_reader() -> Callable[[str], dict[str, Any]]:
    """Return a function that reads the rows of one CSV file, of which the first is the header."""
    import csv  # noqa: PLC0415 - rarely needed

    header: list[str] = []

    def members(line: str) -> dict[str, Any]:
        try:
            (cells,) = csv.reader([line.rstrip("\r").lstrip("\ufeff")], strict=True)
        except csv.Error as error:
            raise ValueError(str(error)) from error
        if not header:
            header.extend(name.strip() for name in cells)
            distinct([(name, None) for name in header if name])
            return {}
        if len(cells) != len(header):
            raise ValueError(f"it has {len(cells)} cells, and the header {len(header)}")
        return {name: number_or_text(cell.strip()) for name, cell in zip(header, cells) if cell.strip()}

    return members


def pattern_reader(metric: Mapping[str, Any]) -> Callable[[str], dict[str, Any]]:
    """Return a function that finds what the patterns match in a line."""
    patterns = [re.compile(pattern, re.ASCII) for pattern in metric["patterns"]]

    def members(line: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for piece in line.split("\r"):  # progress bars
            for pattern in patterns:
                for match in pattern.finditer(piece[:LONGEST_MATCH]):
                    groups = match.groupdict()
                    is_cut = match.end() == LONGEST_MATCH < len(piece)
                    name, value = groups.get("name") or metric["name"], number_or_text(groups["value"] or "")
                    if type(value) is float and not (is_cut or is_part_of(match)):
                        found[name] = value
                        if groups.get("step"):
                            found["step"] = number_or_text(groups["step"])
                    elif type(value) is not str:
                        found.setdefault(name, OtherNumber(groups["value"]))
        return found

    return members


LINES: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "jsonl": object_members,
    "text": text_members,
    "log": log_members,
}
SHOWN = {
    "jsonl": 'line {{"{}": NUMBER}}',
    "text": "line {}=NUMBER",
    "log": "line {},NUMBER",
    "csv": "number in a column {}",
    "regex": "match with a number {}",
    "tensorboard": "scalar {}",
}


def format_of(line: str, objective: str) -> str:
    """Return the format in which a line would have the objective; nothing if there is none."""
    for form, members in LINES.items():
        with contextlib.suppress(ValueError):
            if type(members(line).get(objective)) in AMOUNT:
                return form
    return ""


def near_miss(line: str, objective: str) -> str:
    """Return what a line says of the objective in another form, and how it could be read; or nothing."""
    name = re.escape(objective)
    found = re.search(rf"(?<![\w.-]){name}(?:\s*[:=]\s*|\s+)(?P<value>{DECIMAL})", line[:LONGEST_MATCH])
    if found is None:
        return ""
    if not is_part_of(found):
        return f"{found[0]!r:.100}, which metric.format: regex could find"
    seen = found[0] + line[found.end() : LONGEST_MATCH].split(" ", maxsplit=1)[0]
    return f"{seen!r:.100}, {NO_DECIMAL}"


def no_value(_step: int, _value: float) -> None:
    """Ignore a value of the objective: nothing follows it."""


class Stream:
    """Gathers what lines say. In a file every line must have the format; on stdout others may print, too."""

    def __init__(
        self,
        metric: Mapping[str, Any],
        *,
        strict: bool = False,
        on_value: Callable[[int, float], object] = no_value,
    ) -> None:
        self.objective, self.form = metric["name"], metric["format"]
        self.strict = strict and self.form not in ("text", "regex")
        self.rest, self.number, self.guesses, self.other, self.near = b"", 0, 0, "", ""
        self.gathered = Gathered(metric, on_value)
        if self.form == "csv":
            self.members = csv_reader()
        elif self.form == "regex":
            self.members = pattern_reader(metric)
        else:
            self.members = LINES[self.form]

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes. Raises ValueError if a file has a line of another format."""
        lines = (self.rest + chunk).split(b"\n")
        # A line that is too long already stays so, and costs no memory.
        self.rest = lines.pop()[: LONGEST_LINE + 1]
        for line in lines:
            self.take(line)

    def take(self, line: bytes) -> None:
        """Take a complete line."""
        self.number += 1
        if not line or line.isspace():
            return
        try:
            if len(line) > LONGEST_LINE:
                raise ValueError("it is longer than 64 KiB")
            text = line.decode("utf-8", "strict") if self.strict else plain_text(line)
            members = self.members(text)
        except ValueError as error:
            self.guess(line)
            if self.strict:
                raise ValueError(f"line {self.number}: {error}") from error
        else:
            if type(members.get(self.objective)) not in AMOUNT:
                self.guess(line)
            step = members.pop("step", None) if self.has_step(members) else None
            self.gathered.add(members, step, self.keeps)

    def guess(self, line: bytes) -> None:
        """Remember the other format that a line has."""
        if not self.other and self.guesses < MOST_GUESSES and len(line) <= LONGEST_LINE:
            self.guesses += 1
            text = plain_text(line)
            form = format_of(text, self.objective)
            self.other = "" if form == self.form else form
            self.near = self.near or near_miss(text, self.objective)

    def keeps(self, name: str) -> bool:
        """Return whether what is not a number is a detail; commas make what others print look like a log."""
        return self.strict or self.form == "jsonl" or name == self.objective

    def has_step(self, members: Mapping[str, Any]) -> bool:
        """Return whether a line has the step of its numbers; a step alone is a number like others."""
        has_one = whole_step(members.get("step")) is not None and "step" not in self.gathered.wanted
        return has_one and (self.form in ("jsonl", "csv") or len(members) > 1)

    def finish(self) -> None:
        """Take what follows the last line end. Raises ValueError like `feed`."""
        self.take(self.rest)

    def report(self, place: str, other: str) -> Report:
        """Return what the lines say."""
        missing = f"there is no {SHOWN[self.form].format(self.objective)} {place}"
        if self.near and (self.near.endswith(NO_DECIMAL) or self.form == "text"):
            missing += f": it printed {self.near}"
        elif self.objective in self.gathered.details:
            missing += f", and {self.gathered.details[self.objective]!r:.100} is no number"
        elif self.gathered.metrics:
            missing += f"; its numbers: {', '.join(sorted(self.gathered.metrics)[:10])}"
        return self.gathered.report(missing + would_find(other), has_curves=self.form != "log")


def would_find(form: str) -> str:
    """Name the format with which the objective would be found."""
    return f"; with metric.format: {form} it would be found" if form else ""


# --------------------------------------------------- event files of TensorBoard


class Events:
    """Gathers the scalars of event files: frames of TFRecord with messages of protobuf."""

    HEADER = 12  # bytes: length and its checksum

    def __init__(self, gathered: Gathered) -> None:
        self.gathered = gathered
        self.begin()
        self.skipped = 0

    def begin(self) -> None:
        """Start with another file."""
        self.buffer, self.ahead, self.is_lost = bytearray(), 0, False
        self.gathered.begin_file()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of a file. What is damaged is counted."""
        if self.ahead:  # of a record that is too large to have scalars
            passed = min(self.ahead, len(chunk))
            self.ahead -= passed
            chunk = chunk[passed:]
        if self.is_lost:
            return
        self.buffer += chunk
        position = 0
        while len(self.buffer) - position >= self.HEADER:
            header = bytes(self.buffer[position : position + self.HEADER])
            length = int.from_bytes(header[:8], "little")
            if int.from_bytes(header[8:], "little") != masked_crc(header[:8]):
                self.skipped += 1
                self.is_lost = True  # where the next record begins is unknown
                break
            if length > LARGEST_EVENT:
                end = position + self.HEADER + length + 4
                self.ahead = max(0, end - len(self.buffer))
                position = min(end, len(self.buffer))
                continue
            end = position + self.HEADER + length + 4
            if len(self.buffer) < end:
                break
            self.take(bytes(self.buffer[position + self.HEADER : end]))
            position = end
        del self.buffer[: len(self.buffer) if self.is_lost else position]

    def take(self, record: bytes) -> None:
        """Take the content of a frame and its checksum."""
        content, crc = record[:-4], int.from_bytes(record[-4:], "little")
        try:
            step, scalars = scalars_of(content)
        except (ValueError, IndexError, OverflowError):
            self.skipped += 1
            return
        # Large records without scalars are graphs and histograms: their checksums would cost the most.
        if scalars or len(content) <= CHECKED_EVENT:
            if masked_crc(content) != crc:
                self.skipped += 1
            else:
                self.gathered.add(scalars, step, lambda _name: False)


CRC_TABLE: list[int] = []


def masked_crc(content: bytes) -> int:
    """Return the checksum of TFRecord: a rotated CRC-32C plus a constant."""
    if not CRC_TABLE:
        for value in range(256):
            for _ in range(8):
                value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)  # noqa: PLW2901 - the table's recurrence
            CRC_TABLE.append(value)
    crc = 0xFFFFFFFF
    for byte in content:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field of a protobuf message. Raises ValueError or IndexError."""
    position = 0
    while position < len(message):
        key, position = varint(message, position)
        wire = key & 7
        if wire == 0:
            value, position = varint(message, position)
            yield key >> 3, value
            continue
        if wire == 2:
            size, position = varint(message, position)
        else:
            size = {1: 8, 5: 4}.get(wire, len(message))
        end = position + size
        if end > len(message):
            raise ValueError("a field is longer than its message")
        yield key >> 3, message[position:end]
        position = end


def varint(message: bytes, position: int) -> tuple[int, int]:
    """Read an integer of variable length, and return the position behind it."""
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        shift += 7
        position += 1
        if byte < 0x80 or shift > 63:
            return value, position


def unpack(kind: str, content: bytes) -> float:
    """Return the first number of packed bytes. Raises ValueError if there is none."""
    import struct  # noqa: PLC0415 - rarely needed

    size = struct.calcsize(kind)
    if len(content) < size:
        raise ValueError("a number is cut")
    return float(struct.unpack(f"<{kind}", content[:size])[0])


def scalars_of(event: bytes) -> tuple[int, dict[str, float]]:
    """Return step and scalars of an Event: `simple_value`, or a tensor with one number. Raises ValueError."""
    step, scalars = 0, {}
    for number, content in fields(event):
        if number == 2 and isinstance(content, int):
            step = content - 2**64 if content >= 2**63 else content
        elif number == 5 and isinstance(content, bytes):  # Summary
            for inner, value in fields(content):
                if inner == 1 and isinstance(value, bytes):
                    scalars.update(scalar_of(value))
    return step, scalars


def scalar_of(value: bytes) -> dict[str, float]:
    """Return tag and number of a Summary.Value; nothing if it is not a scalar."""
    tag, scalar = "", None
    for number, content in fields(value):
        if not isinstance(content, bytes):
            continue
        if number == 1:
            tag = content.decode("utf-8", "replace")
        elif number == 2:
            scalar = unpack("f", content)
        elif number == 8:
            scalar = tensor_number(content)
    return {} if scalar is None or not METRIC_NAME.fullmatch(tag) else {tag: scalar}


# By dtype of a TensorProto: the type of its raw bytes, the field of its list, and the type there.
TENSORS = {1: ("f", 5, "f"), 2: ("d", 6, "d"), 3: ("i", 7, ""), 9: ("q", 10, ""), 19: ("e", 13, "")}


def tensor_number(tensor: bytes) -> float | None:
    """Return the one number of a TensorProto; None if it has another shape or type."""
    members: dict[int, Any] = {}
    for number, content in fields(tensor):
        if number == 2:
            sizes = [
                value
                for place, dim in fields(content)
                if place == 2
                for key, value in fields(dim)
                if key == 1
            ]
            if any(size != 1 for size in sizes):
                return None
        members.setdefault(number, content)
    raw, place, kind = TENSORS.get(members.get(1, 0), ("", 0, ""))
    if not raw:
        return None
    if members.get(4):
        return unpack(raw, members[4])
    content = members.get(place)
    if content is None:
        return 0.0  # protobuf leaves out zeros
    if kind:
        return unpack(kind, content)
    value = varint(content, 0)[0] if isinstance(content, bytes) else content
    if raw == "e":
        return unpack("e", value.to_bytes(8, "little"))
    return float(value - 2**64 if value >= 2**63 else value)


# ------------------------------------------------ the files of what is reported


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
        import glob  # noqa: PLC0415 - rarely needed

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
        import glob  # noqa: PLC0415 - rarely needed

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


# -------------------------------------------------------------------- artifacts


def describe(path: str, shown: str) -> dict[str, Any]:
    """Return path, size and digest of a file. Raises OSError."""
    import hashlib  # noqa: PLC0415 - OpenSSL is worth its start for large files

    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(LARGEST_FILE), b""):
            digest.update(chunk)
            size += len(chunk)
    return {"path": shown, "bytes": size, "sha256": digest.hexdigest()}


def list_artifacts(folder: str) -> tuple[list[dict[str, Any]], int]:
    """Describe the regular files below a folder, in order; count those left out. Links do not count."""
    listed: list[dict[str, Any]] = []
    left_out = 0
    if os.path.islink(folder):
        return listed, left_out
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(parent, name)
            shown = os.fsencode(os.path.relpath(path, folder)).decode("utf-8", "backslashreplace")
            try:
                if not stat.S_ISREG(os.lstat(path).st_mode):
                    continue
                if len(listed) == MOST_ARTIFACTS or len(json.dumps(shown)) > LONGEST_PATH:
                    raise ValueError(shown)
                listed.append(describe(path, shown))
            except (OSError, ValueError):
                left_out += 1
    return listed, left_out


# --------------------------------------------------------------- early stopping


class Rule:
    """One rule of early stopping, and the state of the trial under it."""

    def __init__(self, rule: Mapping[str, Any], seen: Thresholds | None = None) -> None:
        self.name, self.seen = str(rule["rule"]), seen
        self.sign = 1.0 if rule["goal"] == "maximize" else -1.0
        self.reports: int | None = rule.get("reports")
        self.margin: float = rule.get("margin", 0)
        self.first, self.last = rule.get("from", 0), rule.get("until", math.inf)
        self.reach: float | None = rule.get("reach")
        self.marks: list[float] = [step for step, _ in rule.get("thresholds", [])]
        self.limits: list[float] = [limit for _, limit in rule.get("thresholds", [])]
        self.of_last = rule.get("value") == "last"
        self.passed = self.idle = 0
        self.best = -math.inf

    @property
    def threshold(self) -> float | None:
        """The number that decided; none for a rule that counts reports."""
        return self.limits[self.passed - 1] if self.marks else self.reach

    def is_broken(self, step: int, value: float) -> bool:
        """Return whether a finite number ends the trial. A threshold counts once, at its step."""
        value *= self.sign
        self.idle = 0 if value > self.best + self.margin else self.idle + 1
        if self.reports is None or not self.idle:
            self.best = max(self.best, value)
        if not self.first <= step <= self.last:
            return False
        if self.reach is not None:
            return value >= self.sign * self.reach
        if self.reports is not None:
            return self.idle >= self.reports
        passed = bisect.bisect_right(self.marks, step)
        if passed <= self.passed:
            return False
        self.passed = passed
        return (value if self.of_last else self.best) < self.sign * self.limits[passed - 1]


class Thresholds(NamedTuple):
    """The file of thresholds as the launcher read it."""

    content: bytes
    rules: list[dict[str, Any]]

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes."""
        return sha256(self.content)


def read_thresholds(content: bytes) -> Thresholds:
    """Read a file of thresholds. Raises ValueError or Refused with the reason."""
    if len(content) > LARGEST_FILE:
        raise ValueError("it is larger than 1 MiB")
    rules = parse_object(content).get("stop")
    if not isinstance(rules, list):
        raise ValueError("its member stop must be a list")
    for rule in rules:
        check_rule(rule)
        if "thresholds" not in rule:
            raise ValueError(f"only rules with thresholds can change, got {sorted(rule)}")
    return Thresholds(content, rules)


class LiveRules:
    """The rules of a file that may change while the trial runs."""

    def __init__(self, path: str) -> None:
        self.path, self.state = path, (0, 0, 0)
        self.rules: list[Rule] = []

    def current(self, low: float, high: float) -> list[Rule]:
        """Return the rules of the file as it is now; new ones start with the best value so far."""
        try:
            found = os.stat(self.path)
            state = found.st_ino, found.st_size, found.st_mtime_ns
            if state == self.state:
                return self.rules
            self.state = state
            with open(self.path, "rb") as file:
                thresholds = read_thresholds(file.read(LARGEST_FILE + 1))
        except FileNotFoundError:
            return self.rules
        except (OSError, ValueError, Refused) as error:
            say(f"the file of thresholds is not valid, and changes nothing: {error}")
            return self.rules
        if not self.rules or self.rules[0].seen != thresholds:
            self.rules = [Rule(rule, thresholds) for rule in thresholds.rules]
            for rule in self.rules:
                rule.best = high if rule.sign > 0 else -low
        return self.rules


class Broken(NamedTuple):
    """The rule that ended the trial, and where."""

    rule: str
    step: int
    is_behind: bool  # else the trial reached what was requested
    threshold: float | None = None
    seen: Thresholds | None = None

    @property
    def member(self) -> dict[str, Any]:
        """The member of the record."""
        seen = f"sha256:{self.seen.digest}" if self.seen else None
        return {"rule": self.rule, "step": self.step, "threshold": self.threshold, "seen": seen}


class Tail:
    """One growing file, and the position up to which it was read."""

    def __init__(self, path: str, feed: Callable[[bytes], None], most: int, start: int = 0) -> None:
        self.path, self.feed, self.most = path, feed, most
        self.inode, self.position, self.head = 0, start, b""

    def read_on(self) -> bool:
        """Feed some of what was added; return False if the file was replaced. Raises OSError, ValueError."""
        with open_regular(self.path) as file:
            state = os.fstat(file.fileno())
            head = file.read(len(self.head))
            if self.inode and (
                (state.st_ino, head) != (self.inode, self.head) or state.st_size < self.position
            ):
                return False
            self.inode = state.st_ino
            file.seek(self.position)
            content = file.read(LARGEST_FILE)
        if self.position == len(self.head):
            self.head += content[: HEAD - len(self.head)]
        self.position += len(content)
        if self.position > self.most:
            raise ValueError(f"it is larger than {self.most // LARGEST_FILE} MiB")
        self.feed(content)
        return True


class Follower:
    """Compares what the trial reports with the rules, as it arrives: on stdout, or in files that grow."""

    def __init__(self, launch: Mapping[str, Any], files: Files, wake: Callable[[], object]) -> None:
        self.launch, self.files, self.wake = launch, files, wake
        self.metric = launch["metric"]
        self.looks = self.metric["source"] == "result" and self.metric["format"] != "json"
        self.broken: Broken | None = None
        self.begin()

    def begin(self) -> None:
        """Forget everything that was read."""
        self.tails: dict[str, Tail] = {}
        self.low, self.high = math.inf, -math.inf
        self.rules = [Rule(rule) for rule in self.launch.get("stop", [])]
        self.live = LiveRules(self.launch["thresholds_file"]) if "thresholds_file" in self.launch else None
        self.gathered = Gathered(self.metric, self.take)

    def take(self, step: int, value: float) -> None:
        """Take a number. One that is not finite may be a slip, and is judged at the end."""
        if self.broken is not None or not math.isfinite(value):
            return
        live = self.live.current(self.low, self.high) if self.live else []
        self.low, self.high = min(self.low, value), max(self.high, value)
        for rule in [*self.rules, *live]:
            if rule.is_broken(step, value) and self.broken is None:
                self.broken = Broken(rule.name, step, bool(rule.marks), rule.threshold, rule.seen)
                self.wake()

    def look(self) -> bool:
        """Read on in the files, some of it; return whether the trial is to end."""
        try:
            if self.looks and self.broken is None:
                self.read_on()
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            say(f"the trial is no longer followed: {error}")
            self.looks = False
        return self.broken is not None

    def read_on(self) -> None:
        """Take what was added since the last look. Raises OSError, and ValueError for other formats."""
        paths = self.files.current()
        if not self.files.is_folder and self.tails and list(self.tails) != paths:
            self.begin()
        for path in paths:
            if path not in self.tails:
                self.tails[path] = self.tail_of(path)
            if not self.tails[path].read_on():
                self.begin()
                self.read_on()
                return

    def tail_of(self, path: str) -> Tail:
        """Return the reader of a new file."""
        start = self.files.start(path) or 0
        if self.metric["format"] == "tensorboard":
            return Tail(path, Events(self.gathered).feed, LARGEST_EVENTS, start)
        stream = Stream(self.metric, strict=True, on_value=self.take)
        if start and self.metric["format"] == "csv":
            stream.feed(self.files.header(path))
        return Tail(path, stream.feed, LARGEST_STREAM, start)


class Verdict(NamedTuple):
    """How the attempt is recorded."""

    status: str
    reason: str | None
    exit_code: int


def complete_report(report: Report, wanted: Sequence[str]) -> Report:
    """Return a report that says which of several metrics is missing."""
    missing = [name for name in wanted if name not in report.metrics]
    if report.reason or not missing:
        return report
    message = f"there is no {' and no '.join(missing)}; its numbers: {', '.join(sorted(report.metrics)[:10])}"
    return report._replace(reason="metric-missing", message=message)


def judge(ending: Ending, report: Report, wanted: Sequence[str]) -> Verdict:
    """Decide by how the command ended and by what it reported."""
    if ending.cause == TIMED_OUT:
        return Verdict("failed", "timeout", TIMED_OUT)
    if ending.code == BAD_HYPERPARAMETERS:
        return Verdict("diverged", "bad-hyperparameters", BAD_HYPERPARAMETERS)
    if ending.code == BAD_SWEEP:
        return Verdict("failed", "bad-sweep", BAD_SWEEP)
    if ending.code == 0 and report.reason is None:
        if all(math.isfinite(report.metrics[name]) for name in wanted):
            return Verdict("ok", None, 0)
        return Verdict("diverged", "metric-not-finite", BAD_HYPERPARAMETERS)
    if ending.cause:
        # Whatever the command made of the signal, it did not finish because of it.
        return Verdict("failed", f"signal-{ending.cause}", 128 + ending.cause)
    if ending.code == 0:
        return Verdict("failed", report.reason, 1)
    if ending.code < 0:
        return Verdict("failed", f"signal-{-ending.code}", 128 - ending.code)
    # The pod failure policy trusts that only the launcher exits with DISRUPTED.
    return Verdict("failed", f"exit-{ending.code}", 1 if ending.code == DISRUPTED else ending.code)


# ------------------------------------------------------------------ one attempt


class Attempt(NamedTuple):
    """One attempt at a trial."""

    launch: Mapping[str, Any]
    row: Row
    uid: str
    number: int
    folder: str
    rank: int = 0
    shown: list[str] | None = None
    """The command that a reviewer has read."""
    disruptions: int = 0
    slot: Slot | None = None
    """The row's place in its pod, if the pod has several rows."""

    @property
    def objective(self) -> str:
        """The name of the first metric."""
        return str(self.launch["metric"]["name"])

    def path(self, *names: str) -> str:
        """Return a path in the trial's own folder; that of other ranks than 0 is deleted with their pod."""
        return os.path.join(self.folder, *names)

    @property
    def artifacts(self) -> str:
        """The folder of all attempts' artifacts."""
        volume = "" if self.rank else os.environ.get("SWEEP_ARTIFACT_VOLUME")
        return os.path.join(os.path.abspath(volume or self.folder), "artifacts")

    @property
    def checkpoints(self) -> str:
        """The folder of all ranks' checkpoints."""
        volume = os.environ.get("SWEEP_CHECKPOINT_VOLUME") or (need("SWEEP_RESULTS") if self.rank else "")
        return os.path.join(os.path.abspath(volume or self.folder), "checkpoints")


class Outcome(NamedTuple):
    """The result of an attempt."""

    verdict: Verdict
    report: Report
    started: str
    seconds: float
    environment: Environment | None = None
    broken: Broken | None = None
    cause: str = ""
    """What the command said of its failure."""
    peak_memory: int = 0
    """In bytes, of the largest process of the command; 0 if none was started."""
    earlier: Mapping[str, str] | None = None
    """The attempt whose stored output was read, and the digest of the output; None: a command ran."""


class Prepared(NamedTuple):
    """A command that is ready to start."""

    arguments: list[str]
    variables: dict[bytes, bytes]
    folders: Folders
    place: str
    files: Files
    environment: Environment | None


def utc() -> str:
    """Return the time for people."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def prepare(attempt: Attempt, scratch: str) -> Prepared:
    """Create the folders and files of the contract, and return the command."""
    launch, row = attempt.launch, attempt.row
    assignment, seed = json.dumps(row.values), str(launch["seed_base"] + row.replicate)
    folders = make_folders(scratch)
    given = {
        **folders.variables(),
        **parameter_variables(row.values, launch["columns"]),
        "SWEEP_TRIAL": os.path.join(scratch, "trial.json"),
        "SWEEP_TRIAL_ID": row.trial,
        "SWEEP_SEED": seed,
        "JOB_ID": str(row.number + 1),
        "SWEEP_RESULT": os.path.join(scratch, "result.json"),
        "SWEEP_ARTIFACTS": os.path.join(attempt.artifacts, attempt.uid),
        "SWEEP_CHECKPOINTS": attempt.checkpoints,
    }
    write_new(given["SWEEP_TRIAL"], assignment.encode())
    for name in ("SWEEP_ARTIFACTS", "SWEEP_CHECKPOINTS"):
        os.makedirs(given[name], exist_ok=True)
    parent = os.environ.get("SWEEP_PARENT", "")
    # What a trial writes there would reach others that continue from it; in a pod, nobody can.
    if os.path.isdir(parent) and not os.statvfs(parent).f_flag & os.ST_RDONLY:
        given["SWEEP_PARENT"] = os.path.join(scratch, "parent")
        copy_folder(parent, given["SWEEP_PARENT"], is_code=False)
    hidden = {b"SWEEP_" + name for name in FOR_LAUNCHER.split()}
    variables = {name: text for name, text in os.environb.items() if name not in hidden}
    variables.update((name.encode(), text.encode("utf-8", "surrogateescape")) for name, text in given.items())
    single = {
        "args_json": assignment,
        "args_json_file": given["SWEEP_TRIAL"],
        "env": "/usr/bin/env",
        "interpreter": launch["interpreter"],
        "seed": seed,
    }
    if "config" in launch:
        single["config"] = os.path.join(scratch, f"config.{launch['config']['format']}")
        write_new(single["config"], config_text(launch["config"], row.values).encode())
    if attempt.shown is not None:
        compare(attempt.shown, expand(with_placeholders(launch["command"]), row.values, single, {}))
    arguments = expand(launch["command"], row.values, single, variables)
    place = working_directory(launch, folders)
    if launch.get("hyperparams_file"):
        write_safely(os.path.join(place, "hyperparams.yml"), hyperparams(launch, row).encode())
    variables[b"PWD"] = os.fsencode(place)
    if b"PYTHONPATH" in variables:
        paths = os.fsdecode(variables[b"PYTHONPATH"]).split(os.pathsep)
        absolute = (os.path.normpath(os.path.join(folders.code, path)) if path else path for path in paths)
        own = (moved(path, folders.code, folders.work) for path in absolute)
        variables[b"PYTHONPATH"] = os.fsencode(os.pathsep.join(own))
    roots = (scratch, given["SWEEP_ARTIFACTS"], given["SWEEP_CHECKPOINTS"])
    files = files_of(launch["metric"], given["SWEEP_RESULT"], variables, place, roots)
    environment = None if attempt.rank else read_environment(launch)
    if launch.get("capture"):
        capture_in(scratch, variables)
    variables.update(read_secrets(launch.get("secrets", {})))  # last: none may be in an argument
    return Prepared(arguments, variables, folders, place, files, environment)


def start(arguments: list[str], variables: Mapping[bytes, bytes], place: str, stderr: int) -> Command:
    """Start the command in a session of its own, with its output in pipes, or in one."""
    forget_peak_memory()
    try:
        return Command(
            [argument.encode("utf-8", "surrogateescape") for argument in arguments],
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=place,
            env=variables,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
            raise  # the fault of the node, not of the sweep
        why = getattr(error, "strerror", None) or error
        raise BadCommand(f"the command {arguments[0]!r} cannot be started: {why}") from error


def read_again(attempt: Attempt) -> Outcome | None:
    """Return the outcome by the output that an earlier attempt left; None if the engine names none."""
    path = os.environ.get("SWEEP_EARLIER")
    earlier = read_object(path).get(str(attempt.row.number)) if path else None
    if not earlier or attempt.rank:
        return None
    record, metric = read_object(earlier["record"]), attempt.launch["metric"]
    with open_regular(earlier["output"]) as file:
        content = file.read(LARGEST_FILE)
    with open(create(attempt.path(f"{attempt.uid}.out")), "wb") as file:
        file.write(content)
    stream = Stream(metric)
    stream.feed(content)
    stream.finish()
    wanted = wanted_of(metric)
    report = complete_report(stream.report("in the stored output", stream.other), wanted)
    said = {"batch": record["batch"], "uid": record["uid"], "output": f"sha256:{sha256(content)}"}
    own = os.path.join(attempt.artifacts, attempt.uid)
    for parent, _, names in os.walk(earlier["artifacts"]):
        folder = os.path.normpath(os.path.join(own, os.path.relpath(parent, earlier["artifacts"])))
        os.makedirs(folder, exist_ok=True)
        for name in names:
            with contextlib.suppress(OSError):  # a file that is missing is missing in the record
                copy_file(os.path.join(parent, name), os.path.join(folder, name))
    environment = None
    if "environment" in attempt.launch:
        environment = read_environment(attempt.launch)
    elif record["environment"]:
        with open_regular(earlier["environment"]) as file:
            environment = Environment("distributions", file.read())
    verdict = judge(Ending(0, 0, record["seconds"]), report, wanted)
    memory = record.get("details", {}).get("peak_memory", 0)
    return Outcome(
        verdict, report, record["started"], record["seconds"], environment, peak_memory=memory, earlier=said
    )


def run_command(attempt: Attempt, signals: Signals) -> Outcome:
    """Run the command in folders of its own, and leave nothing of it outside them."""
    scratch = os.environ.get(OVERLAY) or make_temporary_folder("trial-")
    try:
        return run_command_in(scratch, attempt, signals)
    finally:
        with contextlib.suppress(OSError):  # most have none
            os.unlink(short_link(scratch))


def compare_overlaid_code(code: str) -> None:
    """Refuse a change of the code that a command could see, which had no copy of it."""
    if OVERLAY in os.environ:
        compare_code(code)
        COMPARED[code] = time.monotonic()


def outputs_of(attempt: Attempt, printed: Stream | None, words: LastWords) -> tuple[Tee, ...]:
    """Return what reads stdout, and stderr unless both are one stream."""
    path = attempt.path(f"{attempt.uid}.out")  # also of a command that writes nothing
    if attempt.launch["metric"]["source"] != "output":
        out = Tee(1, path, printed.feed if printed else len, create(path))
        return out, Tee(2, attempt.path(f"{attempt.uid}.err"), words.feed)
    feeds = [printed.feed] if printed else []
    return (Tee(1, path, lambda chunk: [feed(chunk) for feed in (*feeds, words.feed)], create(path)),)


def run_command_in(scratch: str, attempt: Attempt, signals: Signals) -> Outcome:
    """Run the command to its end, and to the end of everything that it started."""
    launch, metric = attempt.launch, attempt.launch["metric"]
    command = prepare(attempt, scratch)
    is_followed = (launch.get("stop") or "thresholds_file" in launch) and attempt.rank == 0
    follower = Follower(launch, command.files, signals.wake) if is_followed else None
    on_value = follower.take if follower else no_value
    printed = None if metric["source"] == "result" else Stream(metric, on_value=on_value)
    words = LastWords()
    tees = outputs_of(attempt, printed, words)
    if signals.stop:
        raise Stopped(signals.stop)
    started = utc()
    stderr = subprocess.PIPE if tees[1:] else subprocess.STDOUT
    child = start(command.arguments, command.variables, command.place, stderr)
    try:
        for tee, pipe in zip(tees, (child.stdout, child.stderr)):
            tee.copy(pipe)
        ending = supervise(child, launch, signals, follower, tees)
    finally:
        is_over = end_all(child)
        until = time.monotonic() + PATIENCE
        for tee in tees:
            tee.finish(until)
    compare_overlaid_code(command.folders.code)
    wanted = wanted_of(metric)
    report = complete_report(read_report(printed, command.files, metric, words), wanted)
    if "keep" in launch:
        kept = os.path.join(attempt.artifacts, attempt.uid)
        keep_written(launch["keep"], command.folders.work, command.folders.code, kept)
    is_whole = is_over and (ending.code, ending.cause) == (0, 0)
    leave_note(scratch, command.folders.note if is_whole else b"")
    broken = follower.broken if follower and ending.cause == STOPPED_EARLY else None
    if attempt.rank and (ending.code, ending.cause) == (0, 0):
        verdict = Verdict("ok", None, 0)
    elif broken and broken.is_behind:
        verdict = Verdict("pruned", broken.rule, FINAL["pruned"])
    else:  # a rule may also end what reached the target
        verdict = judge(ending._replace(code=0, cause=0) if broken else ending, report, wanted)
    if has_data_changed():
        report = Report({}, {}, "data-changed", "the dataset changed while the trial ran")
        verdict, broken = Verdict("failed", report.reason, 1), None
    if tees[0].failure:
        report.details["output_incomplete"] = True
    secrets = [command.variables[name.encode()] for name in launch.get("secrets", {})]
    cause = words.cause(secrets) if ending.code and not ending.cause else ""
    return Outcome(
        verdict, report, started, ending.seconds, command.environment, broken, cause, child.peak_memory
    )


# ------------------------------------------------------------------- the record


def small(details: Mapping[str, Any], own: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the launcher's own details, and of the others what fits a record, the smallest first."""
    kept = {name: value for name, value in details.items() if name not in (own or {})}
    sizes = sorted((len(json.dumps({name: value})), name) for name, value in kept.items())
    room = DETAILS_BYTES - (len(json.dumps(own)) if own else 0)
    if sum(size for size, _ in sizes) > room:
        room -= len('{"details_dropped": 1000}')
    dropped = 0
    for size, name in sizes:
        room -= size
        # In the record it is two containers deeper than it was by itself.
        if room < 0 or depth(kept[name]) > DEEPEST - 2:
            del kept[name]
            dropped += 1
    return {**kept, **(own or {}), **({"details_dropped": dropped} if dropped else {})}


def first_part(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record has in the termination message, however large the rest is."""
    return {name: value for name, value in record.items() if name not in BEYOND_FIRST_PART}


def bounded_metrics(record: Mapping[str, Any], wanted: Sequence[str]) -> dict[str, float]:
    """Return what the sweep compares, and of other metrics as many as the first part has room for."""
    metrics: dict[str, float] = record["metrics"]
    room = FIRST_PART_BYTES - len(dump({**first_part(record), "metrics": {}}))
    kept: dict[str, float] = {}
    for name in sorted(metrics, key=lambda name: name not in wanted):
        room -= len(dump({name: metrics[name]})) - 2
        if (room >= 0 and len(kept) <= MOST_METRICS) or name in wanted:
            kept[name] = metrics[name]
    return {name: value for name, value in metrics.items() if name in kept}


def keep_artifacts(attempt: Attempt) -> tuple[Any, int]:
    """Return the record's `artifacts`, and the number of those left out; a long list becomes a file."""
    artifacts, left_out = list_artifacts(os.path.join(attempt.artifacts, attempt.uid))
    content = dump(artifacts).encode()
    if len(content) <= ARTIFACTS_BYTES or attempt.rank:
        return artifacts, left_out
    try:
        write_safely(attempt.path(f"{attempt.uid}.artifacts"), content)
    except OSError as error:
        say(f"the list of artifacts cannot be written: {error}")
        return [], left_out + len(artifacts)
    return {"count": len(artifacts), "bytes": len(content), "sha256": sha256(content)}, left_out


def own_details(attempt: Attempt, outcome: Outcome) -> dict[str, Any]:
    """Return the details that the launcher adds."""
    own: dict[str, Any] = {}
    if outcome.report.message and outcome.report.reason == outcome.verdict.reason:
        own["error"] = outcome.report.message[:1000]
    elif outcome.cause:
        own["error"] = outcome.cause
    if os.environ.get("SWEEP_PARENT_ID"):
        own["parent"] = os.environ["SWEEP_PARENT_ID"][:200]
    if outcome.peak_memory:  # the command was started
        own["peak_memory"] = outcome.peak_memory
        is_pod = "@" in os.environ.get("SWEEP_RAN", "") and not attempt.slot
        own["wall"] = "pod" if is_pod else "namespace" if OVERLAY in os.environ else "directory"
        if "config" in attempt.launch:
            written = config_text(attempt.launch["config"], attempt.row.values)
            own["config"] = "sha256:" + sha256(written.encode())
    if outcome.earlier:
        own["read_again"] = outcome.earlier
    return own


def make_record(attempt: Attempt, outcome: Outcome) -> dict[str, Any]:
    """Return the record of this attempt, which record.schema.json describes."""
    launch, row, (status, reason, _), report = attempt.launch, attempt.row, outcome.verdict, outcome.report
    reported = {
        name: value
        for name, value in {**report.metrics, **report.details}.items()
        if not math.isfinite(report.metrics.get(name, math.nan))
    }
    own = own_details(attempt, outcome)
    artifacts, left_out = keep_artifacts(attempt)
    record = {
        "version": VERSION,
        "trial": row.trial,
        "row": row.digest,
        "batch": launch["batch"],
        "index": row.number,
        "uid": attempt.uid,
        "attempt": attempt.number,
        "disruptions": attempt.disruptions,
        "status": status,
        "reason": reason,
        # Adding 0.0 makes -0.0 a plain zero.
        "metrics": {name: value + 0.0 for name, value in report.metrics.items() if math.isfinite(value)},
        "seconds": round(outcome.seconds, 3),
        "started": outcome.started,
        "finished": utc(),
        "ran": os.environ.get("SWEEP_RAN") or "process",
        "code": launch["code"],
        "data": launch["data"],
        "seed": launch["seed_base"] + row.replicate,
        "node": os.environ.get("SWEEP_NODE") or None,
        "environment": outcome.environment.member if outcome.environment else None,
        "artifacts": artifacts,
    }
    if report.curves:
        record["curves"] = report.curves
    if outcome.broken:
        record["stopped"] = outcome.broken.member
    if attempt.slot:
        record["shared"] = attempt.slot.most
    metrics = bounded_metrics(record, wanted_of(launch["metric"]))
    counts = {"metrics_dropped": len(record["metrics"]) - len(metrics), "artifacts_left_out": left_out}
    own.update((name, count) for name, count in counts.items() if count)
    return {**record, "metrics": metrics, "details": small(plain(reported), own)}


def records_of(row: Row, folder: str) -> list[dict[str, Any]]:
    """Read this row's earlier records; other content of the folder does not matter."""
    records = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            with contextlib.suppress(OSError, ValueError):
                record = read_object(os.path.join(folder, name))
                identity = record.get("version"), record.get("row"), f"{record.get('uid')}.json"
                if identity == (VERSION, row.digest, name):
                    records.append(record)
    return records


def brief(record: Mapping[str, Any]) -> str:
    """Return a termination message: the record, the record with compressed curves, or its first part.

    Of curves for which there is no room, the last are left out first.
    """
    whole_record = dump(record)
    if len(whole_record) <= TERMINATION_BYTES:
        return whole_record
    digest = {"sha256": sha256(whole_record.encode())}
    curves = record.get("curves", {})
    names, rest = list(curves), {name: value for name, value in record.items() if name != "curves"}
    for count in range(len(names), -1, -1) if names else ():
        compressed: dict[str, Any] = {"curves_left_out": len(names) - count} if count < len(names) else {}
        with contextlib.suppress(ImportError):  # slim Pythons lack zlib
            if count:
                compressed["curves_zlib"] = compress({name: curves[name] for name in names[:count]})
            message = dump({**rest, **digest, **compressed})
            if len(message) <= TERMINATION_BYTES:
                return message
    return dump({**first_part(record), **digest})


def compress(curves: Mapping[str, Sequence[Sequence[Any]]]) -> str:
    """Return curves in few characters: differences of steps, then values, which keep every digit."""
    import base64  # noqa: PLC0415 - rarely needed
    import zlib  # noqa: PLC0415

    columns = {}
    for name, points in curves.items():
        steps = [step for step, _ in points]
        differences = [step - before for step, before in zip(steps, [0, *steps])]
        columns[name] = [differences, [value for _, value in points]]
    return base64.b64encode(zlib.compress(dump(columns).encode(), 9)).decode()


def conclude(attempt: Attempt, outcome: Outcome) -> int:
    """Report and record the result of the attempt, tidy up, and return the exit code."""
    (status, reason, exit_code), report = outcome.verdict, outcome.report
    words = [attempt.row.trial, status, *([reason] if reason else [])]
    if attempt.objective in report.metrics:
        words.append(f"{attempt.objective}={report.metrics[attempt.objective]!r}")
    if report.message and report.reason == reason:
        words.append(report.message)
    say(": ".join(words))
    if attempt.rank:
        return exit_code
    if os.path.islink(attempt.checkpoints):  # trials that continue this one would mount what it leads to
        with contextlib.suppress(OSError):
            os.unlink(attempt.checkpoints)
    record = make_record(attempt, outcome)
    content = dump(record).encode()
    is_kept_by_node = write_termination_message(brief(record))
    keep_evidence(attempt, outcome)  # first: a record ends all further attempts, which could keep it
    try:
        write_safely(attempt.path(f"{attempt.uid}.json"), content)
    except OSError as error:
        say(f"the record cannot be written: {error}")
        # Whoever reads the termination message has the result: the work need not be repeated.
        return exit_code if is_kept_by_node else STORAGE_FAILED
    if attempt.slot:
        attempt.slot.record = bytes.fromhex(sha256(content))
    if status in ("ok", "pruned") and not attempt.launch.get("keep_checkpoints"):
        delete_folder(attempt.checkpoints)
    for unused in (os.path.join(attempt.artifacts, attempt.uid), attempt.artifacts, attempt.checkpoints):
        with contextlib.suppress(OSError):  # not empty
            os.rmdir(unused)
    return exit_code


def keep_evidence(attempt: Attempt, outcome: Outcome) -> None:
    """Keep the files whose digests the record has, once per digest."""
    environment, broken = outcome.environment, outcome.broken
    if environment and environment.kind == "distributions" and len(environment.content) <= ENVIRONMENT_BYTES:
        name = f"{sha256(environment.content)}.txt"
        folder = os.environ.get("SWEEP_ENVIRONMENTS") or attempt.path("environments")
        write_once(folder, name, environment.content)
    if broken and broken.seen:
        write_once(attempt.path("thresholds"), f"{broken.seen.digest}.json", broken.seen.content)


def delete(path: str) -> None:
    """Delete whatever has a path, as far as possible."""
    try:
        os.unlink(path)
    except OSError:
        delete_folder(path)


def delete_folder(path: str) -> None:
    """Delete a folder and its content, as far as possible."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return
    except OSError:
        import shutil  # noqa: PLC0415 - rarely needed

        shutil.rmtree(path, ignore_errors=True)


# ------------------------------------------------------ several rows in one pod


class Slot:
    """Memory that a pod shares with the launcher of one row: how many rows ran, and its record's digest."""

    SIZE = 40

    def __init__(self) -> None:
        import mmap  # noqa: PLC0415 - rarely needed

        self.memory = mmap.mmap(-1, self.SIZE)

    @property
    def most(self) -> int:
        """How many rows of the pod ran at the same time, at most, while this one did."""
        return int.from_bytes(self.memory[:8], "little")

    @most.setter
    def most(self, count: int) -> None:
        self.memory[:8] = count.to_bytes(8, "little")

    @property
    def record(self) -> bytes:
        """SHA-256 of the record; zeros if there is none."""
        return bytes(self.memory[8:])

    @record.setter
    def record(self, digest: bytes) -> None:
        self.memory[8:] = digest


class Pod:
    """Runs the rows of one pod, each in a process of its own that is a launcher of that row."""

    def __init__(self, launch: Mapping[str, Any], rows: range, uid: str, signals: Signals) -> None:
        self.launch, self.uid, self.signals = launch, uid, signals
        self.waiting = list(rows)
        self.at_once: int = min(launch.get("pack", {}).get("at_once", 1), len(rows))
        self.threads = self.threads_of_a_row()
        self.running: dict[int, int] = {}
        self.slots = {row: Slot() for row in rows}
        self.codes: dict[int, int] = {}

    def threads_of_a_row(self) -> int:
        """Divide the pod's threads."""
        text = os.environ.get("OMP_NUM_THREADS", "")
        if COUNT.fullmatch(text):
            threads = int(text)
        else:
            has_affinity = hasattr(os, "sched_getaffinity")  # not on every system
            threads = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
        return max(1, threads // self.at_once)

    def run(self) -> int:
        """Run all rows; return the exit code of the pod."""
        gc.freeze()  # a collection in the process of a row would copy all memory that it shares
        is_stopping, kill_at = False, math.inf
        while self.waiting or self.running:
            while self.waiting and len(self.running) < self.at_once and not self.signals.stop:
                self.start(self.waiting.pop(0))
            if self.signals.stop and not is_stopping:
                is_stopping = True
                # Each launcher needs its grace, and its patience with processes and pipes.
                kill_at = time.monotonic() + self.launch["grace_seconds"] + 4 * PATIENCE
                self.codes.update((row, 128 + self.signals.stop) for row in self.waiting)
                self.waiting.clear()
                self.signal_rows(signal.SIGTERM)
            if time.monotonic() >= kill_at:
                kill_all(descendants())
                kill_at += PATIENCE
            self.collect()
            if self.running and not (self.waiting and len(self.running) < self.at_once):
                self.signals.wait(kill_at - time.monotonic())
                self.collect()
        write_termination_message(self.message())
        return worst(list(self.codes.values()))

    def start(self, row: int) -> None:
        """Start the launcher of a row."""
        sys.stdout.flush()
        sys.stderr.flush()
        together = [*self.running.values(), row]
        for each in together:  # before the fork: a row may write its record before this process goes on
            self.slots[each].most = max(self.slots[each].most, len(together))
        try:
            pid = os.fork()
        except OSError as error:
            say(f"the launcher of row {row} cannot be started: {error}")
            self.codes[row] = STORAGE_FAILED
            return
        if pid == 0:
            os._exit(self.launch_row(row))
        self.running[pid] = row

    def launch_row(self, row: int) -> int:
        """Be the launcher of one row, in its own process; return its exit code."""
        self.signals.renew()
        adopt_orphans()
        for name in ("SWEEP_RESULTS", "SWEEP_CHECKPOINT_VOLUME", "SWEEP_ARTIFACT_VOLUME"):
            if os.environ.get(name):
                os.environ[name] = os.path.join(os.environ[name], str(row))
        os.environ.pop("SWEEP_ROWS", None)
        os.environ["SWEEP_INDEX"] = str(row)
        os.environ["SWEEP_POD_UID"] = f"{self.uid}-{row}"
        os.environ["SWEEP_TERMINATION_LOG"] = os.devnull  # the pod writes one message for all rows
        os.environ["OMP_NUM_THREADS"] = str(self.threads)
        return reported(lambda: self.run_in_scratch(row))

    def run_in_scratch(self, row: int) -> int:
        """Run a row in a scratch folder that is deleted afterwards: later rows need the space."""
        os.environ["SWEEP_SCRATCH"] = scratch = make_temporary_folder("row-")
        try:
            return run_row(self.launch, row, self.signals, self.slots[row])
        finally:
            delete_folder(scratch)

    def collect(self) -> None:
        """Note the exit codes of rows that have ended."""
        for pid, (code, _) in reap().items():
            row = self.running.pop(pid, None)
            if row is not None:
                self.codes[row] = 128 - code if code < 0 else code
                if code < 0:  # its launcher was killed, and its processes are ours now
                    say(f"the launcher of row {row} was ended by signal {-code}")
                    self.end_strays()

    def end_strays(self) -> None:
        """Kill the processes of rows whose launcher has ended."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            strays = descendants(spared=self.running)
            if not strays:
                return
            kill_all(strays)
            time.sleep(0.005)
            for pid in strays:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def signal_rows(self, number: int) -> None:
        """Send a signal to the launchers of all rows."""
        for pid in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def message(self) -> str:
        """Return the termination message."""
        rows = {str(row): slot.record.hex() if any(slot.record) else None for row, slot in self.slots.items()}
        message = dump({"version": VERSION, "rows": rows})
        if len(message) > TERMINATION_BYTES:
            message = dump({"version": VERSION, "rows_sha256": sha256(message.encode())})
        return message


def worst(codes: Sequence[int]) -> int:
    """Return the exit code of a pod, of those of its rows."""
    for code in WORST_FIRST:
        if code in codes:
            return code
    others = [code for code in codes if code not in (0, BAD_HYPERPARAMETERS)]
    return others[0] if others else max(codes)


# ----------------------------------------------------- capturing logged metrics

CAPTURE_BEGINS, CAPTURE_ENDS = "\n# capture begins\n", "\n# capture ends\n"
CAPTURE_HEAD = '''"""Captures what a program logs to W&B or MLflow as lines of JSON in $SWEEP_RESULT."""

from __future__ import annotations

import os
import sys
'''


def capture_in(scratch: str, variables: dict[bytes, bytes]) -> None:
    """Make a part of this file the sitecustomize of the Python programs that a trial runs."""
    with open(__file__, encoding="utf-8") as file:
        source = file.read().split(CAPTURE_BEGINS)[1].split(CAPTURE_ENDS)[0]
    folder = os.path.join(scratch, "capture")
    os.mkdir(folder)
    with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as file:
        file.write(f"{CAPTURE_HEAD}{source}\n\ninstall_capture()\n")
    paths = [os.fsencode(folder), variables.get(b"PYTHONPATH", b"")]
    variables[b"PYTHONPATH"] = os.fsencode(os.pathsep).join(filter(None, paths))
    variables.setdefault(b"WANDB_MODE", b"offline")
    variables.setdefault(b"WANDB_DIR", os.fsencode(scratch))
    variables.setdefault(b"MLFLOW_TRACKING_URI", b"file:" + os.fsencode(os.path.join(scratch, "mlruns")))
    variables.setdefault(b"MLFLOW_ALLOW_FILE_STORE", b"true")  # MLflow 3 refuses folders without it


# Only os, sys and what is defined from here to `capture ends` may be used: it runs in the trial's own Python.
# capture begins
class Nothing:
    """Anything that a package has which is not installed: it does nothing, and returns itself."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        pass

    def __call__(self, *arguments: Any, **_options: Any) -> Any:
        """Return what is decorated, if this is used as a decorator."""
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __getitem__(self, _key: object) -> Any:
        return self

    def __setitem__(self, _key: object, _value: object) -> None:
        pass

    def __lt__(self, _other: object) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __int__(self) -> int:
        return 0

    def __float__(self) -> float:
        return 0.0

    def __str__(self) -> str:
        return ""


class MetricLog:
    """Appends metrics to $SWEEP_RESULT. An error is one line on stderr, and never the program's."""

    def __init__(self) -> None:
        self.step = 0
        self.has_failed = False

    def guard(self, work: Any, *arguments: Any) -> None:
        """Do work, whatever happens to it."""
        try:
            work(*arguments)
        except Exception as error:  # noqa: BLE001 - the program has to go on
            if not self.has_failed:
                self.has_failed = True
                self.say(f"metrics may not be captured: {type(error).__name__}: {error}")

    def say(self, message: str) -> None:
        """Write one line to stderr, if it is open."""
        if sys.stderr is not None:
            sys.stderr.write("launch.py: " + " ".join(message.split()) + "\n")

    def log(self, data: Any = None, step: Any = None, commit: Any = None, *_rest: Any) -> None:
        """Take the arguments of W&B's log: without a step, each call is one."""
        if step is not None:
            self.step = int(step)
        self.write(self.flat(data or {}), self.step)
        if commit or (commit is None and step is None):
            self.step += 1

    def flat(self, data: Any, prefix: str = "") -> Any:
        """Return nested values under dotted names, as W&B shows them."""
        values = {}
        for name, value in dict(data).items():
            if isinstance(value, dict):
                values.update(self.flat(value, f"{prefix}{name}."))
            else:
                values[f"{prefix}{name}"] = value
        return values

    def write(self, values: Any, step: Any) -> None:
        """Append one line with those values that are numbers."""
        import json  # noqa: PLC0415

        numbers = {str(name): self.number(value) for name, value in values.items()}
        line = {name: number for name, number in numbers.items() if number is not None}
        if not line:
            return
        if step is not None:
            line["step"] = int(step)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        file = os.open(os.environ["SWEEP_RESULT"], flags, 0o644)
        try:
            os.write(file, (json.dumps(line) + "\n").encode())
        finally:
            os.close(file)

    def number(self, value: Any) -> Any:
        """Return the number that a value is, also in an array of one; None if it is none."""
        if value is None or isinstance(value, (bool, str, Nothing)):
            return None
        if isinstance(value, (int, float)):
            return value
        try:
            return float(value.item())
        except Exception:  # noqa: BLE001 - pictures, tables and arrays are not metrics
            return None

    def set_values(self, config: Any) -> None:
        """Give a W&B config the values of the trial that it lacks."""
        import json  # noqa: PLC0415

        with open(os.environ["SWEEP_TRIAL"], encoding="utf-8") as file:
            values = json.load(file)
        existing = dict(config)
        config.update({name: value for name, value in values.items() if name not in existing})
        for name, value in values.items():
            if name in existing and existing[name] != value:
                self.say(f"wandb.config has {name}={existing[name]!r}, and the trial has {value!r}")


class StandInConfig(dict):  # type: ignore[type-arg]
    """The `config` of a W&B run."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def update(self, values: Any = (), **_options: Any) -> None:  # type: ignore[override]
        """Add values, also those of an argparse.Namespace."""
        dict.update(self, values if isinstance(values, dict) else vars(values) if values else {})

    def setdefaults(self, values: Any) -> None:
        """Add values that are not set."""
        for name, value in values.items():
            self.setdefault(name, value)

    def as_dict(self) -> Any:
        """Return a copy."""
        return dict(self)


class StandInRun(Nothing):
    """A run of W&B."""

    def __init__(self, log: MetricLog) -> None:
        super().__init__()
        self.config, self.summary, self.metric_log = StandInConfig(), StandInConfig(), log
        self.id = self.name = os.environ.get("SWEEP_TRIAL_ID", "trial")

    def log(self, *arguments: Any, **options: Any) -> None:
        """Capture metrics."""
        options.pop("sync", None)
        self.metric_log.guard(lambda: self.metric_log.log(*arguments, **options))

    def finish(self, *_arguments: Any, **_options: Any) -> None:
        """End the run."""


class StandInModule(type(sys)):  # type: ignore[misc]
    """A module of a package that is not installed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


def fill_stand_in(module: Any, log: MetricLog) -> None:
    """Give a stand-in the functions that are captured."""
    if module.__name__ == "mlflow":
        module.log_metric = module.log_metrics = Nothing()
        patch_mlflow(module, log)
    if module.__name__ != "wandb":
        return
    run = StandInRun(log)

    def init(*_arguments: Any, config: Any = None, **_options: Any) -> StandInRun:
        log.step = 0
        log.guard(run.config.update, config)
        log.guard(log.set_values, run.config)
        module.run = run
        return run

    module.init, module.log, module.finish, module.run = init, run.log, run.finish, None
    module.config, module.summary, module.Run = run.config, run.summary, StandInRun


def patch_wandb(module: Any, log: MetricLog) -> None:
    """Let the installed W&B log here, too."""
    import functools  # noqa: PLC0415

    def captured(original: Any) -> Any:
        @functools.wraps(original)
        def run_log(*arguments: Any, **options: Any) -> Any:
            taken = {name: options[name] for name in ("data", "step", "commit") if name in options}
            own = arguments if is_bound else arguments[1:]
            log.guard(lambda: log.log(*own[:3], **taken))
            return original(*arguments, **options)

        is_bound = getattr(original, "__self__", None) is not None or original.__name__ == "<lambda>"
        return run_log

    original_init = module.init

    @functools.wraps(original_init)
    def init(*arguments: Any, **options: Any) -> Any:
        log.step = 0
        run = original_init(*arguments, **options)
        log.guard(log.set_values, run.config)
        if "log" in vars(run):  # a disabled run has functions of its own
            run.log = module.log = captured(run.log)
        return run

    run_type = module.sdk.wandb_run.Run
    run_type.log = captured(run_type.log)
    module.init = init


def patch_mlflow(module: Any, log: MetricLog) -> None:
    """Let MLflow's functions log here, too."""
    original_metric, original_metrics = module.log_metric, module.log_metrics

    def log_metric(key: Any, value: Any, step: Any = None, *arguments: Any, **options: Any) -> Any:
        log.guard(log.write, {key: value}, step)
        return original_metric(key, value, step, *arguments, **options)

    def log_metrics(metrics: Any, step: Any = None, *arguments: Any, **options: Any) -> Any:
        log.guard(log.write, metrics, step)
        return original_metrics(metrics, step, *arguments, **options)

    module.log_metric, module.log_metrics = log_metric, log_metrics


class PatchingLoader:
    """Loads a package as its own loader does, and then changes it."""

    def __init__(self, loader: Any, log: MetricLog) -> None:
        self.loader, self.log = loader, log

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def create_module(self, spec: Any) -> Any:
        """Create the module."""
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Run the module, and change its functions."""
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.log.guard(patch_wandb if module.__name__ == "wandb" else patch_mlflow, module, self.log)


class CapturingFinder:
    """Finds W&B and MLflow, or stand-ins for them."""

    def __init__(self) -> None:
        self.log = MetricLog()
        self.stand_ins: Any = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of a captured package."""
        root = name.partition(".")[0]
        if root not in ("wandb", "mlflow") or (name != root and root not in self.stand_ins):
            return None
        from importlib.machinery import ModuleSpec  # noqa: PLC0415

        finders = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(name, path, target) for finder in finders) if name == root else ()
        spec = next((spec for spec in specs if spec), None)
        if spec and spec.origin:  # without one, it is a folder such as W&B's own output
            spec.loader = PatchingLoader(spec.loader, self.log)  # type: ignore[assignment]
            return spec
        if self.is_probe():
            return None
        self.stand_ins.add(root)
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def is_probe(self) -> bool:
        """Return whether a library only checks whether the package is installed: it gets the truth."""
        frame: Any = sys._getframe(1)  # noqa: SLF001
        for _ in range(5):
            frame = frame and frame.f_back
            if (
                frame
                and frame.f_code.co_name == "find_spec"
                and frame.f_globals["__name__"] == "importlib.util"
            ):
                return True
        return False

    def create_module(self, spec: Any) -> Any:
        """Create a stand-in."""
        return StandInModule(spec.name)

    def exec_module(self, module: Any) -> None:
        """Fill a stand-in."""
        fill_stand_in(module, self.log)


def install_capture() -> None:
    """Capture what this process logs, and run the sitecustomize that this one hides."""
    if os.environ.get("SWEEP_RESULT"):
        sys.meta_path.insert(0, CapturingFinder())
    from importlib.machinery import PathFinder  # noqa: PLC0415
    from importlib.util import module_from_spec  # noqa: PLC0415

    here = os.path.dirname(os.path.abspath(__file__))
    rest = [path for path in sys.path if os.path.abspath(path) != here]
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec and spec.loader:
        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


# capture ends


# ------------------------------------------------------------------------- main


def own_index() -> int:
    """Return the row of this pod."""
    text = os.environ.get("SWEEP_INDEX") or need("JOB_COMPLETION_INDEX")
    if not COUNT.fullmatch(text):
        raise Refused(f"the index must be a whole number, got {text!r}")
    return int(text)


def own_rows(launch: Mapping[str, Any]) -> range | None:
    """Return the rows of this pod; None if it has the one of its index."""
    text, size = os.environ.get("SWEEP_ROWS", ""), launch.get("pack", {}).get("rows")
    if text:
        match = re.fullmatch("([0-9]{1,9})-([0-9]{1,9})", text)
        rows = range(int(match[1]), int(match[2]) + 1) if match else range(0)
        if not 1 <= len(rows) <= MOST_ROWS:
            raise Refused(f"SWEEP_ROWS must be the first and the last of 1 to {MOST_ROWS} rows, got {text!r}")
        return rows
    if size is None:
        return None
    first = own_index() * size
    if first >= count_rows(launch):
        raise Refused(f"row {first} is beyond the table, which has {count_rows(launch)} rows")
    return range(first, min(first + size, count_rows(launch)))


def own_rank() -> int:
    """Return the number of this pod within its trial."""
    text = os.environ.get("SWEEP_RANK") or "0"
    if not COUNT.fullmatch(text):
        raise Refused(f"the rank must be a whole number, got {text!r}")
    return int(text)


def own_uid() -> str:
    """Return the id of this attempt."""
    uid = os.environ.get("SWEEP_POD_UID") or os.urandom(16).hex()
    if not UID.fullmatch(uid):
        raise Refused(f"SWEEP_POD_UID must be letters, digits, dots, underscores and hyphens, got {uid!r}")
    return uid


def shown_command(arguments: list[str]) -> list[str] | None:
    """Return the command in the manifest, if there is one."""
    if arguments and arguments[0] != "--":
        raise Refused(f"the arguments must be none, or -- and a command, got {arguments!r}")
    return arguments[1:] if arguments else None


def run(signals: Signals) -> int:
    """Run the row or the rows of this pod; return the exit code."""
    uid, rank = own_uid(), own_rank()
    shown_command(sys.argv[1:])
    launch = read_launch(need("SWEEP_LAUNCH"))
    rows = own_rows(launch)
    if rows is None:
        return run_row(launch, own_index(), signals)
    if rank:
        raise Refused(f"a trial of several pods has one row, got SWEEP_RANK {rank} and several rows")
    need("SWEEP_RESULTS")
    return Pod(launch, rows, uid, signals).run()


def run_row(launch: Mapping[str, Any], index: int, signals: Signals, slot: Slot | None = None) -> int:
    """Run one row to its record; return the exit code."""
    rank, row = own_rank(), read_row(launch, need("SWEEP_TABLE"), index)
    folder = os.path.abspath(need("SWEEP_RESULTS"))
    os.makedirs(folder, exist_ok=True)
    # Attempts take turns; the other ranks of one attempt run at the same time.
    if rank == 0 and "SWEEP_COPIES" not in os.environ:
        lock(folder, signals)
    earlier = records_of(row, folder)
    for record in earlier:
        for status, exit_code in FINAL.items():
            if record.get("status") == status:
                say(f"{row.trial}: {status} already, by attempt {record['uid']}: nothing to do")
                return exit_code
    if rank:
        folder = make_temporary_folder("rank-")
    number = 1 + count_from("SWEEP_FAILURES", len(earlier))
    shown, disruptions = shown_command(sys.argv[1:]), count_from("SWEEP_DISRUPTIONS", 0)
    attempt = Attempt(launch, row, own_uid(), number, folder, rank, shown, disruptions, slot)
    if disruptions > launch["max_disruptions"]:
        why = (
            f"the cluster ended {disruptions} of its pods, and max_disruptions is {launch['max_disruptions']}"
        )
        return conclude(attempt, without_start("disrupted", why, DISRUPTED))
    try:
        outcome = read_again(attempt) or run_command(attempt, signals)
    except CodeChanged as error:  # another attempt has what is locked again
        outcome = without_start(error.reason, str(error), 1)
    except Refused as error:
        outcome = without_start(error.reason, str(error), BAD_SWEEP)
    return conclude(attempt, outcome)


def without_start(reason: str, why: str, exit_code: int) -> Outcome:
    """Return the outcome of an attempt whose command was not started."""
    return Outcome(Verdict("failed", reason, exit_code), Report({}, {}, reason, why), utc(), 0.0)


def hold_standard_streams() -> None:
    """Keep our own files from becoming 0, 1 or 2 if one of those was closed."""
    while True:
        file = os.open(os.devnull, os.O_RDWR)
        if file > 2:
            os.close(file)
            return


def reported(work: Callable[[], int]) -> int:
    """Do work; every failure is one line on stderr and an exit code."""
    try:
        return work()
    except Refused as error:
        say(str(error))
        write_termination_message(f"{error}\n")
        return BAD_SWEEP
    except Stopped as stopped:
        say(f"stopped by signal {stopped} before the command began")
        return 128 + int(stopped.args[0])
    except OSError as error:
        say(f"results volume, scratch folder or node failed: {error}")
        return STORAGE_FAILED
    except Exception as error:  # noqa: BLE001 - a traceback tells the author of a sweep nothing
        say(f"this is a fault of the launcher, please report it: {type(error).__name__}: {error}")
        return LAUNCHER_FAULT


def main() -> int:
    """Run the trials of this pod."""
    hold_standard_streams()
    adopt_orphans()
    return reported(lambda: run(Signals()))


if __name__ == "__main__":
    sys.exit(main())

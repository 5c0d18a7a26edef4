"""Run one trial of a batch: pick its row of the table, run the user's command, write one record.

It stands alone: one file, standard library, Python 3.8 or newer, mounted into any image. It never changes
once released; batches carry byte-equal copies. It says everything in lines on stderr.

Takes no arguments, or `--` and the command that a reviewer has read: it runs only if the row gives the same.
There `<envvar:NAME>` and `<args_json_file>` stand for what only the pod can know.

Reads from its environment
  SWEEP_LAUNCH    path of launch.json: columns, shards, command, metric, seed base, timeout
  SWEEP_TABLE     folder of the table's files: only the one with the row is opened, its digest is verified
  SWEEP_RESULTS   this trial's own folder on the results volume, made where it is missing
  SWEEP_SCRATCH   a folder to write to
  SWEEP_INDEX     the row, counted from 0; where it is not set, JOB_COMPLETION_INDEX
  SWEEP_RANK      which of the trial's pods this is, by default 0, which alone leaves anything
  SWEEP_CHECKPOINT_VOLUME, SWEEP_ARTIFACT_VOLUME
                  this trial's own folders on other volumes, for these two; by default SWEEP_RESULTS
  SWEEP_POD_UID   this attempt's name; by default a new one
  SWEEP_FAILURES  how often the trial failed before; by default the number of its records
  SWEEP_PARENT_ID the trial whose checkpoints SWEEP_PARENT names, for the record
  SWEEP_RAN, SWEEP_NODE   what runs here (`process` by default) and where, for the record
  SWEEP_TERMINATION_LOG   the file, if it exists, for the record's short copy; default /dev/termination-log

Gives the command, beside all of its own environment
  SWEEP_PARAM_<NAME>  each value as text; not set where the parameter is absent
  SWEEP_TRIAL         path of a JSON file: name -> value
  SWEEP_TRIAL_ID, SWEEP_SEED, JOB_ID (the index counted from 1)
  SWEEP_RESULT        where it may write what it reports. launch.json says whether that is read or its stdout,
                      and in which form: `json`, one object whose numbers are metrics, or those of its member
                      `metrics`, all else being details; `jsonl`, such an object a line, with its `step`;
                      `text`, lines with `name=value`, several in a line, whatever stands around them; `log`,
                      lines `key,value`, spaces in keys becoming underscores. Of a name that comes again the
                      last number counts, of the metric that decides the one that `reduce` says
  SWEEP_ARTIFACTS     a folder for files to keep: paths, sizes and digests enter the record
  SWEEP_CHECKPOINTS   a folder that all attempts and all pods share, deleted once the trial is ok or pruned,
                      unless launch.json keeps it; SWEEP_PARENT, where it is set, is another trial's
  and, where launch.json asks for it
    each variable of its `secrets`: what the file of that path holds, without a line end behind it
    hyperparams.yml in its working directory, whose other entries are links: a list whose item JOB_ID - 1 has
    the values as its `hyperparam_set`. Up to 1000 rows in one file it is what PyYAML writes of the table, but
    for the quotes of texts that are no single word; beyond, the items before are empty and none follow

Leaves in SWEEP_RESULTS, and on the volumes named above
  <uid>.json, <uid>.out, <uid>.err   the record, whole or not at all; head and tail of the output
  artifacts/<uid>/, checkpoints/, .lock

Where launch.json has rules by which to `stop`, the command is ended as soon as what it reports breaks one:
`thresholds` that the best it reported so far, or the last, must reach at a step (status pruned), so many
`reports` without a better number, or a number to `reach` (both status ok). What is not finite breaks none; a
result file that changes otherwise than by growing is read anew, and one of another form no more.

Ends with
  0    the command exited 0 and the metric is finite, or it was ended early (status ok, pruned)
  42   it exited 42, or the metric is not finite (status diverged)
  43   it exited 43, it cannot be started or is not what was shown, or this contract is broken: no other trial
       would fare better
  124  it ran past its timeout: SIGTERM to its process group, later SIGKILL, as after SIGTERM to the launcher
  74   the results volume or the scratch folder failed, and the node could not be told a result either
  1    it exited 0 and left no metric
  else its own exit code, or 128 + the signal that ended it
Where the folder holds a record of this row with status ok, pruned or diverged, it ends with 0 or 42 at once.
A record names its row: where the row cannot be known, there is a line on stderr and no record.
"""

from __future__ import annotations

import bisect
import contextlib
import errno
import fcntl
import hashlib
import itertools
import json
import math
import os
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO, Any, Callable, Iterable, Mapping, NamedTuple, Sequence

BAD_HYPERPARAMETERS, BAD_SWEEP, STORAGE_FAILED, OUR_BUG, TIMED_OUT = 42, 43, 74, 70, 124
STOPPED_EARLY = 125  # a cause, and no exit code
# A pruned trial has done its work: 0 is what no Job, of whatever kind, tries again or counts as failed.
FINAL = {"ok": 0, "pruned": 0, "diverged": BAD_HYPERPARAMETERS}

LARGEST_FILE = 1024 * 1024  # of JSON that a trial may have written
DEEPEST = 16  # containers within each other in such JSON
LONGEST_INTEGER = 300  # digits: each of them is still a finite float
LARGEST_STREAM = 64 * 1024 * 1024  # of lines that a trial may have written
MOST_METRICS = 100
MOST_POINTS = 200  # of a curve in the record
MOST_HELD = 4096  # points of a curve, until the trial ends
LARGEST_STEP = 2**53  # beyond it readers that use doubles lose digits
MOST_GUESSES = 1000  # lines that are looked at for another form
MOST_DETAILS = 8 * 1024  # characters of JSON
MOST_ARTIFACTS = 1000
LONGEST_PATH = 500  # characters of an artifact's path in JSON: a full record stays below LARGEST_FILE
KEPT = 256 * 1024  # bytes of an output's head, and of its tail
LONGEST_LINE = 64 * 1024  # that is searched for a metric
TERMINATION_BYTES = 4095  # Kubernetes keeps 4096
WHOLE_LIST = 1000  # rows of hyperparams.yml: PyYAML needs half a second to read so many
PATIENCE = 2.0  # seconds for processes to vanish and pipes to empty once all was killed
LOOK = 1.0  # seconds between looks at a growing result file, where there are rules by which to stop

NAME = r"[A-Za-z][A-Za-z0-9_./@-]{0,62}"
METRIC_NAME = re.compile(NAME)
DECIMAL = (
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)"
)
METRIC_NUMBER = re.compile(DECIMAL)
METRIC_TEXT = re.compile(  # all that Katib's default filter finds, but no halves of `1,5` or `0x1f`
    rf"(?<![\w./@|-])({NAME})\s*=\s*({DECIMAL})(?=\.?(?:[\s;%|)\]}}\"'(\[\x1b]|[,:](?![0-9])|$))"
)
UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
TRIAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
CELL = re.compile(r'"([^"]*(?:""[^"]*)*)"|([^",]*)')
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class Refused(Exception):
    """The sweep itself is wrong: no attempt at any of its trials could succeed."""

    reason = "bad-sweep"


class BadCommand(Refused):
    """The command cannot be started."""

    reason = "bad-command"


class Stopped(Exception):
    """A signal asked for the end before the command had begun."""


# ---------------------------------------------------------------------------------------- words and files


def say(message: str) -> None:
    """Write one line to stderr, whatever the message holds; a closed stderr changes nothing."""
    line = "".join(letter if letter.isprintable() else " " for letter in message)
    with contextlib.suppress(OSError):
        os.write(2, f"launch.py: {line[:2000]}\n".encode())


def tell_node(text: str) -> bool:
    """Leave a text where the node keeps it when all volumes are gone; tell whether it is there whole."""
    path = os.environ.get("SWEEP_TERMINATION_LOG") or "/dev/termination-log"
    content = text.encode()
    with contextlib.suppress(OSError), open(path, "r+b") as file:  # r+: it must exist already
        file.truncate()
        file.write(content[:TERMINATION_BYTES])
        file.flush()
        return len(content) <= TERMINATION_BYTES
    return False


def need(name: str) -> str:
    """Give a variable of the environment that must be set."""
    value = os.environ.get(name)
    if not value:
        raise Refused(f"the environment variable {name} must be set")
    return value


def create(path: str) -> int:
    """Open a file for writing from its start, never through a link or into a pipe that a trial left there."""
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
    file = os.open(path, flags, 0o644)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return file


def write_all(file: int, content: bytes) -> None:
    """Write every byte: a nearly full disk takes a part first and fails at the next."""
    while content:
        content = content[os.write(file, content) :]


def write_safely(path: str, content: bytes) -> None:
    """Write a file so that it is there whole and for good, or not at all. Raises OSError."""
    temporary = path + ".tmp"
    try:
        file = create(temporary)
        try:
            write_all(file, content)
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(temporary, path)
    except OSError as error:
        error.filename = path  # a write or an fsync names none
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    """Make a rename last through a power loss, where the file system knows how."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # the answer of file systems that cannot
            raise
    finally:
        os.close(folder)


# --------------------------------------------------------------------------------------------- strict JSON


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object whose names are all different."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an object has the same name twice")
    return made


def whole(digits: str) -> int:
    """Read a whole number of a length that every reader can take."""
    if len(digits) > LONGEST_INTEGER:
        raise ValueError(f"a whole number has more than {LONGEST_INTEGER} digits")
    return int(digits)


def depth(value: Any) -> int:
    """Count containers within each other."""
    if isinstance(value, (dict, list)):
        return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)
    return 0


def parse_object(content: bytes) -> dict[str, Any]:
    """Read one JSON object. Raises ValueError with the reason."""
    try:
        data = json.loads(content.decode(), object_pairs_hook=distinct, parse_int=whole)
        deep = depth(data)
    except RecursionError:
        deep = DEEPEST + 1
    if deep > DEEPEST:
        raise ValueError(f"it is nested deeper than {DEEPEST}")
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    return data


def open_regular(path: str) -> IO[bytes]:
    """Open a file that a trial may have written. Raises OSError, and ValueError for what is no file."""
    # Without O_NONBLOCK a FIFO would hold us for ever; a link could show what is none of the trial's.
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise ValueError("it is no regular file")
    return open(file, "rb")


def read_object(path: str) -> dict[str, Any]:
    """Read a JSON file that a trial may have written. Raises OSError, and ValueError with the reason."""
    with open_regular(path) as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError("it is larger than 1 MiB")
    return parse_object(content)


def plain(value: Any) -> Any:
    """Give numbers that standard JSON cannot hold as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


# -------------------------------------------------------------------------------- launch.json and the table

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
}
COLUMN = {"name": TEXT, "type": TEXT}
SHARD = {"file": TEXT, "first": (int,), "count": (int,), "digest": TEXT}
METRIC = {"name": TEXT, "source": TEXT}
REPORTING = {
    "source": ("result", "stdout"),
    "format": ("json", "jsonl", "text", "log"),
    "reduce": ("last", "min", "max"),
}
ON_REQUEST = {"secrets": (dict,), "hyperparams_file": (bool,), "stop": (list,), "keep_checkpoints": (bool,)}
RULE = {"rule": TEXT, "goal": TEXT}
BETWEEN = {"from": (int,), "until": (int,)}  # steps outside of which a rule ends nothing
RULES: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "thresholds": {"thresholds": (list,), "value": TEXT},
    "reports": {"reports": (int,), "margin": AMOUNT},
    "reach": {"reach": AMOUNT},
}


class Row(NamedTuple):
    """One line of the table."""

    number: int
    trial: str
    digest: str
    values: dict[str, Any]
    replicate: int = 0


def check(value: Any, members: Mapping[str, tuple[type, ...]], where: str) -> None:
    """Refuse an object of launch.json that lacks a member, or has one of a wrong kind."""
    if type(value) is not dict:
        raise Refused(f"launch.json: {where} must be an object, got {value!r}")
    for name, kinds in members.items():
        if name not in value or type(value[name]) not in kinds:
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise Refused(f"launch.json: {where}: {name} must be {wanted}, got {value.get(name)!r}")


def read_launch(path: str) -> dict[str, Any]:
    """Read launch.json and check all that is used of it."""
    try:
        with open(path, "rb") as file:
            launch = parse_object(file.read())
    except (OSError, ValueError) as error:
        raise Refused(f"launch.json cannot be read: {error}") from error
    if launch.get("version") != 1:
        raise Refused(f"launch.json must be of version 1, got {launch.get('version')!r}")
    check(launch, LAUNCH, "launch")
    check(launch["metric"], METRIC, "metric")
    check(launch, {name: kinds for name, kinds in ON_REQUEST.items() if name in launch}, "launch")
    secrets = launch.get("secrets", {})
    check(secrets, dict.fromkeys(secrets, TEXT), "secrets")
    for column in launch["columns"]:
        check(column, COLUMN, "column")
    for shard in launch["shards"]:
        check(shard, SHARD, "shard")
    for rule in launch.get("stop", []):
        check_rule(rule)
    return {**launch, "metric": complete_metric(launch["metric"])}


def check_rule(rule: Any) -> None:
    """Refuse a rule by which to stop that is none of the three kinds, or has thresholds out of order."""
    check(rule, RULE, "stop")
    kinds = [kind for kind in RULES if kind in rule]
    if len(kinds) != 1:
        raise Refused(f"launch.json: stop: one of {', '.join(RULES)} must be there, got {sorted(rule)}")
    between = {name: kinds for name, kinds in BETWEEN.items() if name in rule}
    check(rule, {**RULES[kinds[0]], **between}, "stop")
    if rule["goal"] not in ("maximize", "minimize") or rule.get("value", "best") not in ("best", "last"):
        raise Refused(
            f"launch.json: stop: the goal or the value is none that this launcher knows: {rule!r:.200}"
        )
    for point in rule.get("thresholds", []):
        if type(point) is not list or len(point) != 2 or not {type(each) for each in point} <= {*AMOUNT}:
            raise Refused(f"launch.json: stop: a threshold must be a step and a number, got {point!r:.100}")
    steps = [step for step, _ in rule.get("thresholds", [])]
    if steps != sorted(set(steps)):
        raise Refused("launch.json: stop: the thresholds must be in the order of their steps")


def complete_metric(metric: Mapping[str, Any]) -> dict[str, Any]:
    """Add what launch.json leaves out of how the trial reports."""
    usual = {"result": "json", "stdout": "text"}.get(metric["source"])
    metric = {"format": usual, "reduce": "last", **metric}
    for name, choices in REPORTING.items():
        if metric[name] not in choices:
            raise Refused(
                f"launch.json: metric: {name} must be one of {', '.join(choices)}, got {metric[name]!r}"
            )
    if (metric["source"], metric["format"]) == ("stdout", "json"):
        raise Refused("launch.json: metric: the format json is that of a file, and stdout is none")
    return metric


class Rows(NamedTuple):
    """One file of the table, verified."""

    file: str
    first: int
    columns: list[tuple[str, str]]
    header: str
    lines: list[str]


def read_rows(launch: Mapping[str, Any], folder: str, index: int) -> Rows:
    """Read the one file of the table that holds a row, and verify it."""
    shards = [s for s in launch["shards"] if s["first"] <= index < s["first"] + s["count"]]
    if not shards:
        rows = sum(shard["count"] for shard in launch["shards"])
        raise Refused(f"index {index} is beyond the table, which has {rows} rows")
    shard = shards[0]
    try:
        with open(os.path.join(folder, shard["file"]), "rb") as file:
            content = file.read()
    except OSError as error:
        raise Refused(f"the table cannot be read: {error}") from error
    found = "sha256:" + hashlib.sha256(content).hexdigest()
    if found != shard["digest"]:
        raise Refused(f"{shard['file']} must have the digest {shard['digest']}, got {found}")
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
    """Find a row in the table."""
    rows = read_rows(launch, folder, index)
    line = rows.lines[index - rows.first]
    try:
        trial, values = parse_line(line, rows.columns)
        replicate = values.pop("replicate", None) if ("replicate", "number") in rows.columns else 0
        if type(replicate) is not int or replicate < 0:
            raise ValueError(f"the replicate must be a number from 0, got {replicate!r}")
    except ValueError as error:
        raise Refused(f"{rows.file}: {error}") from error
    digest = hashlib.sha256(f"{launch['program']}\n{rows.header}\n{line}\n".encode()).hexdigest()
    return Row(index, trial, digest, values, replicate)


def parse_line(line: str, columns: list[tuple[str, str]]) -> tuple[str, dict[str, Any]]:
    """Take a row apart: an empty cell is an absent parameter, `""` the empty text. Raises ValueError."""
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
    """Give a cell's value, exactly typed. Raises ValueError."""
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


# ------------------------------------------------------------------------------- what the command is given

SPREADING: Mapping[str, Callable[[str, Any], list[str]]] = {
    "args": lambda name, value: [f"--{name}={value}"],
    "args_no_hyphens": lambda name, value: [f"{name}={value}"],
    "args_no_boolean_flags": lambda name, value: (
        [f"--{name}={value}"] if not isinstance(value, bool) else [f"--{name}"] if value else []
    ),
}


def parameter_variables(values: Mapping[str, Any], columns: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Name each value for the environment; JSON columns stay JSON."""
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
    """Fill in a command's macros; those that yield several arguments stand alone in their element."""
    arguments: list[str] = []
    for element in command:
        parts = element if isinstance(element, list) else [element]
        macro = macro_of(parts[0]) if len(parts) == 1 else ""
        if macro in SPREADING:
            for name, value in values.items():
                arguments += SPREADING[macro](name, value)
        else:
            arguments.append("".join(fill_in(part, single, variables) for part in parts))
    if not arguments:
        raise BadCommand("the command is empty")
    return arguments


def macro_of(part: Any) -> str:
    """Name the macro that a part of an element is; text is none."""
    return str(part.get("macro")) if isinstance(part, dict) else ""


def fill_in(part: Any, single: Mapping[str, str], variables: Mapping[bytes, bytes]) -> str:
    """Give the text that a part of an element stands for."""
    if isinstance(part, str):
        return part
    macro = macro_of(part)
    if macro in single:
        return single[macro]
    if macro != "envvar":
        raise Refused(f"launch.json: command: {part!r} is no part that this launcher knows")
    name = str(part.get("argument"))
    if name.encode() not in variables:
        raise Refused(f"the command needs the environment variable {name}, which is not set")
    return variables[name.encode()].decode("utf-8", "surrogateescape")


def in_pod_only(part: Any) -> str:
    """Say what stands for a part whose value only the pod can know; nothing for the others."""
    macro = macro_of(part)
    known = "<args_json_file>" if macro == "args_json_file" else ""
    return f"<envvar:{part.get('argument')}>" if macro == "envvar" else known


def for_reviewers(command: list[Any]) -> list[Any]:
    """Put what stands for them in the places that only the pod can fill in."""
    lists = (element if isinstance(element, list) else [element] for element in command)
    return [[in_pod_only(part) or part for part in parts] for parts in lists]


def compare(shown: list[str], worked_out: list[str]) -> None:
    """Refuse a command that is not the one that was shown."""
    if shown == worked_out:
        return
    pairs = list(itertools.zip_longest(shown, worked_out))
    place = next(place for place, (one, other) in enumerate(pairs) if one != other)
    one, other = ("nothing" if text is None else repr(text)[:400] for text in pairs[place])
    raise Refused(
        f"the command shown must be what the row gives: argument {place} is shown as {one}, got {other}"
    )


def read_secrets(paths: Mapping[str, str]) -> dict[bytes, bytes]:
    """Read each variable's file. What it holds goes nowhere but into the command's environment."""
    found = {}
    for name, path in paths.items():
        try:
            with open(path, "rb") as file:
                content = file.read(LARGEST_FILE + 1)
        except OSError as error:
            raise Refused(f"the secret for {name} cannot be read: {path}: {error.strerror}") from error
        if len(content) > LARGEST_FILE or b"\0" in content:
            raise Refused(f"the secret for {name} must be text of at most 1 MiB: {path}")
        found[name.encode()] = content[:-1] if content.endswith(b"\n") else content
    return found


# -------------------------------------------------------------------------------------------- hyperparams.yml

PLAIN = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_./+-]*", re.ASCII)
MISREAD = re.compile(  # what YAML 1.1 takes for something else than text, among texts that are PLAIN
    r"[+-]?0b[01_]+|[+-]?0[0-7_]+|[+-]?(?:0|[1-9][0-9_]*)|[+-]?0x[0-9a-fA-F_]+"
    r"|[+-]?[0-9][0-9_]*\.[0-9_]*(?:[eE][+-][0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}",
    re.ASCII,
)
WORDS = {
    form
    for word in ("yes", "no", "true", "false", "on", "off", "null")
    for form in (word, word.title(), word.upper())
}


def yaml_scalar(value: Any) -> str:
    """Write a value as PyYAML does; text that is no single word is quoted in another way, equal in value."""
    if isinstance(value, str) and PLAIN.fullmatch(value):
        return f"'{value}'" if value in WORDS or MISREAD.fullmatch(value) else value
    if isinstance(value, float):
        text = repr(value)
        return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text
    if isinstance(value, list):
        return "[" + ", ".join(map(yaml_scalar, value)) + "]"
    if isinstance(value, str):  # JSON would write a letter beyond 16 bits as two, which YAML takes for two
        return '"' + re.sub(r"[^ !#-\[\]-~]", lambda letter: f"\\U{ord(letter[0]):08X}", value) + '"'
    return json.dumps(value)


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
    """Write the list in which scripts look up item JOB_ID - 1: whole where it is short, else empty before it.

    A long list in every pod would make a sweep cost the square of its trials.
    """
    if len(launch["shards"]) > 1 or launch["shards"][0]["count"] > WHOLE_LIST:
        return "-\n" * row.number + yaml_item(row.values)
    rows = read_rows(launch, need("SWEEP_TABLE"), row.number)
    sets = (parse_line(line, rows.columns)[1] for line in rows.lines)
    return "".join(
        yaml_item({name: value for name, value in values.items() if name != "replicate"}) for values in sets
    )


def lay_workplace(folder: str, text: str) -> None:
    """Make a folder of links to the working directory's entries, with a hyperparams.yml of its own."""
    os.mkdir(folder)
    for entry in os.listdir():
        if entry != "hyperparams.yml":
            os.symlink(os.path.abspath(entry), os.path.join(folder, entry))
    with open(os.path.join(folder, "hyperparams.yml"), "w", encoding="utf-8") as file:
        file.write(text)


# ----------------------------------------------------------------------------- signals, processes and pipes


class Signals:
    """Signals as something to look at: a wish to stop is remembered, and any signal ends a wait."""

    def __init__(self) -> None:
        self.stop = 0
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup stays nohup
                signal.signal(number, self.remember)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def remember(self, number: int, _frame: object) -> None:
        """Keep the first signal that asked for the end."""
        self.stop = self.stop or number

    def wake(self) -> None:
        """End a wait from another thread."""
        with contextlib.suppress(BlockingIOError):  # full: it ends anyway
            os.write(self.writer, b"\0")

    def wait(self, seconds: float) -> None:
        """Sleep until a signal comes, the time is over, or a minute has passed."""
        if select.select([self.reader], [], [], min(max(seconds, 0), 60))[0]:
            os.read(self.reader, 4096)


def lock(folder: str, signals: Signals) -> None:
    """Wait for this trial's other launchers; the lock lasts as long as this process. Raises Stopped."""
    file = os.open(
        os.path.join(folder, ".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644
    )
    waiting = False
    while not signals.stop:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not waiting:
                say("another launcher of this trial is at work: waiting for it")
            waiting = True
            signals.wait(0.1)
        except OSError as error:
            say(f"the results volume has no locks, going on without: {error}")
            return
        else:
            return
    raise Stopped(signals.stop)


class Tee(threading.Thread):
    """Copies one output of the trial through as it comes, and keeps its head and its tail in a file."""

    def __init__(self, target: int, path: str, watch: Callable[[bytes], object]) -> None:
        super().__init__(daemon=True)
        self.target, self.path, self.watch = target, path, watch
        self.source = -1
        self.file = create(path)
        self.total = self.head = 0
        self.tail = bytearray()
        self.failure: OSError | None = None

    def copy(self, source: IO[bytes] | None) -> None:
        """Begin to copy from a pipe."""
        assert source  # Popen was asked for it
        self.source = source.fileno()
        self.start()

    def run(self) -> None:
        """Read to the end, whatever becomes of the copies."""
        while True:
            chunk = os.read(self.source, 65536)
            if not chunk:
                return
            self.keep(chunk)
            self.watch(chunk)
            self.pass_on(chunk)

    def keep(self, chunk: bytes) -> None:
        """Put the head into the file at once, and hold the tail in bounded memory."""
        head = chunk[: KEPT - self.head]
        self.head += len(head)
        self.total += len(chunk)
        self.save(head)
        self.tail += chunk[len(head) :]
        if len(self.tail) > 2 * KEPT:
            del self.tail[:-KEPT]

    def save(self, content: bytes) -> None:
        """Write to the file until that fails."""
        if self.failure is None:
            try:
                write_all(self.file, content)
            except OSError as error:
                self.failure = error

    def pass_on(self, chunk: bytes) -> None:
        """Copy to our own output until nobody reads that any more."""
        while chunk and self.target >= 0:
            try:
                chunk = chunk[os.write(self.target, chunk) :]
            except BlockingIOError:
                select.select([], [self.target], [])
            except OSError:
                self.target = -1

    def finish(self, until: float) -> None:
        """Wait for the end of the output, though not for ever, and write the tail."""
        self.join(max(0.0, until - time.monotonic()))
        tail = bytes(self.tail[-KEPT:])
        cut = self.total - self.head - len(tail)
        self.save((f"\n[launch.py cut {cut} bytes here]\n".encode() if cut else b"") + tail)
        if self.failure:
            say(f"the kept output {self.path} is not complete: {self.failure}")


def descendants() -> list[int]:
    """List all processes that came of this one, where the system tells."""
    children: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as file:
                # pid (command) state parent …, and the command may hold anything, brackets too.
                parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found = children.get(os.getpid(), [])
    for pid in found:  # grows while it is walked
        found += children.get(pid, [])
    return found


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, where the system can (Linux)."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # noqa: PLC0415 - slim images lack it

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def reap(child: subprocess.Popen[bytes]) -> None:
    """Collect every process that ended: orphans end here, too."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid == child.pid:
                signalled = os.WIFSIGNALED(status)
                child.returncode = -os.WTERMSIG(status) if signalled else os.WEXITSTATUS(status)


def signal_group(child: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to all processes of the trial's group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def end_all(child: subprocess.Popen[bytes]) -> None:
    """Kill the trial's group and every other descendant, sessions of their own included."""
    until = time.monotonic() + PATIENCE
    signal_group(child, signal.SIGKILL)
    while time.monotonic() < until:
        left = descendants()
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
        reap(child)
    say("processes of the trial would not end, going on without")


class Ending(NamedTuple):
    """How the command ended."""

    code: int  # as Popen gives it: minus the signal
    cause: int  # 0: by itself; TIMED_OUT; STOPPED_EARLY; else the signal that the launcher was sent
    seconds: float


def supervise(
    child: subprocess.Popen[bytes], launch: Mapping[str, Any], signals: Signals, follower: Follower | None
) -> Ending:
    """Wait for the command; end it when its time is over, by a rule, or when the launcher is told to stop."""
    begin = time.monotonic()
    stop_at, cause = begin + launch["timeout_seconds"], 0
    while True:
        reap(child)
        now = time.monotonic()
        if child.returncode is not None:
            return Ending(child.returncode, cause, now - begin)
        early = follower is not None and not cause and follower.look()
        if not cause and (signals.stop or early or now >= stop_at):
            cause = signals.stop or (STOPPED_EARLY if early else TIMED_OUT)
            stop_at = now + launch["grace_seconds"]
            signal_group(child, signal.SIGTERM)
        elif now >= stop_at:
            signal_group(child, signal.SIGKILL)
            stop_at = now + PATIENCE
        pause = stop_at - now
        signals.wait(min(pause, LOOK) if follower and follower.looks and not cause else pause)


# ----------------------------------------------------------------------------------- what the trial reported


class Report(NamedTuple):
    """What the trial says of itself."""

    metrics: dict[str, float]  # finite or not
    details: dict[str, Any]
    reason: str | None  # why there is no objective
    message: str
    curve: Sequence[list[Any]] = ()  # [step, objective], None where that is not finite


class Curve:
    """The objective by step, in memory that does not grow with the steps."""

    def __init__(self) -> None:
        self.points: list[tuple[int, float]] = []
        self.seen, self.stride, self.has_steps = 0, 1, False
        self.last: tuple[int, float] | None = None
        self.low: tuple[int, float] | None = None
        self.high: tuple[int, float] | None = None

    def add(self, value: float, step: Any) -> tuple[int, float]:
        """Take the next number, and give its place; one without a step is counted, from 1."""
        place = whole_step(step)
        self.has_steps = self.has_steps or place is not None
        self.last = point = (self.seen + 1 if place is None else place, value)
        if self.seen % self.stride == 0:
            self.points.append(point)
            if len(self.points) > MOST_HELD:
                self.points = self.points[::2]
                self.stride *= 2
        self.seen += 1
        if math.isfinite(value):
            self.low = point if self.low is None or value < self.low[1] else self.low
            self.high = point if self.high is None or value > self.high[1] else self.high
        return point

    def thinned(self) -> list[list[Any]]:
        """Give first, last, lowest and highest point and what else fits evenly between, sorted by step."""
        if self.seen < 2 and not self.has_steps:  # one number alone is no curve
            return []
        marks = [point for point in (self.low, self.high, self.last) if point]
        held = dict([*self.points, *marks])  # of a step that comes again the last counts
        steps = sorted(held)
        if len(steps) > MOST_POINTS:
            room = MOST_POINTS - len(marks)
            even = {steps[number * (len(steps) - 1) // (room - 1)] for number in range(room)}
            steps = sorted(even | {step for step, _ in marks})
        return [[step, held[step] + 0.0 if math.isfinite(held[step]) else None] for step in steps]


def whole_step(step: Any) -> int | None:
    """Give a step as the whole number that it must be."""
    if type(step) in AMOUNT and math.isfinite(step) and 0 <= step <= LARGEST_STEP and step == int(step):
        return int(step)
    return None


def text_members(line: str) -> dict[str, Any]:
    """Find `name=value` in a line, as often as it stands there."""
    return {found[1]: float(found[2]) for found in METRIC_TEXT.finditer(line)}


def log_members(line: str) -> dict[str, Any]:
    """Take `key,value` apart. Raises ValueError where it is none."""
    key, comma, value = line.strip().rpartition(",")
    if not comma:
        raise ValueError("it has no comma between key and value")
    value = value.strip()
    return {"_".join(key.split()): float(value) if METRIC_NUMBER.fullmatch(value) else value}


def object_members(line: str) -> dict[str, Any]:
    """Read a line of JSON. Raises ValueError where it is none."""
    return parse_object(line.encode())


LINES: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "jsonl": object_members,
    "text": text_members,
    "log": log_members,
}
SHOWN = {"jsonl": 'line {{"{}": NUMBER}}', "text": "line {}=NUMBER", "log": "line {},NUMBER"}


def form_of(line: str, objective: str) -> str:
    """Say in which form a line would hold the objective; nothing where in none."""
    for form, members in LINES.items():
        with contextlib.suppress(ValueError):
            if type(members(line).get(objective)) in AMOUNT:
                return form
    return ""


class Stream:
    """Gathers what lines say. In a file every line must be of the form; on stdout others may print, too."""

    def __init__(
        self,
        metric: Mapping[str, str],
        *,
        strict: bool = False,
        told: Callable[[int, float], object] = lambda _step, _value: None,
    ) -> None:
        self.objective, self.form, self.reduce = metric["name"], metric["format"], metric["reduce"]
        self.strict, self.told = strict and self.form != "text", told
        self.rest, self.number, self.guesses, self.other = b"", 0, 0, ""
        self.found: dict[str, float] = {}
        self.details: dict[str, Any] = {}
        self.curve = Curve()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes. Raises ValueError where a file has a line of another form."""
        lines = (self.rest + chunk).split(b"\n")
        # A line that is too long already stays so, and costs no memory.
        self.rest = lines.pop()[: LONGEST_LINE + 1]
        for line in lines:
            self.take(line)

    def take(self, line: bytes) -> None:
        """Take a whole line."""
        self.number += 1
        if not line or line.isspace():
            return
        try:
            if len(line) > LONGEST_LINE:
                raise ValueError("it is longer than 64 KiB")
            text = line.decode("utf-8", "strict" if self.strict else "replace")
            members = LINES[self.form](text)
        except ValueError as error:
            self.guess(line)
            if self.strict:
                raise ValueError(f"line {self.number}: {error}") from error
        else:
            if type(members.get(self.objective)) not in AMOUNT:
                self.guess(line)
            self.sort_out(members)

    def guess(self, line: bytes) -> None:
        """Remember of which other form a line is."""
        if not self.other and self.guesses < MOST_GUESSES and len(line) <= LONGEST_LINE:
            self.guesses += 1
            form = form_of(line.decode("utf-8", "replace"), self.objective)
            self.other = "" if form == self.form else form

    def sort_out(self, members: dict[str, Any]) -> None:
        """Tell metrics from details."""
        step = members.pop("step", None) if self.has_step(members) else None
        for name, value in members.items():
            is_known = name == self.objective or name in self.found
            is_number = type(value) in AMOUNT and METRIC_NAME.fullmatch(name)
            if is_number and (is_known or len(self.found) < MOST_METRICS):
                self.found[name] = float(value)
            elif self.keeps(name) and (name in self.details or len(self.details) < MOST_METRICS):
                self.details[name] = value
        if type(members.get(self.objective)) in AMOUNT:
            self.told(*self.curve.add(self.found[self.objective], step))

    def keeps(self, name: str) -> bool:
        """Tell whether what is no number is a detail; what others print looks like a log by its commas."""
        return self.strict or self.form == "jsonl" or name == self.objective

    def has_step(self, members: Mapping[str, Any]) -> bool:
        """Tell whether a line says where its objective belongs; else its step is a number like others."""
        has_one = whole_step(members.get("step")) is not None and self.objective != "step"
        return has_one and (self.form == "jsonl" or self.objective in members)

    def finish(self) -> None:
        """Take what stands after the last line end. Raises ValueError like `feed`."""
        self.take(self.rest)

    def report(self, place: str, other: str) -> Report:
        """Say what the lines came to."""
        if self.objective not in self.found:
            message = f"there is no {SHOWN[self.form].format(self.objective)} {place}"
            if self.objective in self.details:
                message += f", and {self.details[self.objective]!r:.100} is no number"
            return Report(self.found, self.details, "metric-missing", message + would_find(other))
        best = {"min": self.curve.low, "max": self.curve.high}.get(self.reduce)
        if best:
            self.found[self.objective] = best[1]
        return Report(self.found, self.details, None, "", () if self.form == "log" else self.curve.thinned())


def would_find(form: str) -> str:
    """Name the word of the spec with which the objective would have been found."""
    return f"; with metric.format: {form} it would be found" if form else ""


def read_report(of_stdout: Stream | None, path: str, metric: Mapping[str, str]) -> Report:
    """Give what the trial reported, where its sweep looks for it."""
    if of_stdout is None:
        if metric["format"] == "json":
            return report_of_file(path, metric["name"])
        return report_of_lines(path, metric)
    of_stdout.finish()
    report = of_stdout.report("on stdout", of_stdout.other)
    if report.reason and not of_stdout.other and os.path.lexists(path):
        return report._replace(
            message=f"{report.message}; there is a $SWEEP_RESULT, for metric.source: result"
        )
    return report


def report_of_lines(path: str, metric: Mapping[str, str]) -> Report:
    """Read the result file line by line."""
    stream, wrong = Stream(metric, strict=True), ""
    try:
        with open_regular(path) as file:
            for chunk in iter(lambda: file.read(65536), b""):
                if file.tell() > LARGEST_STREAM:
                    raise ValueError("it is larger than 64 MiB")
                stream.feed(chunk)
        stream.finish()
    except FileNotFoundError:
        return NO_FILE
    except (OSError, ValueError) as error:
        wrong = str(error)
    other = "json" if is_object_with(path, stream.objective) else stream.other
    if wrong and not other:
        head = form_of_file(path, stream.objective)
        other = "" if head == stream.form else head
    report = stream.report("in $SWEEP_RESULT", other)
    if wrong:
        return no_result(wrong + would_find(other))._replace(metrics=report.metrics, curve=report.curve)
    return report


def is_object_with(path: str, objective: str) -> bool:
    """Tell whether a file is one JSON object with the objective."""
    with contextlib.suppress(OSError, ValueError):
        members = read_object(path)
        inner = members.get("metrics", members)
        return isinstance(inner, dict) and type(inner.get(objective)) in AMOUNT
    return False


def form_of_file(path: str, objective: str) -> str:
    """Say in which form the head of a file would hold the objective; nothing where in none."""
    with contextlib.suppress(OSError, ValueError), open_regular(path) as file:
        lines = file.read(LONGEST_LINE).decode("utf-8", "replace").splitlines()
        return next(filter(None, (form_of(line, objective) for line in lines[:MOST_GUESSES])), "")
    return ""


NO_FILE = Report({}, {}, "metric-missing", "the trial wrote no $SWEEP_RESULT")


def no_result(why: str) -> Report:
    """Say what is wrong with the result file."""
    return Report({}, {}, "result-invalid", f"$SWEEP_RESULT is no valid result: {why}")


def report_of_file(path: str, objective: str) -> Report:
    """Read the result file: numbers are metrics, the rest is details."""
    try:
        members = read_object(path)
    except FileNotFoundError:
        return NO_FILE
    except (OSError, ValueError) as error:
        return no_result(f"{error}{would_find(form_of_file(path, objective))}")
    inner = members.pop("metrics") if "metrics" in members else members
    if not isinstance(inner, dict):
        return no_result(f"its member metrics must be an object, got {type(inner).__name__}")
    metrics: dict[str, float] = {}
    details = {} if inner is members else members
    for name, value in inner.items():
        wanted = name == objective or (len(metrics) < MOST_METRICS and METRIC_NAME.fullmatch(name))
        if wanted and type(value) in AMOUNT:
            metrics[name] = float(value)
        else:
            details.setdefault(name, value)
    if objective in metrics:
        return Report(metrics, details, None, "")
    names = ", ".join(sorted(metrics)[:10]) or "none"
    return Report(
        metrics, details, "metric-missing", f"$SWEEP_RESULT has no number {objective}; its numbers: {names}"
    )


def small(details: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what fits a record, the smallest first; say how many did not."""
    kept, room = {}, MOST_DETAILS
    for size, name in sorted((len(json.dumps({name: value})), name) for name, value in details.items()):
        room -= size
        # In the record it lies two containers deeper than it lay by itself.
        if room >= 0 and depth(details[name]) <= DEEPEST - 2:
            kept[name] = details[name]
    dropped = len(details) - len(kept)
    return {**kept, "details_dropped": dropped} if dropped else kept


def describe(path: str, shown: str) -> dict[str, Any]:
    """Give path, size and digest of a file. Raises OSError."""
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


class Rule:
    """One rule by which to stop, and how the trial stands under it."""

    def __init__(self, rule: Mapping[str, Any]) -> None:
        self.name = str(rule["rule"])
        self.sign = 1.0 if rule["goal"] == "maximize" else -1.0
        self.reports: int | None = rule.get("reports")
        self.margin: float = rule.get("margin", 0)
        self.first, self.last = rule.get("from", 0), rule.get("until", math.inf)
        self.reach: float | None = rule.get("reach")
        self.marks: list[float] = [step for step, _ in rule.get("thresholds", [])]
        self.limits: list[float] = [self.sign * limit for _, limit in rule.get("thresholds", [])]
        self.of_last = rule.get("value") == "last"
        self.passed = self.idle = 0
        self.best = -math.inf

    def is_broken(self, step: int, value: float) -> bool:
        """Tell whether a finite number ends the trial. A threshold counts once, where its step is reached."""
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
        return (value if self.of_last else self.best) < self.limits[passed - 1]


class Broken(NamedTuple):
    """Which rule ended the trial."""

    rule: str
    step: int
    is_behind: bool  # else it came as far as was asked for


class Follower:
    """Holds what the trial reports against the rules, as it comes: on stdout, or in a file that grows."""

    def __init__(self, launch: Mapping[str, Any], path: str, wake: Callable[[], object]) -> None:
        self.launch, self.path, self.wake = launch, path, wake
        self.looks = launch["metric"]["source"] == "result" and launch["metric"]["format"] != "json"
        self.broken: Broken | None = None
        self.begin(0)

    def begin(self, inode: int) -> None:
        """Forget all that was read."""
        self.inode, self.position = inode, 0
        self.rules = [Rule(rule) for rule in self.launch["stop"]]
        self.stream = Stream(self.launch["metric"], strict=True, told=self.take)

    def take(self, step: int, value: float) -> None:
        """Take a number. What is not finite may be a slip, and is judged at the end."""
        if self.broken is None and math.isfinite(value):
            for rule in self.rules:
                if rule.is_broken(step, value) and self.broken is None:
                    self.broken = Broken(rule.name, step, bool(rule.marks))
                    self.wake()

    def look(self) -> bool:
        """Read on in the file, some of it; tell whether the trial is to end."""
        try:
            if self.looks and self.broken is None:
                self.read_on()
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            say(f"the trial is not followed any more: {error}")
            self.looks = False
        return self.broken is not None

    def read_on(self) -> None:
        """Take what was added since the last look. Raises OSError, and ValueError for what is no stream."""
        with open_regular(self.path) as file:
            found = os.fstat(file.fileno())
            if found.st_ino != self.inode or found.st_size < self.position:
                self.begin(found.st_ino)
            file.seek(self.position)
            content = file.read(LARGEST_FILE)
        self.position += len(content)
        if self.position > LARGEST_STREAM:
            raise ValueError("it is larger than 64 MiB")
        self.stream.feed(content)


class Verdict(NamedTuple):
    """What becomes of the attempt."""

    status: str
    reason: str | None
    exit_code: int


def judge(ending: Ending, report: Report, objective: str) -> Verdict:
    """Decide by how the command ended and by what it reported."""
    if ending.cause == TIMED_OUT:
        return Verdict("failed", "timeout", TIMED_OUT)
    if ending.code == BAD_HYPERPARAMETERS:
        return Verdict("diverged", "bad-hyperparameters", BAD_HYPERPARAMETERS)
    if ending.code == BAD_SWEEP:
        return Verdict("failed", "bad-sweep", BAD_SWEEP)
    if ending.code == 0 and report.reason is None:
        if math.isfinite(report.metrics[objective]):
            return Verdict("ok", None, 0)
        return Verdict("diverged", "metric-not-finite", BAD_HYPERPARAMETERS)
    if ending.cause:
        # Whatever it made of the signal, it did not finish because of it.
        return Verdict("failed", f"signal-{ending.cause}", 128 + ending.cause)
    if ending.code == 0:
        return Verdict("failed", report.reason, 1)
    if ending.code < 0:
        return Verdict("failed", f"signal-{-ending.code}", 128 - ending.code)
    return Verdict("failed", f"exit-{ending.code}", ending.code)


# ----------------------------------------------------------------------------------------------- one attempt


class Attempt(NamedTuple):
    """One try at a trial."""

    launch: Mapping[str, Any]
    row: Row
    uid: str
    number: int
    folder: str
    rank: int = 0
    shown: list[str] | None = None
    """The command that a reviewer has read."""

    @property
    def objective(self) -> str:
        """The name of the metric that decides."""
        return str(self.launch["metric"]["name"])

    def path(self, *names: str) -> str:
        """Name something in the trial's own folder; that of other ranks than 0 vanishes with their pod."""
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
    """What came of an attempt."""

    verdict: Verdict
    report: Report
    started: str
    seconds: float


def utc() -> str:
    """Say what time it is, for people."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def prepare(attempt: Attempt, scratch: str) -> tuple[list[str], dict[bytes, bytes]]:
    """Make the folders and files of the contract; give the command's arguments and environment."""
    launch, row = attempt.launch, attempt.row
    assignment, seed = json.dumps(row.values), str(launch["seed_base"] + row.replicate)
    given = {
        **parameter_variables(row.values, launch["columns"]),
        "SWEEP_TRIAL": os.path.join(scratch, "trial.json"),
        "SWEEP_TRIAL_ID": row.trial,
        "SWEEP_SEED": seed,
        "JOB_ID": str(row.number + 1),
        "SWEEP_RESULT": os.path.join(scratch, "result.json"),
        "SWEEP_ARTIFACTS": os.path.join(attempt.artifacts, attempt.uid),
        "SWEEP_CHECKPOINTS": attempt.checkpoints,
    }
    with open(create(given["SWEEP_TRIAL"]), "wb") as file:
        file.write(assignment.encode())
    for name in ("SWEEP_ARTIFACTS", "SWEEP_CHECKPOINTS"):
        os.makedirs(given[name], exist_ok=True)
    variables = dict(os.environb)
    variables.update((name.encode(), text.encode("utf-8", "surrogateescape")) for name, text in given.items())
    single = {
        "args_json": assignment,
        "args_json_file": given["SWEEP_TRIAL"],
        "env": "/usr/bin/env",
        "interpreter": launch["interpreter"],
        "seed": seed,
    }
    if attempt.shown is not None:
        compare(attempt.shown, expand(for_reviewers(launch["command"]), row.values, single, {}))
    arguments = expand(launch["command"], row.values, single, variables)
    variables.update(read_secrets(launch.get("secrets", {})))  # now: none may stand in an argument
    return arguments, variables


def start(arguments: list[str], variables: Mapping[bytes, bytes], place: str) -> subprocess.Popen[bytes]:
    """Start the command in a session of its own, its output in pipes."""
    try:
        return subprocess.Popen(
            [argument.encode("utf-8", "surrogateescape") for argument in arguments],
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place,
            env=variables,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
            raise  # the node's trouble, not the sweep's
        why = getattr(error, "strerror", None) or error
        raise BadCommand(f"the command {arguments[0]!r} cannot be started: {why}") from error


def run_command(attempt: Attempt, signals: Signals) -> Outcome:
    """Run the command to its end, and all that it started with it."""
    scratch = tempfile.mkdtemp(prefix="trial-", dir=os.path.abspath(need("SWEEP_SCRATCH")))
    arguments, variables = prepare(attempt, scratch)
    place = "."
    if attempt.launch.get("hyperparams_file"):
        place = os.path.join(scratch, "work")
        lay_workplace(place, hyperparams(attempt.launch, attempt.row))
        variables[b"PWD"] = os.fsencode(place)
    metric = attempt.launch["metric"]
    result = os.path.join(scratch, "result.json")
    follows = attempt.launch.get("stop") and attempt.rank == 0
    follower = Follower(attempt.launch, result, signals.wake) if follows else None
    told = follower.take if follower else lambda _step, _value: None
    of_stdout = Stream(metric, told=told) if metric["source"] == "stdout" else None
    out = Tee(1, attempt.path(f"{attempt.uid}.out"), of_stdout.feed if of_stdout else len)
    err = Tee(2, attempt.path(f"{attempt.uid}.err"), len)
    if signals.stop:
        raise Stopped(signals.stop)
    started = utc()
    child = start(arguments, variables, place)
    try:
        out.copy(child.stdout)
        err.copy(child.stderr)
        ending = supervise(child, attempt.launch, signals, follower)
    finally:
        end_all(child)
        until = time.monotonic() + PATIENCE
        out.finish(until)
        err.finish(until)
    report = read_report(of_stdout, result, metric)
    if attempt.rank and (ending.code, ending.cause) == (0, 0):
        return Outcome(Verdict("ok", None, 0), report, started, ending.seconds)
    verdict = judge(ending, report, attempt.objective)
    if follower and follower.broken and ending.cause == STOPPED_EARLY:
        broken = follower.broken
        early = {"stopped_early": {"rule": broken.rule, "step": broken.step}}
        report = report._replace(details={**report.details, **early})
        if broken.is_behind:
            verdict = Verdict("pruned", broken.rule, FINAL["pruned"])
        else:  # it came as far as was asked for
            verdict = judge(ending._replace(code=0, cause=0), report, attempt.objective)
    return Outcome(verdict, report, started, ending.seconds)


def make_record(attempt: Attempt, outcome: Outcome) -> dict[str, Any]:
    """Put together what this attempt leaves: record.schema.json describes it."""
    launch, row, (verdict, report, started, seconds) = attempt.launch, attempt.row, outcome
    artifacts, left_out = list_artifacts(os.path.join(attempt.artifacts, attempt.uid))
    details = {**report.metrics, **report.details}
    for name, value in report.metrics.items():
        if math.isfinite(value):
            del details[name]
    if report.message and report.reason == verdict.reason:
        details["error"] = report.message[:1000]
    if left_out:
        details["artifacts_left_out"] = left_out
    if os.environ.get("SWEEP_PARENT_ID"):
        details["parent"] = os.environ["SWEEP_PARENT_ID"]
    record = {
        "version": 1,
        "trial": row.trial,
        "row": row.digest,
        "batch": launch["batch"],
        "index": row.number,
        "uid": attempt.uid,
        "attempt": attempt.number,
        "status": verdict.status,
        "reason": verdict.reason,
        # Adding 0.0 makes -0.0 a plain zero.
        "metrics": {name: value + 0.0 for name, value in report.metrics.items() if math.isfinite(value)},
        "seconds": round(seconds, 3),
        "started": started,
        "finished": utc(),
        "ran": os.environ.get("SWEEP_RAN") or "process",
        "code": launch["code"],
        "data": launch["data"],
        "seed": launch["seed_base"] + row.replicate,
        "node": os.environ.get("SWEEP_NODE") or None,
        "details": small(plain(details)),
        "artifacts": artifacts,
    }
    return {**record, "curve": report.curve} if report.curve else record


def records_of(row: Row, folder: str) -> list[dict[str, Any]]:
    """Read this row's earlier records; whatever else lies there does not matter."""
    found = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            with contextlib.suppress(OSError, ValueError):
                record = read_object(os.path.join(folder, name))
                named = record.get("version"), record.get("row"), f"{record.get('uid')}.json"
                if named == (1, row.digest, name):
                    found.append(record)
    return found


def dump(record: Mapping[str, Any]) -> str:
    """Write a record in one line."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"


def brief(record: dict[str, Any], objective: str) -> str:
    """Write a record in so few bytes that the node keeps it whole."""
    value = record["metrics"].get(objective)
    if len(dump(record)) > TERMINATION_BYTES:
        record = {name: member for name, member in record.items() if name != "curve"}
    less = {"artifacts": [], "details": {}, "metrics": {} if value is None else {objective: value}}
    for name, substitute in less.items():
        if len(dump(record)) > TERMINATION_BYTES:
            record = {**record, name: substitute}
    return dump(record)


def conclude(attempt: Attempt, outcome: Outcome) -> int:
    """Say and record what came of the attempt, tidy up, and give the exit code."""
    (status, reason, exit_code), report = outcome.verdict, outcome.report
    words = [attempt.row.trial, status, *([reason] if reason else [])]
    if attempt.objective in report.metrics:
        words.append(f"{attempt.objective}={report.metrics[attempt.objective]!r}")
    if report.message and report.reason == reason:
        words.append(report.message)
    say(": ".join(words))
    if attempt.rank:
        return exit_code
    record = make_record(attempt, outcome)
    is_told = tell_node(brief(record, attempt.objective))
    try:
        write_safely(attempt.path(f"{attempt.uid}.json"), dump(record).encode())
    except OSError as error:
        say(f"the record cannot be written: {error}")
        # Whoever reads the node's copy has the result: the work is not to be done again.
        return exit_code if is_told else STORAGE_FAILED
    if status in ("ok", "pruned") and not attempt.launch.get("keep_checkpoints"):
        shutil.rmtree(attempt.checkpoints, ignore_errors=True)
    for unused in (os.path.join(attempt.artifacts, attempt.uid), attempt.artifacts, attempt.checkpoints):
        with contextlib.suppress(OSError):  # not empty
            os.rmdir(unused)
    return exit_code


def own_index() -> int:
    """Say which row is ours."""
    text = os.environ.get("SWEEP_INDEX") or need("JOB_COMPLETION_INDEX")
    if not re.fullmatch("[0-9]{1,9}", text):
        raise Refused(f"the index must be a whole number, got {text!r}")
    return int(text)


def own_rank() -> int:
    """Say which of the trial's pods this is."""
    text = os.environ.get("SWEEP_RANK") or "0"
    if not re.fullmatch("[0-9]{1,9}", text):
        raise Refused(f"the rank must be a whole number, got {text!r}")
    return int(text)


def shown_command(arguments: list[str]) -> list[str] | None:
    """Give the command that stands in the manifest, where one does."""
    if arguments and arguments[0] != "--":
        raise Refused(f"the arguments must be none, or -- and a command, got {arguments!r}")
    return arguments[1:] if arguments else None


def attempt_number(earlier: int) -> int:
    """Count this attempt: by what Kubernetes says, else by the records."""
    failures = os.environ.get("SWEEP_FAILURES", "")
    return 1 + (int(failures) if re.fullmatch("[0-9]{1,9}", failures) else earlier)


def run(signals: Signals) -> int:
    """Go through the whole contract; give the exit code."""
    uid = os.environ.get("SWEEP_POD_UID") or os.urandom(16).hex()
    if not UID.fullmatch(uid):
        raise Refused(f"SWEEP_POD_UID must be letters, digits, dots, underscores and hyphens, got {uid!r}")
    rank, shown = own_rank(), shown_command(sys.argv[1:])
    launch = read_launch(need("SWEEP_LAUNCH"))
    row = read_row(launch, need("SWEEP_TABLE"), own_index())
    folder = os.path.abspath(need("SWEEP_RESULTS"))
    os.makedirs(folder, exist_ok=True)
    if rank == 0:  # whose attempts take turns; the other ranks of one attempt run beside it
        lock(folder, signals)
    earlier = records_of(row, folder)
    for record in earlier:
        for status, exit_code in FINAL.items():
            if record.get("status") == status:
                say(f"{row.trial}: {status} already, by attempt {record['uid']}: nothing to do")
                return exit_code
    if rank:
        folder = tempfile.mkdtemp(prefix="rank-", dir=os.path.abspath(need("SWEEP_SCRATCH")))
    attempt = Attempt(launch, row, uid, attempt_number(len(earlier)), folder, rank, shown)
    try:
        outcome = run_command(attempt, signals)
    except Refused as error:
        report = Report({}, {}, error.reason, str(error))
        outcome = Outcome(Verdict("failed", error.reason, BAD_SWEEP), report, utc(), 0.0)
    return conclude(attempt, outcome)


def hold_standard_streams() -> None:
    """Keep files of ours from becoming 0, 1 or 2 where one of those was closed."""
    while True:
        file = os.open(os.devnull, os.O_RDWR)
        if file > 2:
            os.close(file)
            return


def main() -> int:
    """Run the trial; every failure is one line on stderr and an exit code."""
    hold_standard_streams()
    adopt_orphans()
    try:
        return run(Signals())
    except Refused as error:
        say(str(error))
        tell_node(f"{error}\n")
        return BAD_SWEEP
    except Stopped as stopped:
        say(f"stopped by signal {stopped} before the command began")
        return 128 + int(stopped.args[0])
    except OSError as error:
        say(f"results volume, scratch folder or node failed: {error}")
        return STORAGE_FAILED
    except Exception as error:  # noqa: BLE001 - a traceback tells the author of a sweep nothing
        say(f"this is a fault of the launcher, please report it: {type(error).__name__}: {error}")
        return OUR_BUG


if __name__ == "__main__":
    sys.exit(main())

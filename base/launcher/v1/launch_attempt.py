"""One attempt at a trial: its command is prepared, run and judged."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Sequence

from launch_command import compare, expand, parameter_variables, read_secrets, with_placeholders
from launch_environment import Environment, read_environment
from launch_files import (
    BAD_HYPERPARAMETERS,
    BAD_SWEEP,
    DISRUPTED,
    FINAL,
    LARGEST_FILE,
    STOPPED_EARLY,
    TIMED_OUT,
    BadCommand,
    Stopped,
    create,
    make_temporary_folder,
    need,
    sha256,
    write_new,
    write_safely,
)
from launch_folders import (
    COMPARED,
    OVERLAY,
    compare_code,
    copy_file,
    copy_folder,
    has_data_changed,
    keep_written,
    leave_note,
    make_folders,
    moved,
    short_link,
    working_directory,
)
from launch_json import open_regular, read_object
from launch_lines import Stream, no_value
from launch_metrics import Report, wanted_of
from launch_processes import PATIENCE, Command, Ending, LastWords, Tee, end_all, forget_peak_memory, supervise
from launch_reports import files_of, read_report

if TYPE_CHECKING:
    from launch_folders import Folders
    from launch_processes import Signals
    from launch_reports import Files
    from launch_row import Row
    from launch_stopping import Broken, Follower

FOR_LAUNCHER = (
    b"CODE CODE_STATE COPIES DATA_STATE EARLIER ENVIRONMENTS OVERLAY SCRATCH TERMINATION_LOG THRESHOLDS"
)
"""Variables without SWEEP_ that no command gets: they lead to what other trials have."""


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
        from launch_config import config_text

        single["config"] = os.path.join(scratch, f"config.{launch['config']['format']}")
        write_new(single["config"], config_text(launch["config"], row.values).encode())
    if attempt.shown is not None:
        compare(attempt.shown, expand(with_placeholders(launch["command"]), row.values, single, {}))
    arguments = expand(launch["command"], row.values, single, variables)
    place = working_directory(launch, folders)
    if launch.get("hyperparams_file"):
        from launch_config import hyperparams

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
    follower: Follower | None = None
    if is_followed:
        from launch_stopping import Follower

        follower = Follower(launch, command.files, signals.wake)
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


class Slot:
    """Memory that a pod shares with the launcher of one row: how many rows ran, and its record's digest."""

    SIZE = 40

    def __init__(self) -> None:
        import mmap

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


def capture_in(scratch: str, variables: dict[bytes, bytes]) -> None:
    """Make launch_capture.py the sitecustomize of the Python programs that a trial runs."""
    # Beside what was started: whoever forks launchers has imported this part from elsewhere.
    with open(os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "launch_capture.py"), "rb") as file:
        source = file.read()
    folder = os.path.join(scratch, "capture")
    os.mkdir(folder)
    write_new(os.path.join(folder, "sitecustomize.py"), source)
    paths = [os.fsencode(folder), variables.get(b"PYTHONPATH", b"")]
    variables[b"PYTHONPATH"] = os.fsencode(os.pathsep).join(filter(None, paths))
    variables.setdefault(b"WANDB_MODE", b"offline")
    variables.setdefault(b"WANDB_DIR", os.fsencode(scratch))
    variables.setdefault(b"MLFLOW_TRACKING_URI", b"file:" + os.fsencode(os.path.join(scratch, "mlruns")))
    variables.setdefault(b"MLFLOW_ALLOW_FILE_STORE", b"true")  # MLflow 3 refuses folders without it

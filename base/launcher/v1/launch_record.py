"""The record of an attempt, and the artifacts and evidence that it names."""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from launch_attempt import utc
from launch_files import (
    KIBIBYTE,
    STORAGE_FAILED,
    TERMINATION_BYTES,
    VERSION,
    delete_folder,
    describe,
    say,
    sha256,
    write_once,
    write_safely,
    write_termination_message,
)
from launch_folders import OVERLAY
from launch_json import DEEPEST, depth, dump, plain, read_object
from launch_metrics import MOST_METRICS, wanted_of

if TYPE_CHECKING:
    from launch_attempt import Attempt, Outcome
    from launch_row import Row

LONGEST_PATH = 500  # characters of an artifact's path in JSON
MOST_ARTIFACTS = 1000
# Bounds of a record, which has at most 32 KiB.
FIRST_PART_BYTES = 4000  # with a digest it fits the termination message
DETAILS_BYTES = 8 * KIBIBYTE
ARTIFACTS_BYTES = 8 * KIBIBYTE
ENVIRONMENT_BYTES = 64 * KIBIBYTE
BEYOND_FIRST_PART = ("artifacts", "curves", "details", "environment", "stopped")


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
            from launch_config import config_text

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
    import base64
    import zlib

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

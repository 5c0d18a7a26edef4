"""All files of a sweep's results folder, as a pure function of the content of git.

`provenance.json` gives the origin of every number of a sweep.
"""

from collections.abc import Mapping
from json import loads
from typing import Any

from sweepledger.formats import json, summary_csv
from sweepledger.results.figures import catalog
from sweepledger.results.figures.catalog import draw_figures
from sweepledger.results.importance import importance
from sweepledger.results.outcomes import Attempt, EvaluatedBatch
from sweepledger.results.readme import README_FILE, readme
from sweepledger.results.summary import Summary, laptop_files, records_files
from sweepledger.structs import names as paths
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.record import Status, TrialResult
from sweepledger.structs.values import as_data, bytes_digest

PROVENANCE_FILE = "provenance.json"
REPORTED_DETAILS = ("data_digest", "device", "read_again", "versions")
"""Details of a record that provenance repeats; the records have all of them."""


def provenance(summary: Summary) -> dict[str, Any]:
    """Return the provenance of every batch and trial as JSON data."""
    return {
        "version": 1,
        "generated": "by sweepledger from git alone; do not edit",
        "sweep": summary.sweep,
        "metric": {"name": summary.metric.name, "goal": str(summary.metric.goal)},
        "spec": {"path": summary.lock.spec.path, "digest": summary.spec_digest},
        "inputs_digest": summary.inputs_digest,
        "batches": {batch.lock.name: _batch(batch) for batch in summary.batches},
    }


def parse_provenance(content: bytes) -> Mapping[str, Any]:
    """Return the members of a provenance file; none if it is not a JSON object."""
    try:
        data = loads(content)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _batch(batch: EvaluatedBatch) -> dict[str, Any]:
    lock = batch.lock
    statuses = [outcome.status for outcome in batch.outcomes]
    return {
        "number": lock.number,
        "parent": lock.parent,
        "digest": lock.digest,
        "spec": {"path": lock.spec.path, "digest": lock.spec.digest},
        "program": {**as_data(lock.program), "digest": lock.program.digest},
        "generator": lock.generator,
        **({"made_on": "laptop"} if batch.is_marked else {}),
        "seed_base": lock.run.seed_base,
        "counts": {str(status): statuses.count(status) for status in Status},
        "trials": [
            _trial(outcome, expected.row, attempts)
            for outcome, expected, attempts in zip(
                batch.outcomes, batch.expected, batch.attempts, strict=True
            )
        ],
    }


def _trial(outcome: TrialResult, row: str, attempts: tuple[Attempt, ...]) -> dict[str, Any]:
    record = outcome.record
    data: dict[str, Any] = {
        "trial": outcome.trial,
        "batch": outcome.batch,
        "index": outcome.index,
        "row": row,
        "code": outcome.code,
        "data": outcome.data,
        "status": str(outcome.status),
        "reason": outcome.reason,
        # With the attempts, `sweep verify` can name an edited record without the file's history.
        "attempts": [
            {
                "attempt": each.record.attempt,
                "uid": each.record.uid,
                "node": each.record.node,
                "record": bytes_digest(each.line.encode()),
            }
            for each in attempts
        ],
    }
    if record is None:
        return data
    details = {name: record.details[name] for name in REPORTED_DETAILS if name in record.details}
    if record.environment is not None:
        details["environment"] = as_data(record.environment)
    return {**data, "uid": record.uid, "ran": record.ran, "seed": record.seed, **details}


OPTIONAL_FILES = frozenset({summary_csv.REPLICATES_FILE, *catalog.OPTIONAL_FILES})
"""Files that a summary need not have: removed if they are not written."""


def result_files(summary: Summary) -> FileTree:
    """Return every file below `results/<sweep>/`, by its path there.

    Only records that belong to their batch are included, so a rebuild from these files gives the same files.
    """
    reports = {path: text.encode() for path, text in report_files(summary).items()}
    return FileTree({**number_files(summary).files, **reports})


def report_files(summary: Summary) -> dict[str, str]:
    """Return the README and the figures, by path."""
    shares = importance(summary)
    return {README_FILE: readme(summary, shares), **draw_figures(summary, shares)}


def number_files(summary: Summary) -> FileTree:
    """Return all other files: records, summary, replicates and provenance."""
    table = summary_csv.write(summary.outcomes, objective=summary.metric.name)
    files = {
        summary_csv.SUMMARY_FILE: table.encode(),
        PROVENANCE_FILE: json.dump(provenance(summary)).encode(),
        **laptop_files(summary.batches),
    }
    if summary.replicated:
        statistics = []
        for one in summary.replicated:
            ends = one.interval or (None, None)
            ids = " ".join(trial.trial for trial in one.trials)
            statistics.append((one.in_spec, one.count, one.mean, one.deviation, *ends, ids))
        replicates = summary_csv.write_replicates([one.assignment for one in summary.replicated], statistics)
        files[summary_csv.REPLICATES_FILE] = replicates.encode()
    for batch in summary.batches:
        files |= records_files(batch)
    return FileTree(files)


def changed_files(summary: Summary) -> tuple[dict[str, bytes], frozenset[str]]:
    """Return the files to write, and the files of an earlier summary to remove, by path in the repository."""
    folder, files = paths.results_folder(summary.sweep), dict(result_files(summary))
    writes = {f"{folder}/{path}": content for path, content in files.items()}
    return writes, frozenset(f"{folder}/{path}" for path in OPTIONAL_FILES - files.keys())

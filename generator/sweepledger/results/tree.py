"""All files of a sweep's results folder, as a pure function of what git contains."""

from collections.abc import Mapping

from sweepledger.formats import json, summary_csv
from sweepledger.formats.summary_csv import ReplicatesRow, parameter_names
from sweepledger.results import paths
from sweepledger.results.figures import catalog
from sweepledger.results.figures.catalog import draw_figures
from sweepledger.results.importance import importance
from sweepledger.results.provenance import PROVENANCE_FILE, provenance
from sweepledger.results.readme import README_FILE, readme
from sweepledger.results.summary import Summary, laptop_files, records_files
from sweepledger.structs.file_tree import FileTree

OPTIONAL_FILES = frozenset({summary_csv.REPLICATES_FILE, *catalog.OPTIONAL_FILES})
"""Files that a summary need not have: removed if they are not written."""


def result_files(summary: Summary) -> FileTree:
    """Return every file below `results/<sweep>/`, by its path there.

    Only records that belong to their batch are in it, so files rebuilt from it are the same files.
    """
    return FileTree({**number_files(summary).files, **_encoded(report_files(summary))})


def report_files(summary: Summary) -> dict[str, str]:
    """Return the README and the figures, by path."""
    shares = importance(summary)
    return {README_FILE: readme(summary, shares), **draw_figures(summary, shares)}


def number_files(summary: Summary) -> FileTree:
    """Return all other files: records, summary, replicates and provenance."""
    texts = {
        summary_csv.SUMMARY_FILE: summary_csv.write(summary.outcomes, objective=summary.metric.name),
        PROVENANCE_FILE: json.dump(provenance(summary)),
    }
    if summary.replicated:
        texts[summary_csv.REPLICATES_FILE] = _replicates(summary)
    files = _encoded(texts)
    for batch in summary.batches:
        files |= records_files(batch)
    files |= laptop_files(summary.batches)
    return FileTree(files)


def _encoded(texts: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in texts.items()}


def changed_files(summary: Summary) -> tuple[dict[str, bytes], frozenset[str]]:
    """Return the files to write, and those of an earlier summary to remove, by path in the repository."""
    folder, files = paths.results_folder(summary.sweep), dict(result_files(summary))
    writes = {f"{folder}/{path}": content for path, content in files.items()}
    return writes, frozenset(f"{folder}/{path}" for path in OPTIONAL_FILES - files.keys())


def _replicates(summary: Summary) -> str:
    names = parameter_names(trial for one in summary.replicated for trial in one.trials)
    rows = (
        ReplicatesRow(
            assignment=one.assignment,
            in_spec=one.in_spec,
            count=one.count,
            mean=one.mean,
            deviation=one.deviation,
            low=None if one.interval is None else one.interval.low,
            high=None if one.interval is None else one.interval.high,
            trials=tuple(trial.trial for trial in one.trials),
        )
        for one in summary.replicated
    )
    return summary_csv.write_replicates(rows, names)

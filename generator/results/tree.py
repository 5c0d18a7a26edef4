"""All files of a sweep's results folder, as a pure function of what git holds."""

from generator.formats import json, replicates
from generator.formats import summary as summary_csv
from generator.formats.replicates import ReplicatesRow
from generator.formats.summary import parameter_names
from generator.results import figures, places
from generator.results.inputs import records_text
from generator.results.places import records_path
from generator.results.provenance import PROVENANCE_FILE, provenance
from generator.results.report import report_files
from generator.results.summary import Summary
from generator.structs.tree import FileTree

RESULTS = places.RESULTS

SOMETIMES = frozenset({replicates.REPLICATES_FILE, *figures.SOMETIMES, "figure.svg"})
"""Files that a summary need not have: where it has none, an earlier one's is out of date."""


def result_files(summary: Summary) -> FileTree:
    """Give every file below `results/<sweep>/`, by its path there.

    Only records that belong to their batch are in it, so files rebuilt from it are the same files.
    """
    texts = {
        summary_csv.SUMMARY_FILE: summary_csv.write(summary.outcomes, objective=summary.metric.name),
        PROVENANCE_FILE: json.dump(provenance(summary)),
        **report_files(summary),
    }
    if summary.replicated:
        texts[replicates.REPLICATES_FILE] = _replicates(summary)
    for batch in summary.batches:
        texts[records_path(batch.lock.name)] = records_text(batch)
    return FileTree({path: text.encode() for path, text in texts.items()})


def changed_files(summary: Summary) -> tuple[dict[str, bytes], frozenset[str]]:
    """Say what to write, and what of an earlier summary to remove, by path from the repository's root."""
    folder, files = places.results_folder(summary.sweep), dict(result_files(summary))
    writes = {f"{folder}/{path}": content for path, content in files.items()}
    return writes, frozenset(f"{folder}/{path}" for path in SOMETIMES - files.keys())


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
    return replicates.write(rows, names)

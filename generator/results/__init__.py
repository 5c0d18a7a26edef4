"""Records in, everything below `results/<sweep>/` out. Pure: no file, no clock, no git.

The collector's three lines: `summarise(batches, description=…)`, `changed_files(summary)`,
`commit_message(summary, recorded=…)`.
"""

from generator.results.message import commit_message
from generator.results.outcomes import BatchResults, JudgedBatch, judge
from generator.results.places import records_path, results_folder
from generator.results.substitutes import substitutes
from generator.results.summary import Effect, Level, Summary, summarise
from generator.results.tree import changed_files, result_files

__all__ = [
    "BatchResults",
    "Effect",
    "JudgedBatch",
    "Level",
    "Summary",
    "changed_files",
    "commit_message",
    "judge",
    "records_path",
    "result_files",
    "results_folder",
    "substitutes",
    "summarise",
]

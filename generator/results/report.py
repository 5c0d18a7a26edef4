"""What people look at in a results folder: the README and its figures, which share what they rest on."""

from generator.results.figures import figures
from generator.results.importance import importance
from generator.results.readme import README_FILE, readme
from generator.results.summary import Summary


def report_files(summary: Summary) -> dict[str, str]:
    """Give the README and the figures of a sweep's results, by path."""
    found = importance(summary)
    return {README_FILE: readme(summary, found), **figures(summary, found)}

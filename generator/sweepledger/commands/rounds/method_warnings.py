"""What the method of a search lacks, where its rounds may be computed."""

from collections.abc import Iterator

from sweepledger.problems import Problem, Severity
from sweepledger.search.adaptive.model_based import find_excess, missing_library
from sweepledger.spec import ParsedSpec
from sweepledger.structs.search_block import AdaptiveSearch


def method_warnings(parsed: ParsedSpec, search: AdaptiveSearch | None) -> Iterator[Problem]:
    """Warn if the library of the search's method is not installed here, or if its model does not take the space."""
    missing = None if search is None else missing_library(search)
    if missing is not None:
        yield _warning(parsed, "library-missing", str(missing), missing.hint)
    excess = None if search is None else find_excess(search)
    if excess is not None:
        message = f"every round will be drawn at random, because {excess}"
        yield _warning(parsed, "model-size", message, "method: tpe takes any number of values")


def _warning(parsed: ParsedSpec, code: str, message: str, hint: str | None) -> Problem:
    return parsed.source.problem(message, "method", code=code, hint=hint, severity=Severity.WARNING)

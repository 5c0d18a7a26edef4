"""How many trials there are, by arithmetic alone, and what follows for their shape."""

import math
from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import cut
from generator.spec.draft import Draft
from generator.structs.sweep import Run, Shape

MOST_TRIALS = 100_000
"""The most completions an Indexed Job can have with retries counted for each of them."""

MOST_JOBS = 100
"""Objects: beyond it `kustomize build` and a reviewer's patience both suffer."""


def size(draft: Draft) -> Iterator[Problem]:
    """A grid must be small enough to be run."""
    trials = _trials(draft)
    if trials > MOST_TRIALS:
        message = f"must make at most {MOST_TRIALS} trials, got {cut(_product(draft))}"
        hint = "try fewer values"
        yield draft.problem(("parameters",), message, code="too-many-trials", hint=hint, at_key=True)


def jobs(draft: Draft) -> Iterator[Problem]:
    """One Job a trial is for few trials that may all run at once: nothing else holds Jobs back."""
    if draft.get("run", "shape", kind=str) != Shape.JOBS:
        return
    trials = _trials(draft)
    given = draft.number("run", "parallelism")
    parallelism = Run().parallelism if given is None else given
    unknown = ("run", "parallelism") in draft.broken
    if trials > MOST_JOBS:
        message = f"must be 'indexed' for more than {MOST_JOBS} trials, got 'jobs' for {cut(str(trials))}"
        yield draft.problem(("run", "shape"), message, code="shape-limit", hint="delete the key")
    elif parallelism < trials and not unknown:
        message = f"must be 'indexed' where parallelism ({parallelism}) is less than the trials ({trials})"
        hint = f"delete the key, or set parallelism: {trials}"
        yield draft.problem(("run", "shape"), f"{message}, got 'jobs'", code="shape-limit", hint=hint)


def _trials(draft: Draft) -> int:
    return math.prod(_counts(draft))


def _counts(draft: Draft) -> list[int]:
    counts = (
        len(draft.get("parameters", name, "values", kind=list) or [0]) for name in draft.names("parameters")
    )
    return list(counts)


def _product(draft: Draft) -> str:
    factors = [str(count) for count in _counts(draft) if count > 1]
    return f"{math.prod(_counts(draft))} = {' * '.join(factors)}"

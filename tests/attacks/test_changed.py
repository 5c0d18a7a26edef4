"""Random mutations of a valid change: none that is accepted changes what runs or with which rights, none is a crash."""

import random
from pathlib import Path

import pytest

from sweepledger.problems import Severity
from tests.attacks.changing import Change

SHORT, LONG = 8, 150
"""`python benchmarks/changes.py` makes ten thousand with each of three seeds."""

pytestmark = pytest.mark.usefixtures("needs_kustomize")


@pytest.mark.parametrize(
    "count", [SHORT, pytest.param(LONG, marks=pytest.mark.full_suite("more attacks"))], ids=["few", "many"]
)
def test_no_mutation_of_a_change_is_accepted_that_changes_what_runs(tmp_path: Path, count: int) -> None:
    change = Change.built(tmp_path)
    rng = random.Random(count)  # noqa: S311 - the same mutations every time
    valid = change.sandbox.check(base="origin/main").problems
    assert [one for one in valid if one.severity is Severity.ERROR] == []

    verdicts = [change.mutated(rng) for _ in range(count)]

    assert [one for one in verdicts if one.harm] == []
    assert sum(bool(one.codes) for one in verdicts) > count / 2

"""Which tests run when: `make test` leaves out what is marked `full_suite`, and says what that was.

A test belongs to `make test-full` if it needs more than Python and git (Go, root, a package registry, another
Python), or if it tries at length what a shorter test already covers. Of a test that is marked `sampled`, `make test`
runs the first cases.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import pytest

API_SERVER = "the real API server"
_NEEDS = {"apiserver": API_SERVER, "another_python": "other Python versions"}
"""Fixtures that only `make test-full` provides, and what they stand for."""
LONGEST = (
    *("tests/cli/test_responses.py", "tests/cli/test_printed_commands.py"),
    *("tests/operations/test_next.py", "tests/operations/test_run.py"),
    *("tests/workflows/test_hostile_changes.py", "tests/trainer/test_distributed.py"),
    *("tests/hostile/test_repositories.py", "tests/cli/test_first_sweeps.py"),
    *("tests/launcher/test_launcher_rows.py", "tests/operations/test_early_stopping.py"),
    *("tests/operations/test_retry.py", "tests/attacks/test_forged_rounds.py"),
    *("tests/operations/test_collect.py", "tests/operations/test_local.py"),
    *("tests/trainer/test_training.py", "tests/operations/test_one_stops_no_other.py"),
    *("tests/trainer/test_command_line.py", "tests/render/test_bucket_store.py"),
    *("tests/operations/test_budgets.py", "tests/operations/test_packs.py"),
    *("tests/search/test_rounds_of_every_method.py", "tests/launcher/test_packs.py"),
    *("tests/workflows/test_pull_requests.py", "tests/fuzz/test_fuzzing.py"),
    *("tests/faults/test_kills.py", "tests/operations/test_pushed_rounds.py"),
    "tests/operations/test_histories.py",
)
"""The files that take longest, six seconds and more, though they have few tests."""
left_out: Counter[str] = Counter()
"""How many tests this run left out, by reason."""


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark each test that uses a fixture of the full suite, lies in tests/cluster, or is one of many cases."""
    cases: Counter[str] = Counter()
    for item in items:
        needs = [_NEEDS[name] for name in getattr(item, "fixturenames", ()) if name in _NEEDS]
        if needs:
            item.add_marker(pytest.mark.full_suite(needs[0]))
        elif item.nodeid.startswith("tests/cluster/"):
            item.add_marker(pytest.mark.full_suite("parts of a cluster"))
        sampled = item.get_closest_marker("sampled")
        if sampled and not item.get_closest_marker("full_suite"):
            test = item.nodeid.partition("[")[0]
            cases[test] += 1
            if cases[test] > sampled.args[0]:
                item.add_marker(pytest.mark.full_suite("more cases of a test"))


def sort_for_workers(items: list[pytest.Item]) -> None:
    """Sort files, of which a worker runs each whole, by the time that they take, so that workers end together."""
    tests = Counter(item.nodeid.partition("::")[0] for item in items)
    longest = {file: number for number, file in enumerate(LONGEST)}

    def rank(item: pytest.Item) -> tuple[int, int, str]:
        file = item.nodeid.partition("::")[0]
        return longest.get(file, len(longest)), -tests[file], file

    items.sort(key=rank)


def parameters(cases: Iterable[Any], default: Collection[Any], reason: str) -> list[Any]:
    """Return cases, tuples of several arguments, as parameters; those that the default tier omits have the reason."""
    cases = list(cases)
    assert set(default) <= set(cases)
    full = pytest.mark.full_suite(reason)
    return [
        case if case in default else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=full)
        for case in cases
    ]


def skip_after(until: float | None) -> None:
    """Skip a test that begins later than `until`, in seconds since 1970, so that a slow machine ends a run in time."""
    if until is not None and time.time() >= until:
        pytest.skip("left out: the time for this run has passed (--until)")


def count(items: Iterable[pytest.Item]) -> None:
    """Remember the reasons of tests that were deselected."""
    for item in items:
        for marker in item.iter_markers("full_suite"):
            left_out[marker.args[0] if marker.args else "long or thorough"] += 1
            break


def summary() -> str | None:
    """Return a line on what this run left out; None if it left out nothing."""
    if not left_out:
        return None
    reasons = ", ".join(f"{reason} {number}" for reason, number in sorted(left_out.items()))
    return f"left to make test-full: {sum(left_out.values())} tests ({reasons}); left to make e2e: whole clusters"

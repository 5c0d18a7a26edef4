"""A batch that cannot be read, or a sweep whose results the server refuses, keeps no other from its own."""

import json
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from sweepledger.errors import ContentionError, RepositoryError, SpecError, UnreadableError
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import ResultsCommit, UnrecordedError, commit_results
from sweepledger.operations.reports.status import sweep_statuses
from sweepledger.operations.repository.catalog import find_trial
from sweepledger.problems import Problem
from sweepledger.repo.git import publish
from tests.operations.test_collect import leave
from tests.repo.test_publish import hook
from tests.repository import Sandbox

BROKEN: dict[str, tuple[Callable[[str], str], int]] = {
    "no JSON": (lambda text: text.replace('"shape": "', '"shape": "a" "'), 13),
    "a wrong kind": (lambda text: text.replace('"trials": 3', '"trials": "three"'), 14),
    "another batch's": (lambda text: text.replace('"name": "broken-', '"name": "good-'), 1),
}
"""How a lock breaks, and the line in which it does."""


def lock_of(sandbox: Sandbox, batch: str) -> Path:
    (path,) = sandbox.root.glob(f"overlays/*/{batch}/batch.json")
    return path


def break_lock(sandbox: Sandbox, batch: str, harm: Callable[[str], str] = BROKEN["no JSON"][0]) -> str:
    path = lock_of(sandbox, batch)
    before = path.read_text()
    path.write_text(harm(before))
    assert path.read_text() != before
    sandbox.publish("Merge by force")
    return f"overlays/active/{batch}/batch.json"


def leave_all(sandbox: Sandbox, results: Path, name: str) -> None:
    for index in range(3):
        leave(results, sandbox.batch(name), index)


def unrecorded(
    sandbox: Sandbox, results: Path, names: Collection[str], *, push: bool = True
) -> UnrecordedError:
    """Collect; return the error, which says what is recorded and what is not."""
    with pytest.raises(UnrecordedError) as caught:
        sandbox.collect(results, set(names), push=push)
    return caught.value


@pytest.fixture
def two(sandbox: Sandbox, results: Path) -> tuple[str, str]:
    """Two sweeps, all of whose trials left a record; of the first in the alphabet something will be wrong."""
    names = sandbox.merged("broken"), sandbox.merged("good")
    for name in names:
        leave_all(sandbox, results, name)
    return names


def batches_of(found: tuple[ResultsCommit, ...]) -> list[str]:
    return [name for one in found for name in one.batches]


def problems_of(failure: RepositoryError) -> tuple[Problem, ...]:
    assert isinstance(failure, UnreadableError)
    return failure.problems


@pytest.mark.parametrize(("harm", "line"), BROKEN.values(), ids=BROKEN)
def test_a_lock_that_cannot_be_read_stops_its_own_batch_only_and_is_named_by_its_line(
    harm: Callable[[str], str], line: int, sandbox: Sandbox, two: tuple[str, str], results: Path
) -> None:
    broken, good = two
    file = break_lock(sandbox, broken, harm)

    error = unrecorded(sandbox, results, two)

    assert batches_of(error.done) == [good]
    (problem,) = problems_of(error.failures[0])
    assert (problem.file, problem.line, problem.code) == (file, line, "batch-unreadable")
    assert problem.hint
    assert error.exit_code == 3


def test_a_missing_lock_stops_no_other(sandbox: Sandbox, two: tuple[str, str], results: Path) -> None:
    lost = sandbox.merged("lost")
    lock_of(sandbox, lost).unlink()
    table = lock_of(sandbox, two[0]).with_name("hyperparams.csv")
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))
    sandbox.publish("Merge by force")

    error = unrecorded(sandbox, results, {*two, lost})

    assert batches_of(error.done) == [two[1]]
    assert sorted(problem.file for one in error.failures for problem in problems_of(one)) == [
        f"overlays/active/{two[0]}/launch.json",
        f"overlays/active/{lost}/batch.json",
    ]


def test_other_batches_of_an_active_sweep_are_recorded(sandbox: Sandbox, results: Path) -> None:
    first = sandbox.merged("peak")
    second = sandbox.merged(xs="1, 2, 3, 4, 5, 6")
    leave_all(sandbox, results, second)
    break_lock(sandbox, first)

    error = unrecorded(sandbox, results, {second})

    assert batches_of(error.done) == [second]


def test_a_broken_record_stops_its_sweep_only(sandbox: Sandbox, two: tuple[str, str], results: Path) -> None:
    sandbox.record(results, {two[0]})
    later = sandbox.merged("broken", xs="1, 2, 3, 4, 5, 6")
    leave_all(sandbox, results, later)
    break_lock(sandbox, two[0])

    error = unrecorded(sandbox, results, {later, two[1]})

    assert batches_of(error.done) == []
    (problem,) = problems_of(error.failures[0])
    assert problem.file == f"overlays/archive/{two[0]}/batch.json"


def test_the_command_ends_with_3(sandbox: Sandbox, two: tuple[str, str], results: Path) -> None:
    file = break_lock(sandbox, two[0])

    done = sandbox.sweep("cluster", "collect", "--push", f"--results={results}")

    assert done.returncode == 3
    assert f"recorded {two[1]}" in done.stdout
    assert f"{file}:13:1: not a lock file: shape: " in done.stderr
    assert "[batch-unreadable]\n  hint: restore the folder from git" in done.stderr


def test_the_status_counts_the_others(sandbox: Sandbox, two: tuple[str, str], results: Path) -> None:
    file = break_lock(sandbox, two[0])

    found = {one.sweep: one for one in sweep_statuses(sandbox.workspace, state=results.parent)}

    assert (found["good"].trials, found["good"].problems) == (3, ())
    assert (found["broken"].trials, found["broken"].batches, found["broken"].active) == (0, 1, (two[0],))
    assert [problem.file for problem in found["broken"].problems] == [file]


def test_a_trial_may_be_in_the_batch_that_cannot_be_read(sandbox: Sandbox, two: tuple[str, str]) -> None:
    broken, good = (sandbox.batch(name) for name in two)
    table = lock_of(sandbox, broken.name).with_name("hyperparams.csv")
    whole = table.read_text()
    table.write_text("".join(whole.splitlines(keepends=True)[:-1]))

    with pytest.raises(UnreadableError, match=r"the table has 2 row\(s\), but the lock states 3"):
        find_trial(sandbox.root, "t000000000000")
    table.write_text(whole)
    break_lock(sandbox, broken.name)
    assert find_trial(sandbox.root, f"good/{good.rows[0].trial}").batch.name == good.name
    with pytest.raises(UnreadableError, match=r"batch\.json:13"):
        find_trial(sandbox.root, "broken/t00000000000")


def test_sweep_local_records_the_others_and_says_of_the_broken_why(sandbox: Sandbox, tmp_path: Path) -> None:
    broken, good = sandbox.merged("broken"), sandbox.merged("good")
    break_lock(sandbox, broken)

    with pytest.raises(SpecError) as caught:
        list(sandbox.local())

    assert [problem.code for problem in caught.value.problems] == ["batch-unreadable"]
    sandbox.pull()
    assert (sandbox.root / "overlays/archive" / good).is_dir()


REFUSE = (
    "while read old new ref; do git diff-tree -r --name-only $old $new | grep -q '^results/{}/' && exit 1; "
    "done; exit 0"
)


@pytest.fixture
def three(sandbox: Sandbox, results: Path) -> tuple[str, ...]:
    names = tuple(sandbox.merged(name) for name in ("apple", "pear", "plum"))
    for name in names:
        leave_all(sandbox, results, name)
    return names


def test_refused_pushes_stop_no_other_and_are_tried_again(
    sandbox: Sandbox, three: tuple[str, ...], results: Path
) -> None:
    hook(sandbox, "pre-receive", REFUSE.format("p[a-z]*"))

    error = unrecorded(sandbox, results, three)

    assert batches_of(error.done) == [three[0]]
    refused = [str(failure).partition(": git push failed")[0] for failure in error.failures]
    assert refused == ["pear is not recorded", "plum is not recorded"]
    assert error.exit_code == 3
    hook(sandbox, "pre-receive", "exit 0")
    assert batches_of(sandbox.collect(results, set(three))) == list(three[1:])


@pytest.mark.full_suite("whole runs")
def test_sweep_local_ends_with_what_was_refused_once_nothing_runs(sandbox: Sandbox) -> None:
    sandbox.merged("apple")
    good = sandbox.merged("pear")
    hook(sandbox, "pre-receive", REFUSE.format("apple"))

    done = sandbox.sweep("cluster", "local", "--once", "--format=json")

    (problem,) = json.loads(done.stdout)["problems"]
    assert (done.returncode, problem["code"]) == (3, "repository-error")
    assert problem["message"].startswith("apple is not recorded: git push failed")
    sandbox.pull()
    assert (sandbox.root / "overlays/archive" / good).is_dir()


def test_a_refused_branch_stops_no_other(sandbox: Sandbox, three: tuple[str, ...], results: Path) -> None:
    hook(sandbox, "update", 'case "$1" in refs/heads/results/apple/*) exit 1;; esac')

    with pytest.raises(UnrecordedError) as caught:
        commit_results(sandbox.target(is_reviewed=True), on_volume(results), set(three))

    assert batches_of(caught.value.done) == list(three[1:])


def test_an_edit_in_the_way_stops_no_other(sandbox: Sandbox, three: tuple[str, ...], results: Path) -> None:
    own = sandbox.write("results/apple/summary.csv", "my own notes")

    with pytest.raises(UnrecordedError, match=r"results/apple/summary\.csv") as caught:
        sandbox.collect(results, set(three), push=False)

    assert batches_of(caught.value.done) == list(three[1:])
    assert own.read_text() == "my own notes"


def test_where_others_keep_winning_the_branch_no_further_sweep_is_tried(
    sandbox: Sandbox, three: tuple[str, ...], results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = sandbox.remote.with_name("tries")
    hook(sandbox, "update", f"echo x >> '{tries}'\ngit update-ref refs/heads/main $2^\nexit 0")
    monkeypatch.setitem(publish.__kwdefaults__ or {}, "budget", 0.0)

    error = unrecorded(sandbox, results, three)

    assert [type(one) for one in error.failures] == [ContentionError]
    assert error.exit_code == 4
    assert tries.read_text() == "x\n"

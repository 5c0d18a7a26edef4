from dataclasses import replace
from typing import Any

import pytest

from sweepledger.problems import Problem, Severity
from sweepledger.structs.file_tree import Drift, FileTree
from sweepledger.structs.metric import Goal, Metric, MetricSource
from sweepledger.structs.program import Code, Program
from sweepledger.structs.record import RETRYABLE_STATUSES, Curve, Record, Status, TrialResult
from sweepledger.structs.run_config import Resources, RunConfig


def test_a_tree_is_sorted_and_digests_every_byte_and_path() -> None:
    tree = FileTree({"b": b"2", "a": b"1"})

    assert [path for path, _ in tree] == ["a", "b"]
    assert tree["b"] == b"2"
    assert tree.digest == FileTree({"a": b"1", "b": b"2"}).digest
    assert tree.digest != FileTree({"a": b"1", "c": b"2"}).digest
    assert tree.digest != FileTree({"a": b"1", "b": b"3"}).digest
    assert set(tree.digests) == {"a", "b"}


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../b", "a//b", "", "a/"])
def test_no_path_leaves_its_tree(path: str) -> None:
    with pytest.raises(ValueError, match="must stay inside its tree"):
        FileTree({path: b""})


@pytest.mark.parametrize("drift", [Drift(added=("a",)), Drift(changed=("a",)), Drift(stale=("a",))])
def test_any_difference_is_drift(drift: Drift) -> None:
    assert drift


def test_no_difference_is_no_drift() -> None:
    assert not Drift()


@pytest.mark.parametrize(
    ("goal", "left", "right", "better"),
    [
        (Goal.MAXIMIZE, 2.0, 1.0, True),
        (Goal.MAXIMIZE, 1.0, 2.0, False),
        (Goal.MAXIMIZE, 1.0, 1.0, False),
        (Goal.MINIMIZE, 1.0, 2.0, True),
        (Goal.MINIMIZE, 2.0, 1.0, False),
        (Goal.MINIMIZE, 1.0, 1.0, False),
    ],
)
def test_the_goal_says_which_is_better(goal: Goal, left: float, right: float, *, better: bool) -> None:
    assert Metric("m", goal).better(left, right) is better


def test_a_curve_is_the_sequence_of_its_points() -> None:
    curve, points = Curve("[[1,0.5],[2,null],[4,3]]"), ((1, 0.5), (2, None), (4, 3.0))

    assert (len(curve), bool(curve), curve[1], curve[1:]) == (3, True, points[1], points[1:])
    assert tuple(curve) == points
    assert curve == points
    assert curve != points[1:]
    assert curve != curve.text
    assert (len(Curve("[]")), bool(Curve("[]"))) == (0, False)


@pytest.mark.parametrize(
    ("cpu", "threads"),
    [("1", 1), ("2", 2), ("1.5", 2), ("500m", 1), ("2500m", 3), ("0.1", 1), ("1k", 1000), ("1e1", 10)],
)
def test_a_trial_has_a_thread_for_each_cpu(cpu: str, threads: int) -> None:
    assert Resources(cpu=cpu).threads == threads


@pytest.mark.parametrize(
    ("cpu", "processes", "threads"), [("24", 1, 24), ("24", 4, 6), ("2", 4, 1), ("10", 3, 3)]
)
def test_the_processes_of_a_pod_share_its_cpus(cpu: str, processes: int, threads: int) -> None:
    assert RunConfig(resources=Resources(cpu=cpu), processes=processes).threads == threads


def test_the_defaults_of_a_run() -> None:
    run = RunConfig()

    assert (run.image, run.interpreter, run.code_path, run.data) == (None, "python3", "trainer", None)
    assert (run.parallelism, run.retries, run.timeout_seconds, run.seed_base, run.shape) == (
        1,
        0,
        3600,
        0,
        None,
    )
    assert (run.resources.cpu, run.resources.memory, run.resources.gpu) == ("1", "1Gi", 0)
    assert Metric("m", Goal.MINIMIZE).source is MetricSource.RESULT


@pytest.mark.parametrize(
    ("status", "final"),
    [
        (Status.OK, True),
        (Status.DIVERGED, True),
        (Status.PRUNED, True),
        (Status.FAILED, False),
        (Status.MISSING, False),
    ],
)
def test_which_states_no_attempt_can_change(status: Status, *, final: bool) -> None:
    assert status.is_final is final


def test_every_end_is_of_a_kind_that_specs_and_commands_know() -> None:
    assert {status: status.kind for status in Status if status.kind is not status} == {
        Status.TIMEOUT: Status.FAILED,
        Status.OOM: Status.FAILED,
        Status.EVICTED: Status.FAILED,
        Status.CORRUPT: Status.MISSING,
        Status.FOREIGN: Status.MISSING,
    }
    assert {Status.FAILED, Status.MISSING, Status.CANCELLED} == RETRYABLE_STATUSES


@pytest.mark.parametrize("change", [{"severity": Severity.WARNING}, {"hint": ""}, {"code": "x"}])
def test_unequal_problems_have_an_order(change: dict[str, Any]) -> None:
    problem = Problem("a.yaml", 2, 1, "x", "must be 1, got 2", "wrong")
    other = replace(problem, **change)

    assert (problem < other) is not (other < problem)


def test_problems_sort_by_place_and_show_place_rule_and_way_out() -> None:
    first = Problem("a.yaml", 2, 1, "x", "must be 1, got 2", "wrong")
    second = Problem("a.yaml", 10, 1, "y[0]", "must be 1, got 3", "wrong", "write 1")
    whole = Problem("b.yaml", 0, 0, "", "is missing", "missing")

    assert sorted([whole, second, first]) == [first, second, whole]
    assert str(first) == "a.yaml:2:1: x: must be 1, got 2 [wrong]"
    assert str(second) == "a.yaml:10:1: y[0]: must be 1, got 3 [wrong]\n  hint: write 1"
    assert str(whole) == "b.yaml: is missing [missing]"


def test_a_problem_as_data_has_the_keys_of_the_envelope() -> None:
    assert Problem("a.yaml", 2, 1, "x", "m", "c", "h").as_data() == {
        "code": "c",
        "file": "a.yaml",
        "line": 2,
        "column": 1,
        "path": "x",
        "message": "m",
        "hint": "h",
        "severity": "error",
    }


def test_a_program_as_data_has_the_keys_of_the_lock() -> None:
    assert Program("local", ("a", "b"), Code("trainer", "t"), None).as_data() == {
        "image": "local",
        "command": ["a", "b"],
        "code": {"path": "trainer", "tree": "t"},
        "data": None,
    }


def outcome(status: Status, record: Record | None) -> TrialResult:
    return TrialResult("t1", "b", 0, {}, status, None, 1, record, "p", "c", None)


def test_only_an_ok_trial_has_a_metric_to_rank() -> None:
    record = Record(
        trial="t1",
        row="r",
        batch="b",
        index=0,
        uid="u",
        attempt=1,
        disruptions=0,
        status=Status.OK,
        reason=None,
        metrics={"m": 0.5},
        seconds=1.0,
        started="2026-01-01T00:00:00Z",
        finished="2026-01-01T00:00:01Z",
        ran="process",
        code="c",
        data=None,
        seed=0,
        node=None,
        environment=None,
    )

    assert outcome(Status.OK, record).metric("m") == 0.5
    assert outcome(Status.OK, record).metric("other") is None
    assert outcome(Status.FAILED, record).metric("m") is None
    assert outcome(Status.MISSING, None).metric("m") is None
    assert outcome(Status.OK, None).metric("m") is None


def test_a_problem_is_one_line_and_its_hint_another_whatever_they_quote() -> None:
    problem = Problem("a\n::error::b.yaml", 1, 1, "p\r##[error]", "got\u2028x", "code", "do\n::this")

    message = str(problem)

    assert message == (
        "a\\x0a::error::b.yaml:1:1: p\\x0d\\x23#[error]: got\\u2028x [code]\n  hint: do\\x0a::this"
    )


def test_no_line_of_a_problem_begins_a_command_to_a_ci_runner() -> None:
    message = str(Problem("::error::b.yaml", 0, 0, "", "x", "code", "::warning::y"))

    assert not any(line.lstrip().startswith("::") for line in message.split("\n"))

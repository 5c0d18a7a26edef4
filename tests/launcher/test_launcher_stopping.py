"""Early stopping: the launcher follows what a trial reports, and ends it by the rules in launch.json."""

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.launcher.folders import TrialFolder, launch, python, shell

MEDIAN = {"rule": "median", "goal": "maximize", "value": "best", "thresholds": [[2, 0.5], [4, 0.8]]}
PATIENCE = {"rule": "patience", "goal": "maximize", "reports": 3, "margin": 0}
TARGET = {"rule": "target", "goal": "maximize", "reach": 0.9}
JSONL = {"name": "test_accuracy", "source": "result", "format": "jsonl"}
STDOUT = {"name": "test_accuracy", "source": "stdout"}

TO_FILE = """
import json, os, sys, time
out = open(os.environ["SWEEP_RESULT"], "a")
for step, value in enumerate({values}, start=1):
    out.write(json.dumps({{"test_accuracy": value, "step": step}}) + "\\n")
    out.flush()
time.sleep({then})
"""
TO_STDOUT = """
import time
for step, value in enumerate({values}, start=1):
    print(f"step={{step}} test_accuracy={{value}}", flush=True)
time.sleep({then})
"""
FOREVER = 600
GOAL_OR_VALUE = "goal must be maximize or minimize, and value best or last"


def stopped(record: Any) -> Any:
    """Return the rule that ended a trial and its step; None if none did."""
    member = record.get("stopped")
    return member and {"rule": member["rule"], "step": member["step"]}


def followed(
    folder: TrialFolder, metric: dict[str, str], rules: list[dict[str, Any]], values: str, then: int
) -> Any:
    """Run a trial that reports these values at once and then sleeps."""
    script = TO_STDOUT if metric["source"] == "stdout" else TO_FILE
    folder.changes |= {"metric": metric, "stop": rules}
    folder.command = python(script.format(values=values, then=then))
    return folder.try_once()


@pytest.mark.parametrize("metric", [JSONL, STDOUT], ids=["file", "stdout"])
def test_a_trial_behind_is_pruned_with_its_curve(metric: dict[str, str], trial_folder: TrialFolder) -> None:
    record = followed(trial_folder, metric, [MEDIAN], "[0.1, 0.6, 0.3, 0.7]", FOREVER)

    assert (record["status"], record["reason"], record["exit"]) == ("pruned", "median", 0)
    assert record["metrics"] == {"test_accuracy": 0.7}
    assert record["curves"]["test_accuracy"] == [[1, 0.1], [2, 0.6], [3, 0.3], [4, 0.7]]
    assert stopped(record) == {"rule": "median", "step": 4}


def test_a_trial_that_keeps_up_runs_to_its_end(trial_folder: TrialFolder) -> None:
    record = followed(trial_folder, JSONL, [MEDIAN], "[0.6, 0.1, 0.2, 0.8, 0.1]", 0)

    assert (record["status"], record["reason"], record["exit"]) == ("ok", None, 0)
    assert stopped(record) is None


@pytest.mark.parametrize(
    ("rule", "values", "step", "metric"),
    [(PATIENCE, "[0.5, 0.4, 0.5, 0.3]", 4, 0.3), (TARGET, "[0.5, 0.91]", 2, 0.91)],
    ids=["patience", "target"],
)
def test_a_trial_that_came_as_far_as_was_asked_for_is_ok(
    rule: dict[str, Any], values: str, step: int, metric: float, trial_folder: TrialFolder
) -> None:
    record = followed(trial_folder, STDOUT, [rule], values, FOREVER)

    assert (record["status"], record["reason"], record["exit"]) == ("ok", None, 0)
    assert record["metrics"] == {"test_accuracy": metric}
    assert stopped(record) == {"rule": rule["rule"], "step": step}


@pytest.mark.parametrize(
    ("changes", "values", "step"),
    [
        ({"margin": 0.1}, [0.5, 0.55, 0.59, 0.60, 0.61], 4),
        ({"margin": 0.1}, [0.5, 0.55, 0.61, 0.65, 0.71], None),
        ({"goal": "minimize"}, [0.5, 0.6, 0.6, 0.4, 0.6, 0.6, 0.4], 7),
        ({"from": 6}, [0.5] * 9, 6),
        ({"until": 3}, [0.5] * 9, None),
        ({"reports": 2, "from": 3, "until": 3}, [0.5] * 9, 3),
    ],
)
def test_patience_is_of_reports_with_a_margin_and_between_steps(
    changes: dict[str, Any], values: list[float], step: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "result"
    path.write_text("".join(line(step, value) for step, value in enumerate(values, start=1)))
    result = follower(path, [PATIENCE | changes])

    assert result.look() is (step is not None)
    assert (result.broken and result.broken.step) == step


@pytest.mark.parametrize("keeps", [False, True])
def test_a_pruned_trial_may_write_what_it_keeps_and_loses_its_checkpoints_unless_others_go_on_from_them(
    trial_folder: TrialFolder, *, keeps: bool
) -> None:
    trial_folder.changes = {"metric": STDOUT, "stop": [MEDIAN], "keep_checkpoints": keeps}
    trial_folder.command = shell(
        "trap 'touch $SWEEP_ARTIFACTS/kept; exit 1' TERM; touch $SWEEP_CHECKPOINTS/last;"
        "echo step=9 test_accuracy=0.1; sleep 600 & wait"
    )

    record = trial_folder.try_once()
    again = trial_folder.run(SWEEP_POD_UID="uid-2")

    assert (record["status"], record["exit"]) == ("pruned", 0)
    assert [kept["path"] for kept in record["artifacts"]] == ["kept"]
    assert (trial_folder.results / "checkpoints" / "last").exists() == keeps
    assert (again.code, len(trial_folder.records())) == (0, 1)
    assert again.said == ["t00000000000: pruned already, by attempt uid-1: nothing to do"]


def test_one_that_will_not_end_is_killed_after_its_grace(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"metric": STDOUT, "stop": [MEDIAN], "grace_seconds": 0.2}
    trial_folder.command = shell("trap '' TERM; echo step=9 test_accuracy=0.1; while :; do sleep 0.1; done")

    assert trial_folder.try_once()["status"] == "pruned"


@pytest.mark.parametrize(
    ("values", "status"),
    [("[float('-inf')] * 9", "diverged"), ("[0.9, float('nan'), float('nan'), float('nan'), 0.9]", "ok")],
)
def test_what_is_not_finite_ends_nothing(values: str, status: str, trial_folder: TrialFolder) -> None:
    record = followed(trial_folder, JSONL, [MEDIAN, PATIENCE | {"reports": 9}], values, 0)

    assert record["status"] == status


def test_checkpoints_are_kept_after_success_where_others_go_on_from_them(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"keep_checkpoints": True}
    trial_folder.command = shell(
        "touch $SWEEP_CHECKPOINTS/last; echo '{\"test_accuracy\": 1}' > $SWEEP_RESULT"
    )

    assert trial_folder.try_once()["status"] == "ok"
    assert (trial_folder.results / "checkpoints" / "last").exists()


def test_only_the_first_rank_follows_what_is_reported(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"metric": STDOUT, "stop": [MEDIAN]}
    trial_folder.command = shell("echo step=9 test_accuracy=0.1")

    assert trial_folder.run(SWEEP_RANK="1").said == ["t00000000000: ok: test_accuracy=0.1"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"goal": "up"}, GOAL_OR_VALUE),
        ({"thresholds": [[1, True]]}, "a threshold must be a step and a number, got [1, True]"),
        ({"thresholds": [[2, 0.1], [1, 0.1]]}, "the thresholds must be in the order of their steps"),
        ({"reach": 1}, "one of thresholds, reports, reach must be given"),
        ({"rule": 7}, "stop: rule must be str, got 7"),
    ],
)
def test_a_bad_rule_is_a_bad_sweep(change: dict[str, Any], message: str, trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"stop": [MEDIAN | change]}

    run = trial_folder.run()

    assert run.code == 43
    assert message in run.said[0]


# ------------------------------------------------------------------------------------------- hostile streams


def follower(path: Path, rules: list[dict[str, Any]]) -> Any:
    """Follow a file without a process."""
    return launch.Follower(
        {"stop": rules, "metric": launch.complete_metric(JSONL)}, launch.Files(str(path)), lambda: None
    )


def line(step: int, value: float) -> str:
    return json.dumps({"step": step, "test_accuracy": value}) + "\n"


def test_half_a_line_is_not_read_before_its_end_came(tmp_path: Path) -> None:
    path = tmp_path / "result"
    result = follower(path, [MEDIAN])
    whole = line(2, 0.95)

    for end in range(1, len(whole)):  # never 0.9, nor 0.
        path.write_text(whole[:end])
        assert not result.look()
    path.write_text(whole)

    assert not result.look()
    assert result.rules[0].best == 0.95


def test_a_file_that_was_replaced_or_cut_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_text(line(1, 0.1) + line(1, 0.2))
    result = follower(path, [MEDIAN])
    result.look()

    path.write_text(line(1, 0.3))
    result.look()
    cut = result.rules[0].best
    (tmp_path / "other").write_text(line(1, 0.05))
    (tmp_path / "other").replace(path)
    result.look()

    assert (cut, result.rules[0].best) == (0.3, 0.05)


@pytest.mark.parametrize("kind", ["fifo", "link", "folder", "endless", "nested"])
def test_what_is_no_stream_ends_nothing(kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "result"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "link":
            (tmp_path / "real").write_text(line(9, 0.0))
            path.symlink_to(tmp_path / "real")
        case "folder":
            path.mkdir()
        case "endless":
            path.write_bytes(b"x" * (2 << 20) + b"\n" + line(9, 0.0).encode())
        case _:
            path.write_text("[" * 500_000 + "\n" + line(9, 0.0))
    result = follower(path, [MEDIAN])

    looks = [result.look() for _ in range(4)]

    assert (any(looks), result.looks) == (False, False)
    assert capfd.readouterr().err.count("the trial is no longer followed") == 1


def test_a_step_that_leaps_is_held_against_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_text(line(3, 0.6) + line(2**53, 0.7))
    result = follower(path, [MEDIAN, PATIENCE | {"reports": 2**53}])

    assert result.look()
    assert result.broken[:3] == ("median", 2**53, True)


@pytest.mark.parametrize(
    "steps", [(1, 2, 3, 1, 2, 3, 4, 5), (3, 2, 2**53)], ids=["a second phase", "one step back"]
)
@pytest.mark.parametrize(
    "rule", [MEDIAN | {"thresholds": [[4, 0.9]]}, TARGET | {"from": 4, "reach": 0.05}], ids=["low", "reach"]
)
def test_no_rule_counts_after_a_restart(steps: tuple[int, ...], rule: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_text("".join(line(step, 0.1) for step in steps))
    result = follower(path, [rule])

    assert not result.look()
    report = launch.read_report(None, launch.Files(str(path)), launch.complete_metric(JSONL))
    assert report.details == {"steps_restarted": 1}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.floats(-1, 1) | st.just(float("nan"))), max_size=30),
    st.dictionaries(st.integers(0, 20), st.floats(-1, 1), min_size=1, max_size=4),
    st.sampled_from(["maximize", "minimize"]),
    st.data(),
)
def test_a_trial_is_pruned_by_what_it_reported_and_not_by_when_it_was_read(
    reports: list[tuple[int, float]], limits: dict[int, float], goal: str, data: st.DataObject
) -> None:
    rule = {"rule": "median", "goal": goal, "value": "best", "thresholds": sorted(map(list, limits.items()))}
    result = launch.Follower(
        {"stop": [rule], "metric": STDOUT | {"format": "text", "reduce": "last"}}, launch.Files(""), list
    )
    for step, value in reports:
        result.take(step, value)

    sign = 1 if goal == "maximize" else -1
    ends, best, passed = None, float("-inf"), -1
    for step, value in reports:
        best = max(best, sign * value) if math.isfinite(value) else best
        below = [each for each in limits if each <= step]
        if math.isfinite(value) and below and max(below) > passed:
            passed = max(below)
            if ends is None and best < sign * limits[passed]:
                ends = step
    assert (result.broken and result.broken.step) == ends


def test_following_costs_no_busy_loop(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"metric": JSONL, "stop": [MEDIAN]}
    trial_folder.command = shell("sleep 1; echo '{\"test_accuracy\": 1}' > $SWEEP_RESULT")
    before, began = os.times(), time.monotonic()

    trial_folder.try_once()

    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert spent < (time.monotonic() - began) / 2

"""Thresholds that change while a trial runs, and the evidence that the record keeps."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.launcher.folders import TrialFolder, ended, launch, shell, wait_for

JSONL = {"name": "loss", "source": "result", "format": "jsonl"}


def rule(*thresholds: tuple[int, float], **changes: Any) -> dict[str, Any]:
    points = [list(point) for point in thresholds]
    return {"rule": "median", "goal": "maximize", "value": "best", "thresholds": points, **changes}


def write(path: Path, *rules: dict[str, Any]) -> str:
    """Replace the file of thresholds at once, as a mounted ConfigMap is; return its digest."""
    content = json.dumps({"stop": rules}).encode()
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "thresholds.json"


def follower(path: Path, stop: tuple[dict[str, Any], ...] = ()) -> Any:
    """Follow a trial without a process."""
    metric = launch.complete_metric(JSONL)
    members = {"metric": metric, "stop": list(stop), "thresholds_file": str(path)}
    return launch.Follower(members, launch.Files("/nowhere"), lambda: None)


@pytest.mark.parametrize("is_variable", [False, True], ids=["of the launch file", "of a variable"])
def test_a_threshold_that_appears_late_prunes(trial_folder: TrialFolder, *, is_variable: bool) -> None:
    path = trial_folder.root / "thresholds.json"
    trial_folder.changes = {"metric": {"name": "test_accuracy", "source": "stdout"}}
    if is_variable:
        trial_folder.environment = {"SWEEP_THRESHOLDS": str(path)}
    else:
        trial_folder.changes["thresholds_file"] = str(path)
    trial_folder.command = shell(
        "i=0; touch $HERE/up; while :; do i=$((i+1)); echo step=$i test_accuracy=0.5; sleep 0.02; done"
    )
    launcher = trial_folder.start()
    wait_for(trial_folder.root / "up")

    digest = write(path, rule((1, 0.8)))

    assert ended(launcher).code == 0
    record = trial_folder.record()
    assert (record["status"], record["reason"]) == ("pruned", "median")
    stopped = record["stopped"]
    assert (stopped["rule"], stopped["threshold"], stopped["seen"]) == ("median", 0.8, f"sha256:{digest}")
    assert [stopped["step"], 0.5] in record["curves"]["test_accuracy"]
    kept = trial_folder.results / "thresholds" / f"{digest}.json"
    assert kept.read_bytes() == path.read_bytes()


def test_a_trial_runs_without_the_file(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"thresholds_file": "/nowhere/thresholds.json"}

    record = trial_folder.try_once()

    assert (record["status"], "stopped" in record) == ("ok", False)
    assert not (trial_folder.results / "thresholds").exists()


def test_new_thresholds_judge_the_best_value_so_far_at_the_next_report(path: Path) -> None:
    result = follower(path)
    write(path, rule((1, 0.5)))
    result.take(1, 0.9)
    result.take(2, 0.6)
    write(path, rule((1, 0.95)))

    assert result.broken is None
    result.take(3, 0.7)

    assert result.broken is not None
    assert result.broken[:4] == ("median", 3, True, 0.95)
    assert result.broken.seen.content == path.read_bytes()


@pytest.mark.parametrize(("goal", "values"), [("maximize", [0.9, 0.1]), ("minimize", [0.1, 0.9])])
def test_a_good_best_value_survives_new_thresholds(goal: str, values: list[float], path: Path) -> None:
    result = follower(path)
    for step, value in enumerate(values):
        result.take(step, value)

    write(path, rule((0, 0.5), goal=goal))
    result.take(7, 0.5)

    assert result.broken is None


def test_the_same_thresholds_count_once_for_each_step_however_often_they_are_written(path: Path) -> None:
    result = follower(path)
    write(path, rule((1, 0.5), value="last"))
    result.take(1, 0.6)
    write(path, rule((1, 0.5), value="last"))
    os.utime(path, ns=(1, 1))

    result.take(2, 0.1)

    assert result.broken is None


def test_rules_of_launch_json_hold_beside_the_file(path: Path) -> None:
    write(path, rule((1, 0.0)))
    result = follower(path, (rule((1, 0.5), rule="percentile"),))

    result.take(1, 0.1)

    assert (result.broken.rule, result.broken.seen) == ("percentile", None)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"[]", b'{"stop": {}}'),
        json.dumps({"stop": [{"rule": "patience", "goal": "maximize", "reports": 1, "margin": 0}]}).encode(),
        json.dumps({"stop": [rule((2, 0.9), (1, 0.9))]}).encode(),
        json.dumps({"stop": [rule((1, 0.9), rule="disrupted")]}).encode(),
        b'{"stop": []}' + b" " * (1 << 20),
    ],
)
def test_an_invalid_file_is_said_once(content: bytes, path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = follower(path)
    write(path, rule((1, 0.5)))
    result.take(1, 0.6)
    path.write_bytes(content)
    for step in range(2, 5):
        result.take(step, 0.9)

    assert result.broken is None
    assert len(result.live.rules) == 1
    assert capfd.readouterr().err.count("the file of thresholds is not valid, and changes nothing: ") == 1


def test_a_file_that_is_removed_keeps_its_rules(path: Path) -> None:
    result = follower(path)
    write(path, rule((3, 0.5)))
    result.take(1, 0.1)
    path.unlink()

    result.take(3, 0.1)

    assert result.broken.rule == "median"


def test_thresholds_change_in_every_python(any_python: str, trial_folder: TrialFolder) -> None:
    trial_folder.interpreter = any_python
    path = trial_folder.root / "thresholds.json"
    digest = write(path, rule((1, 0.8)))
    trial_folder.changes = {
        "metric": {"name": "test_accuracy", "source": "stdout"},
        "thresholds_file": str(path),
    }
    trial_folder.command = shell("echo step=1 test_accuracy=0.5; sleep 600")

    assert trial_folder.try_once()["stopped"]["seen"] == f"sha256:{digest}"

"""What a training script calls, alone and as a trial under the launcher."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sweepledger
from sweepledger.structs.record import Status
from sweepledger.verbs.try_ import try_trial
from tests.repository import Sandbox, replace_in

ROOT = Path(__file__).parents[2]
SCRIPT = """\
import sweepledger
x = sweepledger.values().get("x", 1.5)
for step in range(3):
    sweepledger.report(step, score=x * step, loss=1 / (step + 1))
"""


def test_alone_a_script_has_no_values_and_prints_what_it_reports() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "generator")},
        check=True,
        capture_output=True,
        text=True,
    )

    assert done.stdout.splitlines() == [
        "step=0 score=0.0 loss=1.0",
        "step=1 score=1.5 loss=0.5",
        "step=2 score=3.0 loss=0.3333333333333333",
    ]


def test_a_trial_has_values_and_reports_by_step(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.write("code/train.py", f"import sys\nsys.path.insert(0, {str(ROOT / 'generator')!r})\n{SCRIPT}")
    replace_in(sandbox.spec("peak", "0.25, 4"), "goal: maximize", "goal: maximize, format: jsonl")

    tried = try_trial(sandbox.workspace, "peak", 1, quiet=True)

    assert tried.record is not None
    assert (tried.record.status, dict(tried.record.metrics)) == (Status.OK, {"score": 8.0, "loss": 1 / 3})
    assert tuple(tried.record.curve("score")) == ((0, 0.0), (1, 4.0), (2, 8.0))


def test_one_report_without_a_step_is_a_json_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEP_RESULT", str(tmp_path / "result.json"))

    sweepledger.report(score=1, loss=float("inf"))

    assert (tmp_path / "result.json").read_text() == '{"score": 1.0, "loss": Infinity}\n'
    assert json.loads((tmp_path / "result.json").read_text())["score"] == 1


def test_what_is_no_number_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TypeError, match="loss must be a number, got 'low'"):
        sweepledger.report(1, loss="low")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"report\(3, loss=0.1\)"):
        sweepledger.report(step=3)

    assert capsys.readouterr().out == ""

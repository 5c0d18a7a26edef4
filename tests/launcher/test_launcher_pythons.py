"""The launcher in the Pythons of other people's images."""

import os
from typing import Any

import pytest

from tests.launcher.folders import TRIALS, TrialFolder, python, shell

SETSID = """
import os, subprocess, sys, time
sleeper = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
left = subprocess.Popen(sleeper, start_new_session=True)
open(os.environ["HERE"] + "/left", "w").write(str(left.pid))
print("test_accuracy=0.25")
print(*sys.argv[1:], os.environ["SWEEP_PARAM_NAME"], sep="|")
"""


def test_a_good_trial_runs_in_every_python(any_python: str, trial_folder: TrialFolder) -> None:
    trial_folder.interpreter = any_python
    trial_folder.columns = [("lr", "number"), ("name", "string"), ("list", "json"), ("none", "number")]
    trial_folder.rows = [f'{TRIALS[0]},1e-05,"a ""b"" größe","[1, true]",']
    trial_folder.changes = {"metric": {"name": "test_accuracy", "source": "stdout"}}
    trial_folder.command = [*python(SETSID), [{"macro": "args"}], ["s", {"macro": "seed"}]]

    run = trial_folder.run(PYTHONIOENCODING="utf-8")

    assert run.code == 0, run.err
    assert run.out.decode() == (
        'test_accuracy=0.25\n--lr=1e-05|--name=a "b" größe|--list=[1, True]|s0|a "b" größe\n'
    )
    assert trial_folder.record()["metrics"] == {"test_accuracy": 0.25}
    with pytest.raises(ProcessLookupError):
        os.kill(int((trial_folder.root / "left").read_text()), 0)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("command", "reason", "code"),
    [
        (shell("printf '{\"test_accuracy\": NaN}' > $SWEEP_RESULT"), "metric-not-finite", 42),
        (shell("head -c 900000 /dev/zero | tr '\\0' '[' > $SWEEP_RESULT"), "result-invalid", 1),
        (shell("sleep 600"), "timeout", 124),
        (["no-such-program-anywhere"], "bad-command", 43),
    ],
)
def test_a_bad_trial_ends_alike_in_every_python(
    command: list[Any], reason: str, code: int, any_python: str, trial_folder: TrialFolder
) -> None:
    trial_folder.interpreter = any_python
    trial_folder.changes = {"timeout_seconds": 0.1 if reason == "timeout" else 100}
    trial_folder.command = command

    record = trial_folder.try_once()

    assert (record["reason"], record["exit"]) == (reason, code)

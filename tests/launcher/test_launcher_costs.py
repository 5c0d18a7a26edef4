"""What the launcher of a trivial trial costs: counts of what takes time, so that nobody adds to it unseen.

`sweep run` gives a launcher /dev/null and a file as its outputs; a container gives it pipes.
"""

import os
import subprocess
import threading
from collections import Counter
from collections.abc import Callable

import pytest

from tests.launcher.folders import PATIENCE, TrialFolder, python, shell


def counted(
    monkeypatch: pytest.MonkeyPatch, trial_folder: TrialFolder, start: Callable[[], subprocess.Popen[bytes]]
) -> Counter[str]:
    """Count the calls of a launcher, which is a fork of this process."""
    log, tests = trial_folder.root / "calls", os.getpid()
    for owner, name in (
        (os, "fsync"),
        (os, "mkdir"),
        (threading.Thread, "start"),
        (subprocess.Popen, "_execute_child"),
    ):
        original = getattr(owner, name)

        def call(*arguments: object, original: object = original, name: str = name) -> object:
            if os.getpid() != tests:
                with log.open("a") as file:
                    file.write(f"{name}\n")
            assert callable(original)
            return original(*arguments)

        monkeypatch.setattr(owner, name, call)
    launcher = start()
    launcher.communicate(timeout=PATIENCE)
    assert launcher.returncode == 0
    return Counter(log.read_text().split())


def to_files(trial_folder: TrialFolder, **variables: str) -> subprocess.Popen[bytes]:
    with (trial_folder.root / "stderr").open("ab") as stderr:
        return trial_folder.start(subprocess.DEVNULL, stderr.fileno(), **variables)


def test_a_trivial_trial_is_one_process(trial_folder: TrialFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, trial_folder, lambda: to_files(trial_folder))

    assert calls["_execute_child"] == 1
    assert calls["start"] == 0
    # The list of distributions and the record, each with its folder.
    assert calls["fsync"] == 4
    assert calls["mkdir"] <= 12


def test_a_list_that_another_trial_has_kept_is_not_written_again(
    trial_folder: TrialFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {"SWEEP_ENVIRONMENTS": str(trial_folder.root / "shared")}
    trial_folder.run(**variables, SWEEP_RESULTS=str(trial_folder.root / "another"))

    calls = counted(monkeypatch, trial_folder, lambda: to_files(trial_folder, **variables))

    assert calls["fsync"] == 2


def test_output_to_files_is_copied_and_kept(trial_folder: TrialFolder) -> None:
    lines = 5_000
    script = f"for n in range({lines}): print(n); print(-n, file=sys.stderr)"
    trial_folder.command = python(
        f"import os, sys\n{script}\nopen(os.environ['SWEEP_RESULT'], 'w').write('{{\"test_accuracy\": 0.5}}')"
    )
    with (trial_folder.root / "out").open("wb") as out, (trial_folder.root / "err").open("wb") as err:
        assert trial_folder.start(out.fileno(), err.fileno()).wait(PATIENCE) == 0

    expected = {
        "out": "".join(f"{n}\n" for n in range(lines)),
        "err": "".join(f"{-n}\n" for n in range(lines)),
    }
    for name, text in expected.items():
        assert (trial_folder.root / name).read_text().startswith(text)
        assert (trial_folder.results / f"uid-1.{name}").read_text() == text


def test_a_command_that_never_stops_writing_to_a_file_ends_at_its_timeout(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"timeout_seconds": 0.3, "grace_seconds": 0.1}
    trial_folder.command = shell("trap '' TERM; while :; do echo more; done")

    assert to_files(trial_folder).wait(PATIENCE) == 124

    assert trial_folder.record()["reason"] == "timeout"

"""The record's environment: a lock file, or the distributions that the command's interpreter can import."""

import hashlib
import importlib.metadata
import json
import os
import re
import site
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import captured
from tests.launcher.folders import REPORT, TrialFolder, launch, shell


def distributions(folder: Path, *entries: str) -> Path:
    for entry in entries:
        (folder / entry).mkdir(parents=True)
    return folder


def test_trials_that_share_a_folder_keep_the_list_once(trial_folder: TrialFolder) -> None:
    shared, folders = trial_folder.root / "shared", [trial_folder.root / name for name in ("first", "second")]

    for number, folder in enumerate(folders):
        trial_folder.run(SWEEP_ENVIRONMENTS=str(shared), SWEEP_INDEX=str(number), SWEEP_RESULTS=str(folder))

    (kept,) = shared.iterdir()
    assert kept.stem == hashlib.sha256(kept.read_bytes()).hexdigest()
    for folder in folders:
        record = json.loads((folder / "uid-1.json").read_bytes())
        assert record["environment"] == {"kind": "distributions", "digest": f"sha256:{kept.stem}"}
        assert not (folder / "environments").exists()


def test_the_list_is_that_of_the_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    expected: dict[str, str] = {}
    for distribution in importlib.metadata.distributions(
        path=[path for path in sys.path if "site-packages" in path]
    ):
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
        expected.setdefault(name, distribution.version)

    listed = launch.list_distributions(sys.executable).decode()

    assert listed == "".join(f"{name}=={version}\n" for name, version in sorted(expected.items()))


def edit_egg(folder: Path) -> None:
    distributions(folder, "baz.egg-info")
    for version in (1, 2):
        (folder / "baz.egg-info/PKG-INFO").write_text(f"Version: {version}\n")
        launch.list_distributions(sys.executable)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda folder: distributions(folder, "baz-1.dist-info"), {"baz==1"}),
        (
            lambda folder: (folder / "foo-1.0.dist-info").rename(folder / "foo-2.0.dist-info"),
            {"foo==1.0", "foo==2.0"},
        ),
        (lambda folder: (folder / "other.pth").write_text(f"{folder.parent}/other\n"), {"bar==3"}),
        (edit_egg, {"baz==2"}),
    ],
    ids=["added", "upgraded", "path file", "egg"],
)
def test_a_listed_folder_is_read_again(
    change: Callable[[Path], object], difference: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(launch.installed_in.__globals__, "OLD_CHANGE", -(10**18))
    folder = distributions(tmp_path / "lib", "torch-2.1.0.dist-info", "foo-1.0.dist-info")
    distributions(tmp_path / "other", "bar-3.dist-info")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    before = launch.list_distributions(sys.executable).decode()
    changed = folder.stat().st_ctime_ns

    change(folder)
    while folder.stat().st_ctime_ns == changed:
        os.utime(folder)

    after = launch.list_distributions(sys.executable).decode()
    assert {*after.split("\n")} ^ {*before.split("\n")} == difference


def test_a_folder_that_nobody_changed_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(launch.installed_in.__globals__, "OLD_CHANGE", -(10**18))
    folder = str(distributions(tmp_path / "lib", "torch-2.1.0.dist-info"))

    assert launch.installed_in(folder) is launch.installed_in(folder)


def test_names_are_normalized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = distributions(
        tmp_path / "first", "Foo_Bar.baz-1.0.dist-info", "old-3.2-py3.9.egg-info", "torch-2.0+cu1.dist-info"
    )
    second = distributions(
        tmp_path / "second", "foo_bar_baz-9.dist-info", "developed.egg-info", "nothing.txt"
    )
    (second / "developed.egg-info" / "PKG-INFO").write_text(
        "Metadata-Version: 2.1\nName: developed\nVersion: 0.7\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{first}{os.pathsep}{second}")

    listed = launch.list_distributions(sys.executable).decode().splitlines()

    assert {"foo-bar-baz==1.0", "old==3.2", "torch==2.0+cu1", "developed==0.7"} <= set(listed)
    assert "foo-bar-baz==9" not in listed


def test_a_virtual_environment_has_its_own_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    venv.create(tmp_path / "venv", symlinks=True)
    (packages,) = (tmp_path / "venv").glob("lib/python3.*/site-packages")
    distributions(packages, "alone-1.0.dist-info")
    linked = distributions(tmp_path / "editable", "edited-0.1.dist-info")
    (packages / "paths.pth").write_text(
        f"# a comment\nimport os; open({str(tmp_path / 'ran')!r}, 'w')\n{linked}\n"
    )

    listed = launch.list_distributions(str(tmp_path / "venv" / "bin" / "python"))

    assert listed == b"alone==1.0\nedited==0.1\n"
    assert not (tmp_path / "ran").exists()


def test_a_virtual_environment_may_see_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.delenv("PYTHONNOUSERSITE", raising=False)
    of_user = distributions(tmp_path / "user", "of_the_user-2.0.dist-info")
    monkeypatch.setattr(site, "getusersitepackages", lambda: str(of_user))
    listed = {}
    for sees_base in (False, True):
        folder = tmp_path / f"venv-{sees_base}"
        venv.create(folder, symlinks=True, system_site_packages=sees_base)
        listed[sees_base] = launch.list_distributions(str(folder / "bin" / "python"))

    assert listed[False] == b""
    assert b"of-the-user==2.0\n" in listed[True]


def test_another_interpreter_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    packages = distributions(tmp_path / "site", "elsewhere-4.0.dist-info")
    other = tmp_path / "python9"
    other.write_text(f"#!/bin/sh\nprintf '\\n\\n{packages}\\n'\n")
    other.chmod(0o755)

    assert launch.list_distributions(str(other)) == b"elsewhere==4.0\n"


def test_an_interpreter_is_asked_without_the_folder_that_trials_write_to(tmp_path: Path) -> None:
    """Before Python 3.11, a file `site.py` in the current folder would be imported."""
    other = tmp_path / "python9"
    other.write_text('#!/bin/sh\n[ "$1" = -I ] && printf "a\\nb\\nc\\n"\n')
    other.chmod(0o755)

    assert launch.ask_for_sites(str(other), "") == [["a"], ["b"], ["c"]]


def test_a_relative_interpreter_is_in_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tool").write_text("")
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.setenv("SWEEP_CODE", str(tmp_path))

    assert launch.which("./tool") == f"{tmp_path}/./tool"


@pytest.mark.parametrize("interpreter", ["no-such-python", "true"])
def test_for_an_interpreter_that_cannot_run_the_launchers_own_counts(interpreter: str) -> None:
    assert launch.list_distributions(interpreter) == launch.list_distributions(sys.executable)


def test_the_bytes_of_a_lock_file_count(trial_folder: TrialFolder) -> None:
    trial_folder.code.mkdir()
    (trial_folder.code / "uv.lock").write_bytes(b"torch==2.1\r\n")
    trial_folder.changes = {"environment": {"lock": "uv.lock"}}

    record = trial_folder.try_once()

    digest = hashlib.sha256(b"torch==2.1\r\n").hexdigest()
    assert record["environment"] == {"kind": "lock", "digest": f"sha256:{digest}"}
    assert not (trial_folder.results / "environments").exists()


@pytest.mark.parametrize("path", ["/etc/passwd", "a/../../x", ""])
def test_a_lock_file_outside_the_code_is_refused(path: object, trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"environment": {"lock": path}}

    run = trial_folder.run()

    assert run.code == 43
    assert run.said[0].startswith("launch.json: environment: lock must be ")


def test_a_lock_file_that_is_missing_is_the_sweeps_fault(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"environment": {"lock": "uv.lock"}}
    trial_folder.command = shell(f"touch $HERE/began; {REPORT}")

    record = trial_folder.try_once()

    assert (record["reason"], record["exit"], record["environment"]) == ("bad-sweep", 43, None)
    assert "uv.lock" in record["details"]["error"]
    assert not (trial_folder.root / "began").exists()


def test_a_list_is_kept_once_and_never_a_large_one(tmp_path: Path, trial_folder: TrialFolder) -> None:
    many = distributions(tmp_path / "many", *(f"{'p' * 60}{number}-1.0.dist-info" for number in range(1000)))
    trial_folder.command = shell("exit 1")
    for uid in ("a", "b"):
        trial_folder.run(SWEEP_POD_UID=uid)
    trial_folder.run(SWEEP_POD_UID="c", PYTHONPATH=str(many))

    records = trial_folder.records()
    (kept,) = (trial_folder.results / "environments").iterdir()

    digests = {name: record["environment"]["digest"] for name, record in records.items()}
    assert digests["a.json"] == digests["b.json"] == f"sha256:{kept.stem}" != digests["c.json"]


def test_the_list_is_alike_everywhere(any_python: str, trial_folder: TrialFolder, tmp_path: Path) -> None:
    folder = distributions(tmp_path / "lib", "torch-2.1.0.dist-info")
    trial_folder.changes = {"interpreter": any_python}
    trial_folder.run(PYTHONPATH=str(folder))
    trial_folder.interpreter = any_python
    trial_folder.command = shell(f"exit 1; {REPORT}")
    (trial_folder.results / "uid-1.json").unlink()
    trial_folder.run(PYTHONPATH=str(folder))

    (kept,) = (trial_folder.results / "environments").iterdir()
    installed = captured([any_python, "-m", "pip", "--version"]).stdout.split()
    names = kept.read_text().splitlines()
    assert "torch==2.1.0" in names
    assert not installed or f"pip=={installed[1]}" in names

"""The private folders of an attempt: what its command writes there reaches neither the code nor another attempt."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import pytest

from sweepledger.spec.rules import environment
from sweepledger.storage import data_state, folder_state
from tests.launcher.folders import LATE, LAUNCHER, REPORT, TrialFolder, ended, launch, python, shell
from tests.launcher.test_launcher_formats import VERSION, event, simple

BY_LINES = {"name": "test_accuracy", "source": "result"}
RESULT = "open(os.environ['SWEEP_RESULT'], 'w').write('{\"test_accuracy\": 0.5}')\n"

on_disk = pytest.mark.parametrize("local_folder", ["/var/tmp"], indirect=True)  # noqa: S108 - a new folder below
"""Where a copy is used again; in memory it never is."""
needs_permissions = pytest.mark.skipif(
    not os.getuid(), reason="skipped: permissions do not hold the superuser"
)


def put(folder: Path, **files: str | bytes) -> None:
    """Write files; in their names, `__` stands for a slash, and `_` before the last word for a dot."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def said(folder: TrialFolder, script: str, **variables: str) -> list[str]:
    """Return what a command of a shell prints, if its trial is ok."""
    folder.command = shell(f"set -e; {script}; {REPORT}")
    run = folder.run(**variables)
    assert run.code == 0, run.err
    return run.out.decode().splitlines()


def link_to(target: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


# ------------------------------------------------------------------------------------- the copy of the code


def test_nothing_that_a_command_writes_reaches_the_code(trial_folder: TrialFolder) -> None:
    put(trial_folder.code, tracked_txt="as locked", other_txt="as locked", package__data_txt="as locked")
    link_to("package", trial_folder.code / "link")
    link_to(str(trial_folder.code / "package"), trial_folder.code / "absolute")
    link_to("code", trial_folder.root / "alias")
    link_to(str(trial_folder.root / "alias/package"), trial_folder.code / "by-alias")
    before, state = contents(trial_folder.code), folder_state(trial_folder.code)

    writes = [
        "echo changed > new.txt",
        "echo changed >> tracked.txt",
        "mkdir -p .cache/deep; echo changed > .cache/deep/file",
        "for folder in package link absolute by-alias; do echo changed >> $folder/data.txt; done",
        "chmod +x tracked.txt; mv tracked.txt moved.txt",
        "rm other.txt; echo changed > other.txt",
        "touch -d 2001-01-01 other.txt package",
        "rm -r package",
    ]
    said(trial_folder, "; ".join(writes))

    assert contents(trial_folder.code) == before
    assert folder_state(trial_folder.code) == state


FORGED = (
    "import json, os; edited = open('tracked.txt', 'r+'); edited.write('AS'); edited.close(); "
    "os.utime('tracked.txt', (0, 0)); note = {'/': [0, 2**62], 'tracked.txt': os.stat('tracked.txt').st_ino}; "
    "json.dump(note, open('../../copied', 'w'))"
)
"""What a trial that means harm does: it edits a file, and notes that nobody did."""


FILE_CHANGES = {
    "written": "echo changed > F",
    "dated": "echo 'AS locked' | tr -d '\\n' > F; touch -r $HERE/code/F F",
    "executable": "chmod +x F",
    "another": "cp -p F new; mv new F",
    "shared": "ln F $HERE/another-name",
    "linked": "rm F; ln -s $HERE/code/F F",
    "folder": "rm F; mkdir F; touch F/new",
    "pipe": "rm F; mkfifo F",
    "mapped": '$PYTHON -c \'import mmap; f = open("F", "r+b"); m = mmap.mmap(f.fileno(), 0); m[:2] = b"AS"\'',
}
"""Each on a file F of this name."""
CHANGES = {
    "files": "; ".join(change.replace("F", f"{name}.txt") for name, change in FILE_CHANGES.items()),
    "a forged note": f'touch -d @0 $HERE/code/tracked.txt; $PYTHON -c "{FORGED}"',
    "new and removed folders": "echo new > new.txt; mkdir -p empty/new; rm -r package",
    "a linked folder": "mv package moved; ln -s $HERE/twin package",
    "a moved folder": "mv package empty/; mkdir package; echo changed > package/data.txt",
    "modes": "chmod 0 package; chmod 500 .",
}


@on_disk
@pytest.mark.parametrize("script", CHANGES.values(), ids=CHANGES)
def test_a_copy_that_an_ended_attempt_had_is_as_new(script: str, local_folder: TrialFolder) -> None:
    files = [*FILE_CHANGES, "tracked"]
    put(local_folder.code, package__data_txt="as locked", other_txt="as locked")
    put(local_folder.code, **{f"{name}_txt": "as locked" for name in files})
    (local_folder.code / "empty").mkdir()
    shutil.copytree(local_folder.code / "package", local_folder.root / "twin")
    number = "stat -c %i other.txt"
    (before,) = said(local_folder, f"{number}; {script.replace('$PYTHON', sys.executable)}", SWEEP_COPIES="1")
    work = end_attempt(local_folder)

    lines = said(
        local_folder,
        f"{number}; find . ! -type f; find . -name '*.txt' ! -perm -100 | wc -l; cat *.txt package/data.txt",
        SWEEP_COPIES="1",
        SWEEP_POD_UID="uid-2",
    )

    assert work is None or lines[0] == before
    assert sorted(lines[1:-2]) == [".", "./empty", "./package"]
    assert int(lines[-2]) == len(files) + 2
    assert lines[-1] == "as locked" * (len(files) + 2)
    assert work is None or not work.exists()
    assert contents(local_folder.root / "twin") == {"data.txt": b"as locked"}


@on_disk
def test_what_nobody_changed_is_used_again_and_its_folders_are_new(local_folder: TrialFolder) -> None:
    put(local_folder.code, tracked_txt="as locked", package__data_txt="as locked")
    script = "stat -Lc %i tracked.txt package/data.txt $HOME $TMPDIR . package"
    first = said(local_folder, f"{script}; cat tracked.txt", SWEEP_COPIES="1")
    work = end_attempt(local_folder)
    if work is None:
        pytest.skip(f"skipped: {local_folder.root} does not note writes through mappings")
    # As a container has them that the trial has started in a daemon, and that goes on.
    trial = work.parent.parent
    stale = [os.open(path, os.O_RDONLY) for path in (trial, trial / "home", trial / "tmp", work.parent, work)]

    second = said(local_folder, f"{script}; ls", SWEEP_COPIES="1", SWEEP_POD_UID="uid-2")

    for folder in stale:
        with pytest.raises(FileNotFoundError):
            os.open("mark", os.O_WRONLY | os.O_CREAT, dir_fd=folder)
        os.close(folder)
    assert second[:2] == first[:2]
    assert set(second[2:6]).isdisjoint(first[2:6])
    assert second[6:] == ["package", "tracked.txt"]


@on_disk
@pytest.mark.parametrize("end", ["exit 1", LATE], ids=["failed", "timeout"])
def test_a_copy_of_an_attempt_that_did_not_end_well_is_not_used_again(
    end: str, local_folder: TrialFolder
) -> None:
    (local_folder.root / "late").touch()
    local_folder.command = shell(f"echo '{{}}' > $HOME/../copied; {end}; sleep 100")

    assert local_folder.run(SWEEP_COPIES="1").code

    assert len(list((local_folder.root / "scratch").glob("trial-*"))) == 1
    assert end_attempt(local_folder) is None


def end_attempt(folder: TrialFolder) -> Path | None:
    """Leave the folder of an attempt to the next one, and return its copy of the code, if it can be used."""
    (folder.results / "uid-1.json").unlink()
    for noted in (folder.root / "scratch").glob("trial-*/copied"):
        return noted.parent / "run/work"
    return None


IN_OWN_FOLDERS = [
    "touch $HOME/mark ../mark $HOME/../mark; mkdir -p $TMPDIR/mark $HOME/../deep/er; touch $HOME/../deep/er/mark",
    "chmod 0 $HOME ..",
    "mv $HOME $HOME.old; mkdir $HOME; touch $HOME/mark",
    "rm -r $HOME; ln -s $HERE $HOME",
    "echo '[]' > $HOME/../copied",
    "rm -f $HOME/../copied; mkdir $HOME/../copied",
]


@on_disk
@pytest.mark.parametrize("script", IN_OWN_FOLDERS)
def test_no_attempt_sees_what_an_ended_one_left(script: str, local_folder: TrialFolder) -> None:
    put(local_folder.code, tracked_txt="as locked")
    said(local_folder, script, SWEEP_COPIES="1")
    end_attempt(local_folder)

    second = said(
        local_folder,
        "ls -A . .. $HOME $TMPDIR/; stat -Lc %a $HOME $TMPDIR/ ..; ls -A $HOME/..",
        SWEEP_COPIES="1",
        SWEEP_POD_UID="uid-2",
    )

    assert "mark" not in second
    assert second.count("700") == 3
    assert {*second} >= {"home", "run", "tmp", "trial.json"}
    assert not {*second} & {"deep", "earlier", "home.old"}
    assert len(list((local_folder.root / "scratch").glob("trial-*"))) == 1


@pytest.mark.parametrize(
    "script",
    [
        "ln $SWEEP_TRIAL $HERE/kept",
        "mv $SWEEP_TRIAL $HERE/kept; ln -s $HERE/kept $SWEEP_TRIAL",
        "mv $SWEEP_TRIAL $HERE/kept; mkfifo $SWEEP_TRIAL",
        "mv $SWEEP_TRIAL $HERE/kept; mkdir $SWEEP_TRIAL",
        "cp $SWEEP_TRIAL $HERE/kept; chmod 0 $SWEEP_TRIAL",
    ],
    ids=["other name", "link", "pipe", "folder", "mode"],
)
@on_disk
def test_the_next_attempt_has_values_of_its_own(script: str, local_folder: TrialFolder) -> None:
    said(local_folder, script, SWEEP_COPIES="1")
    end_attempt(local_folder)
    (local_folder.root / "kept").write_text("kept")

    lines = said(local_folder, "cat $SWEEP_TRIAL; stat -c %F:%h:%a $SWEEP_TRIAL", SWEEP_COPIES="1")

    assert "".join(lines).endswith("}regular file:1:644")
    assert (local_folder.root / "kept").read_text() == "kept"


@on_disk
def test_a_file_that_another_process_has_open_is_copied_anew(local_folder: TrialFolder) -> None:
    put(local_folder.code, tracked_txt="as locked")
    said(local_folder, "true", SWEEP_COPIES="1")
    work = end_attempt(local_folder)
    if work is None:
        pytest.skip(f"skipped: {local_folder.root} does not note writes through mappings")

    with (work / "tracked.txt").open("a") as held:
        held.write(" and more")
        writer = threading.Thread(target=flush_when_it_runs, args=(held, local_folder.root))
        writer.start()
        script = "touch $HERE/runs; until [ -e $HERE/written ]; do sleep 0.02; done; cat tracked.txt"
        lines = said(local_folder, script, SWEEP_COPIES="1", SWEEP_POD_UID="uid-2")
        writer.join()

    assert lines == ["as locked"]


def flush_when_it_runs(held: TextIO, folder: Path) -> None:
    while not (folder / "runs").exists():
        time.sleep(0.02)
    held.flush()
    (folder / "written").touch()


@on_disk
def test_folders_that_a_trial_exchanged_are_as_locked_in_the_next(local_folder: TrialFolder) -> None:
    put(local_folder.code, one__value_txt="1", other__value_txt="2")
    for path in local_folder.code.glob("*/*.txt"):
        os.utime(path, ns=(0, 10**18))
    said(local_folder, "mv one spare; mv other one; mv spare other", SWEEP_COPIES="1")
    end_attempt(local_folder)

    lines = said(local_folder, "cat */value.txt", SWEEP_COPIES="1", SWEEP_POD_UID="uid-2")

    assert lines == ["12"]


def test_bits_links_and_empty_folders_are_as_in_the_code(trial_folder: TrialFolder) -> None:
    put(trial_folder.code, tool_sh="#!/bin/sh\necho it runs\n", package__data_txt="deep", plain_txt="x")
    (trial_folder.code / "tool.sh").chmod(0o755)
    (trial_folder.code / "empty").mkdir()
    link_to("package/data.txt", trial_folder.code / "relative")
    link_to("../plain.txt", trial_folder.code / "package" / "up")
    link_to(str(trial_folder.code / "plain.txt"), trial_folder.code / "absolute")
    link_to("nowhere", trial_folder.code / "dangling")
    link_to("/etc", trial_folder.code / "outside")
    os.mkfifo(trial_folder.code / "pipe")

    lines = said(
        trial_folder,
        "[ ! -e pipe ]; ./tool.sh; cat relative package/up; echo; [ ! -x plain.txt ]; [ -d empty ]; [ -L dangling ];"
        "readlink relative; readlink outside; readlink absolute",
    )

    assert lines[:4] == ["it runs", "deepx", "package/data.txt", "/etc"]
    assert lines[4].startswith(str(trial_folder.root / "scratch"))
    assert lines[4].endswith("/run/work/plain.txt")


def test_what_is_read_only_in_the_code_is_not_in_the_copy(trial_folder: TrialFolder) -> None:
    put(trial_folder.code, plain_txt="x", package__data_txt="x")
    for path in ("plain.txt", "package/data.txt", "package"):
        (trial_folder.code / path).chmod(0o555)

    modes = said(trial_folder, "stat -c %A plain.txt package/data.txt package")

    assert [mode[2] for mode in modes] == ["w", "w", "w"]


@needs_permissions
def test_code_that_cannot_be_read_is_the_sweeps_fault(trial_folder: TrialFolder) -> None:
    put(trial_folder.code, private_txt="x")
    (trial_folder.code / "private.txt").chmod(0)

    assert "the code cannot be copied for the trial" in refusal(trial_folder)


@pytest.mark.parametrize(
    ("name", "most", "files"), [("MOST_CODE_FILES", 9, 9), ("LARGEST_CODE", 100, 1)], ids=["files", "bytes"]
)
def test_code_that_is_too_large_to_copy_is_refused(
    name: str, most: int, files: int, trial_folder: TrialFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(trial_folder.code, **{f"f{number}_txt": "x" * 101 for number in range(files)})
    monkeypatch.setitem(launch.copy_folder.__globals__, name, most)

    assert "keep data in run.data, and the rest out of run.code" in refusal(trial_folder)
    if files > 1:  # one fewer, for the folder counts, too
        (trial_folder.code / "f0.txt").unlink()
        (trial_folder.results / "uid-1.json").unlink()
        assert trial_folder.try_once()["status"] == "ok"


@pytest.mark.parametrize("scratch", ["a/b/scratch", "."])
def test_code_that_contains_the_scratch_is_refused(scratch: str, trial_folder: TrialFolder) -> None:
    (trial_folder.code / scratch).mkdir(parents=True)

    assert "contains the scratch folder" in refusal(
        trial_folder, SWEEP_SCRATCH=str(trial_folder.code / scratch)
    )


# ------------------------------------------------------------------------------------ the command's variables


def test_home_and_temporary_folders_are_private_and_the_working_directory_has_the_code_alone(
    trial_folder: TrialFolder,
) -> None:
    exist = ["HOME", "TMPDIR", "TMP", "TEMP", "XDG_RUNTIME_DIR"]
    names = [*exist, *(f"XDG_{kind}_HOME" for kind in ("CACHE", "CONFIG", "DATA", "STATE"))]
    given = dict.fromkeys(names, "/of/the/machine")

    put(trial_folder.code, main_py="", _hidden="")

    lines = said(
        trial_folder,
        f"ls -A; ls -A ..; touch {' '.join(f'${name}/x' for name in exist)}; stat -c %a $HOME $TMPDIR/;"
        f"mkdir -p {' '.join(f'${name}' for name in names)}; readlink -f {' '.join(f'${name}' for name in names)}",
        **given,
    )

    assert lines[:5] == [".hidden", "main.py", "work", "700", "700"]
    assert all(line.startswith(str(trial_folder.root / "scratch")) for line in lines[5:])
    assert len(set(lines[5:])) == len(names) - 3  # one folder has four names


def test_no_spec_sets_a_variable_that_the_launcher_gives() -> None:
    given = launch.Folders("trial", "work", "home", "temporary", "code").variables()

    assert given.keys() | {"PWD"} == environment.PRIVATE


def test_a_socket_and_a_metric_fit_the_temporary_folder_of_a_long_path(trial_folder: TrialFolder) -> None:
    scratch = trial_folder.root / ("s" * 100)
    scratch.mkdir()
    trial_folder.changes = {"metric": BY_LINES | {"path": "$TMPDIR/metrics.json"}}
    trial_folder.command = python(
        "import os, socket, tempfile\n"
        "folder = tempfile.mkdtemp()\n"
        "with socket.socket(socket.AF_UNIX) as door: door.bind(folder + '/a-name-as-libraries-have-it')\n"
        "print(os.environ['TMPDIR'], os.path.realpath(folder))\n"
        "open(os.environ['TMPDIR'] + '/metrics.json', 'w').write('{\"test_accuracy\": 0.25}')\n"
    )

    run = trial_folder.run(SWEEP_SCRATCH=str(scratch))

    link, folder = run.out.decode().split()
    assert run.code == 0, run.err
    assert trial_folder.record()["metrics"] == {"test_accuracy": 0.25}
    assert link.startswith("/tmp/sweep-tmp-")  # noqa: S108 - that is where it has to be
    assert folder.startswith(str(scratch))
    assert not os.path.lexists(link)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"command": ["no-such-program"]}, 43),
        ({"command": ["sh", "-c", "kill -9 $$"]}, 137),
    ],
    ids=["not started", "killed"],
)
def test_no_link_to_a_long_path_stays(changes: dict[str, Any], code: int, trial_folder: TrialFolder) -> None:
    scratch = trial_folder.root / ("s" * 100)
    scratch.mkdir()
    trial_folder.changes = changes

    assert trial_folder.run(SWEEP_SCRATCH=str(scratch)).code == code

    (trial,) = scratch.iterdir()
    assert not os.path.lexists(launch.short_link(str(trial)))


@pytest.mark.parametrize(
    "entry", ["{code}", "{code}/package/../package", "package"], ids=["root", "folder", "relative"]
)
def test_python_imports_from_the_copy_what_the_code_has(entry: str, trial_folder: TrialFolder) -> None:
    put(trial_folder.code, inside_py="", package__inside_py="")
    put(trial_folder.root, package__inside_py="raise SystemExit('not of the code')", elsewhere__outside_py="")
    (trial_folder.root / "alias").symlink_to("elsewhere")
    paths = f"{entry.format(code=trial_folder.code)}:{trial_folder.root}/alias"
    script = f"import inside, outside, os\nprint(inside.__file__, outside.__file__)\n{RESULT}"
    trial_folder.command = [sys.executable, "-c", script]

    run = trial_folder.run(PYTHONPATH=paths, PYTHONSAFEPATH="1")

    assert run.code == 0, run.err
    inside, outside = run.out.decode().split()
    assert inside.startswith(str(trial_folder.root / "scratch"))
    assert outside == str(trial_folder.root / "alias" / "outside.py")


def refusal(folder: TrialFolder, **variables: str) -> str:
    """Return why a trial is refused as a fault of its sweep, before its command begins."""
    folder.command = shell(f"touch $HERE/began; {REPORT}")
    record = folder.try_once(**variables)
    assert (record["reason"], record["exit"]) == ("bad-sweep", 43)
    assert not (folder.root / "began").exists()
    error: str = record["details"]["error"]
    return error


def test_an_image_without_the_code_is_refused(trial_folder: TrialFolder) -> None:
    assert refusal(trial_folder, SWEEP_CODE=str(trial_folder.root / "none")) == (
        f"SWEEP_CODE: there is no folder {trial_folder.root}/none: the image must have the code there"
    )


def test_git_finds_the_repository_of_the_code_and_none_around_the_scratch(trial_folder: TrialFolder) -> None:
    subprocess.run(["git", "init", "--quiet", trial_folder.root], check=True)
    lines = said(
        trial_folder, "! git rev-parse --git-dir 2>/dev/null; cd; ! git rev-parse --git-dir 2>/dev/null"
    )

    subprocess.run(["git", "init", "--quiet", trial_folder.code], check=True)
    (trial_folder.results / "uid-1.json").unlink()

    assert lines == []
    assert said(trial_folder, "mkdir sub; cd sub; git rev-parse --show-prefix") == ["sub/"]


def test_a_command_gets_no_variable_that_leads_to_what_other_trials_have(local_folder: TrialFolder) -> None:
    put(local_folder.code, tracked_txt="as locked")
    variables = a_dataset(local_folder)
    variables |= {"SWEEP_CODE_STATE": folder_state(local_folder.code), "SWEEP_COPIES": "copies"}
    (local_folder.root / "earlier.json").write_text("{}")
    variables["SWEEP_EARLIER"] = str(local_folder.root / "earlier.json")
    variables["SWEEP_ENVIRONMENTS"] = str(local_folder.root / "environments")
    variables["SWEEP_THRESHOLDS"] = str(local_folder.root / "thresholds.json")
    hidden = {*variables, "SWEEP_SCRATCH", "SWEEP_TERMINATION_LOG"} - {"SWEEP_DATA"}

    names = {line.partition("=")[0] for line in said(local_folder, "env | grep ^SWEEP_", **variables)}

    assert len(hidden) == 8
    assert names.isdisjoint(hidden)
    assert names >= {"SWEEP_DATA", "SWEEP_TRIAL", "SWEEP_RESULT", "SWEEP_ARTIFACTS", "SWEEP_CHECKPOINTS"}
    documents = (Path(__file__).parents[2] / "docs").rglob("*.md")
    documented = "".join(path.read_text("utf-8") for path in documents)
    assert {name for name in names if name not in documented and "SWEEP_PARAM_" not in name} == set()


# ---------------------------------------------------------------------------------- code and data that change


def write_code(folder: Path) -> None:
    put(folder, main_py="x", package__deep__data_txt="x", _hidden="x", größe="ü")
    (folder / "empty").mkdir()
    (folder / "main.py").chmod(0o755)
    link_to("package", folder / "link")
    link_to("nowhere", folder / "dangling")
    (folder / os.fsdecode(b"raw-\xff")).touch()


def test_the_state_of_the_code_is_what_the_package_computes(trial_folder: TrialFolder) -> None:
    write_code(trial_folder.code)

    record = trial_folder.try_once(SWEEP_CODE_STATE=folder_state(trial_folder.code))

    assert record["status"] == "ok"
    for by_content in (False, True):
        state = folder_state(trial_folder.code, by_content=by_content)
        assert launch.state_of(str(trial_folder.code), state) == state


@pytest.mark.parametrize(
    "change",
    [
        lambda code: (code / "main.py").write_text("y"),
        lambda code: (code / "package/deep/new.txt").touch(),
        lambda code: (code / "main.py").chmod(0o644),
        lambda code: os.utime(code / ".hidden", (1, 1)),
        lambda code: shutil.copy2(code / ".hidden", code / "new").replace(code / ".hidden"),
    ],
    ids=["content", "new file", "mode", "time", "replaced"],
)
def test_changed_code_means_no_result(change: Callable[[Path], object], trial_folder: TrialFolder) -> None:
    write_code(trial_folder.code)
    state = folder_state(trial_folder.code)
    change(trial_folder.code)
    trial_folder.command = shell(f"touch $HERE/began; {REPORT}")

    record = trial_folder.try_once(SWEEP_CODE_STATE=state)

    assert (record["status"], record["reason"], record["exit"]) == ("failed", "code-changed", 1)
    assert "the stored code is no longer what was locked" in record["details"]["error"]
    assert not (trial_folder.root / "began").exists()


def a_dataset(folder: TrialFolder, *parts: str) -> dict[str, str]:
    """Write a dataset, or several that links name, and return the variables that an engine gives."""
    data = folder.root / "data"
    data.mkdir()
    for part in parts:
        put(folder.root / part, train__x_csv="1", test_csv="2")
        link_to(f"../{part}", data / part)
    put(data, **({} if parts else {"train__x_csv": "1", "test_csv": "2"}))
    put(folder.root / "linked", file_csv="3", folder__file_csv="3", folder__deep__file_csv="3")
    link_to("..", folder.root / "linked/folder/around")
    for name, target in {"linked.csv": "file.csv", "linked": "folder", "nowhere": "missing"}.items():
        link_to(str(folder.root / "linked" / target), (data / parts[0] if parts else data) / "deep" / name)
    return {"SWEEP_DATA": str(data), "SWEEP_DATA_STATE": data_state(data)}


@pytest.mark.parametrize("parts", [(), ("mnist", "cifar")], ids=["one", "several"])
def test_data_that_nobody_changes_is_no_matter(parts: tuple[str, ...], trial_folder: TrialFolder) -> None:
    variables = a_dataset(trial_folder, *parts)
    trial_folder.command = shell(f"cat $SWEEP_DATA/{'/'.join([*parts[:1], 'test.csv'])}; {REPORT}")

    assert trial_folder.try_once(**variables)["status"] == "ok"
    state = variables["SWEEP_DATA_STATE"]
    assert launch.state_of(variables["SWEEP_DATA"], state, follows=True) == state


@pytest.mark.parametrize(
    ("parts", "script"),
    [
        ((), "echo 3 >> $SWEEP_DATA/test.csv"),
        ((), "rm -r $SWEEP_DATA"),
        ((), "touch $SWEEP_DATA/deep/linked/new"),
        ((), "echo 3 >> $SWEEP_DATA/deep/linked/deep/file.csv"),
        ((), "touch $HERE/linked/missing"),
        (("mnist", "cifar"), "echo 3 >> $SWEEP_DATA/mnist/deep/linked/file.csv"),
        (("mnist", "cifar"), "rm $SWEEP_DATA/mnist"),
    ],
)
def test_changed_data_mean_no_result(parts: tuple[str, ...], script: str, trial_folder: TrialFolder) -> None:
    variables = a_dataset(trial_folder, *parts)
    trial_folder.command = shell(f"sleep 0.02; {script}; {REPORT}")

    record = trial_folder.try_once(**variables)

    assert (record["status"], record["reason"], record["exit"]) == ("failed", "data-changed", 1)
    assert (record["metrics"], record["details"]["error"]) == ({}, "the dataset changed while the trial ran")
    assert record["peak_memory"] > 0  # what is known of the attempt stays


MAPPED = """
import mmap, os, time
with open(os.environ["TARGET"], "r+b") as file:
    mapped = mmap.mmap(file.fileno(), 0)
    first = mapped[0]
    time.sleep(0.02)
    mapped[0] = first + 1
"""


def test_a_write_through_a_mapping_is_noticed(local_folder: TrialFolder) -> None:
    variables = a_dataset(local_folder)
    put(local_folder.code, program_py=MAPPED, other_txt="1")
    variables["SWEEP_CODE_STATE"] = folder_state(local_folder.code)
    local_folder.command = shell(f"{sys.executable} program.py; {REPORT}")

    of_data = local_folder.try_once(**variables, TARGET=f"{variables['SWEEP_DATA']}/test.csv")

    assert of_data["reason"] == "data-changed"

    (local_folder.results / "uid-1.json").unlink()
    del variables["SWEEP_DATA_STATE"]
    local_folder.command = shell(REPORT)
    environment = {**os.environ, "TARGET": str(local_folder.code / "other.txt")}
    subprocess.run([sys.executable, "-c", MAPPED], env=environment, check=True)
    of_code = local_folder.try_once(**variables)

    assert of_code["reason"] == "code-changed"


# ------------------------------------------------------------------------------- workdir, data_at and keep


@pytest.mark.parametrize("workdir", ["./package/", "link"])
def test_the_command_starts_where_the_sweep_says(workdir: str, trial_folder: TrialFolder) -> None:
    put(trial_folder.code, package__x_txt="", package__hyperparams_yml="an old one")
    link_to("package", trial_folder.code / "link")
    trial_folder.changes = {"workdir": workdir, "hyperparams_file": True}

    script = "[ -f x.txt ]; grep -q hyperparam_set hyperparams.yml; [ $PWD -ef . ]; echo more > results.log"
    assert said(trial_folder, script) == []
    kept = contents(trial_folder.code)
    assert len(kept) == 2
    assert kept["package/hyperparams.yml"] == b"an old one"


@pytest.mark.parametrize("workdir", ["nowhere", "main.py", "outside"])
def test_a_missing_working_directory_is_refused(workdir: str, trial_folder: TrialFolder) -> None:
    put(trial_folder.code, main_py="")
    link_to("/tmp", trial_folder.code / "outside")  # noqa: S108 - any folder that is elsewhere
    trial_folder.changes = {"workdir": workdir}

    assert refusal(trial_folder) == f"run.workdir: the code has no folder {workdir}"


@pytest.mark.parametrize(
    ("workdir", "place"), [(".", "../data"), (".", "inputs/raw/mnist"), ("package", "../../data")]
)
def test_a_dataset_is_linked_where_it_is_read(workdir: str, place: str, trial_folder: TrialFolder) -> None:
    put(trial_folder.code, package__main_py="")
    variables = a_dataset(trial_folder, "mnist", "cifar")
    trial_folder.changes = {"workdir": workdir, "data_at": {"mnist": place, "cifar": "data/cifar-10"}}

    script = f"cat {place}/test.csv data/cifar-10/train/x.csv; [ -L {place} ]"

    assert said(trial_folder, script, **variables) == ["21"]
    assert set(contents(trial_folder.code)) == {"package/main.py"}


@pytest.mark.parametrize("place", ["../../data", "/data", "main.py", "package", "outside/data", "../work"])
def test_a_dataset_may_replace_nothing_and_stays_near(place: str, trial_folder: TrialFolder) -> None:
    put(trial_folder.code, main_py="", package__x_py="")
    (trial_folder.root / "elsewhere").mkdir()
    link_to(str(trial_folder.root / "elsewhere"), trial_folder.code / "outside")
    variables = a_dataset(trial_folder, "mnist")
    trial_folder.changes = {"data_at": {"mnist": place}}

    error = refusal(trial_folder, **variables)

    assert f"run.data: {place} is in the code already, or more than one level up" in error
    assert list((trial_folder.root / "elsewhere").iterdir()) == []


def kept(folder: TrialFolder, patterns: list[str], script: str) -> list[str]:
    folder.changes = {**folder.changes, "keep": patterns}
    folder.command = shell(f"{script}; {REPORT}")
    record = folder.try_once()
    assert record["status"] == "ok"
    return sorted(item["path"] for item in record["artifacts"])


def test_files_that_match_are_kept(trial_folder: TrialFolder) -> None:
    script = "mkdir -p runs/1; echo 1 > a.pt; echo 2 > runs/1/b.pt; echo 3 > runs/log.txt; echo 4 > c.txt"
    for patterns, names in (
        (["runs/**"], ["runs/1/b.pt", "runs/log.txt"]),
        (["**/*.pt"], ["a.pt", "runs/1/b.pt"]),
        (["runs/?/*", "*.pt", "a.*"], ["a.pt", "runs/1/b.pt"]),
        (["none/*", "runs"], []),
    ):
        shutil.rmtree(trial_folder.results, ignore_errors=True)

        assert kept(trial_folder, patterns, script) == names


def test_changed_files_of_the_code_are_kept(trial_folder: TrialFolder) -> None:
    names = ("new", "longer", "touched", "same", "removed")
    put(trial_folder.code, **{f"{name}_txt": "old" for name in names})
    links = "ln -s /etc/passwd passwd.txt; ln -s new.txt link.txt; mkfifo pipe.txt"
    writes = "echo new > new.txt; echo more >> longer.txt; touch touched.txt; printf old > same.txt; rm removed.txt"

    assert kept(trial_folder, ["*.txt"], f"{writes}; {links}") == ["longer.txt", "new.txt"]


def test_what_is_kept_lies_beside_other_artifacts_replaces_none_and_follows_no_link(
    trial_folder: TrialFolder,
) -> None:
    put(trial_folder.root / "elsewhere", private_pt="x")
    script = 'echo own > "$SWEEP_ARTIFACTS/a.pt"; echo 1 > a.pt; mkdir d; echo 2 > d/b.pt; ln -s $HERE/elsewhere out'

    assert kept(trial_folder, ["**/*.pt", "out/*"], script) == ["a.pt", "d/b.pt"]
    artifacts = trial_folder.results / "artifacts" / "uid-1"
    assert contents(artifacts) == {"a.pt": b"own\n", "d/b.pt": b"2\n"}


# ------------------------------------------------------------------------------------------- files by path


def reported(
    folder: TrialFolder, script: str, before: str | bytes = "", path: str = "metrics", **metric: Any
) -> Any:
    """Return the record of a trial whose code has a file with metrics already."""
    if before:
        put(folder.code, metrics=before)
    folder.changes = {"metric": BY_LINES | {"path": path, **metric}}
    folder.command = shell(script)
    return folder.try_once()


OLD = '{"test_accuracy": 0.99}'


@pytest.mark.parametrize(
    "script",
    ["printf '{}' > metrics", "rm metrics; printf '{}' > metrics", "printf '{}' > x; mv x metrics"],
    ids=["written over", "written anew", "replaced"],
)
def test_a_file_of_the_code_written_anew_counts(script: str, trial_folder: TrialFolder) -> None:
    record = reported(trial_folder, script.format('{"test_accuracy": 0.98}'), OLD)  # as long as the old one

    assert record["metrics"] == {"test_accuracy": 0.98}


PATTERN = r"acc (?P<value>[0-9.]+)"


@pytest.mark.parametrize(
    ("before", "added", "metric"),
    [
        ("test_accuracy=0.9\n", "test_accuracy=0.2\ntest_accuracy=0.3\n", {"format": "text"}),
        ("x,test_accuracy\n1,0.9\n", "2,0.2\n3,0.3\n", {"format": "csv"}),
        (f"{OLD}\n", '{"test_accuracy": 0.2}\n{"test_accuracy": 0.3}\n', {"format": "jsonl"}),
        ("acc 0.9\n", "acc 0.2\nacc 0.3\n", {"format": "regex", "patterns": [PATTERN]}),
        ("test_accuracy,0.9\n", "test_accuracy,0.2\ntest_accuracy,0.3\n", {"format": "log"}),
    ],
    ids=lambda value: value["format"] if isinstance(value, dict) else "",
)
def test_of_a_file_of_the_code_only_what_was_appended_counts(
    before: str, added: str, metric: dict[str, Any], trial_folder: TrialFolder
) -> None:
    record = reported(
        trial_folder, f"printf '%s' '{added}' >> metrics", before, **{**metric, "reduce": "max"}
    )

    assert record["metrics"]["test_accuracy"] == 0.3
    assert [value for _, value in record.get("curves", {}).get("test_accuracy", [])] == (
        [] if metric["format"] == "log" else [0.2, 0.3]
    )


COPY_OF_PARENT = 'cp -R "$SWEEP_PARENT/." "$SWEEP_CHECKPOINTS"'
ROWS = "step,test_accuracy\n1,0.875\n"


@pytest.mark.parametrize(
    ("script", "path"),
    [
        (COPY_OF_PARENT, "$SWEEP_CHECKPOINTS/metrics"),
        ("mkdir logs; cp metrics logs/now", "logs/*"),
        ("mkdir logs; mv metrics logs/now", "logs/*"),
    ],
    ids=["parent", "copied", "rotated"],
)
@pytest.mark.parametrize("added", ["", "2,0.25\n"], ids=["nothing", "a row"])
def test_of_a_copy_additions_count(script: str, path: str, added: str, trial_folder: TrialFolder) -> None:
    put(trial_folder.root / "parent", metrics=ROWS)
    trial_folder.environment["SWEEP_PARENT"] = str(trial_folder.root / "parent")
    name = path.replace("*", "now")

    record = reported(
        trial_folder, f"{script}; printf '{added}' >> {name}", ROWS, path=path, format="csv", reduce="max"
    )

    assert record["metrics"] == ({"test_accuracy": 0.25} if added else {})


@pytest.mark.parametrize("earlier", ["step,test_accuracy\n", "s"])
def test_a_row_that_equals_an_earlier_word_counts(earlier: str, trial_folder: TrialFolder) -> None:
    put(trial_folder.root / "parent", metrics=earlier)
    trial_folder.environment["SWEEP_PARENT"] = str(trial_folder.root / "parent")

    record = reported(trial_folder, f"printf '{ROWS}' > now", path="now", format="csv", reduce="max")

    assert record["metrics"] == {"test_accuracy": 0.875}


def test_of_an_event_file_of_the_code_only_what_was_appended_counts(trial_folder: TrialFolder) -> None:
    old = VERSION + event(1, ("test_accuracy", simple(0.75)))
    put(trial_folder.code, runs__tfevents=old)
    put(trial_folder.root, added=event(2, ("test_accuracy", simple(0.25))))

    record = reported(
        trial_folder, "cat $HERE/added >> runs/tfevents", path="runs", format="tensorboard", reduce="max"
    )

    assert (record["metrics"], record["curves"]["test_accuracy"]) == ({"test_accuracy": 0.25}, [[2, 0.25]])


def test_early_stopping_sees_only_what_was_appended_too(trial_folder: TrialFolder) -> None:
    put(trial_folder.code, metrics="step,test_accuracy\n1,0.9\n")
    rule = {"rule": "target", "goal": "maximize", "reach": 0.5}
    trial_folder.changes = {"metric": BY_LINES | {"path": "metrics", "format": "csv"}, "stop": [rule]}
    trial_folder.command = shell("echo 2,0.25 >> metrics; sleep 0.1; echo 3,0.625 >> metrics; sleep 600")

    record = trial_folder.try_once()

    assert (record["stopped"]["step"], record["curves"]["test_accuracy"]) == (3, [[2, 0.25], [3, 0.625]])


@pytest.mark.parametrize(
    ("script", "path"),
    [
        ("ln -s $HERE/elsewhere out; ln -s out/metrics metrics", "metrics"),
        ("ln -s $HERE/elsewhere out", "**/metrics"),
    ],
    ids=["file", "folder"],
)
def test_a_link_to_elsewhere_does_not_count(script: str, path: str, trial_folder: TrialFolder) -> None:
    put(trial_folder.root / "elsewhere", metrics=OLD)

    assert reported(trial_folder, script, path=path)["reason"] == "metric-missing"


@pytest.mark.parametrize("path", ["/etc/passwd", "../../../metrics", "$SWEEP_DATA/*.json", "$NOWHERE/x"])
def test_a_path_outside_the_folders_of_the_attempt_is_refused(path: str, trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"metric": BY_LINES | {"path": path}}

    assert refusal(trial_folder).startswith("metric.path ")


# -------------------------------------------------------------------------------------- several rows in one pod


@pytest.mark.parametrize(("program", "at_once"), [("launch.py", 3), ("pack.py", 1)])
def test_rows_of_a_pod_see_no_other(program: str, at_once: int, trial_folder: TrialFolder) -> None:
    trial_folder.rows = [f"t0000000000{number},{number}" for number in range(3)]
    put(trial_folder.code, shared_txt="0")
    trial_folder.changes = {"pack": {"at_once": at_once, "rows": 3}}
    trial_folder.command = shell(
        'for place in . .. "$HOME" "$TMPDIR"; do [ ! -e $place/mark ] || exit 3; echo x > $place/mark; done;'
        "[ $(cat shared.txt) = 0 ] || exit 4; echo $JOB_ID > shared.txt; sleep 0.1;"
        f"[ $(cat shared.txt) = $JOB_ID ] || exit 5; echo $HOME $TMPDIR; {REPORT}"
    )

    run = ended(trial_folder.start_copied(program))

    assert run.code == 0, run.err
    places = run.out.decode().split()
    assert len(set(places)) == 2 * 3
    assert not any(map(os.path.lexists, places))
    assert contents(trial_folder.code) == {"shared.txt": b"0"}


# --------------------------------------------------------------------------------------------- peak memory

MEBIBYTE = 1024 * 1024
ORPHAN = """
if os.fork() == 0:
    if os.fork() == 0:
        x = b'x' * 300 * 1024 * 1024
        open(os.environ['HERE'] + '/up', 'w')
    os._exit(0)
while not os.path.exists(os.environ['HERE'] + '/up'): pass
"""


def test_the_record_has_the_memory_of_the_largest_process(trial_folder: TrialFolder) -> None:
    trial_folder.may_fork = False  # the process of the tests may have more
    trial_folder.command = python(f"import os\n{ORPHAN}\n{RESULT}")

    assert 300 * MEBIBYTE < trial_folder.try_once()["peak_memory"] < 500 * MEBIBYTE


@pytest.mark.parametrize(
    ("ran", "wall"),
    [("", "directory"), ("process", "directory"), (f"r.example.org/t@sha256:{'a' * 64}", "pod")],
)
def test_the_record_says_what_kept_other_trials_away(ran: str, wall: str, trial_folder: TrialFolder) -> None:
    assert trial_folder.try_once(SWEEP_RAN=ran)["wall"] == wall


def test_the_memory_of_an_attempt_is_not_that_of_an_earlier_one(trial_folder: TrialFolder) -> None:
    """Several launchers may run in one process, one after the other."""
    script = (
        "import os, runpy, sys\n"
        "launcher = sys.argv.pop()\n"
        "for uid in 'large', 'small':\n"
        "    os.environ['SWEEP_POD_UID'] = uid\n"
        "    os.environ['SWEEP_RESULTS'] = os.environ['HERE'] + '/' + uid\n"
        "    if uid == 'small': hog = b'x' * 250 * 1024 * 1024; del hog\n"
        "    try: runpy.run_path(launcher, run_name='__main__')\n"
        "    except SystemExit: pass\n"
    )
    trial_folder.command = python(
        "import os\nx = b'x' * (300 if os.environ['SWEEP_POD_UID'] == 'large' else 1) * 1024 * 1024\n"
        + RESULT
    )
    trial_folder.write()

    arguments = [sys.executable, "-B", "-c", script, str(LAUNCHER)]
    subprocess.run(arguments, env=trial_folder.variables({}), cwd=trial_folder.code, check=True)

    peaks = {
        uid: json.loads((trial_folder.root / uid / f"{uid}.json").read_bytes())["details"]["peak_memory"]
        for uid in ("large", "small")
    }
    assert peaks["large"] > 300 * MEBIBYTE
    assert peaks["small"] < 100 * MEBIBYTE

"""`sweep new` and `sweep run` as a new user types them: two commands, and the mistakes on the way."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import sweepledger
from tests.command_line import git, run_sweep
from tests.repository import replace_in

SCRIPT = """import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
x = parser.parse_args().x
if x == 3:
    raise ValueError("x is three")
print(f"score={1 - (x - 2) ** 2}")
"""


@pytest.fixture(scope="module")
def pristine_lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pristine") / "lab"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    (folder / "train.py").write_text(SCRIPT)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "Start")
    return folder


@pytest.fixture
def lab(pristine_lab: Path, tmp_path: Path) -> Path:
    """A user's repository with a script at its root, and nothing of sweepledger."""
    return shutil.copytree(pristine_lab, tmp_path / "lab")


@pytest.fixture(scope="module")
def pristine_sweep(pristine_lab: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shutil.copytree(pristine_lab, tmp_path_factory.mktemp("sweep") / "lab")
    run_sweep("new", "score", "--command", "python train.py", "--param", "x=1,2", cwd=folder)
    return folder


@pytest.fixture
def lab_with_sweep(pristine_sweep: Path, tmp_path: Path) -> Path:
    """A user's repository with the spec of a sweep that has not run."""
    return shutil.copytree(pristine_sweep, tmp_path / "lab")


@pytest.fixture(scope="module")
def recorded_lab(pristine_sweep: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's repository with a recorded sweep, for tests that only read it."""
    folder = shutil.copytree(pristine_sweep, tmp_path_factory.mktemp("recorded") / "lab")
    run_sweep("run", "score", cwd=folder)
    return folder


def test_two_commands_lead_from_a_script_at_the_root_to_results(lab: Path) -> None:
    new = run_sweep("new", "score", "--command", "python train.py", "--param", "x=1,2", cwd=lab)
    run = run_sweep("run", "score", "--format", "json", cwd=lab)

    assert new.returncode == 0, new.stderr
    assert new.stdout.splitlines() == [
        "wrote sweeps/score.yaml, sweepledger.yaml, .gitattributes",
        "next: `sweep try score`, then `sweep run score`",
    ]
    assert run.returncode == 0, run.stderr
    data = json.loads(run.stdout)["data"]
    assert [trial["metrics"]["score"] for trial in data["sweeps"][0]["trials"]] == [1.0, 0.0]
    assert (data["branch"], data["failed"]) == ("main", 0)
    assert git(lab, "status", "--porcelain") == ""


def test_a_trial_without_memory_names_use_limit_and_key_wherever_it_is_shown(lab: Path) -> None:
    (lab / "train.py").write_text("held = bytearray(400 << 20)\nimport time\ntime.sleep(600)\n")
    git(lab, "commit", "-q", "-am", "Hold memory")
    run_sweep("new", "score", "--command", "python train.py", "--param", "x=2", cwd=lab)
    spec = lab / "sweeps/score.yaml"
    spec.write_text(re.sub("memory: [0-9]+[GM]i", "memory: 256Mi", spec.read_text()))

    run = run_sweep("run", "score", cwd=lab)

    said = re.compile(r"used [0-9]+Mi of memory, and the limit is [0-9]+Mi: raise run\.resources\.memory")
    (trial,) = sweepledger.open(lab).sweep("score").trials
    commands = ("logs score --failed", "results score", f"show {trial.id}", "why score", f"why {trial.id}")
    shown = {words: run_sweep(*words.split(), cwd=lab).stdout for words in commands}
    assert [words for words, text in shown.items() if not said.search(" ".join(text.split()))] == []
    assert "1 trial used more memory than run.resources.memory (256Mi)" in run.stdout


def test_a_failed_trial_shows_its_last_line_and_can_fail_the_command(lab: Path) -> None:
    run_sweep("new", "score", "--command", "python train.py", "--param", "x=2,3", cwd=lab)

    done = run_sweep("run", "score", "--fail-on-failed", cwd=lab)

    assert done.returncode == 5
    assert "ValueError: x is three" in done.stdout
    assert "score  x=2" not in done.stdout, "values follow the status"
    assert "x=2  score 1  best so far" in done.stdout
    assert "1 trial failed: `sweep logs score --failed` shows what they printed" in done.stdout
    logs = run_sweep("logs", "score", "--failed", cwd=lab).stdout
    assert logs.splitlines()[-1] == "ValueError: x is three"
    assert "1 trial: ValueError: x is three" in run_sweep("results", "score", cwd=lab).stdout
    assert "ValueError: x is three" in (lab / "results/score/README.md").read_text()
    (failed,) = [row for row in sweepledger.open(lab).sweep("score").trials if row.status == "failed"]
    assert failed.error == "ValueError: x is three"
    assert "ValueError: x is three" in run_sweep("show", failed.id, cwd=lab).stdout
    assert run_sweep("verify", cwd=lab).returncode == 0


def test_results_are_filtered_and_shown_by_column(lab: Path) -> None:
    run_sweep("new", "score", "--command", "python train.py", "--param", "x=1,2.25,3", cwd=lab)
    run_sweep("run", "score", cwd=lab)

    def shown(*options: str) -> list[list[str]]:
        done = run_sweep("results", "score", "--columns", "x,score,status", *options, cwd=lab)
        assert done.returncode == 0, done.stderr
        return [line.split() for line in done.stdout.splitlines()[1:]]

    assert shown("--where", "x<3") == [["2.25", "0.9375", "ok"], ["1", "0", "ok"]]
    assert shown("--where", "x<3", "--where", "score > 0.5", "--digits", "2") == [["2.2", "0.94", "ok"]]
    assert shown("--where", "status != 'ok'") == [["3", "failed"]]
    assert shown("--where", "x == 3.0", "--top", "1") == [["3", "failed"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--where", "y == 1"), "no column 'y'\n  hint: columns: x, score, trial"),
        (("--where", "status == ok"), "no column 'ok'\n  hint: columns: x, score, trial"),
        (
            ("--where", "x"),
            "--where must be true or false, got a number: 'x'\n  hint: compare it with something",
        ),
        (
            ("--where", "status < 1"),
            "--where < must compare two numbers or two texts, got a text and a number at character 1",
        ),
    ],
    ids=["column", "text without quotes", "no condition", "kind"],
)
def test_a_wrong_filter_is_explained(recorded_lab: Path, options: tuple[str, ...], message: str) -> None:
    done = run_sweep("results", "score", *options, cwd=recorded_lab)

    assert done.returncode == 2
    assert message in done.stderr


def test_a_dry_run_names_trials_and_uncommitted_code_and_changes_nothing(lab: Path) -> None:
    run_sweep("new", "score", "--command", "python train.py", "--param", "x=1,2", cwd=lab)
    before = git(lab, "status", "--porcelain", "--untracked-files=all")

    done = run_sweep("run", "score", "--dry-run", cwd=lab)

    assert done.returncode == 0, done.stderr
    assert "on branch main" in done.stdout
    assert "score: 2 trials, 0 known, 2 new" in done.stdout
    assert git(lab, "status", "--porcelain", "--untracked-files=all") == before


def spec(lab: Path, old: str, new: str) -> None:
    replace_in(lab / "sweeps/score.yaml", old, new)


def program(lab: Path, text: str) -> None:
    (lab / "train.py").write_text(text)
    git(lab, "commit", "-q", "-a", "-m", "Change the program")


def ignored_data(lab: Path) -> None:
    (lab / ".gitignore").write_text("data.csv\n")
    (lab / "data.csv").touch()
    git(lab, "add", ".gitignore")
    program(lab, "open('data.csv')\n")


def edited_overlay(lab: Path) -> None:
    git(lab, "add", ".")
    git(lab, "commit", "-q", "-m", "Ask")
    run_sweep("generate", "score", cwd=lab)
    (table,) = lab.glob("overlays/active/*/hyperparams.csv")
    replace_in(table, ",2\n", ",7\n")


def nothing(_: Path) -> None:
    """Leave the repository as it is."""


NEW = ("new", "other", "--command")
RUN = ("run", "score")
MISTAKES: dict[str, tuple[Callable[[Path], object], tuple[str, ...], int, str]] = {
    "a parameter without values": (
        nothing,
        (*NEW, "python train.py", "--param", "x"),
        2,
        "--param must be NAME=VALUE,VALUE … or NAME=LOW..HIGH, got 'x'",
    ),
    "a name that is taken": (
        nothing,
        ("new", "score", "--command", "python train.py"),
        2,
        "sweeps/score.yaml exists",
    ),
    "a script that moved": (
        lambda lab: git(lab, "mv", "train.py", "main.py") + git(lab, "commit", "-q", "-m", "Move"),
        RUN,
        1,
        "got 'train.py' [program-missing]",
    ),
    "uncommitted code": (
        lambda lab: (lab / "train.py").write_text(SCRIPT + "\n"),
        RUN,
        3,
        "the repository has uncommitted changes (train.py): a batch runs committed code only",
    ),
    "nobody": (
        lambda lab: git(lab, "config", "--unset", "user.email"),
        RUN,
        3,
        "git does not know who commits",
    ),
    "a detached head": (
        lambda lab: git(lab, "switch", "-q", "--detach"),
        RUN,
        3,
        "HEAD is detached: no branch is checked out",
    ),
    "a metric that is not printed": (
        lambda lab: program(lab, SCRIPT.replace("score=", "accuracy=")),
        RUN,
        5,
        "there is no line score=NUMBER on stdout; its numbers: accuracy",
    ),
    "an argument that the script lacks": (
        lambda lab: program(lab, SCRIPT.replace("--x", "--z")),
        RUN,
        5,
        "unrecognized arguments: --x=",
    ),
    "a module that is not installed": (
        lambda lab: program(lab, "import no_such_module\n"),
        RUN,
        5,
        "ModuleNotFoundError: No module named 'no_such_module'",
    ),
    "more CPUs than there are": (
        lambda lab: spec(lab, "cpu: 1", "cpu: 400"),
        RUN,
        1,
        "requests more than this machine has",
    ),
    "a colon after the metric": (
        lambda lab: program(lab, SCRIPT.replace("score=", "score: ")),
        RUN,
        5,
        "there is no line score=NUMBER on stdout: it printed 'score: 0.0', which metric.format: regex could find",
    ),
    "data that git does not have": (
        ignored_data,
        RUN,
        5,
        "data.csv: here, but not in the committed code that run.code selects, which trials run in a copy",
    ),
    "nothing is committed": (
        lambda lab: git(lab, "update-ref", "-d", "HEAD"),
        RUN,
        3,
        "nothing is committed yet, so no code can be locked",
    ),
    "a metric that is not a number": (
        lambda lab: program(lab, SCRIPT.replace("{1 - (x - 2) ** 2}", "nan")),
        RUN,
        5,
        "diverged (metric-not-finite)",
    ),
    "a python that does not exist": (
        lambda lab: spec(lab, "[python,", "[pyhton,"),
        RUN,
        5,
        "the command 'pyhton' cannot be started: No such file or directory",
    ),
    "an overlay edited by hand": (edited_overlay, RUN, 3, "was edited by hand; it is not overwritten:"),
    "a command that does not exist": (
        nothing,
        ("rum", "score"),
        2,
        "No such command 'rum'. Did you mean 'run'?",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_a_new_user_is_explained(lab_with_sweep: Path, mistake: str) -> None:
    lab = lab_with_sweep
    make, command, code, answer = MISTAKES[mistake]
    make(lab)

    done = run_sweep(*command, cwd=lab, GIT_CEILING_DIRECTORIES=os.fspath(lab.parent))

    assert answer in done.stdout + done.stderr
    assert done.returncode == code
    assert "Traceback (most recent call last)" not in done.stderr


def start_counting_lab(lab: Path, condition: str, *, limits: str = "") -> Path:
    """Add a sweep of eight trials that run singly, fail under a condition, and count their starts."""
    count = lab.parent / "starts"
    (lab / "train.py").write_text(
        SCRIPT.replace(
            "if x == 3:", f"with open({str(count)!r}, 'a') as file:\n    file.write('.')\nif {condition}:"
        )
    )
    git(lab, "commit", "-qam", "Count")
    run_sweep("new", "score", "--command", "python train.py", "--param", "x=1,2,3,4,5,6,7,8", cwd=lab)
    with (lab / "sweepledger.yaml").open("a") as settings:
        settings.write(limits)
    return count


def test_a_batch_pauses_after_three_failures_and_continues_when_it_is_run_again(lab: Path) -> None:
    count = start_counting_lab(lab, "x < 7")

    first = run_sweep("run", "score", "-j", "1", cwd=lab)

    assert first.returncode == 5
    assert count.read_text() == "." * 3
    assert (
        "is paused: 3 trial(s) failed and none is ok, all with: ValueError: x is three; 5 wait"
        in first.stderr
    )
    assert "sweep retry" not in first.stdout
    second = run_sweep("run", "score", "-j", "1", cwd=lab)
    assert second.returncode == 5
    assert count.read_text() == "." * 6
    assert "3 trial(s) failed" in second.stderr
    assert "2 wait" in second.stderr
    third = run_sweep("run", "score", "-j", "1", cwd=lab)
    assert third.returncode == 0, third.stderr
    assert count.read_text() == "." * 8


@pytest.mark.parametrize(
    ("condition", "limits"), [("x > 0", "limits: {failures: 0}\n"), ("x != 3", "")], ids=["off", "one is ok"]
)
def test_a_batch_that_does_not_only_fail_goes_on(lab: Path, condition: str, limits: str) -> None:
    count = start_counting_lab(lab, condition, limits=limits)

    run = run_sweep("run", "score", "-j", "1", cwd=lab)

    assert count.read_text() == "." * 8
    assert "paused" not in run.stdout + run.stderr


@pytest.mark.parametrize(
    ("end", "condition", "code"),
    [("raise SystemExit(42)", "x > 0", 5), ("print('score=nan'); raise SystemExit(0)", "x != 3", 0)],
    ids=["all", "one is ok"],
)
def test_bad_hyperparameters_do_not_pause_a_batch(lab: Path, end: str, condition: str, code: int) -> None:
    count = start_counting_lab(lab, condition)
    replace_in(lab / "train.py", "raise ValueError", f"{end}  #")
    git(lab, "commit", "-qam", "End badly")

    run = run_sweep("run", "score", "-j", "1", cwd=lab)

    assert count.read_text() == "." * 8
    assert "paused" not in run.stdout + run.stderr
    assert run.returncode == code


def test_an_ok_trial_of_older_code_does_not_hide_that_all_of_the_new_one_fail(lab: Path) -> None:
    run_sweep("new", "score", "--command", "python train.py", "--param", "x=1,2", cwd=lab)
    first = run_sweep("run", "score", cwd=lab)
    (lab / "train.py").write_text((lab / "train.py").read_text().replace("x == 3", "x < 3"))

    second = run_sweep("run", "score", "--commit-code", "--update", cwd=lab)

    assert (first.returncode, second.returncode) == (0, 5), second.stderr
    assert "paused" not in second.stderr


def test_the_advice_of_a_paused_batch_runs_all_trials_with_the_fixed_code(lab: Path) -> None:
    start_counting_lab(lab, "x > 0")
    paused = run_sweep("run", "score", "-j", "1", cwd=lab)
    cancel = re.search(r"`sweep (cancel score --batch \S+)`", paused.stderr)
    assert cancel is not None, paused.stderr
    replace_in(lab / "train.py", "x > 0", "x < 0")

    cancelled = run_sweep(*cancel[1].split(), cwd=lab)
    run = run_sweep("run", "score", "--commit-code", "--update", "--format", "json", cwd=lab)

    assert cancelled.returncode == 0, cancelled.stderr
    assert run.returncode == 0, run.stderr
    assert "paused" not in run.stderr
    assert run.stderr.count(" ok ") == 8

"""A hostile pull request of each row: a verdict, no network, no child left, nothing of it executed.

Counters, not clocks; `python benchmarks/pull_requests.py` measures CPU and memory of every single input.
"""

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import present
from tests.repository import Sandbox
from tests.tiers import parameters
from tests.workflows.hostile_changes import (
    CHANGES,
    MARK,
    brought,
    first_of_each_row,
    plant,
    speak_at_length,
    specs,
)
from tests.workflows.runner import OURS, ROOT, TEAMS, Host, leave_behind

EVERY_SPEC = pytest.mark.full_suite("every hostile spec")
PROGRAMS = {"program git", "program ssh-keygen", "program kustomize", "program kubectl"}
MEBIBYTES = 256
SPECS = dict(first_of_each_row())
MOST_DANGEROUS = ("S16", "S17", "S20", "S22", "N1", "N8", "N9")
"""Rows of specs that might run something, name another file, or take memory."""
LIKE_OTHERS = (
    *("G2 socket", "G2 sparse", "G2 hard link", "G7 staged", "G7 detached", "G7 shallow", "G7 rebasing"),
    *("G15 set back", "W2 base", "W2 results"),
)
"""Rows that differ little from one that the default tier tries."""
ROWS = [
    *parameters(CHANGES, CHANGES.keys() - set(LIKE_OTHERS), "more attacks"),
    *(
        pytest.param(name, marks=() if name.partition("-")[0] in MOST_DANGEROUS else EVERY_SPEC)
        for name in SPECS
    ),
]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    made = Sandbox.create(tmp_path_factory.mktemp("pull requests"))
    made.merged("first", xs="1, 2")
    return made


@pytest.fixture(scope="module")
def checker(sandbox: Sandbox) -> Iterator["Checker"]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.workflows.counting", str(sandbox.root)],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "MARK": str(sandbox.root.parent / MARK), "HOME": "/nonexistent"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Checker(process, sandbox)
        present(process.stdin).close()


class Checker:
    def __init__(self, process: "subprocess.Popen[str]", sandbox: Sandbox) -> None:
        self._process, self._sandbox = process, sandbox

    def verdict(self) -> dict[str, Any]:
        report = self._sandbox.root.parent / "report"
        stdin, stdout = self._process.stdin, self._process.stdout
        present(stdin).write(
            json.dumps(["--base", "main", "--format", "github", "--report", str(report)]) + "\n"
        )
        present(stdin).flush()
        document: dict[str, Any] = json.loads(present(stdout).readline())
        return document


@pytest.mark.sampled(8)
@pytest.mark.parametrize("row", ROWS)
def test_it_gets_only_a_verdict(row: str, sandbox: Sandbox, checker: Checker, needs_kustomize: None) -> None:
    brought(sandbox, SPECS[row] if row in SPECS else CHANGES[row])

    document = checker.verdict()

    assert document["code"] in {0, 1, 3, 5}, document["said"]
    assert "Traceback" not in document["said"]
    assert set(document["counts"]) <= PROGRAMS, document["counts"]
    assert document["left"] == 0
    assert document["mebibytes"] <= MEBIBYTES
    assert not (sandbox.root.parent / MARK).exists()
    commands = [line for line in document["said"].splitlines() if line.lstrip().startswith("::")]
    assert all(re.match(r"::(?:error|warning) (?:file=|title=)", line) for line in commands)


def test_every_row_of_specs_is_tried() -> None:
    assert {name.partition("-")[0] for name in SPECS} == {name.partition("-")[0] for name, _ in specs()}


@pytest.fixture(scope="module")
def planted(
    tmp_path_factory: pytest.TempPathFactory, installed_machine: Path, needs_kustomize: None
) -> tuple[Any, Path]:
    """One pull request with all that might run, looked at by the steps of the workflow themselves."""
    folder = tmp_path_factory.mktemp("planted")
    made = Sandbox.create(folder)
    lock = (ROOT / "locks/sweep.lock").read_text()
    made.publish("Name the version", {".github/sweep.lock": lock})
    base = made.git("rev-parse", "HEAD").strip()
    plant(made)
    made.commit("Plant")
    speak_at_length(made)
    merge = made.commit("Propose $(touch x)\n\n::error::forged", {".github/sweep.lock": "evil==1\n"})
    made.git("push", "-q", "origin", f"{merge}:refs/pull/1/merge")
    mark = folder / MARK
    host = Host(made.remote, folder / "host", (installed_machine,))
    github = {
        "sha": merge,
        "ref": "refs/pull/1/merge",
        "head_ref": f"$(touch {mark})",
        "actor": "mallory\n::error::x",
        "event": {
            "pull_request": {
                "base": {"sha": base},
                "title": f"`touch {mark}` ::set-output name=x::y \u202e<img src=x onerror=x>" + "x" * 10_000,
                "head": {"ref": "--upload-pack=touch", "sha": merge},
            }
        },
    }
    ran = host.run(TEAMS / "check.yaml", github, secrets={"GENERATE_TOKEN": "canary-77aa"})
    return ran, mark


def test_w3_nothing_that_lies_in_the_change_is_run_by_the_workflows_steps(planted: tuple[Any, Path]) -> None:
    ran, mark = planted

    assert ran.steps["Say what is wrong, on its lines"] == 0, ran.output
    assert not mark.exists()
    assert not list(ran.folder.rglob(MARK))


def test_w2_what_installs_the_checker_is_mains(planted: tuple[Any, Path]) -> None:
    ran, _ = planted

    assert ran.steps["Install the generator of main"] == 0
    assert "evil" not in ran.output


def test_g12_title_branch_and_author_reach_no_command_and_no_summary(planted: tuple[Any, Path]) -> None:
    ran, mark = planted

    assert not mark.exists()
    assert ran.commands == ()
    for forged in ("set-output", "onerror=x>", "upload-pack", "mallory", "forged"):
        assert forged not in ran.summary + ran.output


def test_w7_a_summary_is_bounded_and_its_words_stay_words(planted: tuple[Any, Path]) -> None:
    ran, _ = planted

    assert len(ran.summary.encode()) <= 2 * 64 * 1024, "two steps, each with a summary of its own"
    assert "## vast: 3 trials" in ran.summary
    outside = re.sub(r"`[^`\n]*`", "", ran.summary.replace("\\`", ""))
    assert not re.search(r"(?<!\\)<(?!/?code>)|(?<!\\)@|(?<!\\)\]\(", outside)


def test_a_secret_of_the_host_is_in_nothing_that_a_check_leaves(planted: tuple[Any, Path]) -> None:
    ran, _ = planted
    left = b"".join(path.read_bytes() for path in ran.artifact("check").rglob("*") if path.is_file())

    assert "canary-77aa" not in ran.output + ran.summary
    assert b"canary-77aa" not in left


@pytest.mark.parametrize(
    ("lock", "is_installed"),
    [
        pytest.param(f"typo==1 --hash=sha256:{'0' * 64}\n", False, id="another's hash"),
        pytest.param("", True, id="its own hash"),
        pytest.param("typo==1\n", False, id="no hash", marks=pytest.mark.full_suite("more attacks")),
    ],
)
def test_w4_no_other_hash(tmp_path: Path, installed_machine: Path, lock: str, *, is_installed: bool) -> None:
    wheel = tmp_path / "wheels/typo-1-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("typo-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: typo\nVersion: 1\n")
        archive.writestr(
            "typo-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("typo-1.dist-info/RECORD", "")
    lock = lock or f"typo==1 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    (tmp_path / "trusted/.github").mkdir(parents=True)
    (tmp_path / "trusted/.github/sweep.lock").write_text(lock)
    result = re.search(r"run: (python3 -I -m pip .*)", (TEAMS / "check.yaml").read_text())

    done = subprocess.run(
        ["bash", "-c", present(result)[1]],
        cwd=tmp_path,
        env={
            "PATH": f"{installed_machine}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(wheel.parent),
            "PIP_DRY_RUN": "1",
        },
        capture_output=True,
        check=False,
    )

    assert (done.returncode == 0) is is_installed, done.stderr


def test_w5_pins_are_held_against_their_repositories_where_there_is_a_network() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\naudit:")[2].partition("\n\n")[0]

    assert "run: make audit" in (OURS / "scheduled.yaml").read_text()
    assert "zizmor" in recipe
    assert "--offline" not in recipe


def test_w6_no_workflow_reads_what_another_has_left() -> None:
    readers = [
        path
        for folder in (OURS, TEAMS)
        for path in folder.iterdir()
        if "download-artifact" in path.read_text()
    ]

    assert [path.name for path in readers] == ["release.yaml"], "there by the run that made it"
    assert "workflow_run" not in "".join(path.read_text() for path in (*OURS.iterdir(), *TEAMS.iterdir()))


def test_only_administrators_make_a_release_tag_and_nobody_moves_one() -> None:
    made, kept = (
        json.loads((ROOT / ".github/rulesets" / name).read_text())
        for name in ("releases.json", "release-tags.json")
    )

    for rules in (made, kept):
        assert (rules["target"], rules["enforcement"]) == ("tag", "active")
        assert rules["conditions"]["ref_name"] == {"include": ["refs/tags/v*"], "exclude": []}
    administrators = {"actor_id": 5, "actor_type": "RepositoryRole", "bypass_mode": "always"}
    assert (made["bypass_actors"], made["rules"]) == ([administrators], [{"type": "creation"}])
    assert kept["bypass_actors"] == []
    assert {rule["type"] for rule in kept["rules"]} == {"update", "deletion", "non_fast_forward"}
    assert "    tags: ['v*']\n" in (OURS / "release.yaml").read_text()


def test_w2_owners_approve_what_judges_others() -> None:
    owners = (ROOT / ".github/CODEOWNERS").read_text()
    rules = (ROOT / ".github/rulesets/main.json").read_text()

    for place in ("/.github/", "/base/", "/generator/", "/locks/", "/sweepledger.yaml"):
        assert f"\n{place} " in owners
    assert '"require_code_owner_review": true' in rules
    shipped = ROOT / "generator/sweepledger/workflows/.github/rulesets"
    assert rules == (shipped / "main.json").read_text()
    # For plans without a merge queue: instead of it, a change is checked on top of main.
    queued, plain = json.loads(rules), json.loads((shipped / "main-without-queue.json").read_text())
    queued["rules"] = [rule for rule in queued["rules"] if rule["type"] != "merge_queue"]
    (checks,) = (rule["parameters"] for rule in queued["rules"] if rule["type"] == "required_status_checks")
    checks["strict_required_status_checks_policy"] = True
    assert plain == queued


def test_installing_the_generator_runs_nothing_that_a_change_left(
    installed_machine: Path, tmp_path: Path
) -> None:
    leave_behind(tmp_path)
    (tmp_path / "trusted/.github").mkdir(parents=True)
    (tmp_path / "trusted/.github/sweep.lock").touch()
    evil = tmp_path / "evil"
    # What every workflow of a team runs to install it.
    (run,) = {
        line
        for name in ("check", "generate", "next", "results", "site", "preview")
        for line in re.findall(r"run: (python3 .* --requirement .*)", (TEAMS / f"{name}.yaml").read_text())
    }

    done = subprocess.run(
        ["bash", "-c", run],
        cwd=tmp_path,
        env={"PATH": f"{installed_machine}:/usr/bin:/bin", "HOME": str(tmp_path / "home"), "EVIL": str(evil)},
        capture_output=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert not evil.exists()
    assert not list(tmp_path.rglob("evil.log"))

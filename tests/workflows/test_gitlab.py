"""What `sweep cluster init --host gitlab` writes: its scripts, run from their YAML. No GitLab has run them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from sweepledger import __version__
from sweepledger.operations.scaffold import init as scaffold
from sweepledger.operations.scaffold.init import init
from sweepledger.verbs.cluster.upgrade import upgrade_files
from tests.command_line import captured, install_sweep
from tests.repository import Sandbox, replace_in
from tests.workflows.runner import leave_behind

PACKAGED = Path(scaffold.__file__).parents[2] / "workflows"
FAKE_PYTHON = """#!/bin/sh
# `-I -m venv FOLDER` makes an environment whose pip installs nothing, and whose sweep is the one under test.
mkdir -p "$4/bin" && cp {here}/sweep "$4/bin/sweep" && printf '#!/bin/sh\\nexit 0\\n' > "$4/bin/python"
chmod +x "$4/bin/python"
"""


def job(name: str) -> dict[str, Any]:
    (made,) = yaml.safe_load((PACKAGED / f".gitlab/ci/{name}.yml").read_text()).values()
    assert isinstance(made, dict)
    return made


def run_job(
    name: str, clone: Path, remote: Path, tools: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    if not (tools / "python3").exists():
        install_sweep(tools)
        (tools / "python3").write_text(FAKE_PYTHON.format(here=tools))
        (tools / "python3").chmod(0o755)
    commit, before = (
        captured(["git", "rev-parse", revision], cwd=clone, check=True).stdout.strip()
        for revision in ("HEAD", "HEAD^")
    )
    return captured(
        ["bash", "-eo", "pipefail", "-c", "\n".join(job(name)["script"])],
        cwd=clone,
        env={
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "GIT_CONFIG_GLOBAL": str(tools / "gitconfig"),
            "CI_PROJECT_DIR": str(clone),
            "CI_PROJECT_URL": str(remote).removesuffix(".git"),
            "CI_COMMIT_SHA": commit,
            "CI_COMMIT_BEFORE_SHA": before,
            "CI_DEFAULT_BRANCH": "main",
            "CI_PROJECT_ID": "7",
            "CI_MERGE_REQUEST_PROJECT_ID": "7",
            "CI_MERGE_REQUEST_PROJECT_PATH": "lab/sweeps",
            "CI_JOB_TOKEN": "of-the-job",
            "GENERATE_TOKEN": "of-a-test",
            **variables,
        },
    )


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    folder = tmp_path / "tools"
    folder.mkdir()
    return folder


@pytest.fixture
def team(sandbox: Sandbox) -> Sandbox:
    sandbox.write(".gitlab/sweep.lock", "")
    sandbox.publish("Check on GitLab", {"sweepledger.yaml": "version: 1\ngenerate: on-merge\n"})
    return sandbox


def remote_of(team: Sandbox) -> Path:
    """Return the server's repository under a name that ends in `.git`, as GitLab's addresses do."""
    url = Path(team.git("remote", "get-url", "origin").strip())
    link = url.with_name("project.git")
    if not link.exists():
        link.symlink_to(url)
    return link


def requested(team: Sandbox, tmp_path: Path) -> Path:
    """Return a clone of a merge request's branch, behind the current main, as the runner has it."""
    team.git("checkout", "-q", "-b", "request")
    team.commit("Ask")
    team.git("push", "-q", "origin", "request")
    team.git("checkout", "-q", "main")
    team.publish("Write notes meanwhile", {"code/notes.txt": "meanwhile\n"})
    clone = tmp_path / "builds/project"
    subprocess.run(["git", "clone", "-q", "--branch=request", remote_of(team), clone], check=True)
    return clone


@pytest.mark.usefixtures("needs_kustomize")
def test_a_good_change_passes_whatever_it_forges_and_an_earlier_job_left(
    team: Sandbox, tools: Path, tmp_path: Path
) -> None:
    team.spec("peak")
    team.write("report/summary.md", "FORGED\n")
    team.write("public/index.html", "FORGED\n")
    clone = requested(team, tmp_path)
    clone.with_name("project.report").mkdir()
    planted = clone.with_name("project.sweep") / "lib/planted.pth"
    planted.parent.mkdir(parents=True)
    planted.write_text("import planted\n")

    done = run_job("check", clone, remote_of(team), tools)
    assert not planted.exists()
    built = run_job("site", clone, remote_of(team), tools)

    assert done.returncode == built.returncode == 0, done.stdout + done.stderr + built.stderr
    entries = json.loads((clone / "report/code-quality.json").read_text())
    assert {entry["severity"] for entry in entries} <= {"minor"}
    assert "peak" in (clone / "report/summary.md").read_text().partition("\n")[2]
    assert "FORGED" not in (clone / "public/index.html").read_text()
    assert not list(clone.glob("*/project.*"))


@pytest.mark.usefixtures("needs_kustomize")
def test_a_wrong_spec_fails_on_its_line(team: Sandbox, tools: Path, tmp_path: Path) -> None:
    replace_in(team.spec("peak"), "[1, 2, 3]", "[1, 2, 2]")
    clone = requested(team, tmp_path)

    done = run_job("check", clone, remote_of(team), tools)

    assert done.returncode == 1
    (entry,) = json.loads((clone / "report/code-quality.json").read_text())
    assert entry["location"] == {"path": "sweeps/peak.yaml", "lines": {"begin": 6}}


def test_a_fork_checks_nothing_itself(team: Sandbox, tools: Path, tmp_path: Path) -> None:
    team.spec("peak")
    clone = requested(team, tmp_path)

    done = run_job("check", clone, remote_of(team), tools, CI_PROJECT_ID="8")

    assert done.returncode == 1
    assert "Let a member of lab/sweeps run one there" in done.stderr
    assert not (clone / "report").exists()


def test_a_merged_spec_gets_its_batch_by_the_token(team: Sandbox, tools: Path, tmp_path: Path) -> None:
    team.spec("peak")
    team.publish("Ask")

    done = run_job("generate", team.root, remote_of(team), tools)

    assert done.returncode == 0, done.stdout + done.stderr
    team.git("fetch", "-q", "origin")
    assert team.git("log", "-1", "--format=%s", "origin/main").strip() == "generate(peak): 3 trials"
    assert "of-a-test" not in done.stdout + done.stderr
    assert not (tools / "gitconfig").exists()


REAL_PYTHON = """#!/bin/sh
{python} "$@" || exit
case "$*" in *venv*) cp {here}/sweep "$4/bin/sweep" ;; esac
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["generate", "next", "check", "results", "site"])
def test_no_job_runs_what_a_change_left_on_the_runner(
    name: str, team: Sandbox, tools: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "builds/project"
    subprocess.run(["git", "clone", "-q", remote_of(team), clone], check=True)
    leave_behind(clone)
    (tools / "sweep").write_text(
        '#!/bin/sh\nenv > "$SEEN"\n[ -z "$GIT_ASKPASS" ] || "$GIT_ASKPASS" Password: >> "$SEEN"\n'
    )
    (tools / "sweep").chmod(0o755)
    (tools / "python3").write_text(REAL_PYTHON.format(python=sys.executable, here=tools))
    (tools / "python3").chmod(0o755)
    evil, seen = tmp_path / "evil", tmp_path / "seen"

    done = run_job(name, clone, remote_of(team), tools, EVIL=str(evil), SEEN=str(seen))

    assert seen.is_file(), done.stdout + done.stderr
    assert not evil.exists(), evil.read_text()
    assert not list(tmp_path.rglob("evil.log"))
    assert "GENERATE_TOKEN" not in seen.read_text()
    assert ("of-a-test" in seen.read_text().splitlines()) is (name in {"generate", "next"})


def test_results_are_verified_whether_or_not_a_commit_came_before(team: Sandbox, tools: Path) -> None:
    since = run_job("results", team.root, remote_of(team), tools)
    first = run_job("results", team.root, remote_of(team), tools, CI_COMMIT_BEFORE_SHA="0" * 40)

    assert since.returncode == first.returncode == 0, since.stderr + first.stderr


def test_a_new_repository_has_the_files_of_gitlab_alone(tmp_path: Path) -> None:
    made = set(init(tmp_path / "lab", host="gitlab").files)
    chosen = set(
        init(tmp_path / "all", host="gitlab", generate="on-merge", next_="workflow", pages=True).files
    )

    assert not [path for path in made if path.startswith(".github")]
    assert {".gitlab-ci.yml", ".gitlab/CODEOWNERS", ".gitlab/ci/check.yml", ".gitlab/ci/results.yml"} <= made
    assert chosen - made == {f".gitlab/ci/{name}.yml" for name in ("generate", "next", "site")}
    assert (tmp_path / "lab/.gitlab/sweep.in").read_text() == f"sweepledger[sampling]=={__version__}\n"
    readme = (tmp_path / "lab/README.md").read_text()
    assert "## Merge requests" in readme
    assert ".github" not in readme


def test_every_job_runs_on_its_own_occasion_only() -> None:
    conditions = {
        name: job(name)["rules"][0]["if"] for name in ("check", "generate", "next", "results", "site")
    }

    assert conditions.pop("check") == '$CI_PIPELINE_SOURCE == "merge_request_event"'
    assert set(conditions.values()) == {"$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"}


def test_an_upgrade_pins_the_version_where_gitlab_reads_it(team: Sandbox) -> None:
    team.commit("Pin an old version", {".gitlab/sweep.in": "sweepledger[sampling]==0.0.1\n"})

    done = upgrade_files(team.workspace)

    assert ".gitlab/sweep.in" in done.written
    assert (team.root / ".gitlab/sweep.in").read_text() == f"sweepledger[sampling]=={__version__}\n"
    assert any("--output-file .gitlab/sweep.lock" in step for step in done.steps)

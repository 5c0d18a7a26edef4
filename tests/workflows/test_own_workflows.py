"""This repository's own workflows on a fresh clone of it: what they install is installed from the index.

`check.yaml` on a real pull request, the whole of `make test` and the images are in the long form:
`python benchmarks/workflows.py`.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from benchmarks import workflows as long_form
from sweepledger import __version__
from tests.command_line import captured
from tests.workflows.runner import OURS, ROOT, Host

RUN_HERE = {
    ("preview", "build"),
    ("release", "build"),
    ("release", "publish"),
    ("scheduled", "audit"),
    ("site", "build"),
    ("site", "deploy"),
    ("test", "workflows"),
}
NEEDS_A_MAC = {("test", "macos")}
"""No run of it has been seen: docs/guarantees.md says so."""
RUN_AS_A_TEAMS = {("generate", "generate"), ("results", "verify")}
"""They differ from a team's in how the generator is installed alone: `test_rules.py` says so."""
AUDIT = "Ask about actions and libraries"
installs = pytest.mark.full_suite("a real package index")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    folder = tmp_path_factory.mktemp("own workflows")
    reached = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), "editables"],
        capture_output=True,
        check=False,
    )
    if reached.returncode:
        pytest.skip("skipped: no package index can be reached")
    remote = long_form.published(folder / "remote.git")
    return Host(remote, folder / "host", (Path(sys.executable).parent,), environment=long_form.settings())


def head() -> dict[str, object]:
    argv = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    return {"sha": captured(argv, check=True).stdout.strip()}


def test_every_job_of_ours_is_run_somewhere() -> None:
    jobs = {
        (path.stem, job)
        for path in OURS.iterdir()
        for job in yaml.load(path.read_text(), Loader=yaml.BaseLoader)["jobs"]  # noqa: S506 - it makes text of all
    }

    assert jobs == RUN_HERE | RUN_AS_A_TEAMS | NEEDS_A_MAC | set(long_form.JOBS)


@installs
def test_a_tag_becomes_packages_that_are_checked_listed_and_published(host: Host, tmp_path: Path) -> None:
    built = host.run(OURS / "release.yaml", head(), job="build")
    published = host.run(OURS / "release.yaml", head(), job="publish", after=built)

    assert built.is_green, built.output
    assert published.is_green
    wheel = f"sweepledger-{__version__}-py3-none-any.whl"
    assert sorted(path.name for path in built.artifact("packages").iterdir()) == [
        wheel,
        f"sweepledger-{__version__}.tar.gz",
    ]
    assert '"name": "ruamel-yaml"' in (built.artifact("sbom") / "collector.json").read_text()
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-index"]
    argv += ["--find-links", str(host.folder / "index"), "--dest", str(tmp_path), "sweepledger"]
    subprocess.run(argv, check=True, env={**os.environ, "PIP_FIND_LINKS": ""})
    assert [path.name for path in tmp_path.iterdir()] == [wheel]


@installs
def test_the_workflows_are_held_against_the_rules(host: Host) -> None:
    ran = host.run(OURS / "test.yaml", head(), job="workflows")

    assert ran.is_green, ran.output
    assert "the workflows ask for what they may, and for nothing else" in ran.output


@installs
def test_a_merge_publishes_the_documentation_and_the_experiments(host: Host) -> None:
    built = host.run(OURS / "site.yaml", head(), job="build")
    published = host.run(OURS / "site.yaml", head(), job="deploy", after=built)

    assert built.is_green, built.output
    assert published.is_green
    pages = host.folder / "pages"
    assert "sweepledger" in (pages / "index.html").read_text()
    assert (pages / "how-to/run-on-a-laptop.html").is_file()
    assert (pages / "searchindex.js").is_file()
    assert (pages / "experiments/index.html").is_file()
    assert not list(pages.rglob("*.md")), "sources are in the repository"


@installs
def test_a_pull_request_has_the_same_pages_for_download(host: Host) -> None:
    ran = host.run(OURS / "preview.yaml", {**head(), "ref": "refs/pull/1/merge"})

    assert ran.is_green, ran.output
    assert (ran.artifact("site") / "index.html").is_file()
    assert (ran.artifact("site") / "experiments/index.html").is_file()


@pytest.fixture
def without_network(host: Host) -> Host:
    """Let zizmor look at what lies here alone, as the token is none."""
    environment: Mapping[str, str] = {**host.environment, "ZIZMOR_OFFLINE": "true"}
    return Host(host.remote, host.folder, host.tools, environment=environment)


@installs
def test_the_audit_says_what_it_found_or_why_it_could_not_look(without_network: Host) -> None:
    ran = without_network.run(OURS / "scheduled.yaml", {**head(), "token": "canary-29cc"})

    assert set(ran.steps) == {"Fetch the branch", "Provide Python", AUDIT}
    assert "No findings to report" in ran.output
    verdicts = ("No known vulnerabilities found", "known vulnerabilit", "could not be audited", "connect")
    assert any(words in ran.output for words in verdicts), ran.output
    assert ran.is_green == (ran.output.count("No known vulnerabilities found") == 3)
    assert "canary-29cc" not in ran.output


@installs
def test_an_audit_that_may_not_ask_is_no_audit(without_network: Host) -> None:
    ran = without_network.run(OURS / "scheduled.yaml", {**head(), "token": ""})

    assert ran.steps[AUDIT] != 0
    assert "make audit needs GH_TOKEN" in ran.output
    assert "No findings" not in ran.output

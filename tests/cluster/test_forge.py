"""The rule of `bootstrap` on a git server, as real git clients meet it over http."""

from pathlib import Path

import pytest

from sweepledger.operations.scaffold.bootstrap import BootstrapRequest, bootstrap
from sweepledger.structs.settings import Controller
from tests.cluster.forge import Forge
from tests.cluster.forge_clones import COLLECTOR, DEV, REPOSITORY, Clone, head
from tests.operations.test_check_hostile import resign
from tests.operations.test_pushed_rounds import NOT_ACCEPTED, followed
from tests.repository import Sandbox, followed_by


@pytest.fixture
def guarded(forge: Forge, sandbox: Sandbox) -> Clone:
    """A repository with a merged batch, on a server with the rule in force; the collector speaks."""
    sandbox.merged()
    sandbox.write("sweepledger.yaml", followed_by("argocd"))
    bootstrap(
        sandbox.workspace, BootstrapRequest(Controller.ARGOCD, url=forge.url(REPOSITORY), branch="main")
    )
    sandbox.commit("Bootstrap")
    sandbox.git("remote", "set-url", "origin", forge.url(REPOSITORY, user=DEV))
    sandbox.push()
    forge.install_rule(REPOSITORY, (sandbox.root / "clusters/pre-receive.sh").read_text())
    made = Clone(forge, sandbox.root)
    made.speak_as(COLLECTOR)
    return made


def test_the_rule_of_bootstrap_lets_the_collector_push_results(forge: Forge, guarded: Clone) -> None:
    made = guarded.commit("results/peak/summary.csv", "trial\n")

    assert guarded.push() == ""
    assert head(forge) == made


def test_only_the_rule_keeps_the_collector_from_the_base(forge: Forge, guarded: Clone) -> None:
    before = head(forge)
    made = guarded.commit("base/trial/v1/job.yaml", "stolen\n")

    assert "the collector may push nothing but results" in guarded.push()
    assert head(forge) == before

    forge.remove_rule(REPOSITORY)
    assert guarded.push() == ""
    assert head(forge) == made


def test_the_rule_keeps_the_collector_from_a_commit_held_elsewhere(forge: Forge, guarded: Clone) -> None:
    before = head(forge)
    guarded.speak_as(DEV)
    made = guarded.commit("code/train.py", "print('score=99')\n")
    assert guarded.push("HEAD:refs/heads/innocent") == "", "as whoever may propose a change"
    guarded.speak_as(COLLECTOR)

    assert "the collector may push nothing but results" in guarded.push()
    assert head(forge) == before

    forge.remove_rule(REPOSITORY)
    assert guarded.push() == ""
    assert head(forge) == made


@pytest.fixture
def searching(forge: Forge, tmp_path: Path) -> Clone:
    """A search whose next round the collector is about to push."""
    made = followed(tmp_path / "search", size=3)
    made.git("remote", "set-url", "origin", forge.url(REPOSITORY, user=DEV))
    made.git("push", "-q", "origin", "origin/main:refs/heads/main")
    forge.install_rule(REPOSITORY, (made.root / "clusters/pre-receive.sh").read_text())
    clone = Clone(forge, made.root)
    clone.speak_as(COLLECTOR)
    return clone


def test_the_rule_lets_the_collector_push_the_round_that_follows(forge: Forge, searching: Clone) -> None:
    assert searching.push() == ""
    assert head(forge) == searching.git("rev-parse", "HEAD").stdout.strip()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("launch.json", '"code/train.py"', '"code/evil.py"'),
        ("kustomization.yaml", "resources:\n", "resources:\n- https://evil.example/x\n"),
        ("job.yaml", "subPath", "subpath"),
        ("job.yaml", 'cpu: "1"', 'cpu: "64"'),
    ],
    ids=["another command", "a remote resource", "another folder of results", "another amount"],
)
def test_a_forged_round_is_refused(forge: Forge, searching: Clone, file: str, old: str, new: str) -> None:
    before = head(forge)
    (folder,) = (path for path in (searching.root / "overlays/active").iterdir() if path.is_dir())
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    resign(folder)
    searching.git("commit", "-q", "--all", "--amend", "--no-edit")

    assert NOT_ACCEPTED in searching.push()
    assert head(forge) == before

    forge.remove_rule(REPOSITORY)
    assert searching.push() == ""

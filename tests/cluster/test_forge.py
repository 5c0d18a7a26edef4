"""The git server of the tests, asked by real git clients: who gets what, and the rule that is in force."""

import base64
import os
from http.client import HTTPConnection
from pathlib import Path

import pytest

from sweepledger.commands.scaffold.bootstrap import BootstrapRequest, bootstrap
from sweepledger.structs.settings import Controller
from tests.cluster.forge import Forge
from tests.cluster.forge_clones import COLLECTOR, DEV, PASSWORD, READER, REPOSITORY, Clone, head
from tests.cluster.forge_faults import Fault, Racing
from tests.commands.test_check_hostile import resign
from tests.commands.test_pushed_rounds import followed
from tests.repository import Sandbox, followed_by

# --- who may what -------------------------------------------------------------------------------------------


def test_what_one_pushes_another_clones_and_fetches(forge: Forge, clone: Clone, tmp_path: Path) -> None:
    other = Clone.of(forge, tmp_path / "other", READER)
    made = clone.commit("sweeps/two.yaml", "two\n")

    assert clone.push() == ""
    other.git("pull", "-q")

    assert other.git("rev-parse", "HEAD").stdout.strip() == made == head(forge)
    assert forge.updates(DEV)[-1] == made
    assert forge.git(REPOSITORY, "fsck") == ""


def test_a_commit_is_fetched_by_its_name_alone_and_without_its_history(forge: Forge, clone: Clone) -> None:
    made = clone.commit("a", "a\n")
    clone.commit("b", "b\n")
    clone.push()
    clone.git("init", "-q", "other")

    url = forge.url(REPOSITORY, user=READER)
    for version in ("0", "2"):
        clone.git("-C", "other", "-c", f"protocol.version={version}", "fetch", "-q", "--depth=1", url, made)

    assert clone.git("-C", "other", "rev-list", "FETCH_HEAD").stdout.split() == [made]


def test_a_push_that_git_sends_in_chunks_arrives_whole(forge: Forge, clone: Clone) -> None:
    (clone.root / "noise").write_bytes(os.urandom(3 * 1024 * 1024))
    made = clone.commit("a", "a\n")
    forge.faults(Fault(Racing(), times=1))

    assert "remote rejected" in clone.push()
    clone.catch_up()
    assert clone.push() == ""

    assert (
        forge.git(REPOSITORY, "rev-parse", "main:noise")
        == clone.git("rev-parse", f"{made}:noise").stdout.strip()
    )
    assert forge.fault_counts()["racing"] == 1, "what git sends as a trial is no push"


@pytest.mark.parametrize(
    ("who", "status", "words"),
    [
        ("", 401, "could not read Username"),
        ("dev:wrong@", 401, "Authentication failed"),
        ("nobody:x@", 401, "Authentication failed"),
    ],
)
def test_who_says_no_name_or_a_wrong_one_gets_nothing(
    forge: Forge, clone: Clone, who: str, status: int, words: str
) -> None:
    url = forge.url(REPOSITORY).replace("http://", f"http://{who}")

    assert words in clone.git("ls-remote", url, check=False).stderr
    assert words in clone.git("push", url, "main:other", check=False).stderr

    assert forge.requests()[-1].status == status
    assert forge.git(REPOSITORY, "for-each-ref", "refs/heads/other") == ""


def test_a_reader_reads_and_does_not_write(forge: Forge, clone: Clone) -> None:
    before = head(forge)
    clone.speak_as(READER)
    clone.commit("a", "a\n")

    clone.git("fetch", "-q")
    assert "403" in clone.push()

    assert head(forge) == before
    assert forge.updates(READER) == ()


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/nothing.git/info/refs",
        "/../users.json",
        "/team/sweeps.git/config",
        "/team/../team/sweeps.git/HEAD",
    ],
)
def test_nothing_but_repositories_is_served(forge: Forge, clone: Clone, path: str) -> None:
    name = base64.b64encode(f"{DEV}:{PASSWORD}".encode()).decode()
    connection = HTTPConnection(forge.address, forge.port, timeout=120)

    connection.request("GET", path, headers={"Authorization": f"Basic {name}"})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()

    assert answer.status == 404
    assert PASSWORD.encode() not in content


def test_a_credential_revoked_in_the_middle_of_a_push_ends_it(forge: Forge, clone: Clone) -> None:
    before = head(forge)
    clone.commit("a", "a\n")
    # Git's own hook runs after the server was asked and before anything is sent.
    hook = clone.root / ".git/hooks/pre-push"
    users = forge.folder / "users.json"
    hook.write_text(f"#!/bin/sh\necho '{{}}' >'{users}'\n")
    hook.chmod(0o755)

    message = clone.push()

    request, sent = forge.requests()[-2:]
    assert (request.step, request.status, sent.step, sent.status) == ("asking", 200, "sending", 401), message
    assert message
    assert head(forge) == before


def test_a_revoked_user_is_let_in_again_when_known_again(forge: Forge, clone: Clone) -> None:
    clone.commit("a", "a\n")
    forge.revoke(DEV)
    assert "Authentication failed" in clone.push()

    forge.user(DEV, PASSWORD, may_write=True)

    assert clone.push() == ""


def test_a_repository_may_be_open_to_everybody_who_reads(forge: Forge, clone: Clone) -> None:
    forge.user("", "", may_write=False)
    clone.commit("a", "a\n")

    assert clone.git("ls-remote", forge.url(REPOSITORY)).stdout
    assert "could not read Username" in clone.git("push", forge.url(REPOSITORY), "main", check=False).stderr
    assert clone.push() == "", "git says its name when it is asked for it"


# --- the rule -----------------------------------------------------------------------------------------------


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


def test_the_rule_keeps_the_collector_from_the_base_and_without_it_the_same_push_goes_through(
    forge: Forge, guarded: Clone
) -> None:
    before = head(forge)
    made = guarded.commit("base/trial/v1/job.yaml", "stolen\n")

    assert "the collector may push nothing but results" in guarded.push()
    assert head(forge) == before

    forge.remove_rule(REPOSITORY)
    assert guarded.push() == ""
    assert head(forge) == made


def test_the_rule_does_not_look_at_others(forge: Forge, guarded: Clone) -> None:
    guarded.speak_as(DEV)
    guarded.commit("base/trial/v1/job.yaml", "reviewed\n")

    assert guarded.push() == ""


def test_the_rule_keeps_the_collector_from_a_commit_that_another_branch_holds_already(
    forge: Forge, guarded: Clone
) -> None:
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
def test_the_rule_keeps_the_collector_from_a_forged_round_and_without_it_the_same_push_goes_through(
    forge: Forge, searching: Clone, file: str, old: str, new: str
) -> None:
    before = head(forge)
    (folder,) = (path for path in (searching.root / "overlays/active").iterdir() if path.is_dir())
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    resign(folder)
    searching.git("commit", "-q", "--all", "--amend", "--no-edit")

    assert "is not made as" in searching.push()
    assert head(forge) == before

    forge.remove_rule(REPOSITORY)
    assert searching.push() == ""

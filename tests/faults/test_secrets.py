"""A secret in environment, remote URL, credential and a trial's output shows up nowhere: row F9."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweepledger.errors import RepositoryError
from sweepledger.repo.git import Change, Repository, publish, repository
from tests.cluster.conftest import clone, forge
from tests.cluster.forge import Forge
from tests.cluster.forge_clones import REPOSITORY, Clone
from tests.cluster.forge_faults import Failing, Fault, Refusing
from tests.faults.worlds import git
from tests.launcher.folders import TrialFolder, shell
from tests.operations.test_collect import leave, stored
from tests.repository import Sandbox

__all__ = ["clone", "forge"]

CANARY = "c4n4ry-7f3a9e"
OURS = Change("ours", {"ours": b"1"})


@pytest.fixture
def watched(forge: Forge, clone: Clone, monkeypatch: pytest.MonkeyPatch) -> Clone:
    """A clone whose remote has the canary as its password, in an environment that has it, too."""
    forge.user("robot", CANARY, may_write=True)
    clone.speak_as("robot")
    monkeypatch.setenv("SWEEP_TOKEN", CANARY)
    return clone


def errors(forge: Forge, clone: Clone) -> Iterator[str]:
    """Fail in every way in which git may name its remote; give all that is said."""
    for trouble in (
        Failing(401),
        Failing(403),
        Failing(500),
        Refusing(f"no, {forge.url(REPOSITORY, user='robot')}"),
    ):
        forge.faults(Fault(trouble))
        with pytest.raises(RepositoryError) as caught:
            publish(Repository(clone.root), "origin", "main", lambda _: OURS)
        yield f"{caught.value} {caught.value.hint}"
    forge.stop()
    with pytest.raises(RepositoryError) as caught:
        publish(Repository(clone.root), "origin", "main", lambda _: OURS)
    yield f"{caught.value} {caught.value.hint}"
    forge.resume()
    forge.faults()


def test_f9_no_error_names_the_credential(forge: Forge, watched: Clone) -> None:
    messages = list(errors(forge, watched))

    assert len(messages) == 5
    assert not [message for message in messages if CANARY in message]


def test_f9_the_search_finds_secrets(forge: Forge, watched: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "redact", str)

    assert any(CANARY in error for error in errors(forge, watched))


def test_f9_no_commit_and_no_output_has_it(forge: Forge, watched: Clone, tmp_path: Path) -> None:
    sandbox = Sandbox.create(tmp_path / "team")
    sandbox.git("remote", "set-url", "origin", forge.url(REPOSITORY, user="robot"))
    sandbox.git("push", "-q", "--force", "origin", "main")
    sandbox.merged()
    for index in range(3):
        path = leave(tmp_path / "results", stored(sandbox), index)
        path.with_suffix(".out").write_text(f"my token is {CANARY}\n")
        path.with_suffix(".err").write_text(f"https://robot:{CANARY}@example.org failed\n")

    done = sandbox.sweep(
        *("cluster", "collect", "--push", "--results", str(tmp_path / "results")), GIT_TRACE=""
    )

    assert vars(done)["returncode"] == 0
    assert CANARY not in str(vars(done)["stdout"]) + str(vars(done)["stderr"])
    argv = ["git", "cat-file", "--batch-all-objects", "--batch"]
    everything = subprocess.run(argv, cwd=forge.bare(REPOSITORY), check=True, capture_output=True).stdout
    assert "results/peak" in git(forge.bare(REPOSITORY), "ls-tree", "-r", "--name-only", "main")
    assert b"score" in everything
    assert CANARY.encode() not in everything


def test_f9_a_record_shows_no_secret_even_of_a_trial_that_prints_it(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(
        'echo "$SWEEP_TOKEN"; printf \'{"test_accuracy": 0.5}\' > "$SWEEP_RESULT"; exit 7'
    )

    run = trial_folder.run(SWEEP_TOKEN=CANARY)

    assert CANARY not in json.dumps(trial_folder.records()) + run.err
    places = [path for path in trial_folder.root.rglob("*") if path.is_file()]
    shown = [path.name for path in places if CANARY in path.read_text(errors="replace")]
    assert shown == ["uid-1.out"], "what a trial prints is kept beside its record, and is never committed"


@pytest.fixture
def trial_folder(tmp_path: Path) -> Iterator[TrialFolder]:
    folder = TrialFolder(tmp_path)
    yield folder
    folder.end()

"""A stolen credential of the collector: the server's rule lets it do nothing but what the collector does.

Each denial has a positive control: a copy of the repository, on the same server, for the same users, without
the rule.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.forge import Forge
from tests.cluster.forge_clones import Clone
from tests.e2e import collecting, outcomes
from tests.e2e.team import COLLECTOR, REPOSITORY, Batch, Team

pytestmark = pytest.mark.usefixtures("by_hand")

COPY = "unprotected"
REFUSAL = (
    "the collector may push nothing but results, the move of a finished batch and the next round of a search"
)
MAIN = "HEAD:refs/heads/main"
STRAY = "results/stray/note.md"
"""Where the collector may write: what is wrong with an attempt is then something else."""


@dataclass(frozen=True)
class Thief:
    """Somebody who has the collector's credential."""

    clone: Clone
    batch: Batch
    """Of others, and active."""

    @classmethod
    def of(cls, forge: Forge, root: Path, batch: Batch) -> "Thief":
        """Clone with the credential; the copy is another remote."""
        clone = Clone.of(forge, root, COLLECTOR, REPOSITORY)
        clone.git("remote", "add", COPY, forge.url(COPY, user=COLLECTOR))
        return cls(clone, batch)

    def forget(self) -> None:
        """Begin anew from what stands."""
        self.clone.git("fetch", "-q", "origin")
        self.clone.git("reset", "-q", "--hard", "origin/main")

    def commit(self, *paths: str) -> None:
        """Commit all changes, and a line more in some files."""
        for path in paths:
            target = self.clone.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("a") as file:
                file.write("# mine\n")
        self.clone.git("add", "--all", "--force")
        self.clone.git("commit", "-q", "-m", "Take over")


Attempt = Callable[[Thief], tuple[str, ...]]
"""Prepares something, and says what to push."""


def changing(*paths: str) -> Attempt:
    def prepare(thief: Thief) -> tuple[str, ...]:
        thief.commit(*(path.format(batch=thief.batch.name) for path in paths))
        return (MAIN,)

    return prepare


def ending_a_batch(thief: Thief) -> tuple[str, ...]:
    """Take an overlay away, and keep it nowhere."""
    thief.clone.git("rm", "-q", "-r", f"overlays/active/{thief.batch.name}")
    thief.commit(STRAY)
    return (MAIN,)


def moving_a_changed_batch(thief: Thief) -> tuple[str, ...]:
    """Archive an overlay, with another content."""
    thief.clone.git("mv", *(f"overlays/{where}/{thief.batch.name}" for where in ("active", "archive")))
    thief.commit(f"overlays/archive/{thief.batch.name}/job.yaml")
    return (MAIN,)


def linking(thief: Thief) -> tuple[str, ...]:
    (thief.clone.root / STRAY).parent.mkdir(parents=True, exist_ok=True)
    (thief.clone.root / STRAY).symlink_to("../../sweepledger.yaml")
    thief.commit()
    return (MAIN,)


def undoing_it_again(thief: Thief) -> tuple[str, ...]:
    """Change a base, and take that back: the last commit shows nothing."""
    thief.commit("base/launcher/v1/launch.py")
    thief.clone.git("revert", "--no-edit", "HEAD")
    thief.commit(STRAY)
    return (MAIN,)


def merging(thief: Thief) -> tuple[str, ...]:
    """Bring a change in as the second parent of a merge."""
    thief.clone.git("checkout", "-q", "--detach", "HEAD~1")
    thief.commit("base/launcher/v1/launch.py")
    side = thief.clone.git("rev-parse", "HEAD").stdout.strip()
    thief.clone.git("checkout", "-q", "main")
    thief.clone.git("merge", "-q", "--no-edit", side)
    return (MAIN,)


def forcing(thief: Thief) -> tuple[str, ...]:
    """Put the branch back by a commit."""
    thief.clone.git("reset", "-q", "--hard", "HEAD~1")
    thief.commit(STRAY)
    return ("--force", MAIN)


def pushing(*refs: str) -> Attempt:
    """Push something allowed to where it is not, or nothing at all."""

    def prepare(thief: Thief) -> tuple[str, ...]:
        thief.commit(STRAY)
        return refs

    return prepare


ATTEMPTS: Mapping[str, Attempt] = {
    "base": changing("base/trial/v1/job.yaml"),
    "launcher": changing("base/launcher/v1/launch.py"),
    "spec": changing("sweeps/mine.yaml"),
    "settings": changing("sweepledger.yaml"),
    "code": changing("code/work.py"),
    "workflow": changing(".github/workflows/mine.yaml"),
    "platform": changing("clusters/platform/collector.yaml"),
    "rule": changing("clusters/pre-receive.sh"),
    "flux": changing("clusters/flux/active/mine-b1-00000000.yaml"),
    "new-overlay": changing("overlays/active/mine-b1-00000000/kustomization.yaml"),
    "foreign-overlay": changing("overlays/active/{batch}/job.yaml"),
    "archive": changing("overlays/archive/mine-b1-00000000/kustomization.yaml"),
    "beside-results": changing("results/README.md"),
    "among-results": changing("base/mine.md", STRAY),
    "ended-batch": ending_a_batch,
    "changed-batch": moving_a_changed_batch,
    "link": linking,
    "undone": undoing_it_again,
    "merge": merging,
    "forced": forcing,
    "deleted": pushing(":refs/heads/main"),
    "branch": pushing("HEAD:refs/heads/mine"),
    "tag": pushing("HEAD:refs/tags/v1"),
    "note": pushing("HEAD:refs/notes/commits"),
}


@pytest.fixture
def copied(team: Team) -> Callable[[], None]:
    """Make a copy of the repository without its rule; give what makes it equal again."""
    forge = team.forge
    forge.create(COPY)
    forge.git(COPY, "config", "receive.denyDeleteCurrent", "ignore")  # else git refuses by itself

    def equal() -> None:
        forge.git(COPY, "fetch", "-q", "--prune", "--force", str(forge.bare(REPOSITORY)), "+refs/*:refs/*")

    return equal


def test_a_stolen_credential_is_of_little_use(team: Team, copied: Callable[[], None], tmp_path: Path) -> None:
    (batch,) = outcomes.trained(team, {"foreign": (0.0, 1.0)})
    thief = Thief.of(team.forge, tmp_path / "thief", batch)
    stood = team.forge.git(REPOSITORY, "for-each-ref")

    messages, controls = {}, {}
    for name, prepare in ATTEMPTS.items():
        thief.forget()
        copied()
        refs = prepare(thief)
        messages[name] = thief.clone.push(*refs)
        controls[name] = thief.clone.push(*refs, remote=COPY)

    assert {name: message for name, message in messages.items() if REFUSAL not in message} == {}
    assert {name: message for name, message in controls.items() if message} == {}
    assert team.forge.git(REPOSITORY, "for-each-ref") == stood
    assert collecting.Run.start(team).ended().code == 0
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)

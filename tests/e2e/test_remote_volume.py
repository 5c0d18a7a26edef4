"""Results on a remote file system whose server knows no root, and whose clients see renames late.

An SFTP server works as a user without rights, whoever asks; trials and collector reach it by mounts (FUSE) that keep
names and attributes for an hour, each its own.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.children import until
from tests.e2e import collecting, outcomes
from tests.e2e.collecting import Run
from tests.e2e.controllers import Controller
from tests.e2e.founding import Ground
from tests.e2e.storage import volume
from tests.e2e.stores import in_store, proof
from tests.e2e.team import COLLECTORS, NAMESPACE, Batch, Team
from tests.e2e.watching import ALREADY, Watch

pytestmark = pytest.mark.full

CLAIM = "sweep-remote"
NOBODY = 65534
"""Who the server works as: another user than that of pods."""
SERVER = "/usr/lib/openssh/sftp-server"
MEMORY = 3600
"""Seconds for which a mount keeps what it has seen, and what it has not found: longer than a test waits."""
KEPT = ("dcache_timeout", "dcache_stat_timeout", "dcache_dir_timeout", "entry_timeout", "attr_timeout")


@dataclass(frozen=True)
class Remote:
    """A folder of the server, and what the nodes see of it."""

    ground: Ground
    served: Path
    written: Path
    """As trials see it."""
    read: Path
    """As the collector sees it."""

    def start(self) -> None:
        """Serve a folder and mount it twice."""
        self.served.mkdir()
        for place in (self.written, self.read):
            place.mkdir()
        os.chown(self.served, NOBODY, NOBODY)
        self.served.chmod(0o2770)
        own = f"--reuid={NOBODY} --regid={NOBODY} --clear-groups --no-new-privs"
        serve = self.served.parent / "serve"
        serve.write_text(f"#!/bin/sh\nexec setpriv {own} {SERVER} -u 0007\n")
        serve.chmod(0o755)
        self._mount(self.written)
        self._mount(self.read, ",ro")

    def forget(self) -> None:
        """Let the collector's mount see what is there now, as when its memory is over."""
        self.ground.machine.children.end(self.read.name)
        until(f"{self.read} is free", lambda: not self.read.is_mount(), seconds=120, pause=0.2)
        self._mount(self.read, ",ro")

    def _mount(self, place: Path, more: str = "") -> None:
        kept = ",".join(f"{name}={MEMORY}" for name in (*KEPT, "negative_timeout"))
        options = f"allow_other,ssh_command={self.served.parent / 'serve'},{kept}{more}"
        argv = ["sshfs", "-f", "-o", options, f"server:{self.served}", str(place)]
        self.ground.machine.children.start(place.name, argv)
        until(f"{place} is mounted", place.is_mount, seconds=120, pause=0.2)

    def records(self, place: Path, batch: Batch) -> list[str]:
        return sorted(path.name for path in (place / batch.name).glob("*/*.json"))


@pytest.fixture(scope="module")
def remote(ground: Ground) -> Remote:
    if shutil.which("sshfs") is None or not Path(SERVER).is_file() or not Path("/dev/fuse").exists():
        pytest.skip("skipped: no sshfs, no sftp-server or no /dev/fuse")
    folder = ground.machine.folder / "remote"
    folder.mkdir(mode=0o755)
    made = Remote(ground, folder / "served", folder / "remote-written", folder / "remote-read")
    made.start()
    return made


@pytest.fixture(scope="module", autouse=True)
def _on_it(team: Team, controller: Controller, remote: Remote) -> Iterator[None]:
    team.server.apply(
        *volume(NAMESPACE, CLAIM, remote.written, "ReadWriteMany"),
        *volume(COLLECTORS, CLAIM, remote.read, "ReadOnlyMany"),
    )
    with in_store(team, controller, f"results: {{claim: {CLAIM},"):
        yield


def test_a_trial_may_write_although_the_server_knows_no_root(team: Team) -> None:
    finding = proof(team)

    assert finding["state"] == "ok", finding


def test_records_that_the_volume_shows_late_are_recorded_once(
    team: Team, remote: Remote
) -> None:
    with collecting.only_by_hand(team):
        team.write_spec("late", parameters={"x": [0.0, 1.0], "seconds": [15]}, shape="indexed", timeout="5m")
        (batch,) = team.merge_specs("late")
        until(
            "trials have folders", lambda: len(_folders(remote, batch)) == 2, seconds=collecting.RUN_SECONDS
        )
        assert remote.records(remote.read, batch) == []
        outcomes.until_trained(team, batch)

        assert len(remote.records(remote.served, batch)) == 2
        assert remote.records(remote.read, batch) == [], "the reader still sees what it saw"
        run = Run.start(team).ended()
        assert run.code == 0, run
        assert team.is_recorded(batch), run

        remote.forget()
        assert len(remote.records(remote.read, batch)) == 2
        run = Run.start(team).ended()
        assert run.code == 0, run
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)


def test_jobs_that_are_made_anew_train_nothing(team: Team, controller: Controller, remote: Remote) -> None:
    watch = Watch(team, remote.served)
    with collecting.only_by_hand(team):
        (batch,) = outcomes.trained(team, {"late-anew": (0.0, 1.0)})
        before = watch.jobs(batch)

        watch.delete(batch)
        watch.until_gone(batch)
        outcomes.apply_again(team, controller, batch)
        watch.until_ended(batch, but=before)

        words = watch.outputs(batch)
        assert len(words) == 2
        assert all(ALREADY in text for text in words.values()), words
        remote.forget()
    team.until_recorded(batch, seconds=900)
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)


def _folders(remote: Remote, batch: Batch) -> list[Path]:
    return list((remote.served / batch.name).glob("*"))

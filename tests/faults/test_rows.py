"""Rows F1 to F16 of what can go wrong: where each is tried, and those that this folder lacked."""

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sweepledger import storage
from sweepledger.errors import RepositoryError, StorageError
from sweepledger.repo.git import Change, Repository, publish, repository
from tests.cluster.conftest import clone, forge
from tests.cluster.forge import Forge
from tests.cluster.forge_clones import Clone
from tests.cluster.forge_faults import Fault, Hanging
from tests.repository import Sandbox

__all__ = ["clone", "forge"]

ROOT = Path(__file__).parents[2]
HERE = "tests/faults/"

ROWS = {
    "F1": f"{HERE}test_writers.py::test_f1_every_row_of_writers_at_once_lands_exactly_once",
    "F2": f"{HERE}test_races.py::test_after_so_many_lost_races_it_lands_once",
    "F3": "tests/repo/test_publish.py::test_a_push_whose_response_is_lost_counts",
    "F4": f"{HERE}test_kills.py::test_killed_at_a_write_it_leaves_nothing_half",
    "F5 signals": f"{HERE}test_rows.py::test_f5_who_is_told_to_end_just_ends",
    "F5 readers": "tests/cli/test_responses.py::test_a_closed_pipe_keeps_the_exit_code",
    "F6": f"{HERE}test_storage.py::test_a_call_that_fails_leaves_the_old",
    "F7": f"{HERE}test_rows.py::test_f7_what_has_no_room_is_not_kept",
    "F8 refusals": f"{HERE}test_races.py::test_a_server_that_says_no_is_believed_within_five_tries",
    "F8 silence": f"{HERE}test_rows.py::test_f8_a_hanging_server_is_left",
    "F8 down": "tests/e2e/test_collector_faults.py"
    "::test_with_the_server_gone_for_a_minute_a_run_says_so_and_a_later_one_records",
    "F8 Retry-After": "reason: a run ends at once with the server's answer, and the next one is minutes away",
    "F9 output": f"{HERE}test_secrets.py::test_f9_no_error_names_the_credential",
    "F9 expiry": "tests/e2e/test_collector_faults.py"
    "::test_a_revoked_credential_is_named_and_the_next_one_records",
    "F10": f"{HERE}test_races.py::test_f10_of_two_collectors_at_once_one_commits",
    "F11": "tests/hostile/test_repositories.py::test_no_clock_has_a_say",
    "F12 replaced": "tests/hostile/test_records.py::test_r13_a_file_that_changes_is_read_once_more",
    "F12 slow": "reason: a volume of a second a look takes its time; no time-out of ours ends the reading",
    "F13": "tests/operations/test_collect_evidence.py::test_ten_thousand_pods_need_little_memory",
    "F14": "tests/contract/test_same_bytes.py::test_no_hash_seed_and_no_locale_changes_a_byte",
    "F15": "tests/repo/test_kustomize.py::test_a_hanging_kustomize_is_stopped",
    "F15 broken": "tests/repo/test_kustomize.py::test_errors_are_shown",
    "F16": f"{HERE}test_rows.py::test_f16_a_byte_of_any_generated_file_that_differs_is_noticed",
}


def test_every_row_is_accounted_for() -> None:
    assert {row.split()[0] for row in ROWS} == {f"F{number}" for number in range(1, 17)}
    for message in ROWS.values():
        path, _, name = message.partition("::")
        assert message.startswith("reason: ") or f"def {name}(" in (ROOT / path).read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: f"F5 {number.name}")
def test_f5_who_is_told_to_end_just_ends(sandbox: Sandbox, tmp_path: Path, number: signal.Signals) -> None:
    waiting = tmp_path / "waiting"
    server = tmp_path / "server"
    server.write_text(f'#!/bin/sh\ntouch "{waiting}"\nexec sleep 30\n')
    server.chmod(0o755)
    sandbox.git("config", "remote.origin.uploadpack", str(server))
    process = subprocess.Popen(
        [sys.executable, "-m", "sweepledger.cli", "cluster", "collect", "--push"],
        cwd=sandbox.root,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'generator'}:{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not waiting.exists():
        assert process.poll() is None
        time.sleep(0.01)

    process.send_signal(number)
    _, output = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "Traceback" not in output
    assert "interrupted" in output


@pytest.mark.parametrize("at", range(3), ids=lambda at: f"F7 {at}")
def test_f7_what_has_no_room_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    (tmp_path / "file").write_bytes(b"old")
    calls = iter(range(100))
    real = os.fsync

    def fails(descriptor: int) -> None:
        if next(calls) == at:
            raise OSError(errno.EIO, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fails)

    def both() -> list[bool]:
        return [storage.write_file(tmp_path / name, b"new") for name in ("file", "another")]

    with pytest.raises(StorageError, match="input/output error"):
        both()

    assert (tmp_path / "file").read_bytes() == (b"old" if at == 0 else b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_f8_a_hanging_server_is_left(forge: Forge, clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded = [f"http.lowSpeedTime={repository.SILENCE_SECONDS}" in repository.SAFE_SETTINGS]
    monkeypatch.setattr(
        repository,
        "SAFE_SETTINGS",
        [item.replace(str(repository.SILENCE_SECONDS), "1") for item in repository.SAFE_SETTINGS],
    )
    forge.faults(Fault(Hanging(3600)))

    with pytest.raises(RepositoryError) as caught:
        publish(Repository(clone.root), "origin", "main", lambda _: Change("ours", {"ours": b"1"}))

    assert bounded == [True]
    assert caught.value.exit_code == 3


def test_f16_a_byte_of_any_generated_file_that_differs_is_noticed(sandbox: Sandbox) -> None:
    name = sandbox.merged()
    chance = random.Random(16)  # noqa: S311 - the same bytes on every run

    for path in sorted((sandbox.root / "overlays/active" / name).iterdir()):
        was = path.read_bytes()
        for _ in range(2):
            at = chance.randrange(len(was))
            path.write_bytes(was[:at] + bytes([was[at] ^ chance.randrange(1, 256)]) + was[at + 1 :])
            with pytest.raises(RepositoryError, match=path.name):
                sandbox.generate(check=True)
        path.write_bytes(was)
    assert not any(generated_batch.is_pending for generated_batch in sandbox.generate(check=True))

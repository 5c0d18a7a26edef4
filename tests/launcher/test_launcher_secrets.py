"""Secrets reach the command as variables, and nothing else ever."""

import os

import pytest

from tests.launcher.folders import REPORT, TrialFolder, shell

WORD = "s3cr3t-größe"


def with_secret(folder: TrialFolder, content: bytes) -> None:
    path = folder.root / "secret"
    path.write_bytes(content)
    folder.changes = {"secrets": {"HUB_KEY": str(path)}}


def test_a_secret_is_a_variable_of_the_command_alone(trial_folder: TrialFolder) -> None:
    with_secret(trial_folder, WORD.encode())
    trial_folder.command = shell(f'test "$HUB_KEY" = {WORD} && {REPORT}')

    run = trial_folder.run(HUB_KEY="from elsewhere")

    assert run.code == 0, run.err
    content = b"".join(path.read_bytes() for path in trial_folder.results.rglob("*") if path.is_file())
    assert WORD.encode() not in content + run.out + run.err.encode()


def test_one_line_end_is_taken_off_a_secret_that_lies_behind_links_as_kubernetes_mounts_it(
    trial_folder: TrialFolder,
) -> None:
    with_secret(trial_folder, b" two\n\n")
    (trial_folder.root / "link").symlink_to(trial_folder.root / "secret")
    trial_folder.changes = {"secrets": {"HUB_KEY": str(trial_folder.root / "link")}}
    trial_folder.command = shell(f'[ "$HUB_KEY" = " two\n" ] && {REPORT}')

    assert trial_folder.run().code == 0


def test_a_missing_secret_is_a_bad_sweep(trial_folder: TrialFolder) -> None:
    path = str(trial_folder.root / "none")
    trial_folder.changes = {"secrets": {"HUB_KEY": path}}
    trial_folder.command = shell("touch $HERE/began")

    record = trial_folder.try_once()

    assert (record["status"], record["reason"], record["exit"]) == ("failed", "bad-sweep", 43)
    assert record["details"] == {
        "error": f"the secret for HUB_KEY cannot be read: {path}: No such file or directory"
    }
    assert not (trial_folder.root / "began").exists()


@pytest.mark.parametrize(
    "content", [f"{WORD}\0x".encode(), WORD.encode() + b"x" * 1024 * 1024], ids=["zero", "long"]
)
def test_a_secret_that_fits_no_variable_is_refused(content: bytes, trial_folder: TrialFolder) -> None:
    with_secret(trial_folder, content)

    record = trial_folder.try_once()

    assert record["exit"] == 43
    assert "the secret for HUB_KEY must be text of at most 1 MiB" in record["details"]["error"]
    assert WORD not in str(record)


def test_a_secret_may_stand_in_no_argument(trial_folder: TrialFolder) -> None:
    with_secret(trial_folder, WORD.encode())
    trial_folder.command = ["sh", "-c", REPORT, [{"macro": "envvar", "argument": "HUB_KEY"}]]

    record = trial_folder.try_once()

    assert record["exit"] == 43
    assert "the environment variable HUB_KEY, which is not set" in record["details"]["error"]


def test_another_rank_has_the_secrets_too(trial_folder: TrialFolder) -> None:
    with_secret(trial_folder, b"word")
    trial_folder.command = shell('[ "$HUB_KEY" = word ]')

    assert trial_folder.run(SWEEP_RANK="1").code == 0


def test_secrets_reach_the_command_in_every_python(any_python: str, trial_folder: TrialFolder) -> None:
    trial_folder.interpreter = any_python
    with_secret(trial_folder, b"\xff\xfe")
    trial_folder.command = shell(f'printf "$HUB_KEY" > $HERE/token; {REPORT}')

    assert trial_folder.run().code == 0
    assert (trial_folder.root / "token").read_bytes() == os.fsencode("\udcff\udcfe")

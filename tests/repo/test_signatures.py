import shutil
import subprocess
from pathlib import Path

import pytest

from sweepledger.errors import RepositoryError
from sweepledger.repo.git import Change, Repository, commit_on_head, commit_signatures, publish
from tests.repository import Sandbox

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="skipped: ssh-keygen not found")


def key(folder: Path, name: str) -> Path:
    """Make a key; skip by name where that is impossible."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("skipped: ssh-keygen not found")
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
    subprocess.run(command, check=True)
    return folder / name


def line(made: Path) -> str:
    return f'test@example.org namespaces="git" {made.with_suffix(".pub").read_text().strip()}'


def signed_commit(sandbox: Sandbox, made: Path, message: str) -> str:
    sandbox.git("add", "--all")
    signing = ("-c", "gpg.format=ssh", "-c", f"user.signingkey={made}.pub")
    sandbox.git(*signing, "commit", "-q", "-S", "-m", message)
    return sandbox.head()


def verdicts(sandbox: Sandbox, since: str, signers: list[str]) -> dict[str, bool]:
    signatures = commit_signatures(
        Repository.find(sandbox.root), since, "HEAD", ["results/"], signers=signers
    )
    return {touch.id: touch.is_signed for touch in signatures}


def test_only_the_signature_of_a_listed_key_is_valid(sandbox: Sandbox, tmp_path: Path) -> None:
    listed, foreign = key(tmp_path, "listed"), key(tmp_path, "foreign")
    since = sandbox.head()
    sandbox.write("results/a", "1")
    first = signed_commit(sandbox, listed, "Listed")
    sandbox.write("results/a", "2")
    second = signed_commit(sandbox, foreign, "Foreign")
    sandbox.write("results/a", "3")
    third = sandbox.commit("Nobody")

    results = verdicts(sandbox, since, [line(listed)])

    assert results == {first: True, second: False, third: False}
    assert not any(verdicts(sandbox, since, []).values())


def told_to_sign(sandbox: Sandbox, signing_key: str, form: str = "ssh") -> None:
    settings = (("gpg.format", form), ("user.signingKey", signing_key), ("commit.gpgSign", "true"))
    for name, value in (*settings, ("gpg.ssh.program", "false")):
        sandbox.git("config", name, value)


def test_commits_are_signed_if_git_is_configured_to_sign_with_ssh(sandbox: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    made = key(folder, "listed")
    repository = Repository.find(sandbox.root)
    since = sandbox.head()
    told_to_sign(sandbox, str(made))

    pushed = publish(repository, "origin", "main", lambda _: Change("Pushed", {"results/a": b"1"}))
    sandbox.pull()
    here = commit_on_head(repository, lambda _: Change("Here", {"results/a": b"2"}))
    assert verdicts(sandbox, since, [line(made)]) == {pushed: True, here: True}


@pytest.mark.parametrize("form", ["ssh", "openpgp"])
def test_key_is_a_file(sandbox: Sandbox, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told_to_sign(sandbox, str(tmp_path / "nothing is here"), form)
    with pytest.raises(RepositoryError, match="configured to sign"):
        commit_on_head(Repository.find(sandbox.root), lambda _: Change("Here", {"results/a": b"2"}))

    monkeypatch.setenv("SWEEP_TRUSTED_CLONE", str(sandbox.root))
    made = commit_on_head(Repository.find(sandbox.root), lambda _: Change("Here", {"results/a": b"2"}))

    assert made is not None
    assert "gpgsig" not in sandbox.git("cat-file", "commit", made)


def test_a_key_that_cannot_sign_is_reported(sandbox: Sandbox, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("no key\n")
    told_to_sign(sandbox, str(broken))

    with pytest.raises(RepositoryError, match="commit-tree failed"):
        commit_on_head(Repository.find(sandbox.root), lambda _: Change("Here", {"results/a": b"2"}))


def test_settings_of_the_repository_cannot_make_a_signature_valid(sandbox: Sandbox, tmp_path: Path) -> None:
    foreign = key(tmp_path, "foreign")
    since = sandbox.head()
    sandbox.write("results/a", "1")
    made = signed_commit(sandbox, foreign, "Foreign")
    (tmp_path / "theirs").write_text(line(foreign) + "\n")
    liar = tmp_path / "liar"
    liar.write_text(f"#!/bin/sh\ntouch '{liar}.ran'\necho 'Good \"git\" signature for x with y key z'\n")
    liar.chmod(0o755)
    for setting in ("gpg.program", "gpg.ssh.program", "gpg.x509.program"):
        sandbox.git("config", setting, str(liar))
    sandbox.git("config", "gpg.ssh.allowedSignersFile", str(tmp_path / "theirs"))

    assert verdicts(sandbox, since, [line(key(tmp_path, "listed"))]) == {made: False}
    assert not Path(f"{liar}.ran").exists()


def test_a_clean_merge_changes_nothing_and_an_evil_merge_does(sandbox: Sandbox) -> None:
    since = sandbox.head()
    sandbox.write("code/train.py", "other")
    sandbox.commit("Other paths need no signature")
    sandbox.git("switch", "-q", "-c", "side")
    sandbox.write("results/side", "1")
    side = sandbox.commit("Side")
    sandbox.git("switch", "-q", "main")
    sandbox.write("results/main", "1")
    main = sandbox.commit("Main")
    sandbox.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    assert set(verdicts(sandbox, since, [])) == {side, main}

    sandbox.write("results/main", "evil")
    sandbox.git("add", "--all")
    sandbox.git("commit", "-q", "--amend", "--no-edit")

    evil = sandbox.head()
    assert set(verdicts(sandbox, since, [])) == {evil, side, main}


def test_paths_with_any_characters_are_parsed(sandbox: Sandbox) -> None:
    since = sandbox.head()
    names = ["results/-rf", "results/a b", "results/ümlaut\nline", "results/:(glob)**"]
    for name in names:
        sandbox.write(name, "x")
    sandbox.commit("Odd")

    (touch,) = commit_signatures(Repository.find(sandbox.root), since, "HEAD", ["results/"], signers=[])

    assert sorted(touch.paths) == sorted(names)

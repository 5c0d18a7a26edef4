import subprocess
from pathlib import Path

import pytest

from generator.errors import RepositoryError
from generator.repo.git import Repository, reachable_trees, uncommitted
from generator.repo.git.redact import redact
from tests.repository import Sandbox


def test_outside_a_repository_it_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="is not inside a git repository"):
        Repository.find(tmp_path)


def test_a_bare_repository_has_nothing_to_work_in(sandbox: Sandbox) -> None:
    with pytest.raises(RepositoryError, match="bare repository"):
        Repository.find(sandbox.remote)


def test_it_is_found_from_any_folder_inside(sandbox: Sandbox) -> None:
    assert Repository.find(sandbox.root / "code").folder == sandbox.root


@pytest.mark.parametrize("revision", ["nowhere", "--upload-pack=x", "-x", "$(id)", "", "HEAD:code", "a b"])
def test_what_names_no_commit_is_none_and_never_an_option(sandbox: Sandbox, revision: str) -> None:
    assert Repository.find(sandbox.root).commit(revision) is None


def test_unborn_and_detached_heads_are_states_not_errors(sandbox: Sandbox, tmp_path: Path) -> None:
    repository = Repository.find(sandbox.root)
    assert repository.branch() == "main"
    sandbox.git("checkout", "-q", "--detach")
    assert repository.branch() is None

    subprocess.run(["git", "init", "-q", str(tmp_path / "new")], check=True)
    assert Repository.find(tmp_path / "new").commit("HEAD") is None
    assert Repository.find(tmp_path / "new").files(None) == {}


def test_names_with_spaces_newlines_and_other_letters_are_read_whole(sandbox: Sandbox) -> None:
    for name in ("a b.txt", "new\nline", "ümlaut", "-rf", '"quoted"'):
        sandbox.write(f"odd/{name}", name)
    sandbox.commit("Odd names")
    repository = Repository.find(sandbox.root)

    assert {
        path.removeprefix("odd/"): content.decode()
        for path, content in repository.read("HEAD", "odd").items()
    } == {name: name for name in ("a b.txt", "new\nline", "ümlaut", "-rf", '"quoted"')}


def test_content_comes_back_byte_for_byte(sandbox: Sandbox) -> None:
    path = sandbox.root / "bytes"
    path.write_bytes(b"\n\n\xff\x00 trailing \n\n")
    sandbox.commit("Bytes")

    assert Repository.find(sandbox.root).read("HEAD", "bytes")["bytes"] == b"\n\n\xff\x00 trailing \n\n"


def test_changed_lists_edited_added_and_removed_files(sandbox: Sandbox) -> None:
    sandbox.write("code/train.py", "other")
    sandbox.write("code/new file.py", "new")

    assert uncommitted(Repository.find(sandbox.root), "code") == ("code/new file.py", "code/train.py")
    assert uncommitted(Repository.find(sandbox.root), "sweeps") == ()


def test_a_tree_has_an_id_a_file_has_none(sandbox: Sandbox) -> None:
    repository = Repository.find(sandbox.root)

    assert repository.tree_id("HEAD", "code/") == sandbox.git("rev-parse", "HEAD:code").strip()
    assert repository.tree_id("HEAD", "sweepledger.yaml") is None
    assert repository.tree_id("HEAD", "nowhere") is None


def test_every_tree_that_a_path_ever_had_is_reachable(sandbox: Sandbox) -> None:
    first = sandbox.git("rev-parse", "HEAD:code").strip()
    sandbox.write("code/train.py", "second")
    sandbox.commit("Second")
    second = sandbox.git("rev-parse", "HEAD:code").strip()

    found = reachable_trees(Repository.find(sandbox.root), ("HEAD", None, "nowhere"), "code")

    assert found == {first, second}
    assert reachable_trees(Repository.find(sandbox.root), ("HEAD",), "nowhere") == frozenset()


def test_credentials_in_urls_are_blanked() -> None:
    assert (
        redact("cannot read https://user:s3cret@host/x and ssh://git@host")
        == "cannot read https://***@host/x and ssh://***@host"
    )
    assert redact("nothing@here") == "nothing@here"


def test_an_error_of_git_shows_its_words_without_the_secret(sandbox: Sandbox) -> None:
    with pytest.raises(RepositoryError, match="git fetch failed") as caught:
        Repository.find(sandbox.root).run("fetch", "https://user:canary@127.0.0.1:1/x")

    assert "canary" not in str(caught.value)

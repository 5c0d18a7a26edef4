import subprocess
from pathlib import Path

import pytest

from sweepledger.errors import RepositoryError
from sweepledger.process import redact
from sweepledger.repo.git import Repository, reachable_trees, uncommitted_paths
from tests.repository import Sandbox


def test_a_repository_is_found_from_any_folder_of_a_work_tree(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.git("worktree", "add", "-q", str(tmp_path / "linked"))

    assert Repository.find(sandbox.root / "code").folder == sandbox.root
    assert Repository.find(tmp_path / "linked").folder == tmp_path / "linked"


def test_a_repository_that_is_bare_or_calls_itself_so_has_nothing_to_work_in(sandbox: Sandbox) -> None:
    sandbox.git("config", "core.bare", "yes")

    for folder in (sandbox.remote, sandbox.root):
        with pytest.raises(RepositoryError, match="bare repository"):
            Repository.find(folder)


def test_a_folder_without_gits_contents_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "called/.git").mkdir(parents=True)

    for folder in (tmp_path, tmp_path / "called"):
        with pytest.raises(RepositoryError, match="is not inside a git repository"):
            Repository.find(folder)


@pytest.mark.parametrize("revision", ["nowhere", "--upload-pack=x", "-x", "$(id)", "", "HEAD:code", "a b"])
def test_a_revision_that_names_no_commit_is_none_and_never_an_option(sandbox: Sandbox, revision: str) -> None:
    assert Repository.find(sandbox.root).commit(revision) is None


def test_unborn_and_detached_heads_are_states_not_errors(sandbox: Sandbox, tmp_path: Path) -> None:
    repository = Repository.find(sandbox.root)
    assert repository.branch() == "main"
    sandbox.git("checkout", "-q", "--detach")
    assert repository.branch() is None

    subprocess.run(["git", "init", "-q", str(tmp_path / "new")], check=True)
    assert Repository.find(tmp_path / "new").commit("HEAD") is None
    assert Repository.find(tmp_path / "new").files(None) == {}


def test_odd_names_and_contents_come_back_byte_for_byte(sandbox: Sandbox) -> None:
    files = dict.fromkeys(
        ("a b.txt", "new\nline", "ümlaut", "-rf", '"quoted"'), b"\n\n\xff\x00 trailing \n\n"
    )
    for name, content in files.items():
        sandbox.write(f"odd/{name}", "")
        (sandbox.root / "odd" / name).write_bytes(content)
    sandbox.commit("Odd names")

    read = Repository.find(sandbox.root).read("HEAD", "odd")

    assert read == {f"odd/{name}": content for name, content in files.items()}


def test_uncommitted_paths_are_edited_added_and_removed_files(sandbox: Sandbox) -> None:
    sandbox.write("code/train.py", "other")
    sandbox.write("code/new file.py", "new")

    assert uncommitted_paths(Repository.find(sandbox.root), "code") == ("code/new file.py", "code/train.py")
    assert uncommitted_paths(Repository.find(sandbox.root), "sweeps") == ()


def test_folders_have_tree_ids_and_files_do_not(sandbox: Sandbox) -> None:
    repository = Repository.find(sandbox.root)

    assert repository.tree_id("HEAD", "code/") == sandbox.git("rev-parse", "HEAD:code").strip()
    assert repository.tree_id("HEAD", "sweepledger.yaml") is None
    assert repository.tree_id("HEAD", "nowhere") is None


def test_all_trees_in_the_history_of_a_path_are_reachable(sandbox: Sandbox) -> None:
    first = sandbox.git("rev-parse", "HEAD:code").strip()
    sandbox.commit("Second", {"code/train.py": "second"})
    second = sandbox.git("rev-parse", "HEAD:code").strip()

    results = reachable_trees(Repository.find(sandbox.root), ("HEAD", None, "nowhere"), "code")

    assert results == {first, second}
    assert reachable_trees(Repository.find(sandbox.root), ("HEAD",), "nowhere") == frozenset()


def test_an_error_shows_gits_message_without_credentials(sandbox: Sandbox) -> None:
    with pytest.raises(RepositoryError, match="git fetch failed") as caught:
        Repository.find(sandbox.root).run("fetch", "https://user:canary@127.0.0.1:1/x")

    assert "canary" not in str(caught.value)
    assert redact("https://a:b@host/x and ssh://git@host") == "https://***@host/x and ssh://***@host"
    assert redact("nothing@here") == "nothing@here"


def test_a_branch_is_listed_anew_after_each_commit(sandbox: Sandbox) -> None:
    repository = Repository.find(sandbox.root)
    before = repository.files("HEAD")
    sandbox.commit("Add a file", {"new": "content"})

    assert repository.files("HEAD").keys() - before.keys() == {"new"}


@pytest.mark.parametrize("kind", ["plain", "linked", "bare"])
def test_paths_of_git_are_as_git_names_them(sandbox: Sandbox, tmp_path: Path, kind: str) -> None:
    folder = {"plain": sandbox.root, "linked": tmp_path / "linked", "bare": sandbox.remote}[kind]
    if kind == "linked":
        sandbox.git("worktree", "add", "-q", str(folder))
    repository = Repository(folder)

    for name in ("index", "objects", "HEAD", "sweepledger/clone-id"):
        named = folder / repository.run("rev-parse", "--git-path", name).removesuffix("\n")
        assert repository.git_path(name).resolve() == named.resolve()

"""The tree of selected code is a function of the commit, and is computed again wherever it is needed."""

import subprocess

from sweepledger.repo.git import REMOTE, Mirror, Repository, code_tree, commit_with_code, fetch, store_code
from sweepledger.structs.program import Code, CodeSelection
from tests.repository import Sandbox

REPOSITORY = CodeSelection((".",), exclude=("docs/",))


def tree_by_git(sandbox: Sandbox, *paths: str) -> str:
    """Return the id that git itself gives the tree of some paths of HEAD."""
    index = f"{sandbox.root}/.git/scratch-index"
    listed = sandbox.git("ls-tree", "-r", "HEAD", "--", *paths)
    for command in (["update-index", "--index-info"], ["write-tree"]):
        done = subprocess.run(
            ["git", *command],
            cwd=sandbox.root,
            env={"GIT_INDEX_FILE": index},
            input=listed,
            text=True,
            capture_output=True,
            check=True,
        )
    return done.stdout.strip()


def test_the_tree_is_the_one_that_git_makes_of_the_selected_files(sandbox: Sandbox) -> None:
    sandbox.write("train.py", "a")
    sandbox.write("lib/é b.py", "b")
    sandbox.write("lib.txt", "sorted before the folder lib")
    sandbox.write("docs/index.md", "c")
    (sandbox.root / "link").symlink_to("train.py")
    (sandbox.root / "lib/run.sh").write_text("d")
    (sandbox.root / "lib/run.sh").chmod(0o755)
    sandbox.spec()
    sandbox.commit("Code")

    tree = code_tree(Repository.find(sandbox.root), "HEAD", ".", REPOSITORY)

    assert tree == tree_by_git(sandbox, ".gitignore", "code", "lib", "lib.txt", "link", "train.py")


def test_commits_of_sweeps_do_not_change_the_tree(sandbox: Sandbox) -> None:
    repository = Repository.find(sandbox.root)
    before = code_tree(repository, "HEAD", ".", REPOSITORY)
    sandbox.merged()
    sandbox.commit("Docs", {"docs/page.md": "text", ".github/workflows/ci.yaml": "jobs: {}"})

    assert code_tree(repository, "HEAD", ".", REPOSITORY) == before
    sandbox.commit("Code", {"code/new.py": ""})
    assert code_tree(repository, "HEAD", ".", REPOSITORY) != before


def test_selected_code_needs_no_other_object_of_its_commit(sandbox: Sandbox) -> None:
    sandbox.write("train.py", "old")
    old = sandbox.commit("Old")
    selection = CodeSelection(("code", "train.py"), exclude=("*.md",))
    sandbox.commit("Notes", {"code/notes.md": "not code"})
    tree = code_tree(Repository.find(sandbox.root), old, ".", selection)
    assert tree is not None
    sandbox.publish("New", {"train.py": "new"})
    mirror = Mirror(sandbox.root.parent / "state", str(sandbox.remote), "main")
    fetch(mirror.repository, REMOTE, "main")
    code = Code(".", tree, selection)

    folder = mirror.code(code).folder

    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert files == ["code/train.py", "train.py"]
    assert (folder / "train.py").read_text() == "old"
    newest = commit_with_code(Repository.find(sandbox.root), code)
    assert newest is not None
    assert sandbox.git("log", "-1", "--format=%s", newest).strip() in {"Old", "Notes"}


def test_code_that_no_commit_has_is_not_made_up(sandbox: Sandbox) -> None:
    code = Code(".", "0123456789" * 4, REPOSITORY)

    assert not store_code(Repository.find(sandbox.root), code, ["HEAD"])
    assert commit_with_code(Repository.find(sandbox.root), code) is None


def test_code_of_a_branch_whose_merge_took_the_other_side_is_reachable(sandbox: Sandbox) -> None:
    repository = Repository.find(sandbox.root)
    sandbox.git("checkout", "-q", "-b", "side")
    sandbox.commit("Side", {"code/train.py": "side"})
    tree = code_tree(repository, "HEAD", ".", REPOSITORY)
    assert tree is not None
    sandbox.git("checkout", "-q", "main")
    sandbox.commit("Main", {"other.py": "other"})
    sandbox.git("merge", "-q", "-s", "ours", "-m", "Merge", "side")

    assert commit_with_code(repository, Code(".", tree, REPOSITORY), ["HEAD"]) is not None

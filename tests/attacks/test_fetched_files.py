"""A trial keeps a git repository, or files that a shell obeys: they must not act on whoever fetches them."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from sweepledger.errors import StorageError
from sweepledger.operations.reports.outputs import fetch_artifacts
from sweepledger.repo.artifacts import UnsafeArtifactError, artifact_paths
from sweepledger.structs.record import Artifact
from tests.operations.test_fetch import FILES, record, recorded
from tests.repository import Sandbox

CONFIG = '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch {proof}; false"\n'


def listed(paths: Sequence[str]) -> list[Artifact]:
    return [Artifact(path, 1, "0" * 64) for path in paths]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "inside", [".git/", "", "model/"], ids=["a .git folder", "a bare repository", "one below"]
)
def test_a_configured_command_is_not_fetched(sandbox: Sandbox, tmp_path: Path, inside: str) -> None:
    proof = tmp_path / "proof"
    hostile = {
        f"{inside}HEAD": b"ref: refs/heads/main\n",
        f"{inside}config": CONFIG.format(proof=proof).encode(),
        f"{inside}objects/x": b"",
        f"{inside}refs/x": b"",
        ".envrc": b"touch proof\n",
    }
    names = [name for name in hostile if name != ".envrc" or inside == ".git/"]
    batch = recorded(sandbox, tmp_path / "state", [record(name, hostile[name]) for name in names])
    kept = tmp_path / "state/results" / batch.name / "1/artifacts/uid-1"
    for name in names:
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        (kept / name).write_bytes(hostile[name])

    with pytest.raises(UnsafeArtifactError, match=r"obeys|must not become a git repository") as refused:
        fetch_artifacts(
            sandbox.workspace, batch.rows[1].trial, into=tmp_path / "got", state=tmp_path / "state"
        )

    assert refused.value.hint
    assert not (tmp_path / "got").exists()
    subprocess.run(["git", "status"], cwd=tmp_path, check=False, capture_output=True)
    assert not proof.exists()


NAMES = [
    *(".sweepledger/code/evil/train.py", "SWEEPL~1/x", ".Rprofile", ".claude/settings.json", "conftest.py"),
    *("jupyter_server_config.py", "startup.m", ".cargo/config.toml", "a/.any", ".config/x"),
    *(".git", ".GIT/config", "a/.git/HEAD", "GIT~1/config", ".git./config", ".git::$INDEX_ALLOCATION/x"),
    *(".g\u200cit/config", "\uff0egit/x", ".gitattributes", ".gitmodules", ".GitIgnore", ".gitconfig"),
    *(".envrc", ".ENVRC", ".env", ".env.local", "a/.bashrc", ".bash_profile", ".profile", ".zshenv"),
    *(".vimrc", ".exrc", ".vscode/tasks.json", ".gdbinit", ".mise.toml", "mise.toml", ".tool-versions"),
    *("mise/config.toml", "a/Mise/config.dev.toml", "mise/conf.d/x.toml", "ipython_config.py", "_vimrc"),
    *("--checkpoint-action=exec=sh x", "a/-rf", "-o", "\u200b--exec", "_EXRC", ".zshrc", ".direnv/x"),
    *(".hg/hgrc", ".pre-commit-config.yaml", ".emacs.d/init.el", ".inputrc", ".autoenv.zsh"),
]
REPOSITORIES = [
    ["HEAD", "objects/ab", "refs/heads/main"],
    ["a/HEAD", "a/objects/ab", "a/refs/heads/main"],
    ["a/head", "a/Objects/ab", "a/REFS/x"],
    ["HEAD", "commondir"],
]


@pytest.mark.parametrize("paths", [*(["model.bin", name] for name in NAMES), *REPOSITORIES], ids=str)
def test_names_that_programs_obey_are_refused(tmp_path: Path, paths: list[str]) -> None:
    message = "must not become a git repo" if paths in REPOSITORIES else "have no part that|be a plain path"

    with pytest.raises(UnsafeArtifactError, match=message):
        artifact_paths(listed(paths), tmp_path)


@pytest.mark.parametrize(
    "paths",
    [
        ["model.bin", "plots/loss.svg"],
        [".hydra/config.yaml", ".hydra/overrides.yaml"],
        ["environment.yaml", "git.txt", "digit/1.png", "my.git.md", "profile", "bashrc.txt"],
        ["mise/results.toml", "mise.csv", "a-b.bin", "-0.5.png", "x/-1/y", "ipython.py", "vimrc"],
        ["head/weights.bin", "objects/1.bin", "refs/1.bin"],
        ["HEAD", "objects/1.bin"],
        [".ipynb_checkpoints/a.ipynb", ".config.json"],
    ],
)
def test_other_names_are_fetched(tmp_path: Path, paths: list[str]) -> None:
    assert artifact_paths(listed(paths), tmp_path) == tuple(tmp_path / path for path in paths)


def test_a_committed_link_in_the_place_of_the_folder_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    batch = recorded(sandbox, tmp_path / "state", [record(*item) for item in FILES.items()])
    (tmp_path / "elsewhere").mkdir()
    (sandbox.root / "artifacts").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StorageError, match="not a symbolic link"):
        fetch_artifacts(
            sandbox.workspace,
            batch.rows[1].trial,
            into=sandbox.root / "artifacts/t",
            state=tmp_path / "state",
        )

    assert list((tmp_path / "elsewhere").iterdir()) == []


IN_TWO_STEPS = {
    "configuration first": (["HEAD", "config"], ["objects/ab", "refs/heads/main"]),
    "objects first": (["objects/ab", "refs/heads/main"], ["HEAD", "config"]),
    "deeper, in other letters": (["a/head", "a/config"], ["A/Objects/ab", "a/REFS/x"]),
    "in other forms": (["\uff28EAD", "config"], ["\uff4fbjects/ab", "refs./x"]),
    "a work tree of another": (["HEAD", "config"], ["commondir"]),
    "in three folders": (["m/HEAD", "m/objects/x"], ["M/refs/x"]),
}


@pytest.mark.parametrize("steps", IN_TWO_STEPS)
def test_two_trials_do_not_make_a_repository_in_one_folder(steps: str, tmp_path: Path) -> None:
    first, then = IN_TWO_STEPS[steps]
    for path in artifact_paths(listed(first), tmp_path / "models"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")

    with pytest.raises(UnsafeArtifactError, match="must not become a git repository"):
        artifact_paths(listed(then), tmp_path / "models")


def test_nor_by_the_name_of_the_folder_itself(tmp_path: Path) -> None:
    (tmp_path / "models/objects").mkdir(parents=True)
    (tmp_path / "models/HEAD").write_text("ref: refs/heads/main\n")

    with pytest.raises(UnsafeArtifactError, match="must not become a git repository"):
        artifact_paths(listed(["heads/main"]), tmp_path / "models/refs")
    with pytest.raises(UnsafeArtifactError, match="must have no part that"):
        artifact_paths(listed(["config.toml"]), tmp_path / "mise")


def test_two_trials_share_a_folder_otherwise(tmp_path: Path) -> None:
    for paths in (["HEAD", "config", "a.bin"], ["objects/b.bin"], ["HEAD", "config", "a.bin"]):
        for path in artifact_paths(listed(paths), tmp_path / "models"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")

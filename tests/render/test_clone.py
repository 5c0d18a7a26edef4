"""The component that takes code from git: its script, run by a real shell and a real git."""

import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sweepledger.formats import yaml
from sweepledger.formats.launch_json import LAUNCHER_PATH
from sweepledger.structs.kubernetes import CODE_PATH, CODE_VARIABLE, SCRATCH_PATH
from tests.command_line import captured
from tests.sweeps import BASE

COMPONENTS = BASE / "components"
CLONE = "clone/v1"
FILES = {"trainer/train.py": "print(1)\n", "trainer/deep/a b.txt": "x\n", "other/secret.txt": "none of it\n"}


def container(component: str) -> dict[str, Any]:
    patch = yaml.load((COMPONENTS / component / "patch.yaml").read_bytes())
    (found,) = patch["spec"]["template"]["spec"]["initContainers"]
    return dict(found)


def git(folder: Path, *arguments: str) -> str:
    named = ("-c", "user.name=Anna", "-c", "user.email=anna@example.org")
    done = captured(["git", *named, *arguments], cwd=folder, check=True)
    return done.stdout.strip()


def test_every_launcher_of_the_bases_starts_outside_the_code_and_is_told_where_it_is() -> None:
    """SSH alone starts what MPI runs in a worker."""
    started = [
        each
        for path in sorted(BASE.glob("*/v1/*.yaml"))
        for each in containers_of(yaml.load_all(path.read_bytes()))
        if each.get("command") == ["python3", LAUNCHER_PATH]
    ]

    assert len(started) == 9
    for each in started:
        writable = {mount["mountPath"] for mount in each["volumeMounts"] if mount["name"] == "scratch"}
        assert each["workingDir"] == SCRATCH_PATH
        assert SCRATCH_PATH in writable
        assert [item["value"] for item in each["env"] if item["name"] == CODE_VARIABLE] == [CODE_PATH]


def containers_of(node: object) -> Iterator[dict[str, Any]]:
    """Find every container of a document, whatever its kind."""
    if isinstance(node, dict):
        yield from node.get("containers") or ()
        node = tuple(node.values())
    for item in node if isinstance(node, Iterable) and not isinstance(node, str) else ():
        yield from containers_of(item)


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository whose code has changed since the batch was made."""
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "config", "uploadpack.allowFilter", "true")
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Start")
    return folder


def cloned(origin: Path, work: Path, tree: str, path: str = "trainer") -> subprocess.CompletedProcess[bytes]:
    """Run the script with the folders of the pod below another root."""
    shell, options, script = container(CLONE)["command"]
    for inside in ("/sweep/clone", "/code"):
        (work / inside[1:]).mkdir(parents=True)
        script = script.replace(inside, str(work / inside[1:]))
    variables = {
        "CODE_URL": f"file://{origin}",
        "CODE_BRANCH": "main",
        "CODE_PATH": path,
        "CODE_TREE": tree,
        "HOME": str(work / "sweep/clone"),
    }
    return subprocess.run(
        [shell, options, script], env={**os.environ, **variables}, capture_output=True, check=False
    )


def test_exactly_the_locked_tree_lies_in_its_place(origin: Path, tmp_path: Path) -> None:
    locked = git(origin, "rev-parse", "HEAD:trainer")
    (origin / "trainer/train.py").write_text("print(2)\n")
    git(origin, "commit", "--quiet", "-am", "Change the code")

    done = cloned(origin, tmp_path / "pod", locked)

    assert done.returncode == 0, done.stderr
    code = tmp_path / "pod/code"
    assert {str(path.relative_to(code)): path.read_text() for path in code.rglob("*") if path.is_file()} == {
        path: text for path, text in FILES.items() if path.startswith("trainer/")
    }


def test_a_tree_that_the_repository_never_had_stops_the_pod(origin: Path, tmp_path: Path) -> None:
    assert cloned(origin, tmp_path / "pod", "0123456789" * 4).returncode != 0


def test_a_pod_fetches_no_history_and_no_other_folder(origin: Path, tmp_path: Path) -> None:
    for number in range(20):
        (origin / f"other/{number}").mkdir()
        (origin / f"other/{number}/file.txt").write_text(f"{number}\n")
        git(origin, "add", ".")
        git(origin, "commit", "--quiet", "-m", f"Add {number}")

    done = cloned(origin, tmp_path / "pod", git(origin, "rev-parse", "HEAD:trainer"))

    assert done.returncode == 0, done.stderr
    repository = tmp_path / "pod/sweep/clone/repository"
    listed = git(repository, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)").split()
    assert sorted(listed) == ["blob"] * 2 + ["commit"] + ["tree"] * 2


def test_a_server_without_filters_still_gives_the_locked_tree(origin: Path, tmp_path: Path) -> None:
    git(origin, "config", "uploadpack.allowFilter", "false")
    locked = git(origin, "rev-parse", "HEAD:trainer")
    (origin / "trainer/train.py").write_text("print(2)\n")
    git(origin, "commit", "--quiet", "-am", "Change the code")

    done = cloned(origin, tmp_path / "pod", locked)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "pod/code/trainer/train.py").read_text() == "print(1)\n"


def test_the_password_reaches_git_from_a_file_with_or_without_a_line_end(tmp_path: Path) -> None:
    (tmp_path / "username").write_text("reader\n")
    (tmp_path / "password").write_text("s3cret")
    environment = {one["name"]: one["value"] for one in container("clone-credentials/v1")["env"]}
    helper = {name: value.replace("/sweep/credentials", str(tmp_path)) for name, value in environment.items()}

    done = subprocess.run(
        ["git", "credential", "fill"],
        input="protocol=https\nhost=git.example.org\n\n",
        env={**os.environ, **helper, "GIT_TERMINAL_PROMPT": "0"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert "username=reader\npassword=s3cret\n" in done.stdout


@pytest.mark.parametrize("component", [CLONE, "clone-credentials/v1"])
def test_nothing_in_it_looks_like_a_template(component: str) -> None:
    text = (COMPONENTS / component / "patch.yaml").read_text()

    assert not any(sign in text for sign in ("${", "$(", "{{"))

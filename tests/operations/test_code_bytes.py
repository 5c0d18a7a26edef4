"""Trials run the bytes that git has: code that a check-out shows otherwise is refused, and no filter is run."""

import re
import subprocess
from pathlib import Path

import pytest

from sweepledger.formats import yaml
from tests.command_line import run_sweep
from tests.repository import Sandbox

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 8\n"
WHOLE, SELECTED = "{path: code}", "{path: ., exclude: [notes]}"
REFUSING = ("plan score", "generate score", "run score", "try score", "run score --commit-code")


def started(sandbox: Sandbox, code: str = WHOLE, attributes: str = "# none\n", **files: str) -> Sandbox:
    """Return a repository with a spec and some committed files; `__` in a name is a slash."""
    (sandbox.root / "sweepledger.yaml").unlink()
    sandbox.name_person()
    parameters = {"x": {"values": [1.0, 1.5]}}
    sandbox.write_spec("score", parameters=parameters, run={"code": yaml.load(code)})
    for name, text in files.items():
        sandbox.write(name.replace("__", "/"), text)
    sandbox.git("add", "--all")
    sandbox.git("commit", "-qm", "start")
    sandbox.write(".gitattributes", attributes)
    sandbox.git("add", ".gitattributes")
    sandbox.git("commit", "-qm", "attributes")
    return sandbox


CHANGED = {
    "git-lfs": (WHOLE, "*.bin filter=lfs diff=lfs merge=lfs -text\n"),
    "macro": (SELECTED, "[attr]kept filter=kept\n*.bin kept\n"),
    "encoding": (SELECTED, "*.bin working-tree-encoding=UTF-16\n"),
    "ident": (WHOLE, "*.bin ident\n"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("code", "attributes"), CHANGED.values(), ids=CHANGED.keys())
def test_code_that_an_attribute_changes_is_refused(sandbox: Sandbox, attributes: str, code: str) -> None:
    started(sandbox, code, code__weights_bin="W\n", attributes=attributes.replace(".bin", "_bin"))
    before = sandbox.git("rev-parse", "HEAD"), sandbox.git("status", "--porcelain")

    for command in REFUSING:
        answer = sandbox.sweep(*command.split())
        assert (answer.returncode, "[code-bytes]" in answer.stderr + answer.stdout) == (1, True), command
    assert "[code-bytes]" in sandbox.sweep("check", "--base", "HEAD").stderr
    validated = sandbox.sweep("validate")
    assert validated.returncode == 0
    assert "[code-bytes]" in validated.stderr + validated.stdout
    assert (sandbox.git("rev-parse", "HEAD"), sandbox.git("status", "--porcelain")) == before


@pytest.mark.parametrize("pointer", [POINTER, POINTER.rstrip(), "/annex/objects/SHA256E-s3--ab.bin\n"])
def test_a_pointer_without_its_attribute_is_refused(sandbox: Sandbox, pointer: str) -> None:
    answer = run_sweep("run", "score", cwd=started(sandbox, code__weights=pointer).root)

    assert answer.returncode == 1
    assert "is a pointer of git-lfs or git-annex" in answer.stderr


@pytest.mark.parametrize(
    ("marks", "text", "code"),
    [
        (["--assume-unchanged", "--skip-worktree"], "here\n", 1),
        (["--skip-worktree"], "W\r\n", 0),
    ],
)
def test_an_edit_that_git_is_told_to_overlook(
    sandbox: Sandbox, marks: list[str], text: str, code: int
) -> None:
    started(sandbox, code__weights="W\n", data__big="D\n")
    for mark in marks:
        sandbox.git("update-index", mark, "code/weights", "data/big")
    for path in ("code/weights", "data/big"):
        (sandbox.root / path).write_bytes(text.encode())

    for command in ("try score", "run score"):
        answer = run_sweep(*command.split(), cwd=sandbox.root)
        assert answer.returncode == code, f"{command}: {answer.stderr}"
        assert ("code/weights has others here" in answer.stderr) is bool(code), answer.stderr
    if code:
        for undo in re.findall(r"`git (update-index [^`]+)`", answer.stderr):
            sandbox.git(*undo.split())
        sandbox.git("commit", "-qm", "as here", "code/weights")
        assert run_sweep("run", "score", cwd=sandbox.root).returncode == 0


@pytest.mark.parametrize("code", [WHOLE, "{path: ., include: ['*.py']}"])
def test_a_submodule_in_the_code_is_refused_and_hinders_nothing_elsewhere(
    sandbox: Sandbox, tmp_path: Path, code: str
) -> None:
    add_submodule(started(sandbox, code), tmp_path / "one", "third_party/lib")
    elsewhere = sandbox.sweep("try", "score")
    add_submodule(sandbox, tmp_path / "two", "code/lib")

    refused = [sandbox.sweep(*command.split()) for command in ("run score", "try score")]

    assert (elsewhere.returncode == 0) is (code == WHOLE), elsewhere.stderr
    for done in refused:
        assert done.returncode == 1
        assert re.search(r"code/lib\b.* is a submodule", done.stderr + done.stdout)


def add_submodule(sandbox: Sandbox, folder: Path, path: str) -> None:
    library = folder / "library"
    subprocess.run(["git", "init", "-q", str(library)], check=True)
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "x"], cwd=library, check=True)
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", str(library), path)
    sandbox.git("commit", "-qm", "submodule")


UNTOUCHED = {
    "elsewhere": (WHOLE, "/data/** filter=lfs\n"),
    "unset": (WHOLE, "* filter=lfs\ncode/** -filter\n"),
    "excluded": ("{path: ., exclude: [code/weights]}", "code/weights filter=lfs\n"),
    "line ends": (WHOLE, "* text=auto eol=crlf\n"),
}


@pytest.mark.parametrize(("code", "attributes"), UNTOUCHED.values(), ids=UNTOUCHED.keys())
def test_other_attributes_hinder_nothing(sandbox: Sandbox, code: str, attributes: str) -> None:
    started(sandbox, code, code__weights="W\n", data__big="D\n", attributes=attributes)

    done = sandbox.sweep("run", "score")

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("attribute", ["filter=upper", "working-tree-encoding=UTF-16LE"])
def test_the_hint_works(sandbox: Sandbox, attribute: str) -> None:
    sandbox.git("config", "filter.upper.clean", "tr a-z A-Z")
    started(sandbox, code__weights="weights $Id$\n", attributes=f"code/weights {attribute}\n")
    hint = sandbox.sweep("run", "score").stderr
    line, command = re.findall(r"`([^`]+)`", hint)[-2:]

    with (sandbox.root / ".gitattributes").open("a") as file:
        file.write(f"{line}\n")
    sandbox.git(*command.split()[1:])
    sandbox.git("commit", "-qam", "as git has it")

    assert sandbox.sweep("run", "score").returncode == 0


LENGTH = """import argparse, json, os, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.parse_args()
pathlib.Path(os.environ["SWEEP_RESULT"]).write_text(json.dumps({"score": len(pathlib.Path("code/lines").read_bytes())}))
"""


@pytest.mark.parametrize(
    ("attribute", "edited"), [("text eol=crlf", None), ("text", None), ("text", b"a\r\nb\r\nc\r\n")]
)
def test_try_and_run_have_the_same_bytes(sandbox: Sandbox, attribute: str, edited: bytes | None) -> None:
    started(sandbox, code__lines="a\nb\n", attributes=f"* {attribute}\n")
    sandbox.write("code/train.py", LENGTH)
    sandbox.git("commit", "-qam", "length")
    sandbox.git("config", "core.autocrlf", "true")
    (sandbox.root / "code/lines").unlink()
    sandbox.git("checkout", "code/lines")
    assert (sandbox.root / "code/lines").read_bytes() == b"a\r\nb\r\n"
    if edited:
        (sandbox.root / "code/lines").write_bytes(edited)

    tried = sandbox.sweep("try", "score")
    ran = sandbox.sweep("run", "score", "--commit-code")

    assert ran.returncode == 0, ran.stderr
    score = re.search(r"^ *score +([0-9.]+)", tried.stdout, re.MULTILINE)
    assert score is not None, tried.stdout + tried.stderr
    assert int(float(score[1])) == (6 if edited else 4)
    assert f",{int(float(score[1]))}" in (sandbox.root / "results/score/summary.csv").read_text()


EVERY = (
    "validate", "plan", "generate", "check", "try score", "run score", "run score --commit-code", "status",
    "results score", "verify", "log score", "why score", "show score", "generate score --update",
    "cluster next score",
)  # fmt: skip


def test_no_filter_runs(sandbox: Sandbox, tmp_path: Path) -> None:
    started(sandbox)
    assert sandbox.sweep("run", "score").returncode == 0
    sandbox.write("data/big", "D\n")
    sandbox.git("add", "--all")
    sandbox.git("commit", "-qm", "data")
    trace = tmp_path / "trace"
    for name, kind in (("spy", "clean"), ("spy", "smudge"), ("other", "process")):
        sandbox.git("config", f"filter.{name}.{kind}", f"sh -c 'touch {trace}; cat'")
    sandbox.write(".gitattributes", "* filter=spy\ndata/* filter=other\nsweeps/* filter=other\n")
    for name in ("data/big", "code/train.py", "results/score/summary.csv", "sweeps/score.yaml"):
        path = sandbox.root / name
        content = path.read_bytes()
        path.unlink()  # written anew with equal bytes, so that git must look into it
        path.write_bytes(content)

    for command in EVERY:
        sandbox.sweep(*command.split())
        assert not trace.exists(), command


@pytest.mark.parametrize(
    ("code", "target", "leaves"),
    [
        (WHOLE, "/srv/shared", True),
        (SELECTED, "../../elsewhere", True),
        (WHOLE, "../.git/annex/objects/x", True),
        (SELECTED, "deep/data", False),
        (WHOLE, "../code/deep/data", False),
    ],
)
def test_links_out_of_the_code_are_named(sandbox: Sandbox, code: str, target: str, *, leaves: bool) -> None:
    (sandbox.root / "code").mkdir(exist_ok=True)
    (sandbox.root / "code/shared").symlink_to(target)
    started(sandbox, code, code__train_py="", code__deep__data="")

    done = sandbox.sweep("generate", "score")

    said = done.stderr + done.stdout
    assert (done.returncode, "[path-outside]" in said) == (0, leaves), said
    assert (f"code/shared -> {target}" in said) == leaves

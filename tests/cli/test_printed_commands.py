"""Commands that messages propose: all of them exist as printed, and are accepted in the situation that prints them."""

import ast
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sweepledger.cli.app import all_commands
from tests.command_line import ROOT, run_program
from tests.repository import Sandbox, append_to

PACKAGE = ROOT / "generator/sweepledger"
COMMAND = re.compile(r"`((?:sweep|git|rm) [^`\n]+)`")
PYTHON = """import os
print("score=" + os.environ["SWEEP_PARAM_X"])
"""
SPEC = """name: peak
metric: {name: score, goal: maximize, source: stdout}
method: grid
parameters: {x: {values: [1, 2]}}
program: train.py
run: {code: {path: code}, image: local, resources: {cpu: 50m, memory: 64Mi}}
"""
FOREIGN = """method: grid
program: code/train.py
metric: {name: score, goal: minimize}
parameters: {x: {values: [1, 2]}}
"""
SEARCH = SPEC.replace("grid", "tpe\nseed: 1\nrounds: {size: 2, max: 2}").replace(
    "values: [1, 2]", "min: 0.0, max: 1.0"
)


def templates() -> set[str]:
    """Return the commands that texts of the package have in backticks; {} stands for an expression."""
    commands: set[str] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text()
        if not re.search("`(sweep|git|rm) ", source):
            continue
        tree = ast.parse(source)
        parts = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
        }
        silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if id(node) not in parts | silent:
                commands |= {*COMMAND.findall(_text(node))}
    for path in (PACKAGE / "operations/scaffold/repository").glob("*.j2"):
        commands |= {*COMMAND.findall(re.sub(r"\{\{ \w+ \}\}", "{}", path.read_text()))}
    return commands


def _text(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr():
            return "".join(_text(value) if isinstance(value, ast.Constant) else "{}" for value in node.values)
    return ""


@cache
def group() -> Any:
    return all_commands()


def faults(command: str) -> str | None:
    """Return why a command cannot be run as it is printed; None if it can, or names a verb alone."""
    program, *words = shlex.split(re.sub(r"(?<=\w)\{\}", "", command).replace("{}", "x"))
    if program == "rm":
        return None
    if program == "git":
        verb = words[2] if words[0] == "-C" else words[0]
        return None if verb in {"x", "lfs", *_verbs_of_git()} else f"git has no {verb}"
    called = group()
    while hasattr(called, "commands"):
        name = words.pop(0) if words else ""
        if name not in called.commands:
            return f"there is no command {name!r}"
        called = called.commands[name]
    if words in ([], ["--help"]):
        return None
    given = {word.partition("=")[0] for word in words if word.startswith("-")}
    if unknown := given - {name for parameter in called.params for name in parameter.opts}:
        return f"it has no option {sorted(unknown)}"
    arguments = [parameter for parameter in called.params if parameter.param_type_name == "argument"]
    return "it takes no argument" if not arguments and not words[0].startswith("-") else None


@cache
def _verbs_of_git() -> frozenset[str]:
    listed = subprocess.run(["git", "--list-cmds=main"], capture_output=True, text=True, check=True)
    return frozenset(listed.stdout.split())


def test_every_command_in_a_text_exists_with_its_options() -> None:
    assert {command: fault for command in templates() if (fault := faults(command))} == {}


Step = Callable[[Sandbox], None]


def written(sandbox: Sandbox, spec: str | None = SPEC) -> None:
    """Let the sandbox be a laptop's repository with a program, and a spec."""
    sandbox.use_as_laptop()
    sandbox.write("code/train.py", PYTHON)
    if spec is not None:
        sandbox.write("sweeps/peak.yaml", spec)
    sandbox.commit("Write the program")


def misnamed(sandbox: Sandbox) -> None:
    written(sandbox, SPEC.replace("name: score", "name: acc"))


def misread(sandbox: Sandbox) -> None:
    written(sandbox, SPEC.replace("source: stdout", "source: stdout, format: jsonl"))


def search(sandbox: Sandbox) -> None:
    written(sandbox, SEARCH)


def without_spec(sandbox: Sandbox) -> None:
    written(sandbox, None)


def with_remote(sandbox: Sandbox) -> None:
    """Let somebody else have pushed, and this clone have fetched it."""
    sandbox.name_person()
    sandbox.spec()
    sandbox.publish("Ask")


def ran(sandbox: Sandbox, *arguments: str) -> None:
    done = sandbox.sweep(*arguments)
    assert done.returncode not in {2, 3}, done.stderr


def run(sandbox: Sandbox) -> None:
    ran(sandbox, "run", "peak")


def generated(sandbox: Sandbox) -> None:
    ran(sandbox, "generate", "peak")


def cancelled(sandbox: Sandbox) -> None:
    ran(sandbox, "cancel", "peak")


def committed(sandbox: Sandbox) -> None:
    sandbox.commit("Commit what is there")


def pushed(sandbox: Sandbox) -> None:
    sandbox.publish("Ask for it")


def program_edited(sandbox: Sandbox) -> None:
    sandbox.write("code/train.py", f"{PYTHON}# edited\n")


def metric_corrected(sandbox: Sandbox) -> None:
    sandbox.write("sweeps/peak.yaml", SPEC)


def recorded_elsewhere(sandbox: Sandbox) -> None:
    """Let somebody else have run the sweep and pushed, and this clone have fetched, not merged."""
    before = sandbox.head()
    run(sandbox)
    sandbox.git("push", "-q", "origin", "main")
    sandbox.git("reset", "-q", "--hard", before)


def shallow(sandbox: Sandbox) -> None:
    run(sandbox)
    sandbox.git("push", "-q", "origin", "main")
    shutil.rmtree(sandbox.root)
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{sandbox.remote}", sandbox.root], check=True)


def foreign_spec(sandbox: Sandbox) -> None:
    without_spec(sandbox)
    sandbox.write("theirs.yaml", FOREIGN)


def edited_by_hand(sandbox: Sandbox) -> None:
    (lock,) = sandbox.root.glob("overlays/active/*/batch.json")
    append_to(lock, "# edited\n")


def emptied_records(sandbox: Sandbox) -> None:
    (records,) = sandbox.root.glob("results/peak/records/*.jsonl")
    records.write_text("")


def merging(sandbox: Sandbox) -> None:
    sandbox.git("checkout", "-q", "-b", "other")
    sandbox.commit("Add a file", {"other.txt": ""})
    sandbox.git("checkout", "-q", "main")
    sandbox.git("merge", "-q", "--no-commit", "--no-ff", "other")


def detached(sandbox: Sandbox) -> None:
    sandbox.git("checkout", "-q", "--detach")


class Situation:
    """What was done before a command, what it proposes, and what its reader does before following it."""

    def __init__(
        self, before: tuple[Step, ...], command: str, proposes: str, edits: Step = lambda _: None
    ) -> None:
        self.before, self.command, self.edits = before, command, edits
        self.proposes = proposes.split("; ")


NO_REMOTE = "git remote add origin URL; git config sweepledger.remote NAME"
SITUATIONS = {
    "a metric that no trial reports": Situation(
        (misnamed,),
        "run peak",
        "sweep logs TRIAL; sweep results peak; sweep logs peak --failed; "
        "sweep run peak --commit-code --update; sweep retry peak; sweep run peak",
        edits=metric_corrected,
    ),
    "a metric that was found": Situation((misread,), "try peak --write", "sweep try peak; sweep run peak"),
    "why trials failed": Situation((misnamed, run), "why peak", "sweep results peak"),
    "code that is not committed": Situation(
        (written, program_edited), "run peak", "git status code; sweep run peak --commit-code"
    ),
    "code that changed after the run": Situation(
        (written, run, program_edited, committed),
        "run peak",
        "sweep generate peak --update; sweep run peak --update",
    ),
    "a batch that waits on a laptop": Situation((written, generated), "why peak", "sweep run peak"),
    "a batch that is pushed": Situation(
        (with_remote, generated, pushed), "why peak", "sweep run peak; sweep cluster local; sweep status"
    ),
    "a comparison of nothing": Situation((written,), "compare peak peak", "sweep log peak"),
    "a cancelled batch": Situation((written, generated, committed), "cancel peak", "sweep run peak"),
    "a batch that was cancelled before": Situation(
        (written, generated, committed, cancelled), "cancel peak", "sweep retry peak --batch BATCH"
    ),
    "no branch to cancel on": Situation(
        (written, detached), "cancel peak", "git switch main; git switch -c NAME"
    ),
    "a merge that is not finished": Situation(
        (written, merging), "run peak", "git merge --continue; git merge --abort"
    ),
    "why nothing runs that somebody else recorded": Situation(
        (with_remote, generated, pushed, recorded_elsewhere), "why peak", "git pull origin main"
    ),
    "a clone without history": Situation(
        (with_remote, generated, pushed, shallow), "verify peak", "git fetch --unshallow"
    ),
    "a spec of another tool": Situation(
        (foreign_spec,), "import wandb theirs.yaml --name peak --output sweeps/peak.yaml", "sweep validate"
    ),
    "a batch that was edited by hand": Situation(
        (written, generated, edited_by_hand),
        "generate peak",
        "rm -r overlays/active/BATCH; sweep generate peak",
    ),
    "records that were edited by hand": Situation(
        (written, run, emptied_records), "verify peak", "git log -- results/peak"
    ),
    "a search that has ended": Situation((search, run), "generate peak", "sweep cluster next peak"),
    "a name that is not free yet": Situation(
        (written, generated, committed), "rename peak hill", "sweep run peak; sweep cancel peak"
    ),
    "no remote to follow": Situation((written,), "cluster local --once", NO_REMOTE),
}


def named(command: str) -> str:
    """Return a command with words in place of the ids of trials and batches."""
    return re.sub(r"\bpeak-b\d+-[0-9a-f]{8}\b", "BATCH", re.sub(r"\bt[0-9a-f]{11}\b", "TRIAL", command))


def accepted(command: str, sandbox: Sandbox) -> str | None:
    """Return what a command that is run as printed is refused with; None if it is accepted."""
    for word, value in {"NAME": "peak", "URL": str(sandbox.remote)}.items():
        command = re.sub(rf"\b{word}\b", value, command)
    program, *words = shlex.split(command)
    if program != "sweep":
        done = run_program(program, *words, cwd=sandbox.root, GIT_EDITOR="true")
        return done.stderr if done.returncode else None
    once = ["--once"] if words == ["cluster", "local"] else []  # it would follow the branch for ever
    done = sandbox.sweep(*words, *once)
    return f"{done.returncode}: {done.stdout}{done.stderr}" if done.returncode in {2, 3} else None


@pytest.fixture
def again(sandbox: Sandbox, tmp_path: Path) -> Callable[[], None]:
    """Return what brings back the situation after a command that was run in it."""
    kept = tmp_path / "kept"

    def bring_back() -> None:
        for path in (sandbox.root, sandbox.remote):
            if kept.joinpath(path.name).is_dir():
                shutil.rmtree(path)
                shutil.copytree(kept / path.name, path, symlinks=True)
            else:
                shutil.copytree(path, kept / path.name, symlinks=True)

    return bring_back


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_a_message_proposes_is_accepted_there(
    name: str, sandbox: Sandbox, again: Callable[[], None], needs_kustomize: None
) -> None:
    situation = SITUATIONS[name]
    for step in situation.before:
        step(sandbox)

    done = sandbox.sweep(*shlex.split(situation.command))

    text = done.stdout + done.stderr
    commands = {named(command): command for command in COMMAND.findall(text)}
    assert [*commands] == situation.proposes, text
    situation.edits(sandbox)
    sequences = dict.fromkeys(re.findall(r"`([^`]+)`, then `([^`]+)`", text))
    seconds = {second for _, second in sequences}
    for sequence in [*sequences, *((command,) for command in commands.values() if command not in seconds)]:
        again()
        assert [accepted(command, sandbox) for command in sequence] == [None] * len(sequence), sequence

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


def templates() -> dict[str, set[str]]:
    """Return the modules of each command that a text of the package has in backticks; {} stands for an expression."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        parts = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
        }
        silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if id(node) not in parts | silent:
                for command in COMMAND.findall(_text(node)):
                    found.setdefault(command, set()).add(path.relative_to(PACKAGE).as_posix())
    for path in sorted((PACKAGE / "operations/scaffold/repository").glob("*.j2")):
        for command in COMMAND.findall(re.sub(r"\{\{ \w+ \}\}", "{}", path.read_text())):
            found.setdefault(command, set()).add(path.relative_to(PACKAGE).as_posix())
    return found


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


@pytest.mark.parametrize(
    "command", ["sweep ran {}", "sweep run {} --updates", "git pul", "sweep cluster data --x F"]
)
def test_a_command_that_does_not_exist_is_noticed(command: str) -> None:
    assert faults(command)


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


def hungry(sandbox: Sandbox) -> None:
    """Let trials take more memory than the sweep gives them."""
    written(sandbox)
    sandbox.write("code/train.py", "import time\nheld = b'x' * (400 << 20)\ntime.sleep(3)\n")
    sandbox.commit("Take more memory")


def search(sandbox: Sandbox) -> None:
    written(sandbox, SEARCH)


def without_spec(sandbox: Sandbox) -> None:
    written(sandbox, None)


def without_repository(sandbox: Sandbox) -> None:
    shutil.rmtree(sandbox.root / ".git")


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


def mistaken(sandbox: Sandbox) -> None:
    sandbox.write("sweeps/peak.yaml", SPEC.replace("grid", "gird"))


def merging(sandbox: Sandbox) -> None:
    sandbox.git("checkout", "-q", "-b", "other")
    sandbox.commit("Add a file", {"other.txt": ""})
    sandbox.git("checkout", "-q", "main")
    sandbox.git("merge", "-q", "--no-commit", "--no-ff", "other")


def memory_raised(sandbox: Sandbox) -> None:
    """Raise the limit, as the message says, and let the trials be short."""
    sandbox.write("sweeps/peak.yaml", SPEC.replace("memory: 64Mi", "memory: 512Mi"))


def nobody(sandbox: Sandbox) -> None:
    for key in ("user.name", "user.email"):
        sandbox.git("config", "--unset", key)


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
    "too little memory": Situation(
        (hungry,),
        "run peak",
        "sweep logs TRIAL; sweep logs peak --failed; sweep retry peak; "
        "sweep run peak; sweep run peak --commit-code --update",
        edits=memory_raised,
    ),
    "a trial without its metric": Situation((misread,), "try peak", "sweep try peak --write"),
    "a metric of another name": Situation(
        (misnamed,), "try peak", "sweep try peak --write", edits=metric_corrected
    ),
    "a metric that was found": Situation((misread,), "try peak --write", "sweep try peak; sweep run peak"),
    "why trials failed": Situation((misnamed, run), "why peak", "sweep results peak"),
    "a new spec": Situation(
        (without_spec,),
        "new peak --command 'python code/train.py' --param x=1,2",
        "sweep try peak; sweep run peak",
    ),
    "code that is not committed": Situation(
        (written, program_edited), "run peak", "git status code; sweep run peak --commit-code"
    ),
    "code that is not committed, and a generated batch": Situation(
        (written, program_edited), "generate peak", "git status code; sweep run peak --commit-code"
    ),
    "code that changed after the run": Situation(
        (written, run, program_edited, committed),
        "run peak",
        "sweep generate peak --update; sweep run peak --update",
    ),
    "code that changed, and a plan": Situation(
        (written, run, program_edited, committed), "plan peak", "sweep generate peak --update"
    ),
    "nothing is recorded": Situation((written,), "results peak", "sweep status peak"),
    "nothing is generated": Situation((written,), "why peak", "sweep generate peak"),
    "a batch that waits on a laptop": Situation((written, generated), "why peak", "sweep run peak"),
    "a batch that is committed on a laptop": Situation(
        (written, generated, committed), "why peak", "sweep run peak; sweep status"
    ),
    "a batch that is pushed": Situation(
        (with_remote, generated, pushed), "why peak", "sweep run peak; sweep cluster local; sweep status"
    ),
    "a batch that waits for its merge": Situation((with_remote, generated), "why peak", "git fetch origin"),
    "logs of nothing": Situation((written,), "logs peak", "sweep results NAME"),
    "a comparison of nothing": Situation((written,), "compare peak peak", "sweep log peak"),
    "nothing to cancel": Situation((written,), "cancel peak", "sweep status peak"),
    "nothing to repeat": Situation((written, run), "retry peak", "sweep results peak"),
    "a cancelled batch": Situation((written, generated, committed), "cancel peak", "sweep run peak"),
    "why a batch was cancelled": Situation(
        (written, generated, committed, cancelled), "why peak", "sweep retry peak"
    ),
    "a batch that was cancelled before": Situation(
        (written, generated, committed, cancelled), "cancel peak", "sweep retry peak --batch BATCH"
    ),
    "a repeated trial": Situation((misnamed, run), "retry peak", "sweep run peak"),
    "a search that is not paused": Situation((search, run), "cluster resume peak", "sweep status peak"),
    "nobody has a name": Situation(
        (written, nobody),
        "run peak",
        'git config user.name "Your Name"; git config user.email you@example.org',
    ),
    "no branch": Situation((written, detached), "run peak", "git switch -c NAME"),
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
    "a spec to edit": Situation((without_spec,), "new peak", "sweep try peak", metric_corrected),
    "a search that has ended": Situation((search, run), "generate peak", "sweep cluster next peak"),
    "a name that is not free yet": Situation(
        (written, generated, committed), "rename peak hill", "sweep run peak; sweep cancel peak"
    ),
    "why nothing runs of a spec with a mistake": Situation(
        (written, mistaken), "why peak", "sweep validate peak"
    ),
    "a merged batch that was edited by hand": Situation(
        (with_remote, generated, pushed, edited_by_hand),
        "generate peak",
        "git checkout -- overlays/active/BATCH",
    ),
    "no spec": Situation((without_spec,), "validate", "sweep new NAME"),
    "no remote for a doctor": Situation((written,), "cluster doctor", NO_REMOTE),
    "no remote to follow": Situation((written,), "cluster local --once", NO_REMOTE),
    "no image": Situation(
        (written,), "cluster pin trainer", "sweep cluster pin trainer --repository R --tag T"
    ),
    "no repository": Situation((without_repository,), "run peak", "git init"),
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


NOT_RUN = {
    "tests of code bytes, clones, signatures, recorded work, renames and deletions print it, and most run it": """
        git -C NEW reset --hard; git add --renormalize {path}; git config commit.gpgSign false;
        git config gpg.format ssh; git config user.signingKey ~/.ssh/id_ed25519;
        git fast-export --all | git -C NEW fast-import;
        git init --object-format=sha1 --initial-branch={} NEW; git lfs pull;
        git restore --source={} --staged --worktree -- {}; git sparse-checkout add {};
        sweep rename {} {}; git revert {};
        git update-index --no-assume-unchanged {path}; git update-index --no-skip-worktree {path}
    """,
    "a cluster, or the files of its platform, prints it": """
        git checkout COMMIT -- base; git push {} --delete {}; git rm -r clusters;
        sweep cluster bootstrap --repo URL --branch NAME; sweep cluster bootstrap {};
        sweep cluster bootstrap {} --branch; sweep cluster bootstrap {} --repo URL;
        sweep cluster bootstrap {} --repo URL --branch main; sweep cancel NAME --batch BATCH;
        sweep cancel {} --batch {}; sweep cancel {} --replace; sweep cluster collect --by-pod;
        sweep cluster collect --by-pod --push; sweep cluster doctor --prove; sweep cluster doctor --release;
        sweep generate --push; sweep cluster pin collector;
        sweep cluster pin trainer --repository REPO --tag TAG; sweep run {} --hand-over;
        sweep status --cluster --in {}; sweep submit --again; sweep submit {batch}; sweep submit {};
        sweep why {} --in {}
    """,
    "damaged, foreign or unusual states print it: that it exists is checked above": """
        git apply {}; git config --global; git fetch --refetch;
        git log -- overlays/archive; git push -u {} {}; git rm --cached; git rm --cached {};
        git rm -r --force {}; sweep cluster pause {}; sweep cluster resume {}; sweep show {};
        sweep sync parquet NAME; sweep retry {} --update; sweep generate NAME --update; sweep verify {}
    """,
    "it names an option in a sentence": """
        sweep cluster collect --ended {}; sweep import --help; sweep import trials;
        sweep cluster local --without-gpu; sweep generate --update; sweep show --fetch;
        sweep show TRIAL --reproduce --run; sweep results --output csv; sweep status NAME
    """,
    "it is in a generated file, a comment or a page": """
        sweep cluster data FOLDER; sweep cluster data PATH; sweep import wandb FILE; sweep cluster pin trainer --tag v1;
        sweep schema --settings
    """,
}
"""Commands that no situation above prints, by the reason; a verb alone is the subject of a sentence."""


def test_every_proposed_command_is_run_above_or_has_a_reason() -> None:
    run = {command for situation in SITUATIONS.values() for command in situation.proposes}
    left = {
        template
        for template in templates()
        if len(template.replace("sweep cluster ", "sweep ").split()) > 2
        and not any(
            re.fullmatch(".+".join(map(re.escape, re.split(r"\{\w*\}", template))), command)
            for command in run
        )
    }
    assert left == {command.strip() for listed in NOT_RUN.values() for command in listed.split(";")}

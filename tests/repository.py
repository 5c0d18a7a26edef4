"""A real repository of sweeps to play with, and its bare remote."""

import atexit
import inspect
import json
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from typer.models import ParameterInfo

from sweepledger.cli.response import Response
from sweepledger.operations.cluster_local import Event, Options, local
from sweepledger.operations.collection.record_store import RecordStores, on_volume
from sweepledger.operations.collection.results_commit import ResultsCommit, commit_results
from sweepledger.operations.generation.next_batch import Generated, generate_batches
from sweepledger.operations.repository.spec_edit import BatchesChange
from sweepledger.operations.repository.workspace import Target, Workspace
from sweepledger.operations.run import RunEvent, RunOptions, SweepRun
from sweepledger.plan.review import Planned
from sweepledger.problems import Problem
from sweepledger.render.overlay import Overlay
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.state import create_state
from sweepledger.verbs.cancel import cancel
from sweepledger.verbs.check import CheckReport, check_change
from sweepledger.verbs.cluster.pause import pause
from sweepledger.verbs.cluster.resume import resume
from sweepledger.verbs.cluster.scale import scale
from sweepledger.verbs.plan import plan_sweeps
from sweepledger.verbs.retry import Retried, retry_trials
from sweepledger.verbs.validate import ValidSpec, validate
from sweepledger.verbs.verify import Verification, verify_results
from tests.command_line import run_sweep

TRAIN = '''"""Score a point: no framework, no sweepledger; arguments in, one JSON out."""
import argparse, json, os
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--bias", type=float, default=0.0)
args = parser.parse_args()
print(f"x={args.x} bias={args.bias}")
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": 1.0 - (args.x - 2) ** 2 - args.bias}, file)
'''

SPEC = """name: {name}
description: Where does the parabola peak?
method: grid
metric: {{name: score, goal: maximize}}
parameters:
  x: {{values: [{xs}]}}
  bias: {{value: 0.5}}
command: [python, code/train.py, "${{args}}"]
run:
  code: {{path: code}}
  resources: {{cpu: 1, memory: 256Mi}}
  parallelism: {parallelism}
  timeout: 1m
"""

IMAGE = f"registry.example.org/train@sha256:{'0' * 64}"


def followed_by(controller: str) -> str:
    """Write settings for a cluster: it needs an image, which nobody ever pulls here."""
    return f"version: 1\ncontroller: {controller}\ndefaults: {{image: '{IMAGE}'}}\n"


MAX_STATE = 300
"""Files, settings and variables that a merge is recognized by."""


def answer(verb: Callable[..., Response], *arguments: Any, **options: Any) -> Any:
    """Return the data of a verb's response; an option that is not given has its default."""
    return respond(verb, *arguments, **options).data


def respond(verb: Callable[..., Response], *arguments: Any, **options: Any) -> Response:
    """Return a verb's response; an option that is not given has its default."""
    signature = inspect.signature(verb)
    given = signature.bind_partial(*arguments, **options).arguments
    defaults = {
        name: parameter.default.default
        for name, parameter in signature.parameters.items()
        if name not in given and isinstance(parameter.default, ParameterInfo)
    }
    return verb(*arguments, **options, **defaults)


def cancelled(workspace: Workspace, name: str, **options: Any) -> BatchesChange:
    """Cancel batches of a sweep."""
    data = answer(cancel, workspace, name, **options)
    return BatchesChange(**{key: value for key, value in data.items() if key != "replaced"})


def check_specs(
    workspace: Workspace, paths: Sequence[str] = ()
) -> tuple[tuple[ValidSpec, ...], tuple[Problem, ...]]:
    """Return the valid sweeps of a repository, and the problems of its specs."""
    response = respond(validate, workspace, [*paths])
    return response.data["sweeps"], response.problems


def temporary_folder() -> Path:
    """Return a new folder that is removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="sandbox-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _copy_folder(source: str | Path, target: str | Path) -> None:
    """Copy a folder with times and modes; git's objects, which nobody changes, become links as in a local clone."""
    Path(target).mkdir(parents=True)
    is_of_objects = f"{os.sep}objects{os.sep}" in f"{source}{os.sep}"
    with os.scandir(source) as entries:
        for entry in entries:
            path = f"{target}{os.sep}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                _copy_folder(entry.path, path)
            elif not (is_of_objects and _link(entry.path, path)):
                shutil.copy2(entry.path, path, follow_symlinks=False)


def replace_in(path: Path, old: str, new: str) -> None:
    """Replace a text of a file, which must have it."""
    text = path.read_text()
    assert old in text, f"{path} has no {old!r}"
    path.write_text(text.replace(old, new))


def append_to(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def copy_repositories(source: Path, target: Path) -> None:
    for folder in source.iterdir():
        _copy_folder(folder, target / folder.name)
        config = target / folder.name / ".git/config"
        if config.is_file():
            config.write_text(config.read_text().replace(str(source), str(target)))


def _link(source: str, target: str) -> bool:
    """Make a hard link; return False where both are not on one file system."""
    try:
        os.link(source, target)
    except OSError:
        return False
    return True


@cache
def _template() -> "Sandbox":
    return Sandbox.build(temporary_folder())


_merged: dict[object, tuple["Sandbox", str]] = {}
"""Copies of sandboxes after a merge, and the batch's name, by what the merge was made from."""


@dataclass(frozen=True)
class Sandbox:
    remote: Path
    root: Path
    is_patched: Callable[[], bool] = lambda: True
    """Whether a test has changed the program, so that a merge that was made before shows nothing."""

    @classmethod
    def create(cls, folder: Path, is_patched: Callable[[], bool] = lambda: True) -> "Sandbox":
        """Return a fresh sandbox: a copy of one that each process makes once, in a tenth of the time."""
        made = cls(folder / "remote.git", folder / "work tree", is_patched)
        made.copy_from(_template())
        return made

    def copy_from(self, other: "Sandbox") -> None:
        for path, source in ((self.remote, other.remote), (self.root, other.root)):
            shutil.rmtree(path, ignore_errors=True)
            _copy_folder(source, path)
        config = self.root / ".git/config"
        config.write_text(config.read_text().replace(str(other.remote), str(self.remote)))

    @classmethod
    def build(cls, folder: Path) -> "Sandbox":
        """Return one that git made, command by command."""
        made = cls(folder / "remote.git", folder / "work tree")
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(made.remote)], check=True)
        subprocess.run(
            ["git", "clone", "-q", str(made.remote), str(made.root)], check=True, capture_output=True
        )
        made.git("checkout", "-q", "-b", "main")
        made.write("code/train.py", TRAIN)
        made.write("sweepledger.yaml", "version: 1\n")
        made.write(".gitignore", ".sweepledger/\n")
        made.publish("Start")
        return made

    @property
    def workspace(self) -> Workspace:
        return Workspace.find(self.root)

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.root,
            check=True,
            capture_output=True,
            text=True,
            errors="surrogateescape",
        )
        return done.stdout

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def spec(self, name: str = "peak", xs: str = "1, 2, 3", parallelism: int = 2) -> Path:
        text = SPEC.format(name=name, xs=xs, parallelism=parallelism)
        return self.write(f"sweeps/{name}.yaml", text)

    def write_spec(self, name: str, **keys: Any) -> Path:
        """Write a spec of a grid with these keys besides, or instead."""
        program = {"command": ["python", "code/train.py", "${args}"], "run": {"code": {"path": "code"}}}
        metric = {"name": "score", "goal": "maximize"}
        spec = {"name": name, "method": "grid", "metric": metric, **program, **keys}
        return self.write(f"sweeps/{name}.yaml", json.dumps(spec, indent=1))

    def commit(self, message: str, files: Mapping[str, str] = MappingProxyType({})) -> str:
        """Commit what is there, after writing some files."""
        for path, text in files.items():
            self.write(path, text)
        self.git("add", "--all")
        self.git("commit", "-q", "-m", message)
        return self.head()

    def amend(self) -> None:
        self.git("add", "--all")
        self.git("commit", "-q", "--amend", "--no-edit")

    def head(self) -> str:
        """Return the commit that is checked out, without a process if its branch is a file of its own."""
        try:
            kind, _, branch = (self.root / ".git/HEAD").read_text().strip().rpartition(" ")
            return (self.root / ".git" / branch).read_text().strip() if kind == "ref:" else branch
        except OSError:
            return self.git("rev-parse", "HEAD").strip()

    def push(self) -> None:
        self.git("push", "-q", "origin", "main")

    def publish(self, message: str, files: Mapping[str, str] = MappingProxyType({})) -> None:
        self.commit(message, files)
        self.push()

    def propose(self, name: str = "peak", xs: str = "1, 2, 3", parallelism: int = 2) -> None:
        """Write a spec, and generate."""
        self.spec(name, xs, parallelism)
        self.generate()

    def commit_batches(self, message: str) -> None:
        """Generate what the specs ask for, and commit it."""
        self.generate()
        self.commit(message)

    def publish_batches(self, message: str) -> None:
        """Generate what the specs ask for, and push it."""
        self.generate()
        self.publish(message)

    def pull(self) -> None:
        self.git("pull", "-q", "--ff-only", "origin", "main")

    def use_as_laptop(self) -> None:
        """Remove the remote, and name the person who commits."""
        self.git("remote", "remove", "origin")
        self.name_person()

    def name_person(self) -> None:
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")

    # What people and collectors do here: each is the verb of this name, with its options.

    def generate(self, *names: str, **options: Any) -> tuple[Generated, ...]:
        return generate_batches(self.workspace, names, **options)

    def new_batch(self, *names: str, **options: Any) -> Overlay:
        """Generate the next batch of the only sweep that is named or there."""
        (made,) = self.generate(*names, **options)
        assert made.batch is not None
        return made.batch

    def check(self, **options: Any) -> CheckReport:
        return check_change(self.workspace, **options)

    def problems(self, **options: Any) -> list[tuple[str, str]]:
        """Return file and code of the problems that a check finds."""
        return [(problem.file, problem.code) for problem in self.check(**options).problems]

    def codes(self, **options: Any) -> set[str]:
        """Return the codes of the problems that a check finds."""
        return {problem.code for problem in self.check(**options).problems}

    def plan(self, *names: str, **options: Any) -> Planned:
        return plan_sweeps(self.workspace, names, **options)

    def cancel(self, name: str = "peak", *, push: bool = False, **options: Any) -> BatchesChange:
        return self._pushed(cancelled(self.workspace, name, **options), push=push)

    def pause(self, name: str = "peak", *, push: bool = False, **options: Any) -> BatchesChange:
        return self._pushed(answer(pause, self.workspace, name, **options), push=push)

    def resume(self, name: str = "peak", *, push: bool = False) -> BatchesChange:
        return self._pushed(answer(resume, self.workspace, name), push=push)

    def _pushed(self, change: BatchesChange, *, push: bool) -> BatchesChange:
        if push:
            self.push()
        return change

    def scale(self, name: str, parallelism: int) -> None:
        answer(scale, self.workspace, name, parallelism)

    def retry(self, name: str = "peak", **options: Any) -> Retried:
        return retry_trials(self.workspace, name, **options)

    def verify(self, *names: str, **options: Any) -> Verification:
        return verify_results(self.workspace, *names, **options)

    def target(self, *, push: bool = True, **changes: Any) -> Target:
        """Return where results go: the branch of the remote, or without a push the one that is checked out."""
        return Target(self.workspace.repository, *(("origin", "main") if push else ()), **changes)

    def collect(
        self, results: Any, ended: Collection[str] = (), *, push: bool = True, **options: Any
    ) -> tuple[ResultsCommit, ...]:
        """Record what a volume has; or what stores have."""
        stores = results if isinstance(results, RecordStores) else on_volume(results)
        return commit_results(self.target(push=push), stores, ended, **options)

    def record(self, results: Any, ended: Collection[str] = (), **options: Any) -> tuple[ResultsCommit, ...]:
        """Collect, and pull what was recorded."""
        made = self.collect(results, ended, **options)
        self.pull()
        return made

    def run(self, *names: str, **options: Any) -> Generator[RunEvent]:
        state = create_state(self.workspace.repository)
        return SweepRun.prepare(self.workspace, names).run(RunOptions(state, **options))

    def local(self, **options: Any) -> Iterator[Event]:
        """Run what the branch asks for as `sweep cluster local --once` does, with its state beside the clone."""
        state = self.root.parent / "state"
        return local(
            Options(**{"url": str(self.remote), "branch": "main", "state": state, "once": True, **options})
        )

    def sweep(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run the command `sweep` here."""
        return run_sweep(*arguments, cwd=self.root, **options)

    def data(self, *arguments: str) -> Any:
        """Run the command `sweep` here, and return the data of its answer."""
        return json.loads(self.sweep(*arguments, "--format=json").stdout)["data"]

    def batches(self) -> tuple[StoredBatch, ...]:
        return batches.in_work_tree(self.root)

    def batch(self, name: str = "") -> StoredBatch:
        """Return the batch of the work tree, or that of a name."""
        (batch,) = [batch for batch in self.batches() if name in {"", batch.name}]
        return batch

    def active(self) -> list[str]:
        folder = self.root / "overlays/active"
        return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []

    def merged(self, name: str = "peak", xs: str = "1, 2, 3", parallelism: int = 2) -> str:
        """Ask for a sweep, generate, merge; give the batch's name. The same merge is made once per process."""
        return self.once((name, xs, parallelism), lambda: self._merge(name, xs, parallelism))

    def once(self, change: object, make: Callable[[], str]) -> str:
        """Make a change that gives a batch's name, or copy what it gave of an equal sandbox; give that name."""
        state = None if self.is_patched() else self._state()
        if state is None:
            return make()
        key = (state, change)
        if key in _merged:
            kept, batch = _merged[key]
            self.copy_from(kept)
            return batch
        batch = make()
        folder = temporary_folder()
        kept = Sandbox(folder / "remote.git", folder / "work tree")
        kept.copy_from(self)
        _merged[key] = kept, batch
        return batch

    def _merge(self, name: str, xs: str, parallelism: int) -> str:
        self.spec(name, xs, parallelism)
        (generated,) = [one for one in self.generate() if one.batch]
        self.commit("Ask for a sweep")
        self.push()
        assert generated.batch is not None
        return generated.batch.name

    def _state(self) -> frozenset[object] | None:
        """Return what a merge depends on: files, branches, settings, environment; None if that is much."""
        state: set[object] = {item for item in os.environ.items() if item[0] != "PYTEST_CURRENT_TEST"}
        for top in (self.remote, self.root):
            for path in sorted(top.rglob("*")):
                inside = path.relative_to(self.root.parent).as_posix()
                if "/objects/" in inside or inside.endswith((".sample", ".git/index")) or "/logs/" in inside:
                    continue
                mode = path.lstat().st_mode
                if not stat.S_ISREG(mode):
                    state.add((inside, mode, path.readlink().as_posix() if stat.S_ISLNK(mode) else ""))
                else:
                    content = path.read_bytes().replace(str(self.root.parent).encode(), b"")
                    state.add((inside, mode, content))
                if len(state) > MAX_STATE:
                    return None
        return frozenset(state)

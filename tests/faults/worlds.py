"""Commands with the small world each runs in: what it starts from, what must come of it, what nobody may see.

A world is a folder that is copied anew for each try, so every path in it is relative or asked for.
"""

import hashlib
import json
import os
import re
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

from tests import searches
from tests.command_line import captured
from tests.faults.shim import Ended, Plan, Shim
from tests.launcher.folders import LAUNCHER, REPORT, SCHEMA, TrialFolder, shell
from tests.operations.test_collect import leave, stored
from tests.repository import Sandbox, followed_by

SERVER = '#!/bin/sh\nunset LD_PRELOAD\nexec setsid -w git-{verb} "$@"\n'
"""Its machine is another one: it neither dies nor fails with the client."""

Files = dict[str, str]
STORAGE = 3
LOCK = re.compile(r"hint: (.*\.lock) is \d+ s old: remove it")


def shown(root: Path, *, beside: tuple[str, ...] = ()) -> Files:
    """Give the digest of every file that readers of a folder see, those of git and our own state left out."""
    found = {}
    for parent, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - {".git", ".sweepledger", *beside})
        for name in names:
            path = Path(parent, name)
            found[path.relative_to(root).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def leavings(root: Path) -> list[str]:
    """Name what writing leaves when it is killed, wherever it lies."""
    inside = (path for path in root.rglob("*") if ".git" not in path.parts)
    return sorted(path.relative_to(root).as_posix() for path in inside if path.name.endswith(".tmp"))


class World(ABC):
    """A command, its folder, and the judge of what it leaves."""

    argv: tuple[str, ...]
    storage_code = STORAGE
    """The exit code of a file system that fails."""

    def __init__(self, folder: Path, shim: Shim) -> None:
        self.pristine = folder / "pristine"
        self.now = folder / "now here"
        self.shim = shim
        self.pristine.mkdir(parents=True)
        self.prepare(self.pristine)

    @abstractmethod
    def prepare(self, folder: Path) -> None:
        """Lay out what the command starts from."""

    @property
    def cwd(self) -> Path:
        return self.now / "work tree"

    @property
    def environment(self) -> Mapping[str, str]:
        return {}

    @property
    def command(self) -> tuple[str, ...]:
        return self.argv

    def fresh(self) -> None:
        shutil.rmtree(self.now, ignore_errors=True)
        shutil.copytree(self.pristine, self.now, symlinks=True)

    def run(self, plan: Plan | None = None) -> Ended:
        return self.shim.run(self.command, cwd=self.cwd, plan=plan, environment=self.environment)

    @abstractmethod
    def outcome(self) -> object:
        """Say what the world holds, without what may differ from run to run."""

    def is_done(self) -> bool:
        return self.outcome() == self.wanted

    @abstractmethod
    def refuse_halves(self) -> None:
        """Look as any reader would, at any moment; nothing may be there in part."""

    def go_on(self) -> Ended:
        """Call the command again, as whoever finds it killed would."""
        return self.run()

    def left(self) -> list[str]:
        """Name the temporary files that nobody removes."""
        return leavings(self.now)

    @cached_property
    def wanted(self) -> object:
        """What comes of a run that nothing disturbs."""
        self.fresh()
        ended = self.run()
        assert ended.code == 0, ended
        self.calls = ended.calls
        return self.outcome()

    @cached_property
    def points(self) -> int:
        """How many calls change something."""
        assert self.wanted
        return self.calls


class Generating(World):
    """`sweep generate` in a repository in which nothing was ever generated, with Flux."""

    argv = ("generate",)

    def prepare(self, folder: Path) -> None:
        sandbox = Sandbox.create(folder)
        sandbox.write("sweepledger.yaml", followed_by("flux"))
        sandbox.spec()
        sandbox.commit("Ask")
        settle(sandbox)

    @property
    def states(self) -> tuple[Files, Files]:
        before, after = shown(self.pristine / "work tree"), self.wanted
        assert isinstance(after, dict)
        return before, after

    def outcome(self) -> Files:
        return shown(self.cwd)

    def refuse_halves(self) -> None:
        before, after = self.states
        seen = {path: digest for path, digest in shown(self.cwd).items() if not is_hidden(path)}
        strange = {path for path, digest in seen.items() if digest not in (before.get(path), after.get(path))}
        assert not strange
        for folder in {"/".join(path.split("/")[:3]) for path in {**before, **after} if is_of_batch(path)}:
            found = {path for path in seen if path.startswith(f"{folder}/")}
            whole = [{path for path in state if path.startswith(f"{folder}/")} for state in (before, after)]
            assert found in (set(), *whole), folder
        for path in seen:
            if path.startswith("clusters/flux/active/"):
                assert (self.cwd / "overlays/active" / Path(path).stem).is_dir(), "it names a batch"
        fsck(self.cwd)


def is_hidden(path: str) -> bool:
    """Tell whether no reader looks at it: temporary files and folders begin with a dot."""
    return any(part.startswith(".") and part.endswith(".tmp") for part in path.split("/"))


def is_of_batch(path: str) -> bool:
    return path.startswith("overlays/active/") and path.count("/") > 2


class GeneratingAnew(Generating):
    """`sweep generate` where a batch that was not merged is replaced: one folder goes, another comes."""

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        sandbox = Sandbox(folder / "remote.git", folder / "work tree")
        sandbox.generate()
        sandbox.spec(xs="1, 2, 3, 4")


class Collecting(World):
    """`sweep cluster collect --push`: three records, a remote, one commit."""

    argv: tuple[str, ...] = ("cluster", "collect", "--push", "--results", "../results")
    commits = 1

    def prepare(self, folder: Path) -> None:
        sandbox = Sandbox.create(folder)
        self.leave_records(sandbox, folder / "results")
        for verb in ("receive-pack", "upload-pack"):
            path = folder / verb
            path.write_text(SERVER.format(verb=verb))
            path.chmod(0o755)
            sandbox.git("config", f"remote.origin.{verb.replace('-', '')}", f"../{verb}")
        settle(sandbox)

    def leave_records(self, sandbox: Sandbox, results: Path) -> None:
        """Merge a sweep, and let its trials end."""
        sandbox.merged()
        for index in range(3):
            leave(results, stored(sandbox), index)

    @property
    def branch(self) -> Path:
        """The repository whose main counts."""
        return self.now / "remote.git"

    def outcome(self) -> object:
        made = git(self.branch, "rev-list", "main", f"^{self.base}").split()
        parents = git(self.branch, "log", "--format=%P", "main").splitlines()
        assert all(" " not in line for line in parents), "the history is linear"
        return git(self.branch, "rev-parse", "main^{tree}"), len(made)

    @cached_property
    def base(self) -> str:
        return git(self.pristine / "work tree", "rev-parse", "main")

    def refuse_halves(self) -> None:
        was = git(self.branch, "rev-parse", f"{self.base}^{{tree}}")
        assert self.outcome() in ((was, 0), self.wanted)
        fsck(self.branch)
        fsck(self.cwd)


class CollectingRound(Collecting):
    """The same of a search: the one commit records a round and asks for the next."""

    def leave_records(self, sandbox: Sandbox, results: Path) -> None:
        searches.begun(sandbox)
        searches.leave(results, stored(sandbox))


class CollectingHere(Collecting):
    """`sweep cluster collect` into the branch that is checked out, with its work tree."""

    argv = ("cluster", "collect", "--results", "../results")

    @property
    def branch(self) -> Path:
        return self.cwd

    def outcome(self) -> object:
        return super().outcome(), shown(self.cwd), git(self.cwd, "status", "--porcelain")

    def refuse_halves(self) -> None:
        before, after = shown(self.pristine / "work tree"), self.files
        seen = {path: digest for path, digest in shown(self.cwd).items() if not is_hidden(path)}
        strange = {path for path, digest in seen.items() if digest not in (before.get(path), after.get(path))}
        assert not strange
        fsck(self.cwd)

    def go_on(self) -> Ended:
        """Do what the answer says where git left a lock: it is a person's clone, so a person removes it."""
        ended = self.run()
        while found := LOCK.search(ended.err):
            assert ended.code == STORAGE, ended
            Path(found[1]).unlink()
            ended = self.run()
        return ended

    @cached_property
    def files(self) -> Files:
        """Those of the work tree afterwards."""
        wanted = self.wanted
        assert isinstance(wanted, tuple)
        files = wanted[1]
        assert isinstance(files, dict)
        return files


class Launching(World):
    """The launcher, with a command that succeeds.

    It keeps the list of distributions before the record, or reports why it cannot.
    """

    storage_code = 74

    def prepare(self, folder: Path) -> None:
        (folder / "work tree").mkdir()
        trial = TrialFolder(folder / "work tree", command=["env", "-u", "LD_PRELOAD", *shell(REPORT)])
        trial.write()
        (trial.root / "termination-log").touch()

    @property
    def command(self) -> tuple[str, ...]:
        return (sys.executable, str(LAUNCHER))

    @property
    def trial(self) -> TrialFolder:
        return TrialFolder(self.now / "work tree")

    @property
    def cwd(self) -> Path:
        return self.trial.code

    @property
    def environment(self) -> Mapping[str, str]:
        return self.trial.variables({})

    def fresh(self) -> None:
        super().fresh()
        self.reported: set[str] = set()

    def run(self, plan: Plan | None = None) -> Ended:
        ended = super().run(plan)
        self.reported.update(re.findall(r"(\w+\.txt) cannot be kept: ", ended.err))
        return ended

    def outcome(self) -> object:
        """Every record without its times; and what else lies in the trial's folder."""
        folder = self.trial.results
        for path in (folder / "environments").glob("*.txt"):
            assert hashlib.sha256(path.read_bytes()).hexdigest() == path.stem, "the list is whole"
        records = {path.name: json.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))}
        for record in records.values():
            SCHEMA.validate(record)
            name = record["environment"]["digest"].removeprefix("sha256:") + ".txt"
            assert name in self.reported or (folder / "environments" / name).is_file(), (
                "no list is missed silently"
            )
        timeless = {
            name: {key: record[key] for key in ("trial", "row", "uid", "status", "metrics")}
            for name, record in records.items()
        }
        names = sorted(path.name for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
        return timeless, names

    def is_done(self) -> bool:
        """The node has the record where the volume had no room for it."""
        message = (self.trial.root / "termination-log").read_bytes()
        return super().is_done() or (message.endswith(b"}\n") and json.loads(message)["status"] == "ok")

    def refuse_halves(self) -> None:
        outcome, wanted = self.outcome(), self.wanted
        assert isinstance(outcome, tuple)
        assert isinstance(wanted, tuple)
        assert outcome[0] in ({}, wanted[0])


def git(folder: Path, *arguments: str) -> str:
    return captured(["git", *arguments], cwd=folder, check=True).stdout.strip()


def fsck(folder: Path) -> None:
    """Have git look at every object and every ref. Objects that nothing names yet are no fault."""
    done = captured(["git", "fsck", "--full", "--strict", "--no-dangling"], cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def settle(sandbox: Sandbox) -> None:
    """Make the pair of repositories one that can be copied elsewhere."""
    sandbox.git("remote", "set-url", "origin", "../remote.git")
    for folder in (sandbox.root / ".git", sandbox.remote):
        shutil.rmtree(folder / "hooks", ignore_errors=True)


WORLDS: dict[str, Callable[[Path, Shim], World]] = {
    "generate": Generating,
    "generate-anew": GeneratingAnew,
    "collect-push": Collecting,
    "collect-round": CollectingRound,
    "collect-here": CollectingHere,
    "launcher": Launching,
}

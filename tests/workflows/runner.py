"""Runs a workflow's steps from its YAML, in order, on this machine: `run:` as it stands.

Of an action what it leaves on the disk is done: a checkout is a clone, what is uploaded is copied. A step
has the environment that the host gives it, and nothing of whoever runs the tests.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.command_line import captured
from tests.workflows.expressions import Expressions

ROOT = Path(__file__).parents[2]
OURS = ROOT / ".github/workflows"
TEAMS = ROOT / "generator/sweepledger/workflows/.github/workflows"

COMMAND = re.compile(r"(?:^|\n)::(?P<name>[a-z-]+)(?: (?P<properties>[^:]*?))?::(?P<message>[^\n]*)")
CHECKSUM = re.compile(r"[0-9a-f]{64}  [a-z0-9./-]+(:[0-9]+/[a-z0-9./-]+)?")
SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
"""As the host starts `shell: bash`."""


@dataclass(frozen=True)
class Annotation:
    """What a code host shows beside a line."""

    level: str
    file: str
    line: int
    title: str
    message: str


@dataclass
class Ran:
    """What a job did."""

    folder: Path
    steps: dict[str, int] = field(default_factory=dict)
    """The exit code of each step that ran, by its name."""
    output: str = ""
    summary: str = ""
    annotations: tuple[Annotation, ...] = ()
    commands: tuple[str, ...] = ()
    """Every workflow command that the host would have obeyed."""

    @property
    def is_green(self) -> bool:
        return not any(self.steps.values())

    def artifact(self, name: str) -> Path:
        return self.folder / "artifacts" / name


@dataclass(frozen=True)
class Host:
    """A machine of a code host, with a repository to fetch from."""

    remote: Path
    folder: Path
    """Where jobs have their workspaces; outside of any repository."""
    tools: tuple[Path, ...]
    """Folders of programs that the machine has."""
    home: Path | None = None
    """Where programs find their settings; an empty folder where none is named."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the machine sets for all that runs on it."""

    def run(
        self,
        workflow: Path,
        github: Mapping[str, Any],
        *,
        job: str | None = None,
        secrets: Mapping[str, str] | None = None,
        matrix: Mapping[str, str] | None = None,
        after: "Ran | None" = None,
    ) -> Ran:
        """Run one job of a workflow, where it needs another `after` that one, whose artifacts it may take."""
        document = yaml.load(workflow.read_text(), Loader=yaml.BaseLoader)  # noqa: S506 - it makes text of all
        chosen = document["jobs"][job or next(iter(document["jobs"]))]
        number = next(number for number in itertools.count() if not (self.folder / str(number)).exists())
        place = self.folder / str(number)
        running = _Running(self, Ran(place), place / "work", place / "home")
        running.work.mkdir(parents=True)
        running.home.mkdir()
        if after is not None:
            shutil.copytree(after.folder / "artifacts", place / "artifacts")
        contexts = {"github": github, "secrets": secrets or {}, "matrix": matrix or {}}
        for step in chosen["steps"]:
            running.step(step, contexts, {**document.get("env", {}), **chosen.get("env", {})})
        done = running.done
        done.commands = tuple(found["name"] for found in COMMAND.finditer(done.output))
        done.annotations = tuple(_annotations(done.output))
        return done


@dataclass
class _Running:
    host: Host
    done: Ran
    work: Path
    home: Path

    def step(self, step: Mapping[str, Any], contexts: Mapping[str, Any], job: Mapping[str, str]) -> None:
        expressions = Expressions(contexts, failed=not self.done.is_green)
        if not expressions.holds(step.get("if")):
            return
        said = {name: expressions.filled(value) for name, value in step.get("with", {}).items()}
        if "uses" in step:
            self._act(step["uses"].partition("@")[0], said, contexts["github"])
            self.done.steps[step["name"]] = 0
            return
        environment = {**job, **step.get("env", {})}
        shown = {name: expressions.filled(value) for name, value in environment.items()}
        assert "${{" not in step["run"]
        self.done.steps[step["name"]] = self._run(step, {**self._environment(contexts["github"]), **shown})

    def _run(self, step: Mapping[str, Any], environment: Mapping[str, str]) -> int:
        summary = self.home / "summary.md"
        summary.touch()
        ended = subprocess.run(
            [*SHELL, step["run"]],
            cwd=self.work / step.get("working-directory", ""),
            env={**environment, "GITHUB_STEP_SUMMARY": str(summary)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        self.done.output += ended.stdout.decode(errors="replace")
        self.done.summary = summary.read_text(encoding="utf-8")
        return ended.returncode

    def _environment(self, github: Mapping[str, Any]) -> dict[str, str]:
        return {
            "PATH": os.pathsep.join([*map(str, self.host.tools), "/usr/bin", "/bin"]),
            "HOME": str(self.host.home or self.home),
            "LANG": "C.UTF-8",
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.work),
            "GITHUB_SHA": str(github.get("sha", "")),
            "GITHUB_ACTOR": "somebody",
            **self.host.environment,
        }

    def _act(self, action: str, said: Mapping[str, str], github: Mapping[str, Any]) -> None:
        match action:
            case "actions/checkout":
                assert said["persist-credentials"] == "false"
                self._check_out(self.work / said.get("path", ""), said.get("ref") or str(github["sha"]))
            case "actions/upload-artifact":
                source = self.work / said["path"]
                if source.exists():
                    shutil.copytree(source, self.done.artifact(said["name"]))
                else:
                    assert said["if-no-files-found"] == "ignore", f"{said['path']} is not there"
            case "actions/download-artifact":
                shutil.copytree(self.done.artifact(said["name"]), self.work / said["path"])
            case "actions/upload-pages-artifact":
                shutil.copytree(self.work / said["path"], self.done.artifact("github-pages"))
            case "actions/deploy-pages":
                shutil.copytree(
                    self.done.artifact("github-pages"), self.host.folder / "pages", dirs_exist_ok=True
                )
            case "actions/attest":
                self._attest(said)
            case "pypa/gh-action-pypi-publish":
                # An index that pip takes by --find-links: a folder of packages.
                shutil.copytree(self.work / "dist", self.host.folder / "index")
            case _:
                assert action in {"actions/setup-python", "actions/setup-go"}, (
                    f"nobody said what {action} does"
                )

    def _attest(self, said: Mapping[str, str]) -> None:
        if "subject-path" in said:
            assert list(self.work.glob(said["subject-path"])), "there is nothing to attest"
        else:
            lines = (self.work / said["subject-checksums"]).read_text(encoding="utf-8").splitlines()
            assert lines, "there is nothing to attest"
            assert all(CHECKSUM.fullmatch(line) for line in lines), lines
        if "sbom-path" in said:
            sbom = json.loads((self.work / said["sbom-path"]).read_text(encoding="utf-8"))
            assert sbom["bomFormat"] == "CycloneDX"

    def _check_out(self, place: Path, reference: str) -> None:
        place.mkdir(parents=True, exist_ok=True)
        for arguments in (
            ("init", "--quiet", "--initial-branch=main"),
            ("remote", "add", "origin", str(self.host.remote)),
            ("fetch", "--quiet", "origin", "+refs/heads/*:refs/remotes/origin/*", "+refs/pull/*:refs/pull/*"),
            ("checkout", "--quiet", "--force", "--detach", *_found(self.host.remote, reference)),
        ):
            captured(["git", *arguments], cwd=place, check=True)


def _found(remote: Path, reference: str) -> list[str]:
    argv = ["git", "-C", str(remote), "rev-parse", "--verify", f"{reference}^{{commit}}"]
    return [captured(argv, check=True).stdout.strip()]


def _annotations(output: str) -> list[Annotation]:
    found = []
    for one in COMMAND.finditer(output):
        if one["name"] in {"error", "warning", "notice"}:
            pairs = (pair.split("=", 1) for pair in (one["properties"] or "").split(",") if pair)
            fields = {name: _plain(value) for name, value in pairs}
            place = fields.get("file", ""), int(fields.get("line", 0))
            found.append(Annotation(one["name"], *place, fields.get("title", ""), _plain(one["message"])))
    return found


def _plain(text: str) -> str:
    for escape, letter in (("%0A", "\n"), ("%0D", "\r"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escape, letter)
    return text


EVIL = 'import os\nopen(os.environ["EVIL"], "a").write(os.environ.get("GENERATE_TOKEN", "ran"))\n'
LEFT_BEHIND = {
    **dict.fromkeys(("sitecustomize.py", "usercustomize.py", "ensurepip.py", "runpy.py"), EVIL),
    **dict.fromkeys(("venv/__init__.py", "venv/__main__.py", "pip/__init__.py", "pip/__main__.py"), EVIL),
    "pyvenv.cfg": "home = .\ninclude-system-site-packages = true\n",
    "pip.conf": "[global]\nlog = evil.log\n",
    "python3": '#!/bin/sh\necho ran >> "$EVIL"\n',
}
"""What a change may leave where a job starts."""


def leave_behind(folder: Path) -> None:
    for path, text in LEFT_BEHIND.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(0o755)

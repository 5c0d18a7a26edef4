"""A team with its repository, its accounts and its cluster: what people do, by the commands they use.

Nothing here asserts; what a team sees is for the tests to judge.
"""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sweepledger.formats import record_json, records_jsonl
from sweepledger.structs.record import Record
from tests.cluster import platforms
from tests.cluster.apiserver import Server, kubectl
from tests.cluster.children import until
from tests.cluster.forge import Forge

NAMESPACE = "sweeps"
COLLECTORS = f"{NAMESPACE}-collector"
REPOSITORY = "sweeps"
PERSON, COLLECTOR, READER = "ana", "sweep-collector", "reader"
PASSWORDS = {name: f"{name}-of-a-test" for name in (PERSON, COLLECTOR, READER)}
WEBHOOK_TOKEN = "webhook-of-a-team"  # noqa: S105 - of a server in the box
MINUTE = 60.0
PATIENCE = 7 * MINUTE
"""For what comes of a push, on a machine full of others."""

SPEC = """name: {name}
description: {question}
method: grid
metric: {{name: score, goal: maximize}}
parameters: {parameters}
command: {command}
run:
  code: {{path: code, mode: clone}}
{run}"""
"""A sweep of the team's own scripts, which every pod clones at the locked tree."""

RUN = {
    "resources": {"cpu": "100m", "memory": "128Mi", "scratch": "16Mi"},
    "parallelism": 3,
    "retries": 1,
    "timeout": "2m",
}


@dataclass(frozen=True)
class Batch:
    """A batch as the files of its overlay tell it."""

    name: str
    sweep: str
    folder: Path

    @property
    def lock(self) -> Mapping[str, Any]:
        document: Mapping[str, Any] = yaml.safe_load((self.folder / "batch.json").read_text())
        return document


@dataclass
class Team:
    """A clone of the repository, and the cluster that follows it."""

    root: Path
    forge: Forge
    server: Server
    controller: str
    transcript: list[str] = field(default_factory=list)
    """What commands printed, the last one last: for a failure's report."""
    namespace: str = NAMESPACE
    """Where its trials run."""
    python: str = sys.executable
    """Whose `sweep` its people run: an environment with this release, or an earlier one."""

    @property
    def collectors(self) -> str:
        return f"{self.namespace}-collector"

    def sweep(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the command `sweep` in the clone, as a person."""
        return self.run([self.python, "-m", "sweepledger.cli", *arguments], check=check)

    def git(self, *arguments: str, check: bool = True) -> str:
        return self.run(["git", *arguments], check=check).stdout

    def run(self, argv: Sequence[str], *, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            list(argv), cwd=self.root, env=self.environment(), capture_output=True, text=True, check=False
        )
        self.transcript.append(f"$ {' '.join(argv)}\n{done.stdout}{done.stderr}")
        if check and done.returncode:
            raise AssertionError(f"ended with {done.returncode}: {self.transcript[-1]}")
        return done

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def write_spec(
        self,
        name: str,
        *,
        parameters: Mapping[str, Sequence[Any]],
        command: Sequence[str] = ("python3", "code/work.py", "${args}"),
        **run: Any,
    ) -> None:
        """Write a spec: values by parameter, and what it says under `run` besides what all of these say."""
        chosen = {**RUN, **run}
        self.write(
            f"sweeps/{name}.yaml",
            SPEC.format(
                name=name,
                question=f"What comes of {name}?",
                parameters=json.dumps({key: {"values": list(item)} for key, item in parameters.items()}),
                command=json.dumps(list(command)),
                run="".join(f"  {key}: {json.dumps(value)}\n" for key, value in chosen.items()),
            ),
        )

    def have_program(self, path: str, text: str) -> None:
        """Put a program on main, unless it is there: batches run committed code only."""
        self.pull()
        if not (self.root / path).is_file():
            self.write(path, text)
            self.commit(f"Add {path}")

    def propose(self, *names: str) -> None:
        """Put specs on a branch with what is generated from them, and check it as CI does."""
        self.pull()
        self.git("checkout", "-q", "-b", f"ask-{'-'.join(names)}")
        self.sweep("generate", *names)
        self.git("add", "--all")
        self.git("commit", "-q", "-m", f"Ask for {', '.join(names)}")
        self.sweep("check", "--base", "origin/main")

    def merge(self) -> str:
        """Merge the branch that is checked out, and push: the approval to spend. Gives the commit."""
        branch = self.git("rev-parse", "--abbrev-ref", "HEAD").strip()
        self.git("checkout", "-q", "main")
        self.git("merge", "-q", "--no-ff", "-m", f"Merge {branch}", branch)
        return self.push()

    def merge_specs(self, *names: str) -> tuple[Batch, ...]:
        self.propose(*names)
        self.merge()
        return tuple(self.batch(name) for name in names)

    def commit(self, message: str) -> str:
        """Commit everything on main and push it; a person's way around any review."""
        self.git("add", "--all")
        self.git("commit", "-q", "-m", message)
        return self.push()

    def push(self) -> str:
        """Push main, on top of what the collector pushed meanwhile."""
        for _ in range(5):
            if self.run(["git", "push", "-q", "origin", "main"], check=False).returncode == 0:
                break
            self.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
        else:
            raise AssertionError(f"cannot push:\n{self.transcript[-2]}")
        return self.git("rev-parse", "HEAD").strip()

    def pull(self) -> None:
        self.git("pull", "-q", "--ff-only", "origin", "main")

    def apply_platform(self) -> None:
        """Apply the platform of the work tree as its page says."""
        self.server.kubectl(
            *("apply", "--server-side", self.field_manager("platform")),
            *("-k", str(self.root / "clusters/platform")),
        )

    def field_manager(self, folder: str) -> str:
        """Return the option by which the platform's page applies a folder of `clusters/`."""
        (step,) = [step for step in platforms.steps(self.root) if step[-1] == f"clusters/{folder}"]
        (option,) = [word for word in step if word.startswith("--field-manager=")]
        return option

    def batch(self, sweep: str, where: str = "active") -> Batch:
        paths = [path for path in (self.root / "overlays" / where).glob(f"{sweep}-b*-*") if path.is_dir()]
        newest = max(paths, key=lambda path: int(path.name.removeprefix(f"{sweep}-b").partition("-")[0]))
        return Batch(newest.name, sweep, newest)

    def active(self) -> list[str]:
        self.git("fetch", "-q", "origin")
        return self.git("ls-tree", "--name-only", "origin/main:overlays/active").split()

    def until_idle(self) -> None:
        until("nothing else is active", lambda: self.active() == [".gitkeep"], seconds=PATIENCE)

    def is_recorded(self, batch: Batch) -> bool:
        """Tell whether the branch has a batch's results."""
        self.git("fetch", "-q", "origin")
        path = f"origin/main:results/{batch.sweep}/records/{batch.name}.jsonl"
        return self.run(["git", "cat-file", "-e", path], check=False).returncode == 0

    def until_recorded(self, batch: Batch, *, seconds: float = PATIENCE) -> None:
        """Wait until the collector of the cluster has committed a batch's results."""
        until(f"{batch.name} is recorded", lambda: self.is_recorded(batch), seconds=seconds, pause=1)
        self.pull()

    def records(self, batch: Batch) -> list[dict[str, Any]]:
        """Give the records of a batch as the branch has them, the kept attempts of all trials."""
        text = self.git("show", f"origin/main:results/{batch.sweep}/records/{batch.name}.jsonl")
        read = records_jsonl.records(text.encode())
        return [json.loads(record_json.to_line(record)) for record in read if isinstance(record, Record)]

    def summary(self, sweep: str) -> list[dict[str, str]]:
        """Give the rows of a sweep's summary as the branch has it."""
        text = self.git("show", f"origin/main:results/{sweep}/summary.csv")
        return list(csv.DictReader(text.splitlines()))

    def results_commits(self, batch: Batch) -> list[str]:
        """Give the subjects of the commits that touched a batch's records."""
        path = f"results/{batch.sweep}/records/{batch.name}.jsonl"
        return self.git("log", "--format=%s", "origin/main", "--", path).splitlines()

    def collect(self, name: str = "") -> str:
        """Run the collector now instead of at the next minute; give its Job's name."""
        job = name or f"by-hand-{os.urandom(4).hex()}"
        self.server.kubectl(
            "create", "job", job, "--from=cronjob/sweep-collector", f"--namespace={self.collectors}"
        )
        return job

    def image(self, name: str) -> str:
        return str(yaml.safe_load((self.root / "sweepledger.yaml").read_text())["images"][name])

    def jobs(self, batch: Batch) -> list[dict[str, Any]]:
        return self._labelled("jobs", batch)

    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """Give an object of the cluster, in the namespace of the trials unless another is named; None for none."""
        return self.server.ask(f"{_path(kind, namespace or self.namespace)}/{name}")

    def pods(self, batch: Batch) -> list[dict[str, Any]]:
        """Give the pods of a batch that the cluster still knows."""
        return self._labelled("pods", batch)

    def shorten_deadline(self, pod: Mapping[str, Any], seconds: int) -> None:
        """Let a pod end so long after its start: its own deadline leaves 15 minutes to begin, too long for a test."""
        if pod["spec"]["activeDeadlineSeconds"] == seconds:
            return
        name, space = pod["metadata"]["name"], f"--namespace={pod['metadata']['namespace']}"
        patch = json.dumps({"spec": {"activeDeadlineSeconds": seconds}})
        self.server.kubectl("patch", "pod", name, space, "--type=merge", f"--patch={patch}", check=False)

    def running(self, batch: Batch) -> int:
        return sum(pod["status"]["phase"] == "Running" for pod in self.pods(batch))

    def _labelled(self, kind: str, batch: Batch) -> list[dict[str, Any]]:
        listed = self.server.ask(
            f"{_path(kind, self.namespace)}?labelSelector=sweepledger.dev/batch={batch.name}"
        )
        assert listed is not None
        items: list[dict[str, Any]] = listed["items"]
        return items

    def environment(self) -> dict[str, str]:
        """Give what a person's commands run with."""
        return {
            # The project's own kubectl: one of the machine's may be older than the server allows.
            "PATH": f"{Path(kubectl()).parent}:{os.environ['PATH']}",
            "HOME": str(self.root.parent),
            "LANG": "C.UTF-8",
            "KUBECONFIG": str(self.server.kubeconfig),
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "GIT_AUTHOR_NAME": PERSON,
            "GIT_AUTHOR_EMAIL": f"{PERSON}@example.org",
            "GIT_COMMITTER_NAME": PERSON,
            "GIT_COMMITTER_EMAIL": f"{PERSON}@example.org",
            "GIT_TERMINAL_PROMPT": "0",
        }


def has_ended(job: Mapping[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions") or ()
    return any(
        condition["type"] in {"Complete", "Failed"} and condition["status"] == "True"
        for condition in conditions
    )


def _path(kind: str, namespace: str) -> str:
    plural = kind if kind.endswith("s") else f"{kind}s"
    group = "/apis/batch/v1" if plural in {"jobs", "cronjobs"} else "/api/v1"
    return f"{group}/namespaces/{namespace}/{plural}"

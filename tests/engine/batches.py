"""Rendered manifests for tests of the engine: valid by default, one change a test."""

import copy
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sweepledger.engine.local import manifests
from sweepledger.engine.local.engine import LocalEngine
from sweepledger.engine.local.events import EngineEvent, PodEnded
from sweepledger.engine.local.job_spec import BatchSpec, ResourceAmounts
from sweepledger.engine.local.pods import DesiredBatch
from sweepledger.formats import json
from sweepledger.formats import record_json as record_format
from sweepledger.structs.record import Record

HERE = Path(__file__).parent
PROGRAM = "ab" * 32
CODE = "cd" * 20
ROOMY = ResourceAmounts(milli_cpus=64_000, memory=1 << 40, gpus=0)
"""A machine on which only `parallelism` limits."""

HARDENING: dict[str, Any] = {
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def trial(index: int) -> str:
    return f"t{index:011x}"


def config_maps(name: str, does: Iterable[str]) -> list[dict[str, Any]]:
    """Make the launcher's and the table's ConfigMaps, with a row a word list."""
    table = "trial,does\n" + "".join(f'{trial(index)},"{words}"\n' for index, words in enumerate(does))
    launch = {
        "version": 1,
        "batch": name,
        "program": PROGRAM,
        "code": CODE,
        "data": None,
        "columns": [],
        "shards": [{"file": "hyperparams.csv", "first": 0, "count": table.count("\n") - 1, "digest": "-"}],
        "seed_base": 0,
    }
    files = {
        "launcher": {
            "launch.py": (HERE / "fake_launcher.py").read_text(encoding="utf-8"),
            "launch.json": json.dump(launch),
        },
        "table-000": {"hyperparams.csv": table},
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{name}-{part}", "namespace": "sweeps"},
            "immutable": True,
            "data": data,
        }
        for part, data in files.items()
    ]


def _variables() -> list[dict[str, Any]]:
    plain = {
        "HOME": "/sweep/scratch",
        "SWEEP_LAUNCH": "/sweep/launcher/launch.json",
        "SWEEP_TABLE": "/sweep/table",
        "SWEEP_CODE": "/code",
        "SWEEP_RESULTS": "/sweep/results",
        "SWEEP_SCRATCH": "/sweep/scratch",
        "SWEEP_RAN": "local",
        "OMP_NUM_THREADS": "1",
    }
    fields = {
        "SWEEP_POD_UID": "metadata.uid",
        "SWEEP_NODE": "spec.nodeName",
        "SWEEP_FAILURES": "metadata.annotations['batch.kubernetes.io/job-index-failure-count']",
    }
    return [
        *({"name": name, "value": value} for name, value in plain.items()),
        *(
            {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
            for name, path in fields.items()
        ),
    ]


def _pod(name: str, results: dict[str, str], resources: dict[str, Any]) -> dict[str, Any]:
    container = {
        "name": "trial",
        "image": "sweepledger.invalid/local",
        "command": ["python3", "/sweep/launcher/launch.py"],
        "workingDir": "/sweep/scratch",
        "env": _variables(),
        "resources": {"limits": dict(resources), "requests": dict(resources)},
        "securityContext": {"readOnlyRootFilesystem": True},
        "volumeMounts": [
            {"name": "launcher", "mountPath": "/sweep/launcher", "readOnly": True},
            {"name": "table", "mountPath": "/sweep/table", "readOnly": True},
            {"name": "results", "mountPath": "/sweep/results", **results},
            {"name": "scratch", "mountPath": "/sweep/scratch"},
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 - a path in the container
        ],
    }
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 2,
        "activeDeadlineSeconds": 300,
        "securityContext": copy.deepcopy(HARDENING),
        "containers": [container],
        "volumes": [
            {"name": "launcher", "configMap": {"name": f"{name}-launcher", "defaultMode": 0o444}},
            {
                "name": "table",
                "projected": {
                    "defaultMode": 0o444,
                    "sources": [{"configMap": {"name": f"{name}-table-000"}}],
                },
            },
            {"name": "results", "persistentVolumeClaim": {"claimName": "sweep-results"}},
            {"name": "scratch", "emptyDir": {"sizeLimit": "2Gi"}},
        ],
    }


def _rule(action: str, codes: list[int]) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"containerName": "trial", "operator": "In", "values": codes}}


DISRUPTION = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
SMALL = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "4Gi"}


def indexed(
    does: Iterable[str],
    *,
    name: str = "lr-b1-00000001",
    parallelism: int = 4,
    retries: int = 0,
    resources: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    words = list(does)
    results = {"subPathExpr": f"{name}/$(JOB_COMPLETION_INDEX)"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "sweeps", "labels": {"sweepledger.dev/batch": name}},
        "spec": {
            "completionMode": "Indexed",
            "completions": len(words),
            "parallelism": parallelism,
            "backoffLimitPerIndex": retries,
            "maxFailedIndexes": len(words),
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": [DISRUPTION, _rule("FailIndex", [42]), _rule("FailJob", [43])]},
            "template": {
                "metadata": {"labels": {"sweepledger.dev/batch": name}},
                "spec": _pod(name, results, resources or SMALL),
            },
        },
    }
    return [*config_maps(name, words), job]


def jobs(does: Iterable[str], *, name: str = "lr-b1-00000002", retries: int = 0) -> list[dict[str, Any]]:
    words = list(does)
    made: list[dict[str, Any]] = config_maps(name, words)
    for index in range(len(words)):
        pod = _pod(name, {"subPath": f"{name}/{index}"}, SMALL)
        pod["containers"][0]["env"].append({"name": "SWEEP_INDEX", "value": str(index)})
        made.append(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": f"{name}-{trial(index)}", "namespace": "sweeps"},
                "spec": {
                    "completionMode": "Indexed",
                    "completions": 1,
                    "parallelism": 1,
                    "backoffLimitPerIndex": retries,
                    "maxFailedIndexes": 1,
                    "podReplacementPolicy": "Failed",
                    "podFailurePolicy": {
                        "rules": [DISRUPTION, _rule("FailIndex", [42]), _rule("FailJob", [43])]
                    },
                    "template": {"metadata": {"labels": {}}, "spec": pod},
                },
            }
        )
    return made


def name_of(made: list[dict[str, Any]]) -> str:
    return str(made[0]["metadata"]["name"]).removesuffix("-launcher")


def parsed(made: list[dict[str, Any]]) -> BatchSpec:
    """Parse manifests that must be right."""
    batch = manifests.parse_batch(name_of(made), made)
    assert isinstance(batch, BatchSpec), batch
    return batch


@dataclass
class Machine:
    """A folder in which an engine can be run again and again."""

    root: Path
    events: list[EngineEvent] = field(default_factory=list)

    @property
    def state(self) -> Path:
        """The engine's state folder; a space in the path is part of every test."""
        return self.root / "the state"

    def engine(self, **changes: Any) -> LocalEngine:
        return LocalEngine(self.state, **{"capacity": ROOMY, **changes})

    def desired(self, made: list[dict[str, Any]]) -> DesiredBatch:
        code = self.root / "locked code"
        code.mkdir(exist_ok=True)
        return DesiredBatch(parsed(made), code)

    def drive(
        self,
        engine: LocalEngine,
        *batches: list[dict[str, Any]],
        until: Callable[[], object] | None = None,
        seconds: float = 120.0,
    ) -> list[EngineEvent]:
        """Step until all is settled, or until something holds."""
        desired = [self.desired(made) for made in batches]
        give_up = time.monotonic() + seconds
        happened: list[EngineEvent] = []
        while time.monotonic() < give_up:
            happened += engine.step(desired)
            if engine.is_settled if until is None else until():
                self.events += happened
                return happened
            engine.wait(0.05)
        raise AssertionError(f"not settled after {seconds} s: {happened}")

    def run(self, *batches: list[dict[str, Any]], **changes: Any) -> list[EngineEvent]:
        with self.engine(**changes) as engine:
            return self.drive(engine, *batches)

    def records(self, made: list[dict[str, Any]], index: int) -> list[Record]:
        """Read what the attempts at an index left, first attempt first."""
        folder = self.state / "results" / name_of(made) / str(index)
        results = [record_format.read(path.read_bytes()) for path in folder.glob("*.json")]
        return sorted(
            (record for record in results if isinstance(record, Record)), key=lambda item: item.attempt
        )

    def spy(self, made: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
        """Read the notes of the fake launchers: word, index, process."""
        path = self.state / "results" / name_of(made) / "spy"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [(word, int(index), int(pid)) for word, index, pid in (line.split() for line in lines)]

    def starts(self, made: list[dict[str, Any]]) -> list[int]:
        """List the indexes whose launcher was started, in order."""
        return [index for word, index, _ in self.spy(made) if word == "start"]

    def processes(self) -> list[str]:
        """List live processes whose environment or command names this machine's folder."""
        return list(self._processes())

    def _processes(self) -> Iterator[str]:
        mark = os.fsencode(self.root)
        for entry in Path("/proc").glob("[0-9]*"):
            if int(entry.name) == os.getpid():
                continue
            try:
                seen = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if mark in seen:
                yield f"{entry.name}: {seen[-200:]!r}"


def ends(happened: Iterable[EngineEvent]) -> list[PodEnded]:
    return [event for event in happened if isinstance(event, PodEnded)]

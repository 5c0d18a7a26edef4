"""A short-lived pod that reads the results volume for a person, where no collector may run in the cluster."""

import io
import re
import tarfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from generator.engine.cluster import hardened
from generator.engine.cluster.kubectl import ClusterError, Kubectl
from generator.errors import ToolError

MOUNTED = "/sweep/results"
LIFE_SECONDS = 1800
"""It ends by itself after so long, however the person's machine fared."""

LARGEST_BYTES = 2 << 30
"""Of one batch's archive; records and output of 100,000 trials that fill their limits do not reach it."""
TRANSFER_SECONDS = 1200

MEMBER = re.compile(r"(?:\./)?([0-9]{1,6})/([A-Za-z0-9-]{1,64}\.(?:json|out|err))", re.ASCII)
"""What the collector reads: `<index>/<pod uid>.json` and its output; all else stays in the cluster."""


def manifest(name: str, namespace: str, claim: str, image: str, queue: str | None) -> dict[str, Any]:
    """Make the pod: it mounts the results read-only, sleeps, and may do nothing else."""
    labels = {"app.kubernetes.io/name": "sweepledger", "app.kubernetes.io/component": "sweep-reader"}
    container = {
        "name": "reader",
        "image": image,
        "command": ["sleep", str(LIFE_SECONDS)],
        "resources": hardened.amounts("100m", "128Mi"),
        "volumeMounts": [{"name": "results", "mountPath": MOUNTED, "readOnly": True}],
    }
    volumes = [{"name": "results", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels if queue is None else labels | {"kueue.x-k8s.io/queue-name": queue},
        },
        "spec": hardened.pod(container, volumes, activeDeadlineSeconds=LIFE_SECONDS),
    }


def fetch(
    kubectl: Kubectl,
    pod: dict[str, Any],
    batches: Iterable[str],
    into: Path,
    *,
    patience: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Start the pod, copy what trials of these batches left below `into`, and remove the pod.

    Raises ClusterError, also where no node runs the pod within `patience` seconds.
    """
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    kubectl.create(pod)
    try:
        _await(kubectl, name, namespace, clock() + patience, clock)
        for batch in batches:
            archive = kubectl.run(*_tar(name, namespace, batch), seconds=TRANSFER_SECONDS)
            unpack(archive, into / batch)
    finally:
        # It ends by itself, too: what went wrong first is what a person wants to read.
        with suppress(ToolError):
            kubectl.delete("pods", name, namespace)


def unpack(archive: bytes, into: Path) -> int:
    """Keep the records and outputs of a strangers' archive; give how many. Nothing leaves the folder.

    Names are matched, never cleaned; a link, a device or any other name is passed over, since a trial owns
    its folder and can put anything there. Raises ClusterError for what is no archive.
    """
    if len(archive) > LARGEST_BYTES:
        raise ClusterError(
            f"the archive of {into.name} has {len(archive)} bytes; at most {LARGEST_BYTES} fit"
        )
    kept = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as opened:
            for member in opened:
                matched = MEMBER.fullmatch(member.name)
                content = opened.extractfile(member) if matched and member.isreg() else None
                if matched is None or content is None:
                    continue
                target = into / matched[1] / matched[2]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
                kept += 1
    except tarfile.TarError as error:
        raise ClusterError(f"what the reader pod sent of {into.name} is no archive: {error}") from error
    return kept


def _tar(name: str, namespace: str, batch: str) -> tuple[str, ...]:
    """Archive a batch's folder to standard output; an empty archive where there is none."""
    folder = f"{MOUNTED}/{batch}"
    script = 'if [ -d "$0" ]; then cd "$0" && exec tar -cf - .; else exec tar -cf - -T /dev/null; fi'
    return ("exec", name, f"--namespace={namespace}", "--container=reader", "--", "sh", "-c", script, folder)


def _await(kubectl: Kubectl, name: str, namespace: str, deadline: float, clock: Callable[[], float]) -> None:
    while True:
        found = kubectl.get("pods", name, namespace)
        phase = "gone" if found is None else str(found.get("status", {}).get("phase"))
        if phase == "Running":
            return
        if phase in {"Failed", "Succeeded", "gone"}:
            raise ClusterError(f"the reader pod {name} did not stay ({phase})", hint="look at its events")
        if clock() >= deadline:
            raise ClusterError(
                f"the reader pod {name} is still {phase}: no node has run it in time",
                hint=f"`kubectl describe pod {name} --namespace {namespace}` says why while it waits",
            )
        time.sleep(1)

"""A short-lived pod that reads the results volume for a person, where no collector may run in the cluster."""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.engine.cluster import archive, hardened, process
from generator.engine.cluster.kubectl import ClusterError, Kubectl
from generator.errors import StorageError, ToolError
from generator.structs.errands import COMPONENT_LABEL, READER, READER_SECONDS
from generator.structs.labels import QUEUE_LABEL

MOUNTED = "/sweep/results"
TRANSFER_SECONDS = 1200

SEND = """\
export LC_ALL=C
[ -d "$0" ] || exec head -c 1024 /dev/zero
cd "$0" || exit
list=$(find . -mindepth 2 -maxdepth 2 ! -path '*[!A-Za-z0-9./-]*' \
    \\( -name '*.json' -o -name '*.out' -o -name '*.err' \\) -type f -size -SIZE) || exit
[ -n "$list" ] || exec head -c 1024 /dev/zero
printf '%s\\n' "$list" | tar -cf - -T -
[ $? -le 1 ]
""".replace("SIZE", str(archive.LARGEST_FILE // 512 + 1))
"""Archives a batch's folder to standard output; an empty archive where there is none, or nothing in it.

Beware: tar takes a line of the list that begins with a dash for an option, and a trial names its files: hence
the names without line ends, each after `./`. A size is an apparent one, so that a hole of a terabyte is not
sent. Tar's 1 says that a file changed meanwhile: its trial still runs.
"""


def manifest(name: str, namespace: str, claim: str, image: str, queue: str | None) -> dict[str, Any]:
    """Make the pod: it mounts the results read-only, sleeps, and may do nothing else."""
    labels = {"app.kubernetes.io/name": "sweepledger", COMPONENT_LABEL: READER.component}
    container = {
        "name": "reader",
        "image": image,
        "command": [*READER.command],
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
            "labels": labels if queue is None else labels | {QUEUE_LABEL: queue},
        },
        "spec": hardened.pod(container, volumes, activeDeadlineSeconds=READER_SECONDS),
    }


@dataclass(frozen=True, slots=True)
class Reader:
    """A pod that runs, and what it can bring."""

    kubectl: Kubectl
    name: str
    namespace: str

    def copy(self, batch: str, into: Path) -> None:
        """Copy a batch's folder: it is there when all of it has arrived, or not at all.

        Raises ClusterError, StorageError.
        """
        with tempfile.TemporaryDirectory(dir=into) as arriving:
            place = Path(arriving) / "batch"
            place.mkdir()
            try:
                with self._reading(
                    "sh", "-c", SEND, f"{MOUNTED}/{batch}", most=archive.LARGEST_ARCHIVE
                ) as source:
                    archive.unpack(source, place)
            except archive.Refused as error:
                says = f"what the reader pod sent of {batch} is no archive of results: {error}"
                raise ClusterError(says, hint="is the image the one that you meant?") from error
            except OSError as error:
                raise StorageError(f"{into}: {(error.strerror or str(error)).lower()}") from error
            place.rename(into / batch)

    @contextmanager
    def opened(self, path: str, size: int) -> Iterator[process.Running]:
        """Open one file of the volume that is said to have so many bytes; one more is let through.

        What it holds must be judged by its checksum: `cat` follows the links of whoever owns the folder.
        """
        with self._reading("cat", "--", f"{MOUNTED}/{path}", most=size + 1) as source:
            yield source

    def _reading(self, *words: str, most: int) -> AbstractContextManager[process.Running]:
        call = ("exec", self.name, f"--namespace={self.namespace}", "--container=reader", "--", *words)
        return self.kubectl.stream(*call, seconds=TRANSFER_SECONDS, most=most)


@contextmanager
def running(
    kubectl: Kubectl,
    pod: dict[str, Any],
    *,
    patience: float,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Reader]:
    """Start the pod for a block, and remove it.

    Raises ClusterError, also where no node runs the pod within `patience` seconds.
    """
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    kubectl.create(pod)
    try:
        _await(kubectl, name, namespace, clock() + patience, clock)
        yield Reader(kubectl, name, namespace)
    finally:
        # It ends by itself, too: what went wrong first is what a person wants to read.
        with suppress(ToolError):
            kubectl.delete("pods", name, namespace)


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

    Raises as `running` does.
    """
    with running(kubectl, pod, patience=patience, clock=clock) as reader:
        for batch in batches:
            reader.copy(batch, into)


def _await(kubectl: Kubectl, name: str, namespace: str, deadline: float, clock: Callable[[], float]) -> None:
    while True:
        found = kubectl.get("pods", name, namespace)
        phase = "gone" if found is None else str((found.get("status") or {}).get("phase"))
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

"""What a box holds in the test of what boxes leave: a cluster, a running pod, a mounted file system.

    python -m tests.e2e.lodger FILE ENDING

Writes FILE once all of it stands; then ends well (`pass`), ends badly (`failure`), or waits to be ended.
"""

import signal
import sys
from pathlib import Path

from tests.cluster import box, images
from tests.cluster.children import until
from tests.cluster.machine import Machine, start
from tests.e2e.storage import Storage

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "lodger", "namespace": "default"},
    "spec": {
        "containers": [{"name": "lodger", "image": images.PAUSE, "imagePullPolicy": "Never"}],
        "automountServiceAccountToken": False,
    },
}
SECONDS = 240.0


def settle() -> Machine:
    """Start all of it, and wait until the pod runs."""
    made = images.built()
    assert made is not None
    machine = start()
    assert machine.node is not None
    machine.node.load(made.pause.archive)
    Storage(machine.folder / "volumes").make()
    has_account = ("get", "serviceaccount", "default")
    kubectl = machine.server.kubectl
    until("there are accounts", lambda: not kubectl(*has_account, check=False).returncode, seconds=SECONDS)
    machine.server.apply(POD)
    phase = ("get", "pod", "lodger", "--output=jsonpath={.status.phase}")
    until("a pod runs", lambda: kubectl(*phase).stdout == "Running", seconds=SECONDS)
    return machine


def main(path: Path, ending: str) -> int:
    """Live in the box until it ends."""
    machine = settle()
    path.write_text(box.folder().name)
    try:
        if ending not in {"pass", "failure"}:
            signal.pause()
    finally:
        machine.children.end_all()
    return 0 if ending == "pass" else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))

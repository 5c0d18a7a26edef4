"""Times that a kubelet or a controller wrote to a real API server are charged; absurd ones are not, and are named."""

import json
from pathlib import Path
from typing import Any

from sweepledger.verbs.cluster.budget import month_budget
from tests.operations.clusters import Cluster, Look
from tests.operations.conftest import cluster, look_at_cluster, results
from tests.operations.test_collect import leave, stored
from tests.repository import Sandbox

__all__ = ["cluster", "look_at_cluster", "results"]  # fixtures

START = "2026-01-01T10:00:00Z"
TIMES = {
    "two and a half minutes": (START, "2026-01-01T10:02:30Z"),
    "of another zone": ("2026-01-01T12:00:00+02:00", "2026-01-01T10:02:30Z"),
    "none at all": (START, START),
    "that go backwards": ("2026-01-01T10:02:30Z", START),
    "of 1970": ("1970-01-01T00:00:00Z", START),
    "of the year 1": ("0001-01-01T00:00:00Z", START),
    "of the year 9999": (START, "9999-12-31T23:59:59Z"),
    "of a century": ("1926-01-01T10:00:00Z", START),
}
OBSERVED: dict[str, list[str] | None] = {
    "two and a half minutes": ["2026-01-01T10:00:00Z", "2026-01-01T10:02:30Z"],
    "of another zone": ["2026-01-01T10:00:00Z", "2026-01-01T10:02:30Z"],
    "none at all": ["2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z"],
}
"""What the collector records; nothing for the others."""


def test_times_of_pods_are_read_as_the_server_has_them_and_absurd_ones_are_left_out(
    sandbox: Sandbox, cluster: Cluster, results: Path, look_at_cluster: Look
) -> None:
    settings = (sandbox.root / "sweepledger.yaml").read_text()
    sandbox.write("sweepledger.yaml", f"{settings}budgets: {{everybody: {{gpu_hours: 9}}}}\n")
    name = sandbox.merged(xs=", ".join(map(str, range(len(TIMES)))), parallelism=2)
    batch = stored(sandbox)
    cluster.job(name, trials=len(TIMES))
    for index, (started, finished) in enumerate(TIMES.values()):
        pod = f"pod-{index}"
        uid = cluster.attempt(name, index, pod)
        leave(results, batch, index, uid=uid)
        state = {"exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": finished}
        cluster.stands(pod, "Succeeded", {"terminated": state})
    cluster.end(name, "Complete", completedIndexes=f"0-{len(TIMES) - 1}", succeeded=len(TIMES))

    (collected,) = look_at_cluster().collected

    assert collected.batches == (name,)
    lines = sandbox.git("show", f"origin/main:results/peak/records/{name}.jsonl").splitlines()[1:]
    read: dict[int, Any] = {line["index"]: line.get("observed") for line in map(json.loads, lines)}
    assert {time: read[index] for index, time in enumerate(TIMES)} == {
        time: OBSERVED.get(time) for time in TIMES
    }
    sandbox.pull()
    assert month_budget(sandbox.workspace).reported == (name,), (
        "some trials are charged by what they reported"
    )

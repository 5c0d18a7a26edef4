"""What trials really did: each training leaves a line on the results volume, whatever becomes of its pod.

Nothing here asserts but that what is waited for comes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.cluster.children import until
from tests.e2e.team import COLLECTORS, NAMESPACE, PATIENCE, Batch, Team, has_ended

PROGRAM = "code/leaves_lines.py"
SCRIPT = '''"""A trial that leaves a line in its folder when it begins to train, and at its end."""
import argparse, json, os, time
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--seconds", type=float)
args = parser.parse_args()
def leave(word):
    with open(os.path.join(os.environ["SWEEP_RESULTS"], "trainings"), "a") as file:
        file.write(word + " " + os.environ["SWEEP_POD_UID"] + chr(10))
leave("began")
time.sleep(args.seconds)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": args.x}, file)
leave("ended")
'''
LINES = "trainings"
ALREADY = " already, by attempt "
"""What the launcher says in place of training."""


@dataclass(frozen=True)
class Watch:
    """Asks for sweeps that leave lines, and reads them."""

    team: Team
    results: Path

    def write_spec(self, name: str, trials: int, *, seconds: float = 0, **run: Any) -> None:
        self.team.have_program(PROGRAM, SCRIPT)
        self.team.write_spec(
            name,
            parameters={"x": list(range(1, trials + 1)), "seconds": [seconds]},
            command=("python3", PROGRAM, "${args}"),
            **run,
        )

    def trainings(self, *batches: Batch) -> dict[str, list[str]]:
        """Give the pods in which each trial began to train, by batch/index."""
        return {
            f"{batch.name}/{index}": self._pods_that("began", batch, index)
            for batch in batches
            for index in range(self._lock(batch)["trials"])
        }

    def are_each_trained_once(self, *batches: Batch) -> bool:
        """Tell whether every trial began to train in one pod, once, and none is left out."""
        return {len(pods) for pods in self.trainings(*batches).values()} == {1}

    def _pods_that(self, did: str, batch: Batch, index: int) -> list[str]:
        pack = self._lock(batch)["run"].get("pack")
        place = str(index) if pack is None else f"{index // pack['trials']}/{index}"
        path = self.results / batch.name / place / LINES
        lines = path.read_text().splitlines() if path.is_file() else []
        return [pod for word, _, pod in (line.partition(" ") for line in lines) if word == did]

    def jobs(self, *batches: Batch) -> dict[str, str]:
        """Give the uids of the batches' Jobs, by name."""
        metadata = (job["metadata"] for batch in batches for job in self.team.jobs(batch))
        return {item["name"]: item["uid"] for item in metadata}

    def until_running(self, *batches: Batch) -> None:
        def is_running() -> bool:
            return all(any(self.trainings(batch).values()) for batch in batches)

        until("trials train", is_running, seconds=PATIENCE)

    def until_each_trains(self, *batches: Batch) -> None:
        until("every trial trains", lambda: all(self.trainings(*batches).values()), seconds=PATIENCE)

    def until_ended(self, *batches: Batch, but: Mapping[str, str] | None = None) -> None:
        """Wait until all Jobs of batches have ended; `but` are earlier ones, which do not count."""
        gone = set((but or {}).values())

        def have_ended() -> bool:
            return all(self._has_ended(batch, gone) for batch in batches)

        until("the Jobs have ended", have_ended, seconds=PATIENCE)

    def until_over(self, *batches: Batch) -> None:
        """Wait until batches have ended, or were even recorded meanwhile."""

        def are_over() -> bool:
            return all(self._has_ended(batch, set()) or self.team.is_recorded(batch) for batch in batches)

        until("the batches are over", are_over, seconds=PATIENCE)

    def until_gone(self, *batches: Batch) -> None:
        """Wait until batches have neither Job nor pod."""

        def are_gone() -> bool:
            return not any(self.team.jobs(batch) or self.team.pods(batch) for batch in batches)

        until("no Job and no pod is left", are_gone, seconds=PATIENCE)

    def _has_ended(self, batch: Batch, gone: set[str]) -> bool:
        jobs = [job for job in self.team.jobs(batch) if job["metadata"]["uid"] not in gone]
        lock = self._lock(batch)
        wanted = 1 if lock["shape"] == "indexed" else lock["trials"]
        return len(jobs) == wanted and all(map(has_ended, jobs))

    def _lock(self, batch: Batch) -> Mapping[str, Any]:
        """Read a lock wherever it lies by now."""
        archived = self.team.root / "overlays/archive" / batch.name
        return replace(batch, folder=archived if archived.is_dir() else batch.folder).lock

    def delete(self, batch: Batch, cascade: str = "background") -> None:
        """Delete a batch's Jobs by hand; `foreground` is how a TTL does it."""
        chosen = (f"--selector=sweepledger.dev/batch={batch.name}", f"--cascade={cascade}")
        self.team.server.kubectl("delete", "jobs", *chosen, f"--namespace={NAMESPACE}")

    def outputs(self, batch: Batch) -> dict[str, str]:
        """Give what the pods of the Jobs that stand have said that ended well, by the pod's uid."""
        jobs = set(self.jobs(batch).values())
        ended = [pod["metadata"] for pod in self.team.pods(batch) if pod["status"]["phase"] == "Succeeded"]
        pods = [item for item in ended if item["ownerReferences"][0]["uid"] in jobs]
        logs = ("logs", f"--namespace={NAMESPACE}", "--container=trial")
        return {item["uid"]: self.team.server.kubectl(*logs, item["name"]).stdout for item in pods}

    def seconds(self, *batches: Batch) -> list[float]:
        """Give how long the containers of trials ran that have ended; the API knows whole seconds."""
        return [value for batch in batches for pod in self.team.pods(batch) for value in _seconds(pod)]

    def collect(self) -> str:
        """Run the collector now and wait until it has ended; give the commit that the branch has then."""
        job = self.team.collect()

        def is_over() -> bool:
            document = self.team.get("jobs", job, COLLECTORS)
            return document is None or has_ended(document)

        until("the collector has ended", is_over, seconds=PATIENCE)
        self.team.git("fetch", "-q", "origin")
        return self.team.git("rev-parse", "origin/main").strip()


def tell(what: str, **seen: object) -> None:
    """Say what was seen, for the page of guarantees."""
    print(f"seen: {what}: {json.dumps(seen, default=str)}", flush=True)


def _seconds(pod: Mapping[str, Any]) -> list[float]:
    statuses = pod["status"].get("containerStatuses") or ()
    ended = [status["state"]["terminated"] for status in statuses if "terminated" in status["state"]]
    return [
        (_time(item["finishedAt"]) - _time(item["startedAt"])).total_seconds()
        for item in ended
        if item.get("startedAt") and item.get("finishedAt")
    ]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)

"""The pod of a trial whose results go to a bucket: the real sidecar and the real launcher, as processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from sweepledger.bucket.objects import Bucket
from sweepledger.bucket.results import BucketResults
from tests.launcher.folders import REPORT, Run, TrialFolder, shell

BATCH = "lr-b1-3f9a1c2e"
SEALS = b"0123456789abcdef" * 4
PATIENCE = 120


@dataclass
class Pod:
    """One attempt at a trial."""

    root: Path
    url: str
    secrets: Path | None = None
    index: int = 0
    uid: str = "uid-1"
    command: list[Any] = field(default_factory=lambda: shell(REPORT))
    changes: dict[str, Any] = field(default_factory=dict)
    """Of launch.json."""
    variables: dict[str, str] = field(default_factory=dict)
    """Of the sidecar."""
    key: bytes | None = None
    sidecar: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.state.mkdir(parents=True)
        self.folder.results.mkdir(parents=True)
        self.log.touch()
        (self.root / "termination-log").touch()

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def log(self) -> Path:
        return self.root / "sidecar-log"

    @property
    def parent(self) -> Path:
        return self.root / "parent"

    @property
    def folder(self) -> TrialFolder:
        """What the launcher has; its folder of results is the pod's emptyDir."""
        environment = {
            "SWEEP_POD_UID": self.uid,
            "SWEEP_INDEX": str(self.index),
            "SWEEP_PARENT": str(self.parent),
        }
        rows = [f"t{index:011x},0.{index + 1}" for index in range(self.index + 1)]
        return TrialFolder(
            self.root,
            rows=rows,
            command=self.command,
            changes=self.changes,
            environment=environment,
            may_fork=False,  # the client of buckets has threads, which no fork of this process has
        )

    @property
    def results(self) -> Path:
        return self.folder.results

    def environment(self) -> dict[str, str]:
        key = {}
        if self.key:
            (self.root / "key").write_bytes(self.key)
            key = {"SWEEP_STORE_KEY_FILE": str(self.root / "key")}
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": "generator",
            "SWEEP_STORE_URL": self.url,
            "SWEEP_STORE_STATE": str(self.state),
            "SWEEP_BATCH": BATCH,
            "SWEEP_INDEX": str(self.index),
            "SWEEP_POD_UID": self.uid,
            "SWEEP_RESULTS": str(self.results),
            "SWEEP_PARENT": str(self.parent),
            "SWEEP_TERMINATION_LOG": str(self.log),
            **({"SWEEP_STORE_SECRETS": str(self.secrets)} if self.secrets else {}),
            **key,
            **self.variables,
        }

    def start(self, *, waits: bool = True) -> Self:
        """Start the sidecar, and wait as the pod does until it has restored everything."""
        with (self.root / "sidecar-err").open("ab") as err:
            self.sidecar = subprocess.Popen(
                [sys.executable, "-m", "sweepledger.bucket.sidecar"],
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=err,
                cwd=Path(__file__).parents[2],
            )
        return self.ready() if waits else self

    def ready(self) -> Self:
        self.until((self.state / "ready").exists)
        return self

    def until(self, holds: Any) -> None:
        """Wait for something while the sidecar runs."""
        end = time.monotonic() + PATIENCE
        while not holds():
            assert self.sidecar is not None
            assert self.sidecar.poll() is None, self.said
            assert time.monotonic() < end, self.said
            time.sleep(0.02)

    def launch(self) -> Run:
        return self.folder.run()

    def stop(self) -> int:
        """End the sidecar as the kubelet does once the launcher has ended."""
        assert self.sidecar is not None
        self.sidecar.send_signal(signal.SIGTERM)
        return self.sidecar.wait(PATIENCE)

    def kill(self) -> None:
        """End the sidecar as a lost node does."""
        assert self.sidecar is not None
        self.sidecar.kill()
        self.sidecar.wait()

    def run(self) -> Run:
        self.start()
        try:
            return self.launch()
        finally:
            self.stop()

    @property
    def said(self) -> str:
        return (self.root / "sidecar-err").read_text()

    @property
    def message(self) -> dict[str, Any]:
        """The sidecar's termination message."""
        return dict(json.loads(self.log.read_text() or "{}"))

    @property
    def launchers_message(self) -> str:
        return (self.root / "termination-log").read_text()

    def bucket(self) -> Bucket:
        return Bucket(self.url, secrets=self.secrets)

    def stored(self) -> BucketResults:
        """Return what the collector sees, anew."""
        return BucketResults(self.bucket(), self.key)

    def record(self) -> Mapping[str, Any]:
        (content,) = self.stored().records(BATCH, self.index)
        assert content
        return dict(json.loads(content))

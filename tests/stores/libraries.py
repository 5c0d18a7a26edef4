"""The libraries of stores, in a virtual environment of their own, which `make test-full` prepares."""

import os
import pickle
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from sweepledger.stores.contents import SweepContents
from tests.cluster.processes import free_ports

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv/stores/bin/python"
REASON = "the libraries of stores"
WRITE = """\
import pickle, sys
from pathlib import Path
from sweepledger.stores.registry import stores
change = stores()[sys.argv[2]].write(pickle.loads(Path(sys.argv[1]).read_bytes()), sys.argv[3])
print(change.added, change.present)
"""


def environment(home: Path) -> dict[str, str]:
    """Return an environment in which no library asks a server for anything."""
    offline = {"WANDB_MODE": "offline", "MLFLOW_DISABLE_TELEMETRY": "true", "HF_HUB_OFFLINE": "1"}
    bare = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT / "generator")}
    return {**bare, **offline, "PYTHONWARNINGS": "ignore"}


def start(code: str, *arguments: str, home: Path) -> subprocess.Popen[str]:
    """Start code with the libraries, in the folder `home`; skip by name where they are not installed."""
    if not PYTHON.exists():
        pytest.skip(f"skipped: {PYTHON.parent.parent.name} is not installed: `make test-full` does")
    return subprocess.Popen(
        [str(PYTHON), "-c", code, *arguments],
        cwd=home,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(code: str, *arguments: str, home: Path) -> str:
    process = start(code, *arguments, home=home)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return output.strip()


def start_writing(store: str, contents: SweepContents, place: str, home: Path) -> subprocess.Popen[str]:
    pickled = home / "contents"
    pickled.write_bytes(pickle.dumps(contents))
    return start(WRITE, str(pickled), store, place, home=home)


def write(store: str, contents: SweepContents, place: str, home: Path) -> list[int]:
    """Write results to a store; return how many trials were added and were present."""
    process = start_writing(store, contents, place, home)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return [int(word) for word in output.split()[-2:]]


STORAGE = "sqlite:///store.db"
SERVERS = {
    "mlflow": f"mlflow server --backend-store-uri {STORAGE} --workers=1 --host=127.0.0.1 --port",
    "optuna": f"optuna-dashboard {STORAGE} --server=wsgiref --host=127.0.0.1 --port",
}
SECONDS = 120
"""For servers and pages on a machine full of others."""


@contextmanager
def served(store: str, folder: Path) -> Iterator[str]:
    """Serve a store by its own program, on the loopback only; yield the address."""
    (port,) = free_ports(1)
    program, *arguments = SERVERS[store].split()
    bin_folder = PYTHON.parent
    log = (folder / "server.log").open("w")
    path = {"PATH": f"{bin_folder}:{environment(folder)['PATH']}"}
    server = subprocess.Popen(
        [str(bin_folder / program), *arguments, str(port)],
        cwd=folder,
        env=environment(folder) | path,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        until = time.monotonic() + SECONDS
        while not _answers(address):
            assert server.poll() is None, (folder / "server.log").read_text()
            assert time.monotonic() < until, (folder / "server.log").read_text()
            time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=SECONDS)
        log.close()


def _answers(address: str) -> bool:
    try:
        with urlopen(address, timeout=5):  # noqa: S310 - our own address
            return True
    except (URLError, OSError):
        return False

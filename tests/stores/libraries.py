"""The libraries of stores, in a virtual environment of their own, which `make test-full` prepares."""

import os
import pickle
import subprocess
from pathlib import Path

import pytest

from sweepledger.stores.contents import SweepContents

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv/stores/bin/python"
REASON = "the libraries of stores"
WRITE = """\
import pickle, sys
from pathlib import Path
from sweepledger.stores.registry import STORES
change = STORES[sys.argv[2]].write(pickle.loads(Path(sys.argv[1]).read_bytes()), sys.argv[3])
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
    """Run code with the libraries, and return what it prints."""
    process = start(code, *arguments, home=home)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return output.strip()


def start_writing(store: str, contents: SweepContents, place: str, home: Path) -> subprocess.Popen[str]:
    """Start to write results to a store."""
    pickled = home / "contents"
    pickled.write_bytes(pickle.dumps(contents))
    return start(WRITE, str(pickled), store, place, home=home)


def write(store: str, contents: SweepContents, place: str, home: Path) -> list[int]:
    """Write results to a store; return how many trials were added and were present."""
    process = start_writing(store, contents, place, home)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return [int(word) for word in output.split()[-2:]]

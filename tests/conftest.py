"""Fixtures that everybody shares: real git repositories, and kustomize and a cluster's API server by name."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from generator.errors import ToolError
from generator.repo import kustomize
from tests.cluster.apiserver import NoClusterToolsError, Server, running
from tests.repository import Sandbox

ROOT = Path(__file__).parent.parent

# The same examples on every run and machine, however slow: a red build is a fault of the code.
settings.register_profile(
    "suite", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

# In the background, or under nohup, these are ignored, and so they would be by every process started here.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test a git that knows no person, so that none depends on one."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """A clone of a bare remote: settings, a little code, no sweep yet."""
    return Sandbox.create(tmp_path)


@pytest.fixture(scope="session")
def needs_kustomize() -> None:
    """Skip by name where kustomize cannot be had."""
    try:
        kustomize.command()
    except ToolError as error:
        pytest.skip(f"skipped: {error}")


@pytest.fixture(scope="session")
def apiserver() -> Iterator[Server]:
    """A real etcd and kube-apiserver, one for all tests; skip by name where they were not built."""
    try:
        with running() as server:
            yield server
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")


@pytest.fixture
def run_sweep() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command `sweep` as a process."""

    def run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "generator.cli", *arguments],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let golden trees change only when somebody says so."""
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden trees anew; read the diff"
    )

"""Fixtures that everybody shares: real git repositories, and kustomize and a cluster's API server by name."""

import atexit
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from sweepledger.errors import ToolError
from sweepledger.repo import kustomize
from tests import builds, tiers
from tests.cluster.apiserver import NoClusterToolsError, Server, running
from tests.repository import Sandbox

ROOT = Path(__file__).parent.parent

# The same examples on every run and machine, however slow: a red build is a fault of the code.
settings.register_profile(
    "suite",
    max_examples=50,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")

# Hypothesis also draws constants of the modules that it takes for the project's own. Which modules those are
# depends on the path of the clone and on earlier imports: the same test would draw other examples elsewhere.
# Each worker would also parse every imported module for them.
NO_CONSTANTS = Constants()
providers._get_local_constants = lambda: NO_CONSTANTS  # noqa: SLF001

# Much of what is tested waits for a disk until it holds what was written. Temporary files lie in memory where there is
# room, and where programs may run.
MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder for this user only
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK):
    memory = os.statvfs(MEMORY)
    if memory.f_bavail * memory.f_frsize >= 2 * 2**30 and not memory.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None

# The copies of the code that trials have lie in the cache of the user; those of other programs stay where they are.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
for program in ("pip", "uv"):
    os.environ.setdefault(f"{program.upper()}_CACHE_DIR", str(CACHE / program))
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="sweep-cache-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

# In the background, or under nohup, these are ignored, and so they would be by every process started here.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the full suite before pytest selects by markers; sort the files that workers share."""
    tiers.mark(items)
    if "PYTEST_XDIST_WORKER" in os.environ:
        tiers.sort_for_workers(items)


gc.disable()  # a quarter of the time of collecting tests, of which nothing becomes garbage


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking through the collected tests again and again."""
    gc.freeze()
    gc.set_threshold(
        20_000, 20, 20
    )  # tests leave little garbage, and Python's own thresholds are for small programs
    gc.enable()


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count what the tier leaves out."""
    tiers.count(items)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send a worker's counts to the process that prints."""
    if output := getattr(session.config, "workeroutput", None):
        output["left_out"] = dict(tiers.left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take a worker's counts: every worker collects, and deselects, the same tests."""
    tiers.left_out.update(getattr(node, "workeroutput", {}).get("left_out", {}) if not tiers.left_out else {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the tier left out."""
    if line := tiers.summary():
        terminalreporter.write_line(line)


@pytest.fixture(scope="session", autouse=True)
def git_settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write settings of git that name no person, and start no upkeep of repositories that live for a second.

    What modules of tests share has these from the start, too.
    """
    path = tmp_path_factory.mktemp("git") / "config"
    template = path.parent / "template"
    for name in (
        "hooks",
        "info",
    ):  # without git's examples of hooks, which would be copied with every repository
        (template / name).mkdir(parents=True)
    path.write_text(
        f"[init]\n\ttemplateDir = {template}\n"
        # A copied repository has other inodes than its index knows, but the same times and sizes of files.
        "[core]\n\ttrustctime = false\n\tcheckStat = minimal\n"
        "[maintenance]\n\tauto = false\n[gc]\n\tauto = 0\n[receive]\n\tautogc = false\n"
    )
    os.environ |= {"GIT_CONFIG_GLOBAL": str(path), "GIT_CONFIG_NOSYSTEM": "1"}
    return path


@pytest.fixture(scope="session", autouse=True)
def _builds(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let equal overlays be built once."""
    builds.remember(tmp_path_factory.mktemp("builds"))


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch, git_settings: Path) -> None:
    """Give every test a git that knows no person, so that none depends on one."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(git_settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A clone of a bare remote: settings, a little code, no sweep yet."""
    return Sandbox.create(tmp_path, is_patched=lambda: bool(monkeypatch._setattr))  # noqa: SLF001


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let golden trees change only when somebody says so, and a run end in time."""
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden trees anew; read the diff"
    )
    parser.addoption(
        "--until", type=float, metavar="SECONDS", help="skip tests that begin later than this, since 1970"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out, before its fixtures begin, a test for which there is no time."""
    tiers.skip_after(item.config.getoption("--until"))

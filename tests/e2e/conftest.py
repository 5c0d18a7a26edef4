"""One cluster, one controller, one team for all tests of a run: `make e2e` runs them for each controller."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cluster import building, preparing
from tests.cluster.apiserver import NoClusterToolsError
from tests.cluster.machine import Machine, start
from tests.e2e import collecting
from tests.e2e.controllers import CONTROLLERS, Controller
from tests.e2e.founding import Ground, prepared, set_up_team
from tests.e2e.standing import describe_state
from tests.e2e.team import Team

LOGS = building.BUILT / "logs"
"""Of the last cluster of each controller, which is gone when somebody wants to know why a test failed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run choose its controller, and whether it takes the long way."""
    parser.addoption(
        "--controller", choices=sorted(CONTROLLERS), default="flux", help="who applies what is merged"
    )
    parser.addoption("--full", action="store_true", help="also what is left out of every change's run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip by name what only a full run does."""
    for item in items:
        if item.get_closest_marker("full") and not config.getoption("--full"):
            item.add_marker(pytest.mark.skip(reason="only in `make e2e-full`"))


@pytest.fixture(scope="session")
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """A cluster with a node; skip by name where there can be none."""
    if reason := preparing.lacking():
        pytest.skip(f"skipped: no cluster tools ({reason})")
    try:
        made = start()
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")
    try:
        yield made
    finally:
        kept = LOGS / request.config.getoption("--controller")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(made.children.folder, kept)
        made.children.end_all()


@pytest.fixture(scope="session")
def ground(machine: Machine, request: pytest.FixtureRequest) -> Ground:
    """What a team is founded on: images on the node, a git server, volumes."""
    try:
        return prepared(machine, request.config.getoption("--controller"))
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: no cluster tools ({error})")


@pytest.fixture(scope="session")
def controller(ground: Ground) -> Controller:
    """Argo CD or Flux, running, and following nothing yet."""
    made = CONTROLLERS[ground.controller](ground.machine)
    made.start()
    return made


@pytest.fixture(scope="session")
def team(ground: Ground, controller: Controller) -> Team:
    """A team whose repository the controller follows."""
    made = set_up_team(ground)
    controller.follow(made)
    return made


@pytest.fixture
def by_hand(team: Team) -> Iterator[None]:
    """Let the collector run only when a test starts it."""
    with collecting.only_by_hand(team):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show with a failure what the team did last, and how the cluster stands."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined] # pluggy's result is not typed here
    used = getattr(item, "funcargs", {})
    team = used.get("team")
    if report.failed and isinstance(team, Team):
        messages = list(dict.fromkeys(team.transcript))[-4:]  # who waits asks the same again and again
        report.sections.append(("what the team did", "\n".join(messages)))
        with suppress(Exception):  # the cluster itself may be what is gone
            report.sections.append(("how the cluster stands", describe_state(team, used["controller"])))


@pytest.fixture
def repository_root() -> Path:
    return Path(__file__).parents[2]

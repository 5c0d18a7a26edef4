"""What sync has written, on the pages of MLflow and of the Optuna Dashboard, in a real Chromium."""

import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from sweepledger.stores.contents import SweepContents
from tests.browser import NoBrowserError, browser
from tests.stores.contents import some_contents
from tests.stores.libraries import PYTHON, REASON, environment, write

pytestmark = pytest.mark.full_suite(REASON)

STORAGE = "sqlite:///store.db"
SERVERS = {
    "mlflow": (
        "mlflow",
        "server",
        "--backend-store-uri",
        STORAGE,
        "--workers=1",
        "--host=127.0.0.1",
        "--port",
    ),
    "optuna": ("optuna-dashboard", STORAGE, "--server=wsgiref", "--host=127.0.0.1", "--port"),
}
SECONDS = 40


@contextmanager
def served(store: str, folder: Path) -> Iterator[str]:
    """Serve a store by its own program, on the loopback only; yield the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program, *arguments = SERVERS[store]
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


@contextmanager
def opened(address: str, path: str) -> Iterator[Any]:
    """Open a page that reaches nothing but its own server; its dialogs and errors fail the test."""
    faults: list[str] = []
    try:
        with browser() as chromium:
            page = chromium.new_context(viewport={"width": 1600, "height": 1200}).new_page()
            page.route(
                lambda url: not url.startswith((address, "data:", "blob:")), lambda route: route.abort()
            )
            page.on("dialog", lambda dialog: faults.append(dialog.message))
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.set_default_timeout(SECONDS * 1000)
            page.goto(f"{address}/{path}")
            yield page
    except NoBrowserError as error:
        pytest.skip(f"skipped: {error}")
    assert faults == []


@pytest.fixture(scope="module")
def contents() -> SweepContents:
    """Five trials, one of each status, and a description with tags."""
    return some_contents(5)


def test_mlflow_shows_each_run_with_its_state_and_its_curve(contents: SweepContents, tmp_path: Path) -> None:
    write("mlflow", contents, STORAGE, tmp_path)

    # The page that MLflow opens for an experiment is about traces of language models; its runs are beside it.
    runs = "#/experiments/1/runs?workflowType=machine_learning"
    with served("mlflow", tmp_path) as address, opened(address, runs) as page:
        for trial in contents.trials:
            page.get_by_text(trial.id).first.wait_for()
        page.get_by_role("link", name=contents.trials[1].id).first.click()
        page.get_by_text("score.curve").first.wait_for()
        text = page.locator("body").inner_text()

    assert "Finished" in text
    assert {"rate", "width", "kind", "layers", "loss"} <= set(text.split())


def test_the_optuna_dashboard_shows_each_trial_with_its_values(
    contents: SweepContents, tmp_path: Path
) -> None:
    write("optuna", contents, STORAGE, tmp_path)

    with served("optuna", tmp_path) as address, opened(address, "dashboard") as page:
        page.get_by_text("peak").first.click()
        page.wait_for_url("**/dashboard/studies/1")
        page.goto(f"{address}/dashboard/studies/1/trials")
        page.get_by_text("sweepledger.trial").first.wait_for()
        text = page.locator("body").inner_text()

    assert "5 Trials" in text
    assert re.findall(r"^Trial \d\n(\w+)$", text, re.MULTILINE) == [
        *("Complete", "Complete", "Pruned", "Fail", "Complete"),
    ]
    assert contents.trials[0].id in text

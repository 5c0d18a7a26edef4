"""What sync has written, on the pages of MLflow and of the Optuna Dashboard, in a real Chromium."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sweepledger.stores.contents import SweepContents
from tests.browser import NoBrowserError, browser
from tests.stores.contents import some_contents
from tests.stores.libraries import REASON, SECONDS, STORAGE, served, write

pytestmark = pytest.mark.full_suite(REASON)


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

"""The site in a real Chromium: light, dark, on a phone and by keyboard, without errors, requests or barriers."""

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweepledger.results.inference import interval
from sweepledger.site.fragment import sweep_pages
from sweepledger.site.history import MonthlyCost, monthly_times
from sweepledger.site.pages import compare_page, home_page, running_page
from sweepledger.verbs.site import LoopbackServer
from tests.browser import NoBrowserError, axe_source, browser
from tests.site.pages import HOSTILE, a_history, a_repeated_summary

pytestmark = pytest.mark.full_suite("a browser")

COMMIT = {"id": "c3" * 20, "day": "2026-01-03"}
PAGES = {
    "home": "index.html",
    "sweep": "sweeps/peak/index.html",
    "planned sweep": "sweeps/plan/index.html",
    "trial": "sweeps/peak/trials.html#u00000000003",
    "compare": "compare.html#a=peak/t00000000001&b=peak/t00000000002",
    "compare sweeps": "compare.html#a=peak&b=peak",
    "compare commits": "compare.html#a=peak@a1a1a1a1&b=peak@e5e5e5e5",
}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    try:
        with browser() as started:
            yield started
    except NoBrowserError as error:
        pytest.skip(f"skipped: {error}")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site in which every text that a person or a trial may write is hostile."""
    recorded = a_history(HOSTILE, summary=a_repeated_summary(HOSTILE, trials=60))
    planned = a_history(HOSTILE, name="plan", summary=None, description=" ".join(HOSTILE))
    folder = tmp_path_factory.mktemp("site")
    made = {history.name: sweep_pages(history, COMMIT["id"]) for history in (recorded, planned)}
    for name, pages in made.items():
        (folder / "sweeps" / name).mkdir(parents=True)
        for file, content in pages.files.items():
            (folder / "sweeps" / name / file).write_bytes(content)
    cards = [pages.card for pages in made.values()]
    home = home_page(
        cards,
        recorded.events,
        times=monthly_times(card["months"] for card in cards),
        costs=(MonthlyCost("2026-01", HOSTILE[0], 1.0, 2.0),),
        commit=COMMIT,
        currency="EUR",
    )
    (folder / "index.html").write_bytes(home)
    data = [pages.files["data.json"] for pages in made.values()]
    (folder / "compare.html").write_bytes(compare_page(data, COMMIT))
    return folder


class Visit:
    """A page, and everything that went wrong on it."""

    def __init__(self, chromium: Any, site: Path, **look: Any) -> None:
        self.site = site
        self.context = chromium.new_context(**look)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.faults.append(message.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: self.faults.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: str) -> Any:
        self.page.goto(f"{self.site.as_uri()}/{path}")
        self.page.wait_for_load_state("networkidle")
        return self.page

    def draw(self) -> None:
        """Scroll over the whole page, so that every chart is drawn."""
        self.page.evaluate("""async () => {
          for (const plot of document.querySelectorAll('.plot')) {
            plot.scrollIntoView();
            do await new Promise((done) => setTimeout(done, 30));
            while (plot.closest('[data-chart]') && !plot.querySelector('path.axis'));
          }
          scrollTo(0, 0);
        }""")


def drawn(page: Any, chart: str) -> Any:
    """Scroll to a chart, and return its plot once it is drawn."""
    plot = page.locator(f"[data-chart={chart}] .plot")
    plot.scroll_into_view_if_needed()
    plot.locator("path.axis").first.wait_for(state="attached")
    return plot


@pytest.fixture
def visit(chromium: Any, site: Path, request: pytest.FixtureRequest) -> Iterator[Visit]:
    made = Visit(chromium, site, **getattr(request, "param", LOOKS["light"]))
    yield made
    made.context.close()


@pytest.mark.parametrize("visit", LOOKS.values(), ids=LOOKS, indirect=True)
@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_every_page_is_whole_without_faults_requests_or_barriers(visit: Visit, path: str) -> None:
    page = visit.open(path)
    visit.draw()

    found = page.evaluate(axe_source() + ";axe.run().then((found) => found.violations)")

    barriers = [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found]
    assert barriers == []
    assert visit.faults == []
    assert [url for url in visit.requests if url != f"{visit.site.as_uri()}/{path}".partition("#")[0]] == []
    assert "sweepledger" in page.title()  # hostile text would have changed it
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_brush_on_an_axis_selects_in_every_chart_and_in_the_table(visit: Visit) -> None:
    page = visit.open(PAGES["sweep"])
    box = drawn(page, "parallel").bounding_box()

    page.mouse.move(box["x"] + 60, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 120, steps=4)
    page.mouse.up()
    page.locator("#selected", has_text="selected").wait_for()

    selected, total = page.locator("#selected").inner_text().split(" trials")[0].split(" of ")
    assert 0 < int(selected) < int(total) == 120
    page.locator("#page", has_text=f"of {selected}").wait_for()  # the table follows
    assert page.locator("[data-chart=parallel] canvas.dim").count() == 1

    page.keyboard.press("Escape")
    page.locator("#selected", has_text=re.compile("^120 trials$")).wait_for()
    assert page.locator("canvas.dim").count() == 0
    assert visit.faults == []


def test_everything_can_be_done_with_the_keyboard(visit: Visit) -> None:
    page = visit.open(PAGES["sweep"])

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("#query").focus()
    page.keyboard.type("status:ok rate>0.05")
    # Rate 1 and 0.1, without those that failed.
    page.locator("#selected", has_text=re.compile("^50 of 120")).wait_for()
    page.locator("#page", has_text="of 50").wait_for()  # the table follows

    page.locator("#table thead button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#table thead th").first.get_attribute("aria-sort") == "ascending"
    assert page.evaluate("document.activeElement.textContent") == "trial ↑"
    first = page.locator("#table tbody a").first
    name = first.inner_text()
    first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/trials.html#*")
    page.locator("h1", has_text=name).wait_for()
    assert visit.faults == []


def test_the_page_of_a_trial_leads_to_better_ones_and_to_the_comparison(visit: Visit) -> None:
    page = visit.open(PAGES["trial"])
    assert "rank" in page.locator("#status").inner_text()

    page.locator("#better").click()
    page.locator("h1", has_text="u00000000002").wait_for()
    assert page.locator("#command").inner_text().endswith("sweep show u00000000002 --reproduce")
    assert page.locator("#curve path[stroke-width]").count() == 1
    assert page.locator("#beside figcaption").all_inner_texts() == ["loss"]
    assert page.locator("#beside .line").count() == 1

    page.locator("#compare").click()
    page.wait_for_url("**/compare.html#**")
    page.locator("#summary", has_text="B is better by").wait_for()
    assert visit.faults == []


def test_a_sweep_at_two_commits_is_compared_with_why_it_moved(visit: Visit) -> None:
    page = visit.open(PAGES["compare commits"])

    assert "B is better by" in page.locator("#summary").inner_text()
    noise = page.locator("#noise").inner_text()
    differences = [0.3 + 0.3 * (index % 3) / 50 for index in range(60) if index % 6 != 5]
    expected = interval(differences)
    assert expected is not None
    assert f"interval of B less A {expected.low:.6g} to {expected.high:.6g}: more than noise" in noise
    assert page.locator("#why").inner_text().startswith("code (")
    assert page.locator("#factors tbody tr").count() == 5
    assert page.locator("#command").inner_text() == "sweep compare peak@a1a1a1a1 peak@e5e5e5e5 --explain"
    assert visit.faults == []


class Live:
    """The data of the page of running trials, and a server of both."""

    def __init__(self) -> None:
        trials = [
            {
                "trial": f"t{place:011}",
                "state": "running",
                "steps": [1, 2, 3],
                "values": [place, place + 1, 9],
                "output": text,
            }
            for place, text in enumerate(HOSTILE[:8])
        ]
        batch = {
            "sweep": "peak",
            "batch": "peak-b1-3f9a1c2e",
            "metric": "score",
            "goal": "maximize",
            "counts": {"running": 8},
        }
        self.data: dict[str, Any] = {"commit": COMMIT["id"], "batches": [{**batch, "trials": trials}]}

    def answer(self, path: str) -> bytes | None:
        if path == "/running.html":
            return running_page()
        return json.dumps(self.data).encode() if path == "/running.json" else None


@pytest.fixture
def live() -> Iterator[tuple[Live, str]]:
    made = Live()
    server = LoopbackServer(made.answer, 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield made, server.url
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("visit", LOOKS.values(), ids=LOOKS, indirect=True)
def test_running_trials_ask_only_their_server(visit: Visit, live: tuple[Live, str]) -> None:
    shown, url = live
    page = visit.page
    page.goto(f"{url}running.html")
    page.locator(".plot path[stroke-width]").nth(7).wait_for(state="attached")
    summary = page.locator("summary").nth(1)
    summary.focus()
    page.keyboard.press("Enter")
    found = page.evaluate(axe_source() + ";axe.run().then((found) => found.violations)")

    shown.data["batches"][0]["trials"][1]["values"][2] = 12.5
    page.locator("td", has_text="12.5").wait_for()

    assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found] == []
    assert visit.faults == []
    assert {request.removeprefix(url) for request in visit.requests} == {"running.html", "running.json"}
    assert page.title() == "Running now · sweepledger"
    assert page.locator("details[open]").count() == 1  # what a reader has opened stays open
    assert page.evaluate("document.activeElement.dataset.trial") == "t00000000001"
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]

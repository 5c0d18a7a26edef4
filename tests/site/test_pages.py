"""Pages as functions of values: the same bytes for the same history, nothing but text from users, no requests."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping

import pytest

from sweepledger.site import fragment
from sweepledger.site.charts import trial_columns
from sweepledger.site.fragment import sweep_pages
from sweepledger.site.history import Event, EventKind, SweepHistory, monthly_times
from sweepledger.site.pages import compare_page, home_page
from tests.site.pages import HOSTILE, Elements, a_history, a_repeated_summary, a_summary

COMMIT = {"id": "c3" * 20, "day": "2026-01-03"}


def site(*texts: str) -> Mapping[str, bytes]:
    history = a_history(texts or ("plain",))
    pages = sweep_pages(history, COMMIT["id"])
    card = pages.card
    home = home_page(
        [card], history.events, times=monthly_times([card["months"]]), costs=(), commit=COMMIT, currency=""
    )
    return {
        **{f"sweeps/peak/{name}": content for name, content in pages.files.items()},
        "index.html": home,
        "compare.html": compare_page([pages.files["data.json"]], COMMIT),
    }


@pytest.fixture(scope="module")
def hostile() -> Mapping[str, Elements]:
    return {path: Elements(page) for path, page in site(*HOSTILE).items() if path.endswith(".html")}


def test_what_users_and_trials_wrote_makes_no_element(hostile: Mapping[str, Elements]) -> None:
    harmless = {path: Elements(page) for path, page in site().items() if path.endswith(".html")}

    for path, page in hostile.items():
        allowed = {tag for tag, _ in harmless[path].elements} | {"option"}
        assert {tag for tag, _ in page.elements} <= allowed, path
        assert [tag for tag, _ in page.elements].count("script") == 2, path
        for tag, attributes in page.elements:
            assert not [name for name in attributes if name.startswith("on") or name == "style"], (path, tag)


@pytest.mark.parametrize(("most", "shown"), [(12, ["loss"]), (11, [])])
def test_curves_of_few_trials(most: int, shown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragment, "MOST_WITH_CURVES", most)

    data = Elements(site()["sweeps/peak/trials.html"]).data()

    assert [list(each.get("curves", {})) for each in data["details"]] == [shown] * 12


def test_hostile_text_is_shown_as_text(hostile: Mapping[str, Elements]) -> None:
    assert HOSTILE[1] in hostile["index.html"].text
    assert HOSTILE[0] in hostile["sweeps/peak/index.html"].text
    assert "\\u202e" in hostile["sweeps/peak/index.html"].text  # what would reorder a line is visible


def test_the_policy_allows_the_scripts_of_the_page_and_nothing_else(hostile: Mapping[str, Elements]) -> None:
    for path, page in hostile.items():
        (policy,) = [
            attributes["content"]
            for tag, attributes in page.elements
            if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
        ]
        allowed = dict(part.split(" ", 1) for part in policy.split("; "))
        assert allowed["default-src"] == "'none'", path
        assert "unsafe" not in policy
        for attributes, content in page.inside:
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            if attributes.get("type") != "application/json":
                assert allowed[f"{attributes['element']}-src"] == f"'sha256-{digest}'", path


def test_no_page_names_another_host() -> None:
    files = site()
    for path, page in files.items():
        if not path.endswith(".html"):
            continue
        for tag, attributes in Elements(page).elements:
            for name in ("src", "href"):
                value = attributes.get(name, "")
                assert "//" not in value, (path, tag, value)
        urls = set(re.findall(rb"https?://[^\s\"'`<)]+", page))
        assert urls <= {b"http://www.w3.org/2000/svg"}, path


def test_every_link_leads_to_a_page_of_the_site() -> None:
    files = site()
    for path, page in files.items():
        if not path.endswith(".html"):
            continue
        folder = path.split("/")[:-1]
        for _, attributes in Elements(page).elements:
            target = attributes.get("href", "").partition("#")[0]
            if not target or target == "data:,":
                continue
            parts = list(folder)
            for part in target.split("/"):
                parts = parts[:-1] if part == ".." else [*parts, part]
            assert "/".join(parts) in files, (path, target)


def test_a_page_has_a_chart_for_each_question_with_a_text_for_those_who_do_not_see_it() -> None:
    page = Elements(site()["sweeps/peak/index.html"])

    charts = [attributes["data-chart"] for _, attributes in page.elements if "data-chart" in attributes]
    texts = [attributes["aria-label"] for _, attributes in page.elements if attributes.get("role") == "img"]
    assert charts[:4] == ["history", "curves", "parallel", "durations"]
    assert charts[4:] == [*(f"slice-{number}" for number in range(4)), "pair-0", "pair-1", "pair-2"]
    assert len(texts) == len(charts)
    assert all(texts)
    assert {chart["name"] for chart in page.data()["charts"]} == set(charts)


def test_charts_have_the_scales_of_the_report() -> None:
    columns = {column.key: column for column in trial_columns(a_summary())}

    assert columns["params.rate"].log
    assert columns["params.rate"].ticks == (0.001, 0.01, 0.1, 1.0)
    assert not columns["params.depth"].log
    assert columns["params.kind"].categories == ("plain 0", "plain 1")
    assert columns["objective"].values.count(None) == 2  # a failed trial has no objective


def test_the_number_of_ranked_trials_is_told_beside_that_of_all() -> None:
    page = sweep_pages(a_history(summary=a_repeated_summary()), COMMIT["id"]).files["index.html"]

    assert "of 10 trials, one per configuration (24 in total)" in Elements(page).text


def test_the_home_page_says_how_far_the_best_moved_and_in_which_direction() -> None:
    pages = sweep_pages(a_history(), COMMIT["id"])
    worse = Event("peak", EventKind.RESULTS, "d4" * 20, "Ann", "2026-01-05T00:00:00Z", "text", 0.8, -0.25)
    home = Elements(home_page([pages.card], (worse,), times=(), costs=(), commit=COMMIT, currency=""))

    assert "-0.25 worse" in home.text


def test_the_home_page_says_what_each_results_commit_cost() -> None:
    prices = {"peak-b1-3f9a1c2e": 7200.0}  # for 3.25 seconds each
    priced, free = a_history(prices=prices), a_history(prices={})

    def home(history: SweepHistory) -> tuple[Mapping[str, float], str]:
        card = sweep_pages(history, COMMIT["id"]).card
        page = home_page([card], history.events, times=(), costs=(), commit=COMMIT, currency="EUR")
        return card["costs"], Elements(page).text

    (costs, text), (none, free_text) = home(priced), home(free)
    assert costs == {priced.recorded["peak-b1-3f9a1c2e"]: 78.0}
    assert "+78.00 EUR" in text
    assert text.count("78.00 EUR") == 2, "its commit, and all of them"
    assert none == {}
    assert "EUR" not in free_text


def test_a_sweep_without_results_has_a_page_with_its_spec() -> None:
    pages = sweep_pages(a_history(summary=None, active={"peak-b1-3f9a1c2e": 12}), COMMIT["id"])

    page = Elements(pages.files["index.html"])
    assert "Nothing is recorded yet" in page.text
    assert "description: plain" in page.text
    assert pages.card["state"] == "running"
    assert set(pages.files) == {"index.html", "data.json"}


def test_what_was_spent_has_the_price_of_each_batch() -> None:
    columns = {one.key: one for one in trial_columns(a_summary(), {"peak-b1-3f9a1c2e": 7200.0}, "EUR")}

    assert columns["cost"].title == "cost in EUR"
    assert columns["cost"].values[:2] == (6.5, 13.0)  # 3.25 seconds each
    assert "cost" not in {one.key for one in trial_columns(a_summary(), {"another": 1.0})}


def test_a_sweep_that_ran_new_code_says_what_moved_its_best_value() -> None:
    pages = sweep_pages(a_history(summary=a_repeated_summary()), COMMIT["id"])

    (move,) = json.loads(pages.files["data.json"])["moves"]
    code = next(one for one in move["factors"] if one["factor"] == "code")
    assert (move["before"], move["after"]) == ("a1" * 20, "e5" * 20)
    assert move["verdict"] == "code"
    assert code["interval"][0] < code["effect"] < code["interval"][1]
    versions = json.loads(pages.files["data.json"])["versions"]
    assert [version["batches"] for version in versions] == [["peak-b1-3f9a1c2e"], ["peak-b2-4f9a1c2e"]]
    assert [version.get("files") for version in versions] == [None, [["plain", 1, 2]]]
    trial = Elements(pages.files["trials.html"]).data()
    assert trial["versions"][1]["patch"].startswith("@@")

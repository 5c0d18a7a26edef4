"""Pages as bytes: one template, one stylesheet, one script and the data, all in one file that opens from a folder.

A page makes no request: its policy allows only the script and the stylesheet that it contains, by their digests.
Content from users or trials is never markup: the templates escape it, and scripts only set text.
"""

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from sweepledger.results import display
from sweepledger.site.history import Event, EventKind, MonthlyCost, MonthlyTime

SCRIPTS: Mapping[str, Sequence[str]] = {
    "home": ("page.js", "home.js"),
    "sweep": ("page.js", "scales.js", "selection.js", "marks.js", "table.js", "sweep.js"),
    "trial": ("page.js", "scales.js", "trial.js"),
    "compare": ("page.js", "compare.js"),
    "running": ("page.js", "scales.js", "running.js"),
}
"""The files of each kind of page, joined into one module: browsers do not load modules from `file://`."""
STYLE = "site.css"
MOST_EVENTS = 400
"""Events on the home page; the page of each sweep has all of its own."""

_ESCAPES = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}
"""Characters that could end a script element, or a line of JavaScript."""


def to_json(data: object) -> bytes:
    """Return data as JSON that is also safe inside a page. Raises ValueError for numbers that are not finite."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Lone surrogates come from bytes that are not UTF-8; no page can contain them.
    return text.translate(_ESCAPES).encode("utf-8", "replace")


@cache
def _asset(name: str) -> str:
    return files("sweepledger.site").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _script(kind: str) -> str:
    return "\n".join(_asset(name) for name in SCRIPTS[kind])


@cache
def _policy(kind: str) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in (_script(kind), _asset(STYLE)))
    script, style = (f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {script}",
            f"style-src {style}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            # Only the server of this machine has the page, which asks it what runs.
            *(["connect-src 'self'"] if kind == "running" else []),
        ]
    )


@cache
def assets_digest() -> str:
    """Return a digest of all templates, scripts and styles: pages made by other versions are built again."""
    digest = hashlib.sha256()
    for folder in ("assets", "templates"):
        for entry in sorted(files("sweepledger.site").joinpath(folder).iterdir(), key=lambda each: each.name):
            digest.update(f"{folder}/{entry.name}\0".encode() + entry.read_bytes())
    return digest.hexdigest()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("sweepledger.site"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "line": display.one_line,
        "number": display.format_number,
        "duration": display.format_duration,
        "trials": display.count_trials,
        "change": lambda number: f"{number:+.3g}",
        # With two digits, or so many that a small amount is not zero.
        "money": lambda amount: f"{amount:,.2f}" if amount >= 0.01 else f"{amount:.2g}",  # noqa: PLR2004
    }
    return environment


def render(template: str, kind: str, data: object, view: Mapping[str, Any]) -> bytes:
    """Return a page of a kind, with its data in it."""
    text = (
        _environment()
        .get_template(template)
        .render(
            **view,
            kind=kind,
            policy=_policy(kind),
            style=_asset(STYLE),
            script=_script(kind),
            data=to_json(data).decode(),
        )
    )
    return text.encode("utf-8", "replace")


RUNNING_PAGE, RUNNING_DATA = "running.html", "running.json"
RUNNING_LINK = f'<a href="/{RUNNING_PAGE}">Running now</a>'.encode()
"""What the server adds to the links of each page."""


def running_page() -> bytes:
    """Return the page of running batches for a server on this machine; its script requests the data."""
    return render("running.html.j2", "running", [], {"title": "Running now", "root": ""})


STATES = ("running", "unreadable", "recorded", "planned")


def home_page(
    cards: Sequence[Mapping[str, Any]],
    events: Sequence[Event],
    *,
    times: Sequence[MonthlyTime],
    costs: Sequence[MonthlyCost],
    commit: Mapping[str, str],
    currency: str,
) -> bytes:
    """Return the home page: sweeps by state, the timeline, and the spending by month."""
    ordered = sorted(cards, key=lambda card: card["updated"], reverse=True)
    by_state = [(state, [card for card in ordered if card["state"] == state]) for state in STATES]
    by_name = {card["name"]: card for card in cards}
    shown = events[::-1][:MOST_EVENTS]
    view = {
        "title": "Experiments",
        "root": "",
        "states": [(state, listed) for state, listed in by_state if listed],
        "days": [
            (day, list(_commits(of_day, by_name))) for day, of_day in groupby(shown, lambda one: one.day)
        ],
        "hidden": len(events) - len(shown),
        "times": times,
        "longest": max((time.seconds for time in times), default=1.0) or 1.0,
        "costs": costs,
        "currency": currency,
        "commit": commit,
        "total": {
            "sweeps": len(cards),
            "trials": sum(card["trials"] for card in cards),
            "seconds": math.fsum(card["seconds"] for card in cards),
            "commits": len({event.commit for event in events}),
            "cost": math.fsum(cost for card in cards for cost in card["costs"].values()),
        },
        "spark": spark_path,
    }
    return render("home.html.j2", "home", {"sweeps": [card["name"] for card in ordered]}, view)


def _commits(events: Iterable[Event], cards: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the commits of a day with their changes and costs, and whether the best value improved."""
    for _, of_commit in groupby(events, lambda one: one.commit):
        listed = list(of_commit)
        changes = []
        for event in reversed(listed):
            gain = event.change or 0.0
            card = cards.get(event.sweep, {})
            better = gain > 0 if card.get("goal") == "maximize" else gain < 0
            cost = card.get("costs", {}).get(event.commit) if event.kind is EventKind.RESULTS else None
            changes.append((event, cost, "better" if better else "worse" if gain else "same"))
        yield {"first": listed[0], "changes": changes}


SPARK_WIDTH, SPARK_HEIGHT = 120, 28


def spark_path(values: Sequence[float]) -> str:
    """Return the SVG path of a sparkline of steps, for values from 0 to 1."""
    step = SPARK_WIDTH / max(1, len(values))
    parts: list[str] = []
    for place, value in enumerate(values):
        height = round(2 + (1 - value) * (SPARK_HEIGHT - 4), 1)
        parts.append(f"{'V' if parts else 'M0 '}{height}H{round((place + 1) * step, 1)}")
    return "".join(parts)


def compare_page(fragments: Iterable[bytes], commit: Mapping[str, str]) -> bytes:
    """Return the page that compares two sweeps or trials, from the data files of all sweeps."""
    view = {"title": "Compare", "root": "", "commit": commit}
    # Joined as text: the data of unchanged sweeps is neither parsed nor written again.
    page = render("compare.html.j2", "compare", [], view)
    empty, data = b'id="data">[]<', b'id="data">[' + b",".join(fragments) + b"]<"
    return page.replace(empty, data, 1)

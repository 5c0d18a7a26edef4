"""What `sweep local` shows, and what it does not keep."""

import io
import weakref
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from generator.cli.progress import Watch
from generator.commands import collect
from generator.commands.local import Collected, Event, Trouble
from generator.repo import batches
from generator.results import BatchResults, summarise
from tests.repository import Sandbox


def watch(width: int = 100) -> tuple[Watch, io.StringIO]:
    screen = io.StringIO()
    return Watch(Console(file=screen, width=width)), screen


def test_results_commits_are_handed_on_and_not_kept(sandbox: Sandbox) -> None:
    sandbox.merged()
    (batch,) = batches.in_work_tree(sandbox.root)
    results = BatchResults(batch.lock, collect.expected(batch), ())
    seen: list[weakref.ref[collect.Collected]] = []
    alive: list[int] = []

    def events() -> Iterator[Event]:
        for _ in range(5):
            alive.append(sum(one() is not None for one in seen))
            found = collect.Collected(("peak-b1-00000000",), summarise([results], description=""))
            seen.append(weakref.ref(found))
            yield Collected(found)

    watching, _ = watch()
    told = [event.found.batches for event in watching.follow(events())]

    assert told == [("peak-b1-00000000",)] * 5
    assert max(alive) <= 1  # the one that the loops still hold


def test_trouble_with_the_remote_is_told(tmp_path: Path) -> None:
    watching, screen = watch()

    assert list(watching.follow([Trouble(f"git fetch failed: {tmp_path.name}")])) == []

    assert f"git fetch failed: {tmp_path.name}" in screen.getvalue()

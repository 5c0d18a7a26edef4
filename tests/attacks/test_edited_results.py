"""Recorded results that somebody edited, read by what compares and copies them: refused, or read as they are."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest

from sweepledger.errors import GeneratorError, StorageError
from sweepledger.operations.reports.comparison import compare_sweeps
from sweepledger.operations.reports.difference_causes import (
    explain_sweeps,
    write_proposals,
)
from sweepledger.repo import batches
from sweepledger.stores.registry import stores
from sweepledger.verbs.cluster.metrics import metrics
from sweepledger.verbs.sync import sync_sweep
from tests.operations.test_collect import leave
from tests.operations.test_compare import recorded
from tests.repository import Sandbox, answer

SUMMARY, RECORDS = "results/peak/summary.csv", "results/peak/records/*.jsonl"
LOCKS, SPEC = "overlays/archive/*/batch.json", "sweeps/peak.yaml"
CODE = re.compile(r'(,"code":"[0-9a-f]+")')


def with_curve(points: str) -> Callable[[str], str]:
    return lambda text: CODE.sub(rf'\1,"curves":{{"loss":{points}}}', text)


def first_trial(name: str) -> Callable[[str], str]:
    return lambda text: re.sub(r"\nt[0-9a-f]{11},", lambda _: f'\n"{name}",', text, count=1)


def time(text: str) -> Callable[[str], str]:
    return lambda before: before.replace("2026-01-01T00:00:00Z", text)


REFUSED: dict[str, tuple[str, Callable[[str], str]]] = {
    "a trial whose name is a path": (SUMMARY, first_trial("../../../outside")),
    "a trial whose name is a pattern": (SUMMARY, first_trial("*")),
    "a trial whose name moves the cursor": (SUMMARY, first_trial("\x1b[2J")),
    "a batch whose name is a path": (SUMMARY, lambda text: text.replace(",peak-b1", ",../peak-b1")),
    "a time before all others": (SUMMARY, time("0001-01-01T00:00:00+14:00")),
    "a time after all others": (SUMMARY, time("9999-12-31T23:59:59-14:00")),
    "a time that is a word": (SUMMARY, time("yesterday")),
    "a metric whose square is infinite": (SUMMARY, lambda text: text.replace(",0.4,", ",1.7e+308,")),
    "a metric that is infinite": (SUMMARY, lambda text: text.replace(",0.4,", ",1e999,")),
    "a parameter of many levels": (
        SUMMARY,
        lambda text: text.replace(",1,0.5,", f',"{"[" * 9000}",0.5,', 1),
    ),
}
READ: dict[str, tuple[str, Callable[[str], str]]] = {
    "a number of a row of many digits": (SUMMARY, lambda text: re.sub(r",0,0,", f",{10**30},0,", text)),
    "steps of many digits": (RECORDS, with_curve(f"[[{10**30},1]]")),
    "steps that are fractions": (RECORDS, with_curve('[[1.5,1],[2,"x"]]')),
    "steps without values": (RECORDS, with_curve("[[1]]")),
    "records that are lists": (RECORDS, lambda _: "[]\n" * 3),
    "code whose path has two lines": (
        LOCKS,
        lambda text: text.replace('"path": "code"', r'"path": "a\nname: b"'),
    ),
    "code outside": (LOCKS, lambda text: text.replace('"path": "code"', '"path": "../../etc"')),
    "a tree that is an option": (
        LOCKS,
        lambda text: re.sub('"tree": "[0-9a-f]+"', '"tree": "--output=outside"', text),
    ),
    "a spec outside": (LOCKS, lambda text: text.replace('"sweeps/peak.yaml"', '"../../etc/passwd"')),
    "a spec whose run is a list": (SPEC, lambda text: f"{text[: text.index('run:')]}run: [1]\n"),
    "a spec without run": (SPEC, lambda text: f"{text[: text.index('run:')]}run:\n"),
    "a spec of many levels": (SPEC, lambda _: f"name: {'[' * 5000}"),
    "a spec of itself": (SPEC, lambda _: "&a [*a]\n"),
}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sandbox, str]:
    """Return a sweep that ran with two programs, and the commit that recorded the first."""
    folder = tmp_path_factory.mktemp("history")
    sandbox = Sandbox.create(folder)
    before = recorded(sandbox, folder / "volume", "peak", {1: 0.1, 2: 0.2, 3: 0.3})
    ask_again(sandbox, folder / "volume", (0.4, 0.5, 0.6))
    return sandbox, before


def ask_again(sandbox: Sandbox, volume: Path, scores: Iterable[float]) -> None:
    """Run the trials of the sweep once more, with better code."""
    sandbox.write("code/train.py", "# better\n")
    sandbox.commit("Better code")
    assert sandbox.generate("peak", update=True)
    sandbox.commit("Request again")
    batch = batches.of_sweep(batches.in_work_tree(sandbox.root), "peak")[-1]
    for index, score in enumerate(scores):
        leave(volume, batch, index, metrics={"score": score})
    assert sandbox.collect(volume, {batch.name}, push=False)


def edited(sandbox: Sandbox, place: str, edit: Callable[[str], str]) -> None:
    is_changed = False
    for file in sandbox.root.glob(place):
        text = file.read_text()
        file.write_text(edit(text))
        is_changed |= file.read_text() != text
    assert is_changed
    sandbox.commit("Edit")


def uses(sandbox: Sandbox, before: str, out: Path) -> dict[str, Callable[[], object]]:
    """Return what reads results, each of which may end with a sentence; stores write below `out`."""
    workspace = sandbox.workspace
    every: dict[str, Callable[[], object]] = {
        "explain": lambda: explain_sweeps(workspace, f"peak@{before}", "peak").as_data(),
        "explain batches": lambda: explain_sweeps(workspace, "peak@b1", "peak@b2").as_data(),
        "compare": lambda: compare_sweeps(workspace, f"peak@{before}", "peak").as_data(),
        "metrics": lambda: answer(metrics, workspace),
    }
    for store in ("tensorboard", "parquet", "wandb", "model-card"):  # all that write files
        every[store] = partial(sync_sweep, workspace, store, "peak", place=str(out / store))
    return every


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*REFUSED, *READ])
def test_edited_results_are_no_traceback(name: str, history: tuple[Sandbox, str], tmp_path: Path) -> None:
    sandbox, before = history
    start = sandbox.head()
    edited(sandbox, *{**REFUSED, **READ}[name])
    refused = set()

    try:
        for use, read in uses(sandbox, before, tmp_path / "a/b/c").items():
            try:
                read()
            except GeneratorError:  # also of a library that is not installed
                refused.add(use)
    finally:
        sandbox.git("reset", "-q", "--hard", start)

    assert [path.name for path in tmp_path.iterdir()] in ([], ["a"])
    assert [path.name for path in tmp_path.glob("a/*")] in ([], ["b"])
    assert [path.name for path in tmp_path.glob("a/b/*")] in ([], ["c"])
    assert {path.name for path in tmp_path.glob("a/b/c/*")} <= stores().keys()
    if name in REFUSED:
        assert refused == {"explain", "explain batches", "compare", *stores()} - {"optuna", "mlflow"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("values", [(1e150, 1e-150), (1e-300, 1e150), (5e-324, 1e150), (0.0, 1e150)])
def test_any_numbers_are_explained(values: tuple[float, float], sandbox: Sandbox, tmp_path: Path) -> None:
    small, large = values
    before = recorded(sandbox, tmp_path / "v", "peak", {1: small, 2: -large, 3: -large})
    ask_again(sandbox, tmp_path / "v", (2 * small, large / 2, -large))

    explained = explain_sweeps(sandbox.workspace, f"peak@{before}", "peak")

    assert explained.explanation.verdict


@pytest.mark.sampled(1)
@pytest.mark.parametrize("place", ["sweeps", "proposal"])
def test_a_proposal_is_not_written_through_a_link(place: str, sandbox: Sandbox, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "v", "one", {1: 0.1})
    sandbox.write("code/train.py", "# better\n")
    sandbox.commit("Better code")
    recorded(sandbox, tmp_path / "v", "two", {2: 0.5})
    explained = explain_sweeps(sandbox.workspace, "one", "two")
    outside = tmp_path / "outside"
    outside.mkdir()
    if place == "sweeps":
        (sandbox.root / place).rename(tmp_path / "moved")
        (sandbox.root / place).symlink_to(outside)
    else:
        (sandbox.root / explained.proposals[0].path).symlink_to(outside / "spec")

    with pytest.raises(StorageError, match="symbolic link"):
        write_proposals(sandbox.workspace, explained.proposals)

    assert not tuple(outside.iterdir())

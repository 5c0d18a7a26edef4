"""What the server lets the collector push of trials that infrastructure ended: a batch that the lock allows."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import commit_results
from sweepledger.operations.rounds.round_commit import PushedBatch, push_due
from tests.operations.test_bootstrap import push, run_bootstrap
from tests.operations.test_collect import leave
from tests.operations.test_pushed_rounds import NOT_ACCEPTED, guarded
from tests.operations.test_repeated_trials import ALLOWED, REFUSED, write_key
from tests.repository import Sandbox, followed_by, replace_in


def record(sandbox: Sandbox, results: Path, *ends: Mapping[str, object]) -> None:
    """Record the active batch in a commit that is not pushed, and request again what is due."""
    (batch,) = [item for item in sandbox.batches() if item.is_active]
    for place, changes in enumerate(ends):
        leave(results, batch, place, **changes)
    here = sandbox.target(push=False)
    assert commit_results(here, on_volume(results), {batch.name})
    pushed = list(push_due(here))
    assert all(isinstance(one, PushedBatch) for one in pushed), pushed


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A sweep under Flux, two trials of which are requested again by a commit that is not pushed yet."""
    sandbox = Sandbox.create(tmp_path_factory.mktemp("repeating"))
    sandbox.write("sweepledger.yaml", followed_by("flux"))
    sandbox.spec()
    write_key(sandbox, ALLOWED.replace("2", "1"))
    sandbox.generate()
    run_bootstrap(sandbox)
    sandbox.publish("Bootstrap")
    record(sandbox, sandbox.root.parent / "results", {}, REFUSED, REFUSED)
    return sandbox


@pytest.fixture
def repeating(pristine: Sandbox, tmp_path: Path) -> Sandbox:
    """A copy of that, whose server has the hook that bootstrap wrote."""
    return guarded(pristine, tmp_path)


def test_the_collector_may_push_trials_that_infrastructure_ended(repeating: Sandbox) -> None:
    assert push(repeating) == ""


def test_it_may_push_no_more_of_them_than_the_lock_allows(repeating: Sandbox, tmp_path: Path) -> None:
    assert push(repeating) == ""
    record(repeating, tmp_path / "results", REFUSED, {})
    assert not repeating.active()
    (recorded,) = [item for item in repeating.batches() if item.lock.after_infrastructure]
    name, again = recorded.name, recorded.name.replace("-b2-", "-b3-")
    tree = {path: content.replace(name.encode(), again.encode()) for path, content in recorded.tree}
    text = tree["batch.json"].replace(b'"number": 2', b'"number": 3')
    assert recorded.lock.parent is not None
    tree["batch.json"] = text.replace(f'"{recorded.lock.parent}"'.encode(), f'"{name}"'.encode())
    for path, content in tree.items():
        repeating.write(f"overlays/active/{again}/{path}", content.decode())
    repeating.commit("Request them once more")

    assert NOT_ACCEPTED in push(repeating)


EDITS = {
    "more retries": (
        "batch.json",
        '"infrastructure": {\n   "retries": 1',
        '"infrastructure": {\n   "retries": 9',
    ),
    "more memory": ("job.yaml", "256Mi", "512Mi"),
    "called a round": ("batch.json", '"ahead"', '"round": 2,\n "ahead"'),
    "called nothing": ("batch.json", ' "after_infrastructure": true,\n', ""),
    "a trial twice": ("hyperparams.csv", "{row}\n", "{row}\n{row}\n"),
    "another trial": ("hyperparams.csv", "{trial},", "t00000000000,"),
}
"""A file of the batch, what it has, and what stands there instead."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_the_collector_may_push_no_other_batch(edit: tuple[str, str, str], repeating: Sandbox) -> None:
    folder = repeating.root / f"overlays/active/{repeating.active()[0]}"
    _, row, *_ = (folder / "hyperparams.csv").read_text().splitlines()
    words = {"{row}": row, "{trial}": row.partition(",")[0]}
    file, old, new = (re.sub(r"\{(row|trial)\}", lambda word: words[word[0]], text) for text in edit)
    replace_in(folder / file, old, new)
    repeating.amend()

    assert NOT_ACCEPTED in push(repeating)

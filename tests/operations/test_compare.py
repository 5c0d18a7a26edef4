"""Two sweeps side by side: joined on what both tried, ranked only where numbers mean the same."""

from pathlib import Path

import pytest

from sweepledger.errors import RepositoryError, UsageError
from sweepledger.operations.reports.comparison import compare_sweeps
from tests.builders import present
from tests.operations.test_collect import leave
from tests.repository import Sandbox


def recorded(
    sandbox: Sandbox, volume: Path, name: str, scores: dict[int, float], *, old: str = "", new: str = ""
) -> str:
    """Ask for a sweep, let every new trial end with the score of its x, and record it; give the commit."""
    path = sandbox.spec(name, ", ".join(map(str, scores)))
    path.write_text(path.read_text().replace(old, new) if old else path.read_text())
    (made,) = [generated_batch for generated_batch in sandbox.generate(name) if generated_batch.batch]
    sandbox.commit(f"Ask for {name}")
    (batch,) = [item for item in sandbox.batches() if item.name == present(made.batch).name]
    for index, row in enumerate(batch.rows):
        x = row.values["x"]
        assert isinstance(x, int)
        leave(volume, batch, index, metrics={batch.lock.metric.name: scores[x]})
    assert sandbox.collect(volume, {batch.name}, push=False)
    sandbox.push()
    return sandbox.head()


def test_what_both_tried_is_joined_and_the_rest_is_listed(sandbox: Sandbox, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "v", "one", {1: 0.5, 2: 0.6, 3: 0.7})
    recorded(sandbox, tmp_path / "v", "two", {2: 0.5, 3: 0.9, 4: 1.0})

    comparison = compare_sweeps(sandbox.workspace, "one", "two")

    assert [(pair.assignment["x"], pair.values) for pair in comparison.pairs] == [
        (3, (0.7, 0.9)),
        (2, (0.6, 0.5)),
    ]
    assert [pair.difference for pair in comparison.pairs] == pytest.approx([0.2, -0.1])
    assert [row.assignment["x"] for row in comparison.only_a] == [1]
    assert [row.assignment["x"] for row in comparison.only_b] == [4]
    assert (comparison.refused, comparison.counts) == ((), (1, 1, 0))
    printed = sandbox.sweep("compare", "one", "two").stdout
    assert "two is better in 1, one in 1, equal in 0" in printed


def test_one_sweep_at_two_commits(sandbox: Sandbox, tmp_path: Path) -> None:
    before = recorded(sandbox, tmp_path / "v", "one", {1: 0.5, 2: 0.6})
    sandbox.commit("Better code", {"code/train.py": "# better\n"})
    assert sandbox.generate("one", update=True)
    sandbox.commit("Ask again")
    batch = sandbox.batches()[-1]
    for index in range(2):
        leave(tmp_path / "v", batch, index, metrics={"score": 0.75})
    assert sandbox.collect(tmp_path / "v", {batch.name}, push=False)

    comparison = compare_sweeps(sandbox.workspace, f"one@{before}", "one")

    assert [pair.difference for pair in comparison.pairs] == pytest.approx([0.25, 0.15])
    assert (comparison.a.older, comparison.b.older) == (0, 2)
    assert comparison.warnings == ("one: 2 trials of other programs are left out",)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("name: score", "name: loss", "metric: one has score, two has loss"),
        ("goal: maximize", "goal: minimize", "goal: one has maximize, two has minimize"),
    ],
    ids=["metric", "goal"],
)
def test_other_meanings_are_unranked(sandbox: Sandbox, tmp_path: Path, old: str, new: str, says: str) -> None:
    recorded(sandbox, tmp_path / "v", "one", {1: 0.5})
    recorded(sandbox, tmp_path / "v", "two", {1: 0.5}, old=old, new=new)

    comparison = compare_sweeps(sandbox.workspace, "one", "two")

    assert says in comparison.refused[0]
    assert [pair.difference for pair in comparison.pairs] == [None]
    assert comparison.as_data()["counts"] is None


def test_two_batches_of_a_sweep_are_two_versions(sandbox: Sandbox, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "v", "one", {1: 0.5, 2: 0.75})
    recorded(sandbox, tmp_path / "v", "one", {1: 0.5, 2: 0.75, 3: 0.25})
    second = sandbox.batches()[-1].name

    comparison = compare_sweeps(sandbox.workspace, "one@b1", f"one@{second}")

    assert ([len(side.rows) for side in (comparison.a, comparison.b)], comparison.pairs) == ([2, 1], ())
    assert comparison.b.statistics.values == (0.25,)
    with pytest.raises(UsageError, match="no recorded batch 'b3'"):
        compare_sweeps(sandbox.workspace, "one", "one@b3")


def test_other_data_is_another_question(sandbox: Sandbox, tmp_path: Path) -> None:
    datasets = "datasets: {a: {digest: 'sha256:AAA', claim: a}, b: {digest: 'sha256:BBB', claim: b}}\n"
    datasets = datasets.replace("AAA", "1" * 64).replace("BBB", "2" * 64)
    sandbox.commit("Know data", {"sweepledger.yaml": f"version: 1\n{datasets}"})
    for name, data in (("one", "a"), ("two", "b")):
        text = sandbox.spec(name, "1, 2").read_text().replace("run:\n", f"run:\n  data: {data}\n")
        sandbox.write(f"sweeps/{name}.yaml", text)
    assert sandbox.generate()
    sandbox.commit("Ask")
    for batch in sandbox.batches():
        held = batch.lock.program.data
        for index in range(2):
            leave(tmp_path / "v", batch, index, data=held.digest if held else None)
    stored = {batch.name for batch in sandbox.batches()}
    assert sandbox.collect(tmp_path / "v", stored, push=False)

    comparison = compare_sweeps(sandbox.workspace, "one", "two")

    assert comparison.refused == (
        f"they differ in data: one has sha256:{'1' * 64}, two has sha256:{'2' * 64}",
    )


def test_what_there_is_not_cannot_be_compared(sandbox: Sandbox, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "v", "one", {1: 0.5})
    sandbox.spec("two")
    sandbox.commit("Ask")

    with pytest.raises(UsageError, match="no sweep 'three'"):
        compare_sweeps(sandbox.workspace, "one", "three")
    with pytest.raises(UsageError, match="nowhere is not a commit"):
        compare_sweeps(sandbox.workspace, "one", "one@nowhere")
    with pytest.raises(RepositoryError, match="nothing is recorded of 'two'"):
        compare_sweeps(sandbox.workspace, "one", "two")

"""What the Python API reads of a repository, as values, data frames and HTML."""

import math
from base64 import b64decode
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import sweepledger
from tests.operations.test_collect import leave
from tests.repository import Sandbox, replace_in

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def recorded(sandbox: Sandbox, tmp_path: Path) -> Sandbox:
    """A sweep of three trials: with a curve and failed attempts, with a curve, and diverged."""
    volume = tmp_path / "volume"
    sandbox.spec("peak", f"1, 2.5, '{HOSTILE}'")
    assert sandbox.generate()
    sandbox.commit("Ask for peak")
    (batch,) = sandbox.batches()
    # Both attempts are in the same seconds, and the one that counts is neither always the first nor the last.
    curves = {"score": [[0, 0.25], [5, None], [10, 0.5]]}
    leave(volume, batch, 0, uid="b", attempt=2, metrics={"score": 0.5}, curves=curves)
    for attempt in (1, 3):
        failed = {"status": "failed", "reason": "exit-1", "metrics": {}, "curves": {"score": [[0, 9.0]]}}
        leave(volume, batch, 0, uid=f"a{attempt}", attempt=attempt, **failed)
    curves = {"score": [[0, 0.1], [10, 0.75]], "loss": [[0, 2.0], [10, 1.0]]}
    leave(volume, batch, 1, metrics={"score": 0.75, "loss": 1.0}, curves=curves)
    leave(volume, batch, 2, status="diverged", reason="exit-42", metrics={})
    assert sandbox.collect(volume, {batch.name}, push=False)
    return sandbox


def test_trials_are_frozen_values_without_any_extra(recorded: Sandbox) -> None:
    sweep = sweepledger.open(recorded.root / "code").sweep("peak")

    assert [(trial.params["x"], trial.status, dict(trial.metrics)) for trial in sweep.trials] == [
        (1, "ok", {"score": 0.5}),
        (2.5, "ok", {"score": 0.75, "loss": 1.0}),
        (HOSTILE, "diverged", {}),
    ]
    assert sweep.best == sweep.ranked[0] == sweep.trials[1]
    assert (sweep.metric, sweep.goal, len(sweep.front)) == ("score", "maximize", 0)


def test_curves_are_those_of_the_attempts_that_count(recorded: Sandbox) -> None:
    sweep = sweepledger.open(recorded.root).sweep("peak")
    first, second = (trial.id for trial in sweep.trials[:2])

    scores = [point for point in sweep.curves if point.metric == "score"]
    points = [(point.trial, point.step, point.value) for point in scores]

    assert points[0] == (first, 0, 0.25)
    assert math.isnan(points[1][2])
    assert points[2:] == [(first, 10, 0.5), (second, 0, 0.1), (second, 10, 0.75)]
    assert [(point.trial, point.value) for point in sweep.curves if point.metric == "loss"] == [
        (second, 2.0),
        (second, 1.0),
    ]


def test_a_data_frame_has_the_columns_of_the_summary(recorded: Sandbox) -> None:
    sweep = sweepledger.open(recorded.root).sweep("peak")

    frame, other = sweep.trials.to_pandas(), sweep.trials.to_polars()

    head = (recorded.root / "results/peak/summary.csv").read_text().splitlines()[0]
    assert list(frame.columns) == other.columns == head.split(",")
    assert frame["metrics.score"].tolist()[:2] == other["metrics.score"].to_list()[:2] == [0.5, 0.75]
    assert math.isnan(frame["metrics.score"][2])
    assert isinstance(frame["started"].dtype, pd.DatetimeTZDtype)
    assert isinstance(other.schema["started"], pl.Datetime)
    curves = sweep.curves.to_pandas().groupby(["trial", "metric"], sort=False)
    assert curves["value"].max().tolist() == [0.5, 2.0, 0.75]
    assert sweep.curves.to_polars()["step"].to_list() == [0, 5, 10, 0, 10, 0, 10]


def test_history_and_commits_are_those_of_git(recorded: Sandbox) -> None:
    repository = sweepledger.open(recorded.root)
    before = sweepledger.open(recorded.root, commit="HEAD~1")

    assert [change.kind for change in repository.sweep("peak").history] == ["spec", "batch", "results"]
    assert repository.sweep("peak").history.to_pandas()["best"].tolist()[2] == 0.75
    assert [sweep.name for sweep in before.sweeps] == ["peak"]
    assert (len(before.sweep("peak").trials), before.sweep("peak").best) == (0, None)
    assert before.sweep("peak").trials.to_pandas().empty
    assert len(before.sweep("peak").curves.to_polars()) == 0


def test_a_comparison_has_tables_of_both_sides(recorded: Sandbox) -> None:
    comparison = sweepledger.open(recorded.root).compare("peak", "peak@b1")

    assert comparison.sweeps.to_pandas()["best"].tolist() == [0.75, 0.75]
    assert [pair.difference for pair in comparison.pairs] == [0.0, 0.0, None]
    assert [point.best for point in comparison.best_so_far] == [0.5, 0.75] * 2
    assert comparison.b_better == pytest.approx(0.5, abs=0.05)
    assert comparison.refused == ()
    assert "<script" not in comparison._repr_html_() + comparison.pairs._repr_html_()


def test_a_notebook_shows_user_text_as_text(recorded: Sandbox) -> None:
    figure = recorded.root / "results/peak/figures/trials.svg"
    figure.write_text(f"{figure.read_text().rstrip()}{HOSTILE}")
    recorded.commit("Draw something else")
    repository = sweepledger.open(recorded.root)
    sweep = repository.sweep("peak")

    for shown in (repository, sweep, sweep.trials, sweep.trials[2], sweep.charts["trials"]):
        html = shown._repr_html_()
        assert "<script" not in html
        assert html.count("<") > 0
    assert "&lt;script&gt;" in sweep.trials._repr_html_()
    image = sweep.charts["trials"]._repr_html_().partition("base64,")[2].partition('"')[0]
    assert b64decode(image).decode() == figure.read_text()


@pytest.mark.parametrize(
    ("name", "commit", "says", "hint"),
    [
        ("peaks", None, "no sweep 'peaks'", "sweeps: peak"),
        ("peak", "--all", "'--all' is not a commit", "a branch, a tag, HEAD~1"),
    ],
    ids=["sweep", "commit"],
)
def test_missing_names(recorded: Sandbox, name: str, commit: str | None, says: str, hint: str) -> None:
    with pytest.raises(sweepledger.GeneratorError, match=says) as caught:
        sweepledger.open(recorded.root, commit).sweep(name)

    assert hint in "".join(caught.value.__notes__)


def test_a_record_that_cannot_be_read_is_named(recorded: Sandbox) -> None:
    (records,) = (recorded.root / "results/peak/records").iterdir()
    replace_in(records, '"started"', '"begun"')
    recorded.commit("Break the records")

    with pytest.raises(sweepledger.GeneratorError, match=r"jsonl:\d: a record cannot be read"):
        len(sweepledger.open(recorded.root).sweep("peak").curves)

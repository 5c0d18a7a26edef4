"""Notes for reviewers of a valid sweep."""

from collections.abc import Sequence

from sweepledger.plan.review import BestTrial, DesignReview, Rejection, notes
from sweepledger.structs.trial import Trial
from sweepledger.structs.values import Value
from tests.sweeps import a_sweep

TWICE = a_sweep(replicates=2)


def trials(**columns: Sequence[Value]) -> tuple[Trial, ...]:
    rows = zip(*columns.values(), strict=True)
    return tuple(Trial(dict(zip(columns, row, strict=True)), "program") for row in rows)


NOTHING = DesignReview("grid", 0, 0, 0, 0)


def kinds(*values: object) -> list[str]:
    return [getattr(value, "kind", "") for value in values]


def test_a_constraint_that_rejects_nearly_everything_has_a_note() -> None:
    design = DesignReview("grid", 1000, 980, 0, 20, (Rejection("x < 2", 980), Rejection("y > 0", 100)))

    (note,) = notes(TWICE, trials(x=[1, 2]), design)

    assert (note.kind, note.text) == ("tight-constraint", "2 % of the candidates satisfy x < 2")


def test_a_best_value_at_the_boundary_has_a_note() -> None:
    best: BestTrial = ("t1", {"x": 3, "y": 0.5, "name": "sgd"})

    (note,) = notes(TWICE, trials(x=[1, 2, 3], y=[0.1, 0.5, 0.9]), NOTHING, best=best)

    assert (note.kind, note.text) == (
        "best-at-an-end",
        "x=3 of the best trial so far, t1, is the largest value tried",
    )


def test_a_constant_has_no_boundary_note() -> None:
    assert notes(TWICE, trials(x=[3, 3], y=[1, 2]), NOTHING, best=("t1", {"x": 3, "y": 1.5})) == ()


def test_a_sweep_without_replicates_has_a_note() -> None:
    assert kinds(*notes(a_sweep(), trials(x=[1, 2]), NOTHING)) == ["no-replicates"]
    assert notes(a_sweep(), trials(x=[1]), NOTHING) == ()


def test_a_batch_size_above_the_data_has_a_note() -> None:
    requested = trials(**{"optimizer.batch_size": [64, 70_000]})

    (note,) = notes(TWICE, requested, NOTHING, examples=60_000)

    assert note.text == "optimizer.batch_size=70000 is more than the 60,000 examples of the data"
    assert notes(TWICE, requested, NOTHING, examples=70_000) == ()
    assert notes(TWICE, requested, NOTHING) == ()

"""What a reviewer may overlook in a sweep that is right."""

from collections.abc import Sequence

from generator.plan import Best, BlockReview, Rejection, notes
from generator.structs.trial import Trial
from generator.structs.values import Value
from tests.sweeps import a_sweep

TWICE = a_sweep(replicates=2)


def trials(**columns: Sequence[Value]) -> tuple[Trial, ...]:
    rows = zip(*columns.values(), strict=True)
    return tuple(Trial(dict(zip(columns, row, strict=True)), "program") for row in rows)


def kinds(*found: object) -> list[str]:
    return [getattr(one, "kind", "") for one in found]


def test_a_sweep_with_nothing_to_remark_on_has_no_note() -> None:
    assert notes(TWICE, trials(x=[1, 2, 3]), [BlockReview("grid", 4, 1, 0, 3)]) == ()


def test_constraints_that_keep_next_to_nothing_are_told() -> None:
    block = BlockReview("grid", 1000, 980, 0, 20, (Rejection("x < 2", 980), Rejection("y > 0", 100)))

    (found,) = notes(TWICE, trials(x=[1, 2]), [block])

    assert (found.kind, found.text) == ("tight-constraint", "block 1 keeps 2 % by x < 2")


def test_a_best_trial_at_the_end_of_what_is_tried_is_told() -> None:
    best = Best("t1", {"x": 3, "y": 0.5, "name": "sgd"})

    (found,) = notes(TWICE, trials(x=[1, 2, 3], y=[0.1, 0.5, 0.9]), [], best=best)

    assert (found.kind, found.text) == (
        "best-at-an-end",
        "x=3 of the best so far, t1, is the largest one tried",
    )


def test_a_best_trial_beyond_which_something_is_tried_now_is_nothing_to_tell() -> None:
    assert notes(TWICE, trials(x=[1, 2, 3, 4]), [], best=Best("t1", {"x": 3})) == ()


def test_a_constant_has_no_ends() -> None:
    assert notes(TWICE, trials(x=[3, 3], y=[1, 2]), [], best=Best("t1", {"x": 3, "y": 1.5})) == ()


def test_without_replicates_luck_is_told_of() -> None:
    assert kinds(*notes(a_sweep(), trials(x=[1, 2]), [])) == ["no-replicates"]
    assert notes(a_sweep(), trials(x=[1]), []) == ()


def test_batches_larger_than_the_data_are_told() -> None:
    asked = trials(**{"optimizer.batch_size": [64, 70_000]})

    (found,) = notes(TWICE, asked, [], examples=60_000)

    assert found.text == "optimizer.batch_size=70000 is more than all 60,000 examples"
    assert notes(TWICE, asked, [], examples=70_000) == ()
    assert notes(TWICE, asked, []) == ()

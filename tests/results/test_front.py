"""Several metrics: the trials that no other beats in all of them."""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from hypothesis import given
from hypothesis import strategies as st

from sweepledger.formats import batch_json, documents
from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.summary import pareto_front, subject, summarise
from sweepledger.results.tree import report_files
from sweepledger.structs.metric import Goal, Metric
from tests.builders import a_grid, a_lock
from tests.results.drawings import drawn, marks, words

LOSS = (Metric("loss", Goal.MINIMIZE),)


def measured(pairs: Sequence[tuple[float, float]]) -> BatchRecords:
    """A trial a pair: the accuracy, which is to be large, and the loss."""
    batch = a_grid({"a": list(range(len(pairs)))}, lambda _: 0.0, other_metrics=LOSS)
    records = tuple(
        replace(record, metrics=MappingProxyType({"test_accuracy": up, "loss": down}))
        for record, (up, down) in zip(batch.records, pairs, strict=True)
    )
    return replace(batch, records=records)


FOUR = measured([(0.9, 3.0), (0.8, 1.0), (0.7, 2.0), (0.9, 3.5)])


def test_it_is_listed_and_drawn() -> None:
    root, text = (
        drawn("front", FOUR),
        report_files(summarise([FOUR], description="", in_spec=lambda *_: True)),
    )

    assert (len(marks(root, "best")), len(marks(root, "trial"))) == (2, 2)
    assert {"test_accuracy (higher is better)", "loss (lower is better)"} <= set(words(root))
    assert (
        "| trial | `test_accuracy` | `loss` | `a` |\n|---|---:|---:|---:|\n| `t00000000000` | 0.9 | 3 | 0 |\n"
    ) in text["README.md"]


def test_the_readme_and_the_commit_tell_of_the_front_instead_of_a_best() -> None:
    summary = summarise([FOUR], description="", in_spec=lambda *_: True)
    text = report_files(summary)["README.md"]

    assert "The [Pareto front](#pareto-front) has **2** of 4 trials with a result: no other" in text
    assert "The best `test_accuracy` is" not in text
    assert "## Best trial by `test_accuracy`\n" in text
    assert "## Top 4 by `test_accuracy`\n" in text
    assert subject(summary) == "results(mnist-grid): 4/4 trials, front of 2 by test_accuracy, loss"


def test_with_one_metric_there_is_none() -> None:
    files = report_files(summarise([a_grid({"a": [1, 2]}, lambda _: 0.5)], description=""))

    assert "figures/front.svg" not in files
    assert "Pareto front" not in files["README.md"]


def test_a_lock_with_several_metrics_reads_back_and_others_say_nothing_of_it() -> None:
    several = a_lock(other_metrics=LOSS)

    assert batch_json.read(documents.write(several)).other_metrics == LOSS
    assert "other_metrics" not in documents.write(a_lock())


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.3]), st.sampled_from([1.0, 2.0, 3.0])), min_size=1))
def test_the_front_is_what_no_other_beats_best_in_the_first_metric_first(
    pairs: list[tuple[float, float]],
) -> None:
    results = pareto_front(summarise([measured(pairs)], description="", in_spec=lambda *_: True))

    beaten = {
        (up, down)
        for up, down in pairs
        if any(a >= up and b <= down and (a, b) != (up, down) for a, b in pairs)
    }
    ups = [up for _, (up, _) in results]
    assert ups == sorted(ups, reverse=True)
    assert sorted(values for _, values in results) == sorted(pair for pair in pairs if pair not in beaten)

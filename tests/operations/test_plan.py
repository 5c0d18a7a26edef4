"""What a merge would ask for, cover, cost and change; nothing is written."""

import pytest

from sweepledger.cli.text.plan import rejection_text
from sweepledger.errors import UsageError
from sweepledger.plan.review import Difference, Planned, Review, UnreadableSpec
from sweepledger.structs.trial import Trial
from tests.builders import present
from tests.repository import SPEC, Sandbox, append_to, replace_in

DRAWN = """name: drawn
description: Where?
method: {method}
run_cap: {cap}
seed: 7
metric: {{name: score, goal: maximize}}
parameters:
  x: {{min: 0.0, max: 1.0}}
  z: {{min: 0.0, max: 1.0}}
{more}
command: [python, code/train.py, "${{args}}"]
run:
  code: {{path: code}}
  timeout: 30m
"""


def review(sandbox: Sandbox, name: str = "peak", base: str | None = None) -> Review:
    (result,) = sandbox.plan(name, base=base).reviews
    return result


def counts(result: Review) -> tuple[int, int, int]:
    return result.counts.new, result.counts.running, result.counts.recorded


def change(result: Review) -> Difference:
    assert isinstance(result.difference, Difference)
    return result.difference


def xs(trials: tuple[Trial, ...]) -> list[object]:
    return [trial.assignment["x"] for trial in trials]


def names(result: Planned) -> list[str]:
    return [item.sweep.name for item in result.reviews]


def review_sweep(sandbox: Sandbox, method: str, cap: int, more: str = "") -> Review:
    sandbox.write("sweeps/drawn.yaml", DRAWN.format(method=method, cap=cap, more=more))
    return review(sandbox, "drawn")


def test_a_plan_writes_nothing_and_has_the_trials_that_generate_would_write(sandbox: Sandbox) -> None:
    sandbox.spec()
    before = sorted(path for path in sandbox.root.rglob("*") if ".git" not in path.parts)

    planned = [trial.digest for trial in review(sandbox).trials]

    assert sorted(path for path in sandbox.root.rglob("*") if ".git" not in path.parts) == before
    sandbox.generate()
    (stored,) = sandbox.batches()
    assert [trial.digest for trial in stored.trials] == planned


def test_without_a_program_to_lock_the_space_can_be_reviewed_all_the_same(sandbox: Sandbox) -> None:
    sandbox.spec()
    sandbox.write("code/train.py", "print('not committed')\n")

    result = review(sandbox)

    assert result.unlocked is not None
    assert "code/ has uncommitted changes" in result.unlocked
    assert counts(result) == (3, 0, 0)
    assert xs(result.trials) == [1, 2, 3]


def test_order_and_wording_are_no_difference(sandbox: Sandbox) -> None:
    sandbox.merged(xs="1, 2, 3")
    text = SPEC.format(name="peak", xs="3.0, 1, 2", parallelism=1).replace(
        "Where does", "Where, oh where, does"
    )
    first, second = "  x: {values: [3.0, 1, 2]}\n", "  bias: {value: 0.5}\n"
    assert first + second in text
    sandbox.write("sweeps/peak.yaml", text.replace(first + second, second + first))

    difference = change(review(sandbox))

    assert difference.is_empty
    assert difference.unchanged == 3


def test_a_renamed_sweep_is_compared_with_what_it_was(sandbox: Sandbox) -> None:
    sandbox.merged("peak", xs="1, 2, 3")
    sandbox.merged("other", xs="7, 8")
    sandbox.git("rm", "-q", "sweeps/peak.yaml", "sweeps/other.yaml")
    sandbox.spec("summit", xs="1, 2, 3, 4")

    result = review(sandbox, "summit")

    assert change(result).previous == "sweeps/peak.yaml"
    assert (xs(change(result).added), change(result).removed, change(result).unchanged) == ([4], (), 3)
    assert counts(result) == (4, 0, 0)  # what is known is known of a sweep, by its name


def test_any_commit_can_be_the_base(sandbox: Sandbox) -> None:
    sandbox.merged(xs="1")
    sandbox.merged(xs="1, 2")
    sandbox.spec(xs="1, 2, 3")

    assert xs(change(review(sandbox)).added) == [3]
    assert xs(change(review(sandbox, base="HEAD~1")).added) == [2, 3]
    assert counts(review(sandbox, base="HEAD~1")) == (2, 1, 0)
    assert xs(change(review(sandbox, base="HEAD~2")).added) == [1, 2, 3]


def test_a_base_that_is_no_commit_is_refused(sandbox: Sandbox) -> None:
    sandbox.spec()

    with pytest.raises(UsageError, match="--base nowhere is not a commit"):
        sandbox.plan(base="nowhere")


def test_a_spec_that_was_wrong_at_the_base_cannot_be_compared_and_stops_nothing(sandbox: Sandbox) -> None:
    sandbox.publish("Ask for nothing in particular", {"sweeps/peak.yaml": "name: peak\n"})
    sandbox.spec()

    result = review(sandbox)

    assert isinstance(result.difference, UnreadableSpec)
    assert result.difference.previous == "sweeps/peak.yaml"
    assert result.difference.problems
    assert counts(result) == (3, 0, 0)
    assert result.is_change


def test_the_spec_at_the_base_is_read_with_the_settings_of_its_time(sandbox: Sandbox) -> None:
    digest = "sha256:" + "d" * 64
    sandbox.write("sweepledger.yaml", f"version: 1\ndatasets:\n  old: {{claim: old, digest: '{digest}'}}\n")
    spec = sandbox.spec()
    text = spec.read_text()
    spec.write_text(text + "  data: old\n")
    sandbox.publish("Ask")
    sandbox.write("sweepledger.yaml", "version: 1\n")
    spec.write_text(text)

    difference = change(review(sandbox))

    assert difference.is_empty
    assert difference.unchanged == 3


def test_a_changed_file_of_assignments_is_a_difference_of_its_lines(sandbox: Sandbox) -> None:
    sandbox.write_spec("listed", method="list", assignments="listed.csv")
    sandbox.publish("Ask", {"sweeps/listed.csv": "x,note\n1,a\n2,b\n"})
    sandbox.write("sweeps/listed.csv", "x,note\n2,b\n3,c\n")

    difference = change(review(sandbox, "listed"))

    assert (xs(difference.added), xs(difference.removed), difference.unchanged) == ([3], [1], 1)
    assert difference.previous == "sweeps/listed.yaml"


def test_without_names_only_sweeps_that_a_merge_would_change_are_reviewed(sandbox: Sandbox) -> None:
    sandbox.merged("peak")
    sandbox.merged("still")
    sandbox.spec("peak", xs="1, 2, 3, 4")
    sandbox.spec("fresh")

    result = sandbox.plan()

    assert names(result) == ["fresh", "peak"]
    assert result.unchanged == ("still",)


def test_a_wrong_spec_hides_no_good_one(sandbox: Sandbox) -> None:
    sandbox.spec()
    append_to(sandbox.spec("endless", xs="1, 2"), "constraints: [x > 2]\n")

    result = sandbox.plan()

    assert names(result) == ["peak"]
    assert [(problem.file, problem.code) for problem in result.problems] == [
        ("sweeps/endless.yaml", "constraint-nothing")
    ]


def test_what_changed_since_the_lock_is_what_an_update_would_take(sandbox: Sandbox) -> None:
    sandbox.merged()
    assert review(sandbox).outdated == ()

    sandbox.write("code/train.py", "print('rewritten')\n")
    sandbox.write("sweepledger.yaml", f"version: 1\ndefaults: {{image: train@sha256:{'a' * 64}}}\n")
    sandbox.commit("Change everything")

    assert [(part.part, part.name) for part in review(sandbox).outdated] == [("code", "code/"), ("image", "")]


def test_a_program_that_is_not_there_is_among_the_problems(sandbox: Sandbox) -> None:
    replace_in(sandbox.spec(), "code/train.py", "code/trian.py")

    committed = review(sandbox).problems
    sandbox.write("code/other.py", "not committed")
    lying = review(sandbox).problems

    assert [problem.message for problem in (*committed, *lying)] == [
        "must name a committed file of code/, got 'trian.py'",
        "must name a file of code/, got 'trian.py'",
    ]


def test_each_constraint_says_how_many_candidates_it_rejects_and_has_no_say_in(sandbox: Sandbox) -> None:
    spec = sandbox.spec(xs="1, 2, 3, 4")
    replace_in(spec, "bias: {value: 0.5}", "bias: {values: [0.5, 1.5], when: {x: 3}}")
    append_to(spec, "constraints: [x > 1, x > 2, bias < 1]\n")

    design = review(sandbox).design

    assert (design.candidates, design.rejected, design.kept, design.acceptance) == (5, 3, 2, 0.4)
    assert [(each.text, each.rejected, each.unevaluated) for each in design.constraints] == [
        ("x > 1", 1, 0),
        ("x > 2", 2, 0),
        ("bias < 1", 1, 3),
    ]
    assert rejection_text(design.constraints[2]) == "1 rejected (3 not checked) by"


def test_the_measure_of_points_has_no_listed_or_conditional_values_and_none_that_constraints_thinned_out(
    sandbox: Sandbox,
) -> None:
    more = "  k: {values: [1, 2]}\n  u: {min: 0.0, max: 1.0, when: {k: 1}}\n"

    measured = review_sweep(sandbox, "sobol", 64, more).design
    thinned = review_sweep(sandbox, "sobol", 16, "constraints: [x < z]").design

    assert present(measured.discrepancy).dimensions == 2
    assert thinned.rejected > 0
    assert thinned.discrepancy is None

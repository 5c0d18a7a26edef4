"""The rounds that `sweep plan` proposes for a static sweep with early stopping, and that the pasted block runs."""

import csv
from pathlib import Path

import pytest

from sweepledger.errors import UsageError
from sweepledger.operations.rounds.next_round import RoundDue, SearchEnded
from sweepledger.verbs.cluster.next_ import write_next
from tests.repository import IMAGE, Sandbox, replace_in
from tests.searches import SLOPE, active, record

SPEC = """name: hill
method: random
seed: 3
run_cap: {trials}
metric: {{name: score, goal: maximize, source: stdout}}
early_terminate: {{type: median, min_iter: 2}}
parameters:
  x: {{min: {low}, max: 5.0}}
  bias: {{value: 0.0}}
command: [python, code/train.py, "${{args}}"]
run:
  code: {{path: code}}
  resources: {{cpu: 1, memory: 256Mi}}
  parallelism: {parallelism}
  max_disruptions: 0
  timeout: 1m
{more}"""
EXPECTED = "  expected_minutes: 1\n"


def ask(
    sandbox: Sandbox,
    *,
    settings: str = "next: collector\n",
    trials: int = 24,
    parallelism: int = 4,
    more: str = EXPECTED,
    low: float = 0.0,
) -> None:
    sandbox.write("sweepledger.yaml", f"version: 1\n{settings}")
    text = SPEC.format(trials=trials, parallelism=parallelism, more=more, low=low)
    sandbox.write("sweeps/hill.yaml", text)


def sizes(sandbox: Sandbox) -> list[tuple[int, int | None]]:
    stored = sorted(sandbox.batches(), key=lambda batch: batch.lock.number)
    return [(batch.lock.trials, batch.lock.round) for batch in stored]


def proposed(sandbox: Sandbox) -> list[str]:
    (review,) = sandbox.plan().reviews
    return [note.text for note in review.notes if note.kind == "rounds"]


def test_the_pasted_block_runs_the_trials_in_waves(sandbox: Sandbox, results: Path) -> None:
    ask(sandbox)
    (text,) = proposed(sandbox)
    block = text.removeprefix("write `").partition("` for ")[0]
    ask(sandbox, more=f"{EXPECTED}{block}\n")
    assert proposed(sandbox) == []
    (made,) = sandbox.generate()
    sandbox.publish("Ask")
    assert sandbox.check().problems == ()

    steps = []
    while active(sandbox.workspace):
        steps += [commit.step for commit in record(sandbox, results)]

    assert made.warnings == ()
    assert sizes(sandbox) == [(8, 1), (8, 2), (8, 3)]
    assert [type(step) for step in steps] == [RoundDue, RoundDue, SearchEnded]


def test_the_plan_shows_the_block_and_what_it_costs(sandbox: Sandbox) -> None:
    ask(sandbox, trials=22)

    text = " ".join(sandbox.sweep("plan", "hill").stdout.split())

    assert (
        "write `rounds: {size: 11}` for 2 waves, so that early_terminate compares later trials with earlier "
        "ones: 0 % longer if none ends early, by expected_minutes alone"
    ) in text


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"settings": f"controller: argocd\nnext: review\ndefaults: {{image: '{IMAGE}'}}\n"},
            "a person adds rounds",
        ),
        ({"more": ""}, "no duration is known"),
        ({"parallelism": 24}, "three waves would take three times as long"),
        ({"trials": 15}, "waves would have fewer than eight"),
    ],
    ids=["reviewed", "unknown", "parallel", "few"],
)
def test_costly_waves_are_not_proposed(sandbox: Sandbox, changes: dict[str, str], why: str) -> None:
    ask(sandbox, **changes)  # type: ignore[arg-type]

    assert proposed(sandbox) == [], why


def test_without_rounds_in_the_spec_all_trials_are_requested_at_once(sandbox: Sandbox) -> None:
    ask(sandbox)

    (made,) = sandbox.generate()

    assert [warning.code for warning in made.warnings] == ["early-stop-alone"]
    assert sizes(sandbox) == [(24, None)]
    sandbox.publish("Ask")
    with pytest.raises(UsageError, match="hill has no rounds"):
        write_next(sandbox.workspace, ["hill"])


@pytest.mark.full_suite("whole runs")
def test_waves_of_one_run_end_trials_that_fall_behind(sandbox: Sandbox) -> None:
    sandbox.write("code/train.py", SLOPE.replace("parse_args()", "parse_known_args()[0]"))
    sandbox.name_person()
    sandbox.commit("Write the program")
    more = f"{EXPECTED}rounds: {{size: 8}}\n"
    ask(sandbox, settings="controller: none\n", trials=16, parallelism=4, low=-5.0, more=more)
    spec = sandbox.root / "sweeps/hill.yaml"
    # The first wave must end by itself: the program hangs where the slope falls.
    replace_in(spec, "method: random\nseed: 3\nrun_cap: 16\n", "method: list\n")
    replace_in(spec, "  x: {min: -5.0, max: 5.0}\n", "")
    replace_in(
        spec,
        "  bias: {value: 0.0}\n",
        "  bias: {value: 0.0}\nassignments:\n"
        + "".join(f"  - {{x: {x}}}\n" for x in (*range(1, 9), -1, 9, -2, 10, 11, 12, 13, 14)),
    )

    list(sandbox.run("hill"))

    assert sandbox.git("log", "--format=%s", "-3").count("results(hill)") == 2
    summary = sandbox.git("show", "HEAD:results/hill/summary.csv")
    ended = {row["params.x"] for row in csv.DictReader(summary.splitlines()) if row["reason"] == "median"}
    assert {"-1", "-2"} <= ended  # a trial of the first wave that is late on a busy machine may be, too

"""A static sweep with early stopping runs in waves where rounds follow by themselves and time allows it."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.commands.check import check
from sweepledger.commands.generate import generate
from sweepledger.commands.next_ import next_
from sweepledger.commands.plan import plan
from sweepledger.commands.rounds.next_round import RoundDue, SearchEnded
from sweepledger.commands.run import RunOptions, SweepRun
from sweepledger.errors import UsageError
from sweepledger.plan import review_as_data
from sweepledger.repo import batches
from tests.repository import Sandbox
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
    """Write the spec and the settings."""
    sandbox.write("sweepledger.yaml", f"version: 1\n{settings}")
    text = SPEC.format(trials=trials, parallelism=parallelism, more=more, low=low)
    sandbox.write("sweeps/hill.yaml", text)


def sizes(sandbox: Sandbox) -> list[tuple[int, int | None]]:
    stored = sorted(batches.in_work_tree(sandbox.root), key=lambda batch: batch.lock.number)
    return [(batch.lock.trials, batch.lock.round) for batch in stored]


def test_the_trials_run_in_waves_which_follow_each_other_to_the_last(sandbox: Sandbox, results: Path) -> None:
    ask(sandbox)
    (made,) = generate(sandbox.workspace)
    sandbox.publish("Ask")
    assert check(sandbox.workspace).problems == ()

    steps = []
    while active(sandbox.workspace):
        steps += [commit.step for commit in record(sandbox, results)]

    assert made.warnings == ()
    assert sizes(sandbox) == [(8, 1), (8, 2), (8, 3)]
    assert [type(step) for step in steps] == [RoundDue, RoundDue, SearchEnded]


def test_the_plan_shows_the_waves_and_what_they_cost(
    sandbox: Sandbox, run_sweep: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    ask(sandbox, trials=22)

    (review,) = plan(sandbox.workspace).reviews
    text = " ".join(run_sweep("plan", "hill", cwd=sandbox.root).stdout.split())

    assert review_as_data(review)["search"] == {"size": 11, "trials": 22, "rounds": 2, "ahead": 1}
    assert [problem.code for problem in review.problems] == []
    wanted = "2 waves of at most 11 configurations, so that early_terminate compares later trials with earlier ones"
    wanted += ": 0 % longer if none ends early, by expected_minutes alone"
    assert wanted in text
    generate(sandbox.workspace)
    again = " ".join(run_sweep("plan", "hill", cwd=sandbox.root).stdout.split())
    assert wanted in again, "the batch is written, and not merged"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"settings": "next: review\n"}, "a person adds rounds"),
        ({"more": ""}, "no duration is known"),
        ({"parallelism": 24}, "three waves would take three times as long"),
        ({"trials": 15}, "waves would have fewer than eight"),
        ({"more": EXPECTED + "rounds: none\n"}, "the spec says so"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_all_trials_are_requested_at_once_where_waves_would_cost_more_than_they_give(
    sandbox: Sandbox, changes: dict[str, str], why: str
) -> None:
    ask(sandbox, **changes)  # type: ignore[arg-type]

    (made,) = generate(sandbox.workspace)

    assert [one.code for one in made.warnings] == ([] if "rounds" in str(changes) else ["early-stop-alone"])
    assert sizes(sandbox) == [(int(changes.get("trials", 24)), None)], why


def test_what_was_decided_stays_whatever_is_recorded_or_written_later(
    sandbox: Sandbox, results: Path
) -> None:
    ask(sandbox)
    sandbox.publish_batches("Ask")
    ask(sandbox, parallelism=7, trials=30)
    sandbox.publish("Ask for more, with which waves would take half as long again")

    while active(sandbox.workspace):
        record(sandbox, results)

    assert sizes(sandbox) == [(8, 1), (8, 2), (8, 3), (6, 4)]


def test_a_sweep_that_began_at_once_gets_no_waves_and_no_rounds(sandbox: Sandbox, results: Path) -> None:
    ask(sandbox, more="")
    sandbox.publish_batches("Ask")
    ask(sandbox, trials=48)
    (more,) = generate(sandbox.workspace)

    assert more.batch is not None
    assert sizes(sandbox) == [(24, None), (24, None)]
    with pytest.raises(UsageError, match="hill has no rounds"):
        next_(sandbox.workspace, ["hill"])


@pytest.mark.full_suite("whole runs")
def test_waves_of_one_run_end_trials_that_fall_behind(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write("code/train.py", SLOPE.replace("parse_args()", "parse_known_args()[0]"))
    sandbox.git("config", "user.name", "Ada")
    sandbox.git("config", "user.email", "ada@example.org")
    sandbox.commit("Write the program")
    ask(sandbox, settings="controller: none\n", trials=16, parallelism=4, low=-5.0)
    spec = sandbox.root / "sweeps/hill.yaml"
    # The first wave must end by itself: the program hangs where the slope falls.
    spec.write_text(
        spec.read_text()
        .replace("method: random\nseed: 3\nrun_cap: 16\n", "method: list\n")
        .replace("  x: {min: -5.0, max: 5.0}\n", "")
        .replace(
            "  bias: {value: 0.0}\n",
            "  bias: {value: 0.0}\nassignments:\n"
            + "".join(f"  - {{x: {x}}}\n" for x in (*range(1, 9), -1, 9, -2, 10, 11, 12, 13, 14)),
        )
    )

    list(SweepRun.prepare(sandbox.workspace, ("hill",)).run(RunOptions(tmp_path / "state")))

    assert sandbox.git("log", "--format=%s", "-3").count("results(hill)") == 2
    summary = sandbox.git("show", "HEAD:results/hill/summary.csv")
    assert summary.count(",pruned,median,") == 2

"""The rounds that `sweep plan` proposes for a static sweep with early stopping, and that the pasted block runs."""

from pathlib import Path

import pytest

from sweepledger.errors import UsageError
from sweepledger.operations.rounds.next_round import RoundDue, SearchEnded
from sweepledger.verbs.cluster.next_ import write_next
from tests.repository import IMAGE, Sandbox
from tests.searches import active, record

SPEC = """name: hill
method: random
seed: 3
run_cap: {trials}
metric: {{name: score, goal: maximize, source: stdout}}
early_terminate: {{type: median, min_iter: 2}}
parameters:
  x: {{min: 0.0, max: 5.0}}
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
) -> None:
    sandbox.write("sweepledger.yaml", f"version: 1\n{settings}")
    text = SPEC.format(trials=trials, parallelism=parallelism, more=more)
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

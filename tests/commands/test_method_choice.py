"""`method: auto` is chosen once: plan, lock and README name the choice, and a search that has begun keeps it."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from sweepledger.commands.plan import plan
from tests.repository import Sandbox
from tests.searches import active, begun, hill, record

REASON = "a Gaussian process suits at most 256 configurations"


def test_the_plan_the_lock_and_the_readme_name_the_method_and_why(
    sandbox: Sandbox, results: Path, run_sweep: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    hill(sandbox, method="auto")
    shown = run_sweep("plan", "hill", cwd=sandbox.root).stdout
    begun(sandbox, method="auto")
    (batch,) = active(sandbox.workspace)

    record(sandbox, results)

    assert f"method: auto is bayes: {REASON}" in " ".join(shown.split())
    assert (batch.lock.method, batch.lock.engine) == ("bayes", "egobox 1.0.0")
    assert batch.lock.choice is not None
    assert batch.lock.choice.startswith(REASON)
    readme = (sandbox.root / "results/hill/README.md").read_text()
    assert f"The spec says `method: auto`, which chose `bayes`: {REASON}" in " ".join(readme.split())


def test_a_search_keeps_its_method_although_its_spec_would_now_choose_another(
    sandbox: Sandbox, results: Path
) -> None:
    begun(sandbox, method="auto")
    record(sandbox, results)
    hill(sandbox, method="auto", rounds=200)
    sandbox.publish("Ask for more configurations than suit bayes")
    record(sandbox, results)

    (batch,) = active(sandbox.workspace)
    (review,) = plan(sandbox.workspace, ["hill"]).reviews

    assert (batch.lock.method, batch.lock.round) == ("bayes", 3)
    assert review.sweep.method == "bayes"


def test_a_named_method_replaces_the_choice(sandbox: Sandbox, results: Path) -> None:
    begun(sandbox, method="auto")
    record(sandbox, results)
    hill(sandbox, method="tpe")
    sandbox.publish("Name the method")
    record(sandbox, results)

    (batch,) = active(sandbox.workspace)

    assert (batch.lock.method, batch.lock.choice) == ("tpe", None)

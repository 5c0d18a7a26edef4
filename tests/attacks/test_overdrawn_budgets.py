"""A change asks for more than a team's budget has left, and frees, hides or renames what is reserved already."""

import shutil
from collections.abc import Callable

import pytest

from sweepledger.errors import SpecError
from sweepledger.problems import Severity
from tests.operations.test_budgets import SETTINGS, ask, budget, cancel
from tests.operations.test_budgets import taken as taken_budget
from tests.operations.test_check_hostile import resign
from tests.repository import Sandbox, replace_in

pytestmark = pytest.mark.usefixtures("needs_kustomize")

HOURS = 3
Edit = Callable[[Sandbox, str], object]
"""Gets the repository, in which a change asks for vision-b, and the active batch that has taken the whole budget."""


@pytest.fixture
def taken(sandbox: Sandbox) -> str:
    """The active batch of vision-a, which has reserved all of the budget."""
    return taken_budget(sandbox, HOURS)


def errors(sandbox: Sandbox) -> set[str]:
    sandbox.git("add", "--all")
    try:
        problems = sandbox.check(base="origin/main").problems
    except SpecError as error:
        problems = tuple(error.problems)
    return {problem.code for problem in problems if problem.severity is Severity.ERROR}


def replaced(path: str, old: str, new: str) -> Edit:
    return lambda sandbox, _: replace_in(sandbox.root / path, old, new)


def in_turn(*edits: Edit) -> Edit:
    return lambda sandbox, name: [edit(sandbox, name) for edit in edits]


def cancelled(sandbox: Sandbox, name: str) -> None:
    cancel(sandbox, "vision-a", name)


def spec_gone(sandbox: Sandbox, _: str) -> None:
    sandbox.git("rm", "-qf", "sweeps/vision-a.yaml")


def moved(sandbox: Sandbox, name: str) -> None:
    (sandbox.root / "overlays/archive").mkdir(parents=True, exist_ok=True)
    sandbox.git("mv", f"overlays/active/{name}", f"overlays/archive/{name}")


def recorded(sandbox: Sandbox, name: str) -> None:
    sandbox.write(f"results/vision-a/records/{name}.jsonl", "")
    sandbox.write("results/vision-a/summary.csv", "trial\n")


def of_another_team(sandbox: Sandbox, name: str) -> None:
    """Give the active batch to a sweep that no budget names."""
    new = name.replace("vision-a", "text-a")
    shutil.move(sandbox.root / "overlays/active" / name, sandbox.root / "overlays/active" / new)
    for file in (sandbox.root / "overlays/active" / new).iterdir():
        file.write_text(file.read_text().replace(name, new).replace("vision-a", "text-a"))
    shutil.move(sandbox.root / "sweeps/vision-a.yaml", sandbox.root / "sweeps/text-a.yaml")
    replaced("sweeps/text-a.yaml", "vision-a", "text-a")(sandbox, name)
    resign(sandbox.root / "overlays/active" / new)


def of_the_new_batch(file: str, old: str, new: str) -> Edit:
    def edit(sandbox: Sandbox, _: str) -> None:
        (folder,) = (sandbox.root / "overlays/active").glob("vision-b-*")
        replace_in(folder / file, old, new)
        resign(folder)

    return edit


def smaller_than_merged(sandbox: Sandbox, name: str) -> None:
    """Say in the lock of the active batch that it is smaller."""
    replace_in(sandbox.root / "overlays/active" / name / "batch.json", f'"trials": {HOURS},', '"trials": 1,')


OVERDRAWN = "budget-overdrawn"
EDITS: dict[str, tuple[Edit, str]] = {
    "nothing": (lambda *_: None, OVERDRAWN),
    "the reserved batch is cancelled": (cancelled, OVERDRAWN),
    "it is cancelled one commit earlier": (
        in_turn(cancelled, lambda sandbox, _: sandbox.commit("A step")),
        OVERDRAWN,
    ),
    "it is cancelled, and its spec removed": (in_turn(cancelled, spec_gone), "spec-removed"),
    "it is moved to the archive": (moved, "batch-moved"),
    "it is moved, and its spec removed": (in_turn(moved, spec_gone), "batch-moved"),
    "it is removed": (
        lambda sandbox, name: sandbox.git("rm", "-rq", f"overlays/active/{name}"),
        "batch-vanished",
    ),
    "it is cancelled, and recorded with nothing": (in_turn(cancelled, recorded), "history-unsigned"),
    "it belongs to another team": (of_another_team, "batch-vanished"),
    "its lock names fewer trials": (smaller_than_merged, "batch-edited"),
    "the budget is larger": (replaced("sweepledger.yaml", "gpu_hours: 3", "gpu_hours: 300"), OVERDRAWN),
    "the budget is of others": (replaced("sweepledger.yaml", '"vision-*"', '"text-*"'), OVERDRAWN),
    "the budget is gone": (
        replaced("sweepledger.yaml", SETTINGS[SETTINGS.index("budgets:") :].replace("{hours}", "3"), ""),
        OVERDRAWN,
    ),
    "the budget is another one": (
        replaced("sweepledger.yaml", "gpu_hours: 3", "money: 1000000"),
        OVERDRAWN,
    ),
    "the new lock asks for fewer trials": (
        of_the_new_batch("batch.json", '"trials": 3', '"trials": 1'),
        "batch-forged",
    ),
    "the new Jobs have a GPU that their spec lacks": (
        replaced("sweeps/vision-b.yaml", ", gpu: 1", ""),
        "drift",
    ),
    "the new Jobs have an hour that their spec lacks": (
        replaced("sweeps/vision-b.yaml", "timeout: 1h", "timeout: 1m"),
        "drift",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", EDITS)
def test_what_is_reserved_stays_reserved_until_it_is_recorded(way: str, sandbox: Sandbox, taken: str) -> None:
    edit, code = EDITS[way]
    ask(sandbox, "vision-b", HOURS)
    edit(sandbox, taken)

    assert code in errors(sandbox)


def test_what_still_fits_is_accepted_beside_a_cancellation(sandbox: Sandbox) -> None:
    budget(sandbox, HOURS + 1)
    name = ask(sandbox, "vision-a", HOURS)
    sandbox.publish("Ask")
    cancel(sandbox, "vision-a", name)
    ask(sandbox, "vision-b", 1)

    assert errors(sandbox) == set()

"""SIGKILL of a command and all it started, at calls that write and at any moment.

By default at a few calls; in the full suite at more; benchmarks/faults.py has all calls and a thousand moments.
"""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.shim import Shim
from tests.faults.training import kill_training
from tests.faults.trying import inside, kills, moments, spread
from tests.faults.worlds import WORLDS, World
from tests.tiers import parameters

THOROUGH = pytest.mark.full_suite("more points of failure")
MORE_POINTS = {**dict.fromkeys(WORLDS, 4), "launcher": 25}
POINTS = {**dict.fromkeys(WORLDS, 1), "launcher": 2}
AT_A_MOMENT = ("generate", "collect-push", "launcher")
AT_A_CALL = ("generate", "collect-push", "collect-round", "launcher")


@pytest.mark.parametrize(
    "name", parameters(WORLDS, AT_A_CALL, "more points of failure"), ids=lambda name: f"F4 {name}"
)
def test_killed_at_a_write_it_leaves_nothing_half(world_of: Callable[[str], World], name: str) -> None:
    world = world_of(name)

    assert list(kills(world, inside(world.points, POINTS[name]))) == []


@THOROUGH
@pytest.mark.parametrize("name", WORLDS, ids=lambda name: f"F4 {name}")
def test_killed_at_more_calls_it_leaves_nothing_half(world_of: Callable[[str], World], name: str) -> None:
    world = world_of(name)

    assert list(kills(world, spread(world.points, MORE_POINTS[name]))) == []


@pytest.mark.parametrize(
    ("name", "times"),
    [
        *(pytest.param(name, 1, id=f"F4 {name}") for name in AT_A_MOMENT),
        *(pytest.param(name, 3, id=f"F4 {name}, three times", marks=THOROUGH) for name in WORLDS),
    ],
)
def test_killed_anytime_it_halves_nothing(world_of: Callable[[str], World], name: str, times: int) -> None:
    chance = random.Random(name)  # noqa: S311 - moments, the same on every run

    assert list(moments(world_of(name), [chance.uniform(0, 0.3) for _ in range(times)])) == []


@pytest.mark.parametrize(
    "name", [pytest.param("generate", id="F4 generate"), pytest.param("launcher", id="F4 launcher")]
)
def test_a_file_is_on_the_disk_first(shim: Shim, world_of: Callable[[str], World], name: str) -> None:
    world = world_of(name)
    world.fresh()

    ended, calls = shim.traced(world.command, cwd=world.cwd, environment=world.environment)

    assert ended.code == 0
    root = str(world.now)
    renamed = 0
    for at, (_, call, source, target) in enumerate(calls):
        if call.startswith("rename") and source.startswith(root) and "/.git/" not in source:
            renamed += 1
            synced = [one[2] for one in calls[:at] if one[1] == "fsync"]
            written = [one[2] for one in calls[:at] if one[1] == "write" and one[2].startswith(source)]
            assert written or source in synced, "a rename of something that was just made"
            assert set(written) <= set(synced)
            after = next(one for one in calls[at + 1 :] if one[1] != "unlink")
            assert after[1:3] == ("fsync", str(Path(target).parent))
    assert renamed


def test_killed_while_trials_train_it_falsifies_nothing(tmp_path: Path, needs_kustomize: None) -> None:
    laptops = list(kill_training(tmp_path, 2, seed=1))

    assert sum(laptop.killed for laptop in laptops) == 2
    assert [problem for laptop in laptops for problem in laptop.wrong] == []


@THOROUGH
@pytest.mark.parametrize("seed", range(2, 6))
def test_killed_at_more_moments_while_trials_train_it_falsifies_nothing(tmp_path: Path, seed: int) -> None:
    assert [problem for laptop in kill_training(tmp_path, 10, seed=seed) for problem in laptop.wrong] == []

"""One try of a fault: bring it about, look as any reader would, go on, and judge what came of it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tests.faults.shim import ERRORS, Ended, Mode, Plan
from tests.faults.worlds import STORAGE, World

NAMED = re.compile(r"['\s(]\S*/\S|FETCH_HEAD")


def spread(total: int, number: int) -> Iterable[int]:
    if number >= total:
        return range(1, total + 1)
    return sorted({1 + round(item * (total - 1) / max(1, number - 1)) for item in range(number)})


def inside(total: int, number: int) -> Iterable[int]:
    """Choose so many of 1 … total at equal distances, without first and last."""
    return sorted({max(1, round(item * total / (number + 1))) for item in range(1, number + 1)})


def kill(world: World, plan: Plan) -> None:
    """Kill all of a command at some point; whoever runs it again has what an undisturbed run has."""
    assert world.wanted
    world.fresh()
    ended = world.run(plan)
    # Git's own calls are not as many each time: the last may not be reached.
    assert plan.after is not None or ended.struck == 1 or ended.calls < plan.at, ended
    world.refuse_halves()
    again = world.go_on()
    assert again.code == 0, again
    assert world.outcome() == world.wanted
    assert world.left() == []


def kills(world: World, points: Iterable[int]) -> Iterator[tuple[int, str]]:
    """Kill at each of these calls; yield those after which something was wrong."""
    yield from _wrong(world, (Plan(Mode.KILL, point) for point in points))


def moments(world: World, seconds: Iterable[float]) -> Iterator[tuple[int, str]]:
    """Kill after each of these times, likewise."""
    yield from _wrong(world, (Plan(after=value) for value in seconds))


def _wrong(world: World, plans: Iterable[Plan]) -> Iterator[tuple[int, str]]:
    for number, plan in enumerate(plans, 1):
        try:
            kill(world, plan)
        except AssertionError as error:
            yield plan.at or number, str(error)[:600]


def fail(world: World, name: str, at: int) -> bool:
    """Let the N-th call that can fail so fail; tell whether there was one."""
    error, mode, kinds = ERRORS[name]
    assert world.wanted
    world.fresh()
    ended = world.run(Plan(mode, at, error, kinds))
    if not ended.struck:
        return False
    judge(world, ended)
    world.refuse_halves()
    if ended.code == 0:
        assert world.is_done(), ended
    again = world.go_on()
    assert again.code == 0, again
    assert world.outcome() == world.wanted, "what failed is done by the next run"
    return True


def judge(world: World, ended: Ended) -> None:
    """The exit code says what happened, and the message where; nobody is told of a bug."""
    assert "Traceback" not in ended.err, ended
    assert ended.code in (0, world.storage_code), ended
    if ended.code == STORAGE:
        assert NAMED.search(ended.err), ended


def fails(world: World, name: str, points: Iterable[int]) -> Iterator[tuple[int, str]]:
    """Fail at each of these calls; yield those after which something was wrong."""
    for at in points:
        try:
            if not fail(world, name, at):
                return
        except AssertionError as error:
            yield at, str(error)[:600]


def number_of_calls(world: World, name: str) -> int:
    """Count the calls of a run that can fail so."""
    world.fresh()
    _, _, kinds = ERRORS[name]
    return world.run(replace(Plan(), kinds=kinds)).calls

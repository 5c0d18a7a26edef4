"""How long a trial takes, learned from trials that are recorded."""

import math
from collections.abc import Mapping
from random import Random

import pytest

from generator.plan.durations import ENOUGH, Durations, durations
from generator.plan.past import Past, Timed, makespan_of, overhead_of, past
from generator.structs.record import Record, Status
from generator.structs.values import Value
from tests.builders import a_record


def timed(count: int = 48, batches: int = 3, drift: float = 0.0) -> list[Timed]:
    """Trials that take a second an epoch, twice that with the slow optimizer, and half a per cent of luck."""
    random, found = Random(0), []  # noqa: S311 - no secret
    for batch in range(batches):
        shared = math.exp(random.gauss(0, drift))
        for _ in range(count // batches):
            values: Mapping[str, Value] = {
                "epochs": random.choice((1, 2, 4, 8)),
                "optimizer": random.choice(("sgd", "slow")),
                "rate": random.random(),
                "width": 64,
            }
            seconds = values["epochs"] * (1 + (values["optimizer"] == "slow")) * shared  # type: ignore[operator]
            found.append(Timed(f"b{batch}", values, seconds * math.exp(random.gauss(0, 0.005))))
    return found


def learned(found: list[Timed]) -> Durations:
    made = durations(Past(tuple(found)))
    assert made is not None
    return made


def trial(**changes: Value) -> dict[str, Value]:
    return {"epochs": 2, "optimizer": "sgd", "rate": 0.5, "width": 64, **changes}


def test_two_trials_are_too_few_to_say_anything() -> None:
    assert durations(Past()) is None
    assert durations(Past(tuple(timed()[:2]))) is None


def test_the_parameters_that_matter_are_found_and_no_others() -> None:
    found = learned(timed())

    assert [effect.parameter for effect in found.effects] == ["epochs", "optimizer"]
    assert found.seconds(trial(epochs=8, optimizer="slow")) == pytest.approx(16, rel=0.02)
    assert found.seconds(trial(epochs=1)) == pytest.approx(1, rel=0.02)


def test_a_number_between_recorded_ones_lies_on_the_line_between_their_times() -> None:
    assert learned(timed()).seconds(trial(epochs=6)) == pytest.approx(6, rel=0.05)


@pytest.mark.parametrize("values", [{"epochs": 16}, {"optimizer": "new"}, {"width": 128}, {"depth": 3}])
def test_nothing_is_said_of_a_trial_unlike_all_recorded_ones(values: dict[str, Value]) -> None:
    found = learned(timed())

    assert found.seconds(trial(**values)) is None
    assert found.foreign(trial(**values)) == next(iter(values))


def test_a_parameter_that_does_not_matter_may_have_any_value() -> None:
    assert learned(timed()).seconds(trial(rate=100)) == pytest.approx(2, rel=0.02)


def test_few_records_prove_of_no_parameter_that_it_does_not_matter() -> None:
    found = learned(timed()[: ENOUGH - 1])

    assert found.effects == ()
    assert found.seconds(trial()) is not None
    assert found.foreign(trial(rate=100)) == "rate"


def test_times_that_hardly_differ_need_no_explanation() -> None:
    found = learned([Timed("b", {"x": place % 4}, 10 + 0.001 * (place % 4)) for place in range(20)])

    assert found.effects == ()
    assert found.seconds({"x": 1}) == pytest.approx(10, rel=0.001)


def test_a_parameter_of_many_numbers_is_a_line() -> None:
    random = Random(1)  # noqa: S311 - no secret
    sizes = [random.uniform(1, 100) for _ in range(200)]

    found = learned([Timed("b", {"size": size}, size) for size in sizes])

    for size in (3, 10, 30, 90):
        assert found.seconds({"size": size}) == pytest.approx(size, rel=0.35)


def test_what_whole_batches_differ_by_is_told_from_what_single_trials_do() -> None:
    steady, shaky = learned(timed(120, 8)), learned(timed(120, 8, drift=0.5))

    assert steady.drift < 0.1
    assert 0.25 < shaky.drift < 1
    assert max(shaky.noise) < 1.2


# What records say


def span(index: int, start: int, end: int, seconds: float | None = None, **changes: object) -> Record:
    return a_record(
        index,
        started=f"2026-01-01T00:{start // 60:02}:{start % 60:02}Z",
        finished=f"2026-01-01T00:{end // 60:02}:{end % 60:02}Z",
        seconds=float(end - start) if seconds is None else seconds,
        **changes,
    )


def test_the_overhead_is_what_a_place_is_idle_for() -> None:
    # Two at once: 0 to 10 and 0 to 12, then 13 to 20 after the first, and 16 to 20 after the second.
    found = [span(0, 0, 10), span(1, 0, 12), span(2, 13, 20), span(3, 16, 20)]

    assert overhead_of(found) == pytest.approx(3.5)
    assert makespan_of(found) == 20


def test_where_no_place_is_used_twice_nothing_is_known_of_overhead() -> None:
    assert overhead_of([span(0, 0, 10), span(1, 0, 12)]) is None


def test_failed_attempts_tell_of_retries_and_not_of_times() -> None:
    failed = span(1, 0, 3, status=Status.FAILED)
    found = past([("b", [(span(0, 0, 10), {"x": 1}), (failed, {"x": 2})])])

    assert [one.seconds for one in found.ended] == [10]
    assert found.broken == (3,)
    assert found.failing == 0.5

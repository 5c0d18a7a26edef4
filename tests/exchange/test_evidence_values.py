"""Finished trials of other tools: which values of a search space their cells stand for."""

from typing import Any

import pytest

from sweepledger.formats.evidence_jsonl import ForeignTrial
from sweepledger.structs.record import Status
from sweepledger.structs.sweep import Sweep
from tests.exchange.imported import TRIAL_READERS
from tests.written_specs import good


def a_search(**parameters: dict[str, Any]) -> Sweep:
    return good(
        method="tpe",
        seed=1,
        rounds={"size": 4, "max": 2},
        metric={"name": "score", "goal": "minimize"},
        parameters={"x": {"min": 0.0, "max": 1.0}, **parameters},
    )


def read(text: str, sweep: Sweep) -> list[ForeignTrial]:
    return list(TRIAL_READERS["csv"](text.encode(), sweep, None)[1])


def values(cell: str, domain: dict[str, Any]) -> list[Any]:
    """Return the value that a cell of a table stands for; nothing if it stands for none."""
    found = read(f"x,a,score\n0.5,{cell},1\n", a_search(a=domain))
    return [trial.configuration["a"] for trial in found if "a" in trial.configuration]


@pytest.mark.parametrize(
    ("cell", "domain", "value"),
    [
        ("0.30000000000000004", {"min": 0, "max": 1, "step": 0.1}, 0.3),
        ("5.551115123125783e-17", {"min": -0.3, "max": 0.3, "step": 0.1}, 0.0),
        ("1.0000000000000002", {"min": 0.5, "max": 1.0}, 1.0),
        ("0.3001", {"min": 0.0, "max": 1.0}, 0.3001),
        ("0.31", {"min": 0, "max": 1, "step": 0.1}, 0.31),
        ("64.0", {"values": [32, 64]}, 64),
        ("0.30000000000000004", {"linspace": [0, 1, 11]}, 0.3),
        ("2e-15", {"values": [1e-15, 1.0]}, 2e-15),
    ],
)
def test_numbers_with_binary_noise_are_of_the_space(cell: str, domain: dict[str, Any], value: Any) -> None:
    assert values(cell, domain) == [value]


@pytest.mark.parametrize(
    ("cell", "listed", "found"),
    [
        ("", ["adam", None], [None]), ("", ["adam", ""], [""]), ("", ["adam", "", None], []),
        ('""', ["adam", "", None], [""]), ("", ["adam", "sgd"], []), ("None", [0.1, None], [None]),
        ("null", [0.1, None], [None]), ("null", [None, "null"], [None]), ('"null"', [None, "null"], ["null"]),
        ("None", ["None", "adam"], ["None"]), ("NULL", ["adam", None], [None]),
        ("NaN", ["NaN", "b"], ["NaN"]), ("1", [1, "1"], [1]), ('"1"', [1, "1"], ["1"]), ('"1"', [1, 2], [1]),
        ("True", [True, 1], [True]), ("true", [True, "true"], [True]), ("1e-3", ["1e-3", "1e-4"], ["1e-3"]),
        ('"[1, 2]"', [[1, 2], [3]], [(1, 2)]), ('"[1.0,2]"', [[1, 2], [3]], [(1, 2)]),
        ('"[1,2]"', [[1, 2], "[1,2]"], [(1, 2)]), ('"""[1,2]"""', [[1, 2], "[1,2]"], ["[1,2]"]),
        ('"(3, 5)"', ["(3, 5)", "(4, 6)"], ["(3, 5)"]), ('"(1,)"', [[1], [3, 4]], [(1,)]),
        ('"[""a"",""b""]"', [["a", "b"], ["c"]], [("a", "b")]), ("[]", [[], [1]], [()]),
        ("\"['a', None]\"", [["a", None], ["b"]], [("a", None)]), ('"a\nb"', ["a\nb", "c"], ["a\nb"]),
    ],
)  # fmt: skip
def test_a_cell_stands_for_a_listed_value(cell: str, listed: list[Any], found: list[Any]) -> None:
    assert list(map(repr, values(cell, {"values": listed}))) == list(map(repr, found))


@pytest.mark.parametrize(("parent", "found"), [("b", [None]), ("c", [])])
def test_an_empty_cell_is_null_only_where_its_parameter_exists(parent: str, found: list[Any]) -> None:
    sweep = a_search(a={"values": ["k", None], "when": {"kind": "b"}}, kind={"values": ["b", "c"]})

    (trial,) = read(f"x,a,kind,score\n0.5,,{parent},1\n", sweep)

    assert [trial.configuration[name] for name in ("a",) if name in trial.configuration] == found


@pytest.mark.parametrize(
    ("header", "number", "status"),
    [
        ("value", "inf", Status.DIVERGED),
        ("values_0", "-inf", Status.DIVERGED),
        ("value", "1e400", Status.DIVERGED),
        ("summary.score", "+Infinity", Status.DIVERGED),
        ("value", "0.5", Status.OK),
    ],
)
def test_a_metric_that_is_not_finite_has_diverged(header: str, number: str, status: Status) -> None:
    (trial,) = read(f"params_x,{header}\n0.5,{number}\n", a_search())

    assert trial.status is status

"""Example files: adding one adds a test. Beside each invalid one stands what is said of it."""

from pathlib import Path

import pytest

from generator.problems import Problem
from generator.spec import parse, parse_settings
from generator.structs.settings import Dataset, Settings
from generator.structs.sweep import Sweep

SPECS = Path(__file__).parent.parent / "specs"
VALID = sorted((SPECS / "valid").glob("*.yaml"))
INVALID = sorted((SPECS / "invalid").glob("*.yaml"))

SETTINGS = Settings(datasets={"mnist": Dataset("mnist", "mnist", "sha256:" + "0" * 64)})


def read(path: Path) -> Sweep | Settings | tuple[Problem, ...]:
    if path.name.endswith(".settings.yaml"):
        return parse_settings(path.read_bytes(), "sweepledger.yaml")
    return parse(path.read_bytes(), f"sweeps/{path.name}", SETTINGS)


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.name)
def test_a_valid_example_has_no_problem(path: Path) -> None:
    found = read(path)

    assert isinstance(found, Sweep | Settings), "\n".join(map(str, found))


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.name)
def test_an_invalid_example_has_exactly_the_problems_that_stand_beside_it(path: Path) -> None:
    found = read(path)

    assert isinstance(found, tuple)
    assert "".join(f"{problem}\n" for problem in found) == path.with_suffix(".txt").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.name)
def test_an_invalid_example_is_named_after_a_problem_that_it_has(path: Path) -> None:
    found = read(path)

    assert isinstance(found, tuple)
    assert any(path.name.startswith(problem.code) for problem in found)


def test_every_message_stands_beside_an_example() -> None:
    assert {path.stem for path in (SPECS / "invalid").glob("*.txt")} == {path.stem for path in INVALID}


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.name)
def test_messages_are_lower_case_and_have_no_full_stop(path: Path) -> None:
    found = read(path)

    assert isinstance(found, tuple)
    for problem in found:
        assert problem.message[0] == problem.message[0].lower()
        assert not problem.message.endswith(".")
        assert problem.hint is None or not problem.hint.endswith(".")

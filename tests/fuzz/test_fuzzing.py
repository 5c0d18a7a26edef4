"""Some hostile input by default; in the full suite more of it, and proof that it would find something."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fuzz.running import ROOT, WORDS, executions, fuzz

pytest.importorskip("atheris", reason="skipped: atheris cannot be imported on this Python")

SECONDS = 10
FEW = "-runs=1000"
ENOUGH_TO_FIND = "-runs=300000"


@dataclass(frozen=True)
class Plant:
    """One line whose loss lets an exception of the library below through."""

    path: str
    original: str
    planted: str
    exception: str
    begin: tuple[bytes, ...]
    """What the fuzzer starts from; none of them meets the bug."""


PLANTS = {
    "reader": Plant(
        "generator/sweepledger/reader/strict_yaml.py",
        '"SequenceStartEvent": "a list", "MappingStartEvent": "a mapping"}',
        '"MappingStartEvent": "a mapping"}',
        "AttributeError",
        (b"a: b\n", b"[c, d]", b"{e: f}"),
    ),
    "expression": Plant(
        "generator/sweepledger/expressions/evaluation.py",
        "except ZeroDivisionError as error",
        "except FloatingPointError as error",
        "ZeroDivisionError",
        (b"a / lr", b"-b + 2", b"a % 3"),
    ),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("target", "most"), [("reader", FEW), *((target, f"-max_total_time={SECONDS}") for target in WORDS)]
)
def test_hostile_input_finds_nothing(target: str, most: str, tmp_path: Path) -> None:
    done = fuzz(target, tmp_path, most, "-seed=1", root=ROOT)

    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert executions(done) > 100


@pytest.mark.full_suite("planted bugs")
@pytest.mark.parametrize("target", sorted(PLANTS))
def test_a_bug_planted_in_a_copy_is_found(target: str, tmp_path: Path) -> None:
    plant = PLANTS[target]
    shutil.copytree(ROOT / "generator", tmp_path / "generator", ignore=shutil.ignore_patterns("__pycache__"))
    source = (tmp_path / plant.path).read_text()
    assert source.count(plant.original) == 1
    (tmp_path / plant.path).write_text(source.replace(plant.original, plant.planted))

    done = fuzz(target, tmp_path / "work", ENOUGH_TO_FIND, "-seed=1", root=tmp_path, begin=plant.begin)

    assert done.returncode != 0
    assert f"{plant.exception}: " in done.stdout
    (path,) = (tmp_path / "work").glob("crash-*")
    assert path.read_bytes() not in plant.begin

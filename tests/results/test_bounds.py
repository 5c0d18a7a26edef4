"""What a trial and a batch may add to the repository."""

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.formats.records_jsonl import line_size
from sweepledger.results.bounds import (
    BATCH_BYTES,
    LEAST_TRIAL_BYTES,
    MOST_TRIAL_BYTES,
    common_bound,
    shortened,
    trial_share,
)
from sweepledger.structs.record import Artifact
from tests.builders import a_record

CURVE = tuple((step, step / 7) for step in range(200))
ARTIFACTS = tuple(Artifact(f"file-{number}", 1, "0" * 64) for number in range(100))
FULL = a_record(
    artifacts=ARTIFACTS,
    curves=MappingProxyType({"accuracy": CURVE, "loss": CURVE}),
    details=MappingProxyType({"padding": "x" * 2000, "artifacts_left_out": True}),
)


@pytest.mark.parametrize(
    ("trials", "share"),
    [(1, MOST_TRIAL_BYTES), (732, MOST_TRIAL_BYTES), (1000, 48_000), (100_000, LEAST_TRIAL_BYTES)],
)
def test_each_trial_has_a_share_of_the_batchs_bytes(trials: int, share: int) -> None:
    assert trial_share(trials) == share
    assert share * trials <= BATCH_BYTES


def test_a_usual_record_of_the_largest_batch_fits_into_its_share() -> None:
    usual = a_record(
        99_999,
        uid="3f9a1c2e-9d4b-4c8e-8f3a-5b6c7d8e9f01",
        metrics=MappingProxyType({"val_loss": 0.12345678901234567, "val_accuracy": 0.9345678901234567}),
        details=MappingProxyType({}),
        seconds=1234.567,
    )

    assert line_size(usual) <= LEAST_TRIAL_BYTES


@given(st.lists(st.integers(1, 50), max_size=8), st.integers(0, 200))
def test_the_common_bound_is_the_largest_that_fits(sizes: list[int], space: int) -> None:
    bound = common_bound(sizes, space)

    assert sum(min(size, bound) for size in sizes) <= space
    if sizes and bound < max(sizes):
        assert sum(min(size, bound + 1) for size in sizes) > space


@pytest.mark.parametrize(
    ("bound", "artifacts", "left_out"),
    [
        (60_000, 100, []),
        (12_000, 49, []),
        (6_000, 0, ["curves"]),
        (2_000, 0, ["curves", "details"]),
    ],
)
def test_other_curves_are_left_out_first(bound: int, artifacts: int, left_out: list[str]) -> None:
    short = shortened(FULL, bound, "accuracy")

    assert short is not None
    assert line_size(short) <= bound
    assert short.details.get("left_out", []) == left_out
    assert len(short.artifacts) == artifacts
    assert set(short.curves) == (
        set() if "curves" in left_out else {"accuracy"} if bound < 60_000 else {"accuracy", "loss"}
    )
    if short.curves and bound < 60_000:
        assert short.details["curves_left_out"] == 1
    assert ("padding" in short.details) is ("details" not in left_out)
    assert short.metrics == FULL.metrics
    if artifacts < len(ARTIFACTS):
        assert short.details["artifacts_left_out"] == 100 - artifacts


def test_a_record_of_which_no_part_fits_is_none() -> None:
    metrics = MappingProxyType({f"{number:060}": 0.1 for number in range(100)})

    assert shortened(a_record(metrics=metrics), LEAST_TRIAL_BYTES, "accuracy") is None

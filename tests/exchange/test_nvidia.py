"""`hyperparams.yml`, byte for byte as the two examples' generators write it with PyYAML."""

import copy
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.exchange import nvidia
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.settings import Settings
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value
from tests.exchange.imported import a_grid, assignments_of, combinations, sweep_of, whats
from tests.sweeps import a_sweep
from tests.written_specs import parse_sweep

FILES = Path(__file__).parent / "files/nvidia"

COMMITTED = combinations(
    max_learning_rate=[0.4, 0.6],
    momentum=[0.9, 0.99],
    data_aug_cutout_size=[5, 12],
    batch_size=[128, 512],
    batch_norm=["on"],
)
COMMITTED_DIGEST = "7a85656570ee68d4e98eb3b156cabbcb9d9508716ddacb7aeb3de0664684c83f"


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.text(alphabet="on ye1.e-:#'\"\n0x~", max_size=12),
    st.text(alphabet="ab c", min_size=60, max_size=200),
    st.sampled_from(
        ["on", "off", "yes", "no", "null", "1e3", "010", "0o17", "1:30", "~", "=", "<<", "2026-01-01"]
    ),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3))
NAMES = st.one_of(
    st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,62}", fullmatch=True), st.sampled_from(["on", "y", "null", "No"])
)


def a_spec(name: str) -> Sweep:
    sweep = parse_sweep((FILES / f"{name}.yaml").read_bytes(), f"sweeps/{name}.yaml", Settings())
    assert isinstance(sweep, Sweep)
    return sweep


def exported(name: str) -> str:
    sweep = a_spec(name)
    return nvidia.write(sweep, assignments_of(sweep)).text


def dumped(sets: Sequence[Mapping[str, Any]]) -> str:
    """Write as their generators do. Copied first: PyYAML would write `&id001` for a list it meets again."""
    items = [{"hyperparam_set": copy.deepcopy(dict(values))} for values in sets]
    return str(yaml.dump(items, default_flow_style=False))


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=4), max_size=4))
def test_any_sets_are_written_as_pyyaml_writes_them(sets: list[dict[str, Value]]) -> None:
    text = nvidia.write_sets(sets)

    assert text == dumped(sets)


@pytest.mark.parametrize(
    ("name", "trials"),
    [("cifar10-extended", 48), ("mnist-eidf", 4)],
)
def test_their_spaces_have_their_numbers_of_trials_and_their_bytes(name: str, trials: int) -> None:
    sweep = a_spec(name)
    assignments = assignments_of(sweep)

    text = nvidia.write(sweep, assignments).text

    assert len(assignments) == trials
    assert text == dumped(assignments)


def test_written_in_the_order_of_the_committed_file_the_sets_are_that_file() -> None:
    text = exported("cifar10-committed")

    assert text == dumped(COMMITTED)
    assert hashlib.sha256(text.encode()).hexdigest() == COMMITTED_DIGEST


def test_a_grid_says_its_parameters_slowest_first_and_constants_as_one_value() -> None:
    imported = nvidia.read(dumped(COMMITTED).encode(), name="cifar10")

    assert imported.spec["parameters"] == {
        "batch_norm": {"value": "on"},
        "max_learning_rate": {"values": [0.4, 0.6]},
        "momentum": {"values": [0.9, 0.99]},
        "data_aug_cutout_size": {"values": [5, 12]},
        "batch_size": {"values": [128, 512]},
    }
    assert list(imported.spec["parameters"]) == [
        "batch_norm", "max_learning_rate", "momentum", "data_aug_cutout_size", "batch_size",
    ]  # fmt: skip
    assert "in the same order" in imported.losses[-1].reason


def test_a_missing_key_is_an_absent_parameter_in_both_directions() -> None:
    rows: list[dict[str, Value]] = [{"lr": 0.1}, {"lr": 0.1, "momentum": 0.9}, {"momentum": 0.5}]

    imported = nvidia.read(dumped(rows).encode(), name="absent")

    assert assignments_of(sweep_of(imported)) == tuple(rows)
    assert nvidia.write(a_sweep(design=a_grid()), rows).text == dumped(rows)


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    content = nvidia.write_sets([{"n": 1}]).encode()
    monkeypatch.setattr(nvidia, "MAX_BYTES", len(content))

    assert nvidia.read_sets(content) == ({"n": 1},)
    with pytest.raises(ForeignError, match=f"must be at most {len(content)} bytes"):
        nvidia.read_sets(content + b"\n")


@pytest.mark.full_suite("large inputs")
def test_more_items_than_a_spec_can_hold_are_refused_unless_they_are_a_grid() -> None:
    rows = combinations(a=list(range(50)), b=list(range(100)))

    grid = nvidia.read(dumped(rows).encode(), name="large")
    with pytest.raises(ForeignError) as refused:
        nvidia.read(dumped(rows[:-1]).encode(), name="large")

    assert len(assignments_of(sweep_of(grid))) == 5000
    assert refused.value.hint is not None


def test_writing_names_what_the_file_cannot_hold() -> None:
    sweep = a_sweep(design=a_grid(lr=[0.1, 0.2]), replicates=3)

    losses = nvidia.write(sweep, assignments_of(sweep)).losses

    assert whats(losses) == ["replicates", "metric, command, run"]

import dataclasses
import importlib
import pkgutil

import pytest

import sweepledger.structs
from sweepledger.structs.metric import Goal, MetricSource
from sweepledger.structs.names import RESERVED_SWEEP_NAMES
from sweepledger.structs.run_config import Shape

MODULES = [
    module.name for module in pkgutil.iter_modules(sweepledger.structs.__path__, "sweepledger.structs.")
]


@pytest.mark.parametrize("name", MODULES)
def test_values_cannot_be_changed(name: str) -> None:
    module = importlib.import_module(name)
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and dataclasses.is_dataclass(value)
    ]

    assert all(value.__dataclass_params__.frozen for value in found)  # type: ignore[attr-defined]


def test_words_that_stand_in_files_for_ever() -> None:
    assert [str(shape) for shape in Shape] == [
        "jobs",
        "indexed",
        "train-job",
        "mpi-job",
        "job-set",
        "pytorch-job",
        "tf-job",
    ]
    assert [str(goal) for goal in Goal] == ["maximize", "minimize"]
    assert [str(source) for source in MetricSource] == ["result", "stdout"]
    assert {"con", "default", "kube-system", "main"} == RESERVED_SWEEP_NAMES

import dataclasses
import importlib
import pkgutil

import pytest

import sweepledger.formats
import sweepledger.spec
import sweepledger.structs
from sweepledger.structs.metric import Goal, MetricSource
from sweepledger.structs.names import RESERVED_SWEEP_NAMES
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Controller, Settings

PACKAGES = (sweepledger.structs, sweepledger.formats, sweepledger.spec)
MODULES = [
    module.name
    for package in PACKAGES
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("name", MODULES)
def test_values_cannot_be_changed(name: str) -> None:
    values = [
        value
        for value in vars(importlib.import_module(name)).values()
        if isinstance(value, type) and dataclasses.is_dataclass(value) and value.__module__ == name
    ]

    for value in values:
        # A private class may be what a module counts or reads with.
        assert value.__dataclass_params__.frozen or value.__name__.startswith("_"), value  # type: ignore[attr-defined]
        assert "__slots__" in vars(value), f"{value} takes any attribute"


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
    assert [str(controller) for controller in Controller] == ["none", "argocd", "flux", "submit"]
    assert [str(goal) for goal in Goal] == ["maximize", "minimize"]
    assert [str(source) for source in MetricSource] == ["result", "stdout"]
    assert {"con", "default", "kube-system", "main"} == RESERVED_SWEEP_NAMES


def test_what_a_repository_without_settings_means_stays_the_same() -> None:
    settings = Settings()

    assert (settings.remote, settings.branch, settings.namespace) == ("origin", "main", "sweeps")
    assert settings.controller is Controller.NONE

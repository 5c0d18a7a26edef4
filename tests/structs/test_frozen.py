import dataclasses
import importlib
import pkgutil

import pytest
from msgspec import Struct

import sweepledger.formats
import sweepledger.spec
import sweepledger.structs

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
        if isinstance(value, type) and value.__module__ == name
    ]

    for value in filter(dataclasses.is_dataclass, values):
        # A private class may be what a module counts or reads with.
        assert value.__dataclass_params__.frozen or value.__name__.startswith("_"), value  # type: ignore[attr-defined]
        assert "__slots__" in vars(value), f"{value} takes any attribute"
    for value in values:
        assert not issubclass(value, Struct) or value.__struct_config__.frozen, value

"""Spec in, files out; results in, commit out. The package does not know what a trial computes.

The names in `__all__` are the Python API (docs/python.md). Each is loaded when it is first used, so importing
this package takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sweepledger.api.comparison import ComparedProgress, ComparedSweep, ComparedTrial, ComparisonResult
    from sweepledger.api.definition import AskedTrial, SweepDefinition, sweep
    from sweepledger.api.repository import SweepRepository
    from sweepledger.api.repository import open_repository as open  # noqa: A004 - `sweepledger.open`
    from sweepledger.api.script import report, values
    from sweepledger.api.sweep import CurveStep, RecordedSweep, RecordedTrial, SweepChange
    from sweepledger.api.table import Chart, ResultTable
    from sweepledger.errors import GeneratorError

__version__ = "0.1.0"

__all__ = [
    "AskedTrial",
    "Chart",
    "ComparedProgress",
    "ComparedSweep",
    "ComparedTrial",
    "ComparisonResult",
    "CurveStep",
    "GeneratorError",
    "RecordedSweep",
    "RecordedTrial",
    "ResultTable",
    "SweepChange",
    "SweepDefinition",
    "SweepRepository",
    "__version__",
    "open",
    "report",
    "sweep",
    "values",
]

_NAMES = {
    "api.comparison": ("ComparedProgress", "ComparedSweep", "ComparedTrial", "ComparisonResult"),
    "api.definition": ("AskedTrial", "SweepDefinition", "sweep"),
    "api.repository": ("SweepRepository", "open"),
    "api.script": ("report", "values"),
    "api.sweep": ("CurveStep", "RecordedSweep", "RecordedTrial", "SweepChange"),
    "api.table": ("Chart", "ResultTable"),
    "errors": ("GeneratorError",),
}
"""The public names by their modules."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
_DEFINED_AS = {"open": "open_repository"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), _DEFINED_AS.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

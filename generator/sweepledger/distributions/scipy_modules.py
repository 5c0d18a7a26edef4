"""Modules of SciPy, the extra `sampling`: it is as large as everything else that sweepledger installs."""

from importlib import import_module
from types import ModuleType

from sweepledger.errors import ToolError


def import_scipy(module: str, requirement: str) -> ModuleType:
    """Import a module of SciPy late, as that takes half a second. Raises ToolError if SciPy is not installed.

    `requirement` is the beginning of the message; it names what requires SciPy.
    """
    try:
        return import_module(f"scipy.{module}")
    except ImportError as error:
        raise ToolError.missing_library(f"{requirement} SciPy", extra="sampling") from error

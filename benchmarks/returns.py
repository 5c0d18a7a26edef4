"""Count how often control returns to a higher layer on the way of a value through the packages.

    python benchmarks/returns.py                 # both ways: lines that are returned to, and the bars
    python benchmarks/returns.py generate        # `sweep generate`: from a spec's text to the files of its overlay
    python benchmarks/returns.py bootstrap       # `sweep cluster bootstrap`: from settings to the platform's manifests

A value that goes down through the layers of docs/architecture.md and is finished at the bottom returns once for each
layer. Each further line that a lower package returns to is a place where a reader has to go back up. A line counts
once, however often it runs. Values do not count (`structs` and what is below it): to ask a value is no way back. Nor do
modules that are being imported, and code outside the package.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from sweepledger.operations.scaffold.bootstrap import BootstrapRequest, bootstrap  # noqa: E402
from sweepledger.structs.settings import Controller  # noqa: E402
from tests.repository import Sandbox  # noqa: E402
from tests.test_architecture import LAYERS, PACKAGE  # noqa: E402

BARS = {"generate": 10, "bootstrap": 8}
WAYS = {
    "generate": (("spec/parser.py", "parse"), ("render/overlay.py", "overlay")),
    "bootstrap": (("spec/parser.py", "parse_settings"), ("render/platform/tree.py", "platform_tree")),
}
"""The functions whose call begins a way, and whose return ends it."""

Return = tuple[str, int, str]
"""The file and line that is returned to, and the module that returns."""


class Tracer:
    """Notes the lines of higher layers that lower ones return to."""

    def __init__(self, first: tuple[str, str], last: tuple[str, str]) -> None:
        self.first, self.last, self.is_on = first, last, False
        self.returns: dict[Return, None] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        path = module_of(frame)
        if path is None:
            return
        function = (path, frame.f_code.co_name)
        self.is_on |= event == "call" and function == self.first
        if not self.is_on or event != "return":
            return
        caller = frame.f_back
        while caller is not None and module_of(caller) is None:
            caller = caller.f_back
        above = None if caller is None else module_of(caller)
        if caller is not None and above is not None and VALUES < layer(path) < layer(above):
            self.returns[above, caller.f_lineno, path] = None
        self.is_on = function != self.last


def module_of(frame: FrameType) -> str | None:
    """Return the path of a frame's module in the package; None if it is of another one, or of an import."""
    path = Path(frame.f_code.co_filename)
    if frame.f_code.co_name == "<module>" or not path.is_relative_to(PACKAGE):
        return None
    return path.relative_to(PACKAGE).as_posix()


def layer(module: str) -> int:
    """Return the layer of a module, counted from below; -1: it belongs to none."""
    name = module.partition("/")[0].removesuffix(".py")
    return next((number for number, names in enumerate(LAYERS) if name in names), -1)


VALUES = layer("structs/")
"""The layer of the values."""


def generate(sandbox: Sandbox) -> None:
    """Write the first batch of a sweep."""
    sandbox.spec()
    sandbox.commit("Add a sweep")
    sandbox.generate()


def bootstrapped(sandbox: Sandbox) -> None:
    """Write the files of the platform."""
    request = BootstrapRequest(Controller.ARGOCD, "https://git.example.org/team/sweeps.git", "main")
    bootstrap(sandbox.workspace, request)


RUNS: dict[str, Callable[[Sandbox], None]] = {"generate": generate, "bootstrap": bootstrapped}


def returns(way: str) -> list[Return]:
    """Return the lines that are returned to on a way, in the order in which they are first."""
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox.create(Path(folder))
        tracer = Tracer(*WAYS[way])
        sys.setprofile(tracer)
        try:
            RUNS[way](sandbox)
        finally:
            sys.setprofile(None)
    return list(tracer.returns)


def main() -> int:
    """Print the returns of the chosen ways; exit with 1 if one has more than its bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("way", nargs="*", choices=[*WAYS, []], help="default: both")
    failed = False
    for way in parser.parse_args().way or WAYS:
        counted = returns(way)
        lines = {(path, line) for path, line, _ in counted}
        failed |= len(lines) > BARS[way]
        print(f"{way}: {len(lines)} lines are returned to (bar {BARS[way]})")
        for path, line, below in counted:
            print(f"  generator/sweepledger/{path}:{line} from {below}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

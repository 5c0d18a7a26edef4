"""A format and a store of another package: help, import, export, sync and the conformance suite know them at once."""

import json
import sys
from pathlib import Path

import pytest

from sweepledger.exchange import registry
from sweepledger.exchange.conversion import ForeignFormat
from tests.command_line import run_sweep_process
from tests.exchange.conformance import conforms
from tests.operations.test_sync import record
from tests.repository import Sandbox

PACKAGE = """\
import json
from pathlib import Path

from sweepledger.exchange.configuration_list import checked_configuration, export_losses, spec_frame
from sweepledger.exchange.conversion import Exported, ForeignFormat, Imported
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.stores.contents import StoreChange, StoreKind
from sweepledger.structs.values import written


def read(content, *, name):
    try:
        rows = [checked_configuration(row, "row") for row in json.loads(content)]
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise ForeignError(f"must be a list of objects: {error}") from error
    return Imported(spec_frame(name, "list", assignments=rows), ())


def write(sweep, assignments):
    return Exported(json.dumps([written(row) for row in assignments]), export_losses(sweep))


def store(contents, place):
    Path(place).write_text(contents.sweep)
    return StoreChange(len(contents.trials), 0)


FORMAT = ForeignFormat("rows", "a list of objects in JSON", read=read, write=write)
STORE = StoreKind("memo", "memo.txt", store)
"""
ENTRIES = """\
[sweepledger.formats]
rows = acme_sweeps:FORMAT
csv = acme_sweeps:FORMAT
broken = acme_sweeps:missing
[sweepledger.stores]
memo = acme_sweeps:STORE
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Install a package in a folder, which is to be on the path of Python."""
    folder = tmp_path / "site"
    described = folder / "acme_sweeps-1.0.dist-info"
    described.mkdir(parents=True)
    (folder / "acme_sweeps.py").write_text(PACKAGE)
    (described / "entry_points.txt").write_text(ENTRIES)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-sweeps\nVersion: 1.0\n")
    return folder


@pytest.mark.full_suite("commands with another package")
def test_commands_use_what_another_package_has(package: Path, sandbox: Sandbox) -> None:
    record(sandbox, sandbox.root.parent / "volume")
    path = f"{Path(__file__).parents[2] / 'generator'}:{package}"

    def sweep(*arguments: str, code: int = 0) -> str:
        done = run_sweep_process(*arguments, cwd=sandbox.root, PYTHONPATH=path)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    assert "jsonl, broken, rows, trials" in " ".join(sweep("import", "--help").split())
    sweep("export", "rows", "peak", "--output", "peak.rows")
    assert json.loads((sandbox.root / "peak.rows").read_text()) == [{"x": x, "bias": 0.5} for x in (1, 2, 3)]
    assert "- {x: 3, bias: 0.5}" in sweep("import", "rows", "peak.rows")
    assert "memo.txt: 2 trials added" in sweep("sync", "memo", "peak")
    assert (sandbox.root / "memo.txt").read_text() == "peak"
    assert "broken of the package acme-sweeps cannot be loaded" in sweep(
        "import", "broken", "peak.rows", code=3
    )


def test_a_format_of_another_package_takes_the_conformance_suite(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(package)
    registry.formats.cache_clear()
    try:
        found = registry.formats()
    finally:
        registry.formats.cache_clear()
        sys.modules.pop("acme_sweeps", None)

    assert isinstance(found["rows"], ForeignFormat)
    assert found["csv"].summary != found["rows"].summary, "no package replaces one of ours"
    conforms(found["rows"], b'[{"x": 1}, {"x": 0.5}]', count=100)

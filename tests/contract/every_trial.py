"""Prints the digest of the batch that each valid example makes: a program for other Pythons to run."""

import json
import sys
from pathlib import Path

from sweepledger.repo import files
from sweepledger.search import expansion
from sweepledger.structs.batch import Batch
from sweepledger.structs.program import Code, Data, Program
from sweepledger.structs.settings import SweepLimits
from sweepledger.structs.sweep import Sweep
from tests.sweeps import overlay_of, with_keys
from tests.written_specs import SETTINGS as LIMITED
from tests.written_specs import parse_sweep

SETTINGS = with_keys(LIMITED, limits=SweepLimits())
"""Every value that a spec may have, at once, is more than any budget."""
BASES = files.read_folder(Path(__file__).parents[2] / "base").files


def digest_of(path: Path) -> str:
    """Render the batch of a spec and digest every byte of it."""
    spec, name = path.read_bytes(), f"sweeps/{path.name}"
    sweep = parse_sweep(spec, name, SETTINGS, beside=lambda file: (path.parent / file).read_bytes())
    assert isinstance(sweep, Sweep), "\n".join(map(str, sweep))
    data = (
        None
        if sweep.run.data is None
        else Data(sweep.run.data, SETTINGS.trials.datasets[sweep.run.data].identity)
    )
    program = Program("local", sweep.command, Code("trainer", "c" * 40), data)
    batch = Batch(sweep, program, expansion.expand(sweep, program))
    return overlay_of(batch, BASES, SETTINGS).tree.digest


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    json.dump({path.stem: digest_of(path) for path in sorted(folder.glob("*.yaml"))}, sys.stdout)

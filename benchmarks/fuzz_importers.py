"""Changed files of every format through every importer: how many ran, and what escaped.

    python benchmarks/fuzz_importers.py                   10^5 files, minutes
    python benchmarks/fuzz_importers.py --runs 2000 --seed 7 --only wandb

Exits 1 if an importer lets an exception out other than its refusal; the file that did it is printed, as bytes.
"""

import argparse
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
NICENESS = 10
"""Other work on the machine goes first."""


def main() -> int:
    """Fuzz one format after the other."""
    sys.path.insert(0, str(ROOT))
    from tests.exchange.conformance import SEEDS, mutations, survive  # noqa: PLC0415 - the path is set above

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(SEEDS))
    arguments = parser.parse_args()
    os.nice(NICENESS)
    names = [arguments.only] if arguments.only else sorted(SEEDS)
    failed = 0
    for name in names:
        started, count = time.monotonic(), arguments.runs // len(names)
        for content in mutations(SEEDS[name], arguments.seed, count):
            try:
                survive(name, content)
            except Exception as error:  # noqa: BLE001 - what escapes is what is counted
                failed += 1
                print(f"  {name}: {error!r}: {content!r}", flush=True)
        print(f"{name:20} {count:>7} files {time.monotonic() - started:>6.0f} s", flush=True)
    print(f"{failed} escaped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

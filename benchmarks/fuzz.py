"""A million hostile inputs for the reader, and as many for expressions: how many ran, and what was found.

    python benchmarks/fuzz.py                     10^6 executions each, minutes
    python benchmarks/fuzz.py --runs 5000 --seed 7 --only reader

Exits 1 where a target lets an exception out; the input that did it is printed, as bytes.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
NICENESS = 10
"""Other work on the machine goes first."""


def main() -> int:
    """Fuzz one target after the other."""
    sys.path.insert(0, str(ROOT))
    from tests.fuzz.running import WORDS, executions, fuzz  # noqa: PLC0415 - the path is set above

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1, help="of the mutations; from 1")
    parser.add_argument("--only", choices=sorted(WORDS))
    parser.add_argument("--root", type=Path, default=ROOT, help="where the package lies")
    arguments = parser.parse_args()
    os.nice(NICENESS)
    failed = False
    for target in [arguments.only] if arguments.only else sorted(WORDS):
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            started = time.monotonic()
            flags = (f"-runs={arguments.runs}", f"-seed={arguments.seed}")
            done = fuzz(target, Path(folder), *flags, root=arguments.root)
            seconds = time.monotonic() - started
            findings = sorted(Path(folder).glob("*-*"))
            print(
                f"{target:12} {executions(done):>9} executions {seconds:>7.0f} s {len(findings)} findings",
                flush=True,
            )
            for finding in findings:
                print(f"  {finding.name[:12]}: {finding.read_bytes()!r}")
            if done.returncode:
                print(done.stdout[-4000:])
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

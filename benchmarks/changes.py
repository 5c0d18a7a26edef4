"""Random mutations of a valid change: how many `sweep check` refuses, and what those do that it accepts.

python benchmarks/changes.py [--count COUNT] [--seeds SEED…] [--first NUMBER]; exits with 1 for an accepted one that
changes what runs. A mutation follows from its seed and number: `--first NUMBER --count 1` makes it again.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.attacks.changing import Change  # noqa: E402

EVERY = 500
"""Mutations between two lines of progress."""


def main() -> int:
    """Mutate, check, and compare what is accepted with what the generator writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    harmful = 0
    for seed in chosen.seeds:
        codes: Counter[str] = Counter()
        accepted = harm = 0
        with tempfile.TemporaryDirectory(prefix="changes-") as folder:
            change = Change.built(Path(folder))
            numbers = range(chosen.first, chosen.first + chosen.count)
            for number in numbers:
                rng = random.Random(f"{seed} {number}")  # noqa: S311 - the same mutations every time
                verdict = change.mutated(rng)
                codes.update(verdict.codes)
                accepted += not verdict.codes
                if verdict.harm:
                    harm += 1
                    print(f"accepted: {number}: {verdict.mutation!r}: {verdict.harm}", flush=True)
                if (number + 1) % EVERY == 0:
                    print(f"seed {seed}: up to {number}, {time.process_time():.0f} CPU s", flush=True)
        print(
            f"seed {seed}, {numbers.start} to {numbers.stop - 1}: {len(numbers) - accepted} refused, "
            f"{accepted} accepted, {harm} of them change what runs"
        )
        print(", ".join(f"{code} {number}" for code, number in codes.most_common()))
        harmful += harm
    return 1 if harmful else 0


if __name__ == "__main__":
    sys.exit(main())

"""Hold expansion against its meaning, computed naively, on random search spaces.

python benchmarks/brute_force.py [--examples 100000] [--seed 0]
"""

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Try so many spaces, and a tenth as many lists; a disagreement is raised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from hypothesis import HealthCheck, given, seed, settings  # noqa: PLC0415 - found beside the tests

    from tests.search.spaces import lists, spaces  # noqa: PLC0415 - only now on the path
    from tests.search.test_brute_force import agrees_on_a_list, agrees_on_a_space  # noqa: PLC0415 - likewise

    started = time.process_time()
    for strategy, agrees, examples in (
        (spaces(), agrees_on_a_space, chosen.examples),
        (lists(), agrees_on_a_list, chosen.examples // 10),
    ):
        limits = settings(
            max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        seed(chosen.seed)(limits(given(strategy)(agrees)))()
        print(f"{agrees.__name__}: {examples} examples, no disagreement", flush=True)
    print(f"{time.process_time() - started:.0f} CPU seconds")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Every fault of tests/faults at every point: kills at calls that write and at random moments, failing calls.

python benchmarks/faults.py kills              SIGKILL at every call of every command
python benchmarks/faults.py moments --runs N   SIGKILL at N random moments, shared out among the commands
python benchmarks/faults.py training --runs N  SIGKILL of `sweep run` at N random moments while its trials train
python benchmarks/faults.py errors             each error at each of the first 500 calls that can fail so
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.faults.shim import ERRORS, Shim  # noqa: E402
from tests.faults.training import kill_training  # noqa: E402
from tests.faults.trying import fails, kills, moments, number_of_calls  # noqa: E402
from tests.faults.worlds import WORLDS, World  # noqa: E402

Wrong = Iterator[tuple[int, str]]
MOST_CALLS = 500


def tell(what: str, number: int, wrong: Iterable[tuple[int, str]]) -> int:
    """Print one line, and each try that went wrong; give how many did."""
    began, count = time.monotonic(), 0
    for at, why in wrong:
        count += 1
        print(f"  {what} at {at}: {why}", flush=True)
    print(f"{what}: {number} tries, {count} wrong, {time.monotonic() - began:.0f} s", flush=True)
    return count


def duration(world: World) -> float:
    """Measure a run that nothing disturbs."""
    assert world.wanted
    world.fresh()
    began = time.monotonic()
    world.run()
    return time.monotonic() - began


def of(world: World, name: str, options: argparse.Namespace) -> int:
    """Try all that was asked for on one command."""
    match options.what:
        case "kills":
            return tell(f"kill {name}", world.points, kills(world, range(1, world.points + 1)))
        case "moments":
            runs, longest = max(1, options.runs // len(options.commands)), duration(world)
            chance = random.Random(f"{options.seed} {name}")  # noqa: S311 - moments that can be had again
            times = [chance.uniform(0, longest) for _ in range(runs)]
            return tell(f"kill {name} at a moment", runs, moments(world, times))
    wrong = 0
    for error in ERRORS:
        number = min(MOST_CALLS, number_of_calls(world, error))
        points = range(1, number + 1, options.every)
        wrong += tell(f"{error} in {name}", len(points), fails(world, error, points))
    return wrong


def while_training(scratch: Path, options: argparse.Namespace) -> int:
    """Kill `sweep run` while trials train, and print one line for each repository."""
    killed, wrong = 0, list[str]()
    for laptop in kill_training(scratch, options.runs, seed=options.seed):
        killed, wrong = killed + laptop.killed, [*wrong, *laptop.wrong]
        print(
            f"{killed} kills while trials trained, {len(wrong)} wrong", *laptop.wrong, sep="\n  ", flush=True
        )
    return len(wrong)


def main() -> int:
    """Try, and say whether anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["kills", "moments", "training", "errors"])
    parser.add_argument("--runs", type=int, default=1000, help="of moments and training (1000)")
    parser.add_argument("--every", type=int, default=1, help="of errors: only each so-manieth call (1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", nargs="+", choices=list(WORLDS), default=list(WORLDS))
    options = parser.parse_args()
    os.environ.update({"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"})
    with tempfile.TemporaryDirectory() as scratch:
        if options.what == "training":
            return min(1, while_training(Path(scratch), options))
        shim = Shim(Path(scratch))
        try:
            worlds = ((name, WORLDS[name](Path(scratch, name), shim)) for name in options.commands)
            return min(1, sum(of(world, name, options) for name, world in worlds))
        finally:
            shim.close()


if __name__ == "__main__":
    sys.exit(main())

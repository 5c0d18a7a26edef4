"""Random histories of clones, forks, merges, rebases and runs: what is lost, requested again or verified as different.

python benchmarks/histories.py --seeds 2000 [--first 0] [--steps 16]
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.histories import STEPS, History  # noqa: E402

REPORTED = 50


def main() -> int:
    """Play the histories, print each fault and a summary; the exit code is 1 if there is a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    began, played, faulty = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory(prefix="histories-") as scratch:
        settings = Path(scratch) / "gitconfig"
        settings.write_text("[maintenance]\n\tauto = false\n[gc]\n\tauto = 0\n[receive]\n\tautogc = false\n")
        os.environ |= {"GIT_CONFIG_GLOBAL": str(settings), "GIT_CONFIG_NOSYSTEM": "1"}
        for seed in range(options.first, options.first + options.seeds):
            folder = Path(scratch) / str(seed)
            folder.mkdir()
            wrong = History(folder, seed).play(options.steps)
            shutil.rmtree(folder)
            played, faulty = played + 1, faulty + bool(wrong)
            for fault in wrong:
                print(fault, flush=True)
            if played % REPORTED == 0 or played == options.seeds:
                seconds = time.monotonic() - began
                print(f"{played} histories, {faulty} with faults, {seconds:.0f} s", flush=True)
    return min(faulty, 1)


if __name__ == "__main__":
    raise SystemExit(main())

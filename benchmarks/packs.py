"""Measure trivial trials on one real node, packed: from the push to their records, and what the control plane uses.

python -m tests.cluster.box python benchmarks/packs.py [TRIALS] [--pack TRIALS] [--controller NAME]

The trials are a shell that writes one number. The collector watches, so it records a batch when it has ended.
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.cluster_meter import GROUPS, Meter, status_of
from tests.cluster import machine
from tests.e2e.controllers import CONTROLLERS
from tests.e2e.founding import followed_team, prepared

SCRIPT = """printf '{"score": 1}' > "$SWEEP_RESULT"\n"""
COLUMN = 100
RESULTS_MEGABYTES = 2048
SECONDS, PLANE_SECONDS = 15 * 60.0, 60.0
"""The bars, for ten thousand trials: of the whole, and of the control plane's CPU."""


def measure(trials: int, pack: int, controller: str) -> None:
    """Run one packed sweep, and print what it took."""
    made = machine.start()
    team = followed_team(prepared(made, controller, megabytes=RESULTS_MEGABYTES))
    team.write("code/trivial.sh", SCRIPT)
    team.commit("Write a program")
    team.write_spec(
        "packed",
        parameters={"x": range(trials // COLUMN), "y": range(COLUMN)},  # a spec has at most 10,000 values
        command=("sh", "code/trivial.sh"),
        parallelism=2,
        pack={"trials": pack, "at_once": 2},
        resources={"cpu": "600m", "memory": "64Mi", "scratch": "16Mi"},
    )
    team.propose("packed")
    meter, before, start = Meter(made), Meter(made).usage(), time.monotonic()
    team.merge()
    batch = team.batch("packed")
    team.until_recorded(batch, seconds=2 * SECONDS)
    seconds, after = time.monotonic() - start, meter.usage()
    failed = [row for row in team.summary("packed") if row["status"] != "ok"]
    print(f"{trials:,} trials, {pack:,} in a pod, {controller}: {seconds:.0f} s, {len(failed)} not ok")
    print(f"  load of the machine: {os.getloadavg()[1]:.1f} in the last five minutes, {os.cpu_count()} CPUs")
    for name in GROUPS:
        if name in after:
            print(f"  {name:16}{after[name].cpu - before[name].cpu:8.1f} CPU s")


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("trials", nargs="?", type=int, default=10_000)
    parser.add_argument("--pack", type=int, default=500)
    parser.add_argument("--controller", choices=sorted(CONTROLLERS), default="flux")
    chosen = parser.parse_args()
    measure(chosen.trials, chosen.pack, chosen.controller)
    return 0


if __name__ == "__main__":
    sys.exit(status_of(main))

"""Gets a machine ready for the whole cluster: Debian packages, programs, images; and says what is lacking.

    python -m tests.cluster.preparing [--deadline MINUTES]     what `make cluster-tools` does

Every step is done once. What cannot be done here, or not in time, is said, and the tests are skipped.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.cluster import box, building, packages
from tests.cluster.building import Definitions, Group, say
from tests.cluster.deadline import Deadline, DeadlinePassedError, heed_signals

IMAGES = "tests.cluster.images"
SKIPPED = "skipped: no cluster tools"


def lacking(groups: Sequence[Group | Definitions] = building.GROUPS) -> str:
    """Say in a few words why no cluster of these programs can run here; empty where one can."""
    if reason := box.why_not():
        return reason
    ended = f" ({_cut_off().read_text().strip()})" if _cut_off().is_file() else ""
    if missed := _not_built(groups):
        return f"{', '.join(missed)} not built{ended}: run `make cluster-tools`"
    if absent := packages.missing():
        return f"{', '.join(absent)} not installed: run `make cluster-tools`"
    return ""


def out_of_reach() -> str:
    """Say what is missing here that no step can bring; empty where nothing is."""
    if sys.platform != "linux":
        return "Linux is needed"
    if os.geteuid() != 0:
        return "root is needed"
    if _not_built(building.GROUPS) and shutil.which("go") is None:
        return "Go 1.26 or newer is needed"
    absent = packages.missing()
    if absent and shutil.which("apt-get") is None:
        return f"there is no apt-get to install {', '.join(absent)}"
    return ""


def prepare(deadline: Deadline) -> list[str]:
    """Do what is not done yet; name what failed. Raises DeadlinePassedError and PackagesError."""
    if absent := packages.missing():
        say(f"==> installing Debian packages: {' '.join(absent)}")
        packages.install(absent)
    failed = [*building.build_all(building.GROUPS, deadline)]
    if importlib.util.find_spec(IMAGES) is not None:
        try:
            deadline.run([sys.executable, "-m", IMAGES], cwd=building.ROOT, shows=True)
        except subprocess.CalledProcessError:
            failed.append("images")
    # Clusters run without the rest, which a deadline may cut off.
    rest = [group for group in building.EVERY if group not in building.GROUPS]
    return [*failed, *building.build_all(rest, deadline)]


def _not_built(groups: Sequence[Group | Definitions]) -> list[str]:
    return [group.name for group in groups if building.built(group) is None]


def _cut_off() -> Path:
    """Where a build that ran out of time says so, for the tests that miss it."""
    return building.BUILT / "cut-off"


def _report_cut_off(minutes: float) -> None:
    building.BUILT.mkdir(exist_ok=True)
    _cut_off().write_text(f"the build was ended after {minutes:g} minutes\n")
    missed = ", ".join(_not_built(building.EVERY)) or "images"
    say(f"==> {SKIPPED}: their build was ended after {minutes:g} minutes, before {missed}")
    say(
        "    The tests that need these are skipped. What was built stays; `make cluster-tools` goes on with it."
    )


def main(arguments: list[str]) -> int:
    """Prepare this machine: 0 where that is done, or cannot be done here or in time; 1 where it failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.preparing")
    parser.add_argument("--deadline", type=float, metavar="MINUTES", help="end what has not ended by then")
    minutes = parser.parse_args(arguments).deadline
    began = time.monotonic()
    if reason := out_of_reach():
        building.main([] if minutes is None else [f"--deadline={minutes}"])
        say(f"==> {SKIPPED} ({reason}): the tests on a cluster are skipped")
        return 0
    _cut_off().unlink(missing_ok=True)
    try:
        failed = prepare(Deadline.in_minutes(minutes))
    except DeadlinePassedError:
        _report_cut_off(minutes)
        return 0
    except packages.PackagesError as error:
        say(f"==> {error}")
        failed = ["the Debian packages"]
    except KeyboardInterrupt:
        say("stopped; what was built stays")
        return 130
    if failed:
        say(f"==> {SKIPPED}: it failed for {', '.join(failed)}; what else was built stays")
        return 1
    say(f"==> the cluster tools are ready ({time.monotonic() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    heed_signals()
    sys.exit(main(sys.argv[1:]))

"""CPU seconds of the policy on a thousand rendered Jobs.

    python benchmarks/policy.py [--jobs 1000]

The Jobs are what the generator renders in shape `jobs`, each a trial of its own, with the batch's ConfigMaps.
"""

import argparse
import copy
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from sweepledger.formats import yaml  # noqa: E402 - the repository is on the path only now
from sweepledger.structs.run_config import Shape  # noqa: E402
from tests.render.judging import check_batch  # noqa: E402
from tests.sweeps import SETTINGS, a_batch, overlay_of, some_bases  # noqa: E402

BAR_SECONDS = 2.5
"""For the policy on a thousand Jobs."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1000)
    wanted = parser.parse_args().jobs
    name, rendered = many(wanted)
    assert check_batch(name, SETTINGS, rendered) == ()
    seconds = cpu(lambda: check_batch(name, SETTINGS, rendered))
    print(f"policy on {wanted} Jobs: {seconds:.2f} s CPU (bar {BAR_SECONDS} s for 1000)")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def many(wanted: int) -> tuple[str, tuple[dict[str, Any], ...]]:
    """Render a batch and repeat its first Job under other names; ConfigMaps as kustomize makes them."""
    made = overlay_of(a_batch(Shape.JOBS), some_bases(), SETTINGS)
    files = made.tree.files
    first = yaml.load_all(files["job.yaml"])[0]
    jobs = [trial(first, made.name, index) for index in range(wanted)]
    listed = yaml.load(files["kustomization.yaml"])["configMapGenerator"]
    maps = [config_map(entry, files, made.name) for entry in listed]
    return made.name, (*maps, *jobs)


def trial(first: dict[str, Any], batch: str, index: int) -> dict[str, Any]:
    """Make another trial of the first: its own name, number and folder."""
    job = copy.deepcopy(first)
    job["metadata"]["name"] = f"{batch}-t{index:011x}"
    template = job["spec"]["template"]
    for metadata in (job["metadata"], template["metadata"]):
        metadata["labels"]["sweepledger.dev/index"] = str(index)
    (container,) = template["spec"]["containers"]
    for variable in container["env"]:
        if variable["name"] == "SWEEP_INDEX":
            variable["value"] = str(index)
    for mount in container["volumeMounts"]:
        if "subPath" in mount and mount["name"] == "results":
            mount["subPath"] = f"{batch}/{index}"
    return job


def config_map(entry: dict[str, Any], files: Any, batch: str) -> dict[str, Any]:
    """Do what kustomize does with an entry of configMapGenerator."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"{batch}-launcher" if entry["name"] == "launcher" else entry["name"],
            "namespace": SETTINGS.trials.namespace,
        },
        "immutable": True,
        "data": {Path(file).name: files[file].decode() for file in entry["files"]},
    }


def cpu(work: Callable[[], object]) -> float:
    """Take the CPU seconds of one run."""
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()

"""What this machine has, and which pods ask for more."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from generator.engine.local.quantities import Resources
from generator.engine.local.workload import BatchSpec, JobSpec
from generator.problems import Problem

CODE = "resources-lacking"
MEBIBYTE = 1 << 20
NVIDIA_SECONDS = 20
"""The driver wakes up slowly on a machine without its persistence daemon."""


def capacity() -> Resources:
    """Find out how much of everything pods may have in all."""
    return Resources(1000 * len(cpus()), memory(), gpus())


def cpus() -> tuple[int, ...]:
    """List the CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def memory() -> int:
    """Bytes of memory that this machine has."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal:"))
    except (OSError, ValueError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def gpus() -> int:
    """Count the GPUs that the driver lists; 0 without a driver."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return 0
    try:
        done = subprocess.run(
            [tool, "-L"], capture_output=True, timeout=NVIDIA_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return 0 if done.returncode else count_gpus(done.stdout.decode(errors="replace"))


def count_gpus(listing: str) -> int:
    """Count the GPUs in what `nvidia-smi -L` prints: partitions of one are indented below it."""
    return sum(line.startswith("GPU ") for line in listing.splitlines())


def without_gpus(batch: BatchSpec) -> BatchSpec:
    """Give the batch as it runs where GPUs are done without: their limit stays, to tell what was meant."""
    return replace(batch, jobs=tuple(_without_gpus(job) for job in batch.jobs))


def _without_gpus(job: JobSpec) -> JobSpec:
    return replace(job, pod=replace(job.pod, requests=replace(job.pod.requests, gpus=0)))


def refuse(batches: Sequence[BatchSpec], has: Resources, *, without_gpu: bool = False) -> tuple[Problem, ...]:
    """Name every batch of which a single pod is more than the machine can hold."""
    return tuple(problem for batch in batches for problem in _lacking(batch, has, without_gpu=without_gpu))


def _lacking(batch: BatchSpec, has: Resources, *, without_gpu: bool) -> Iterator[Problem]:
    wanted = {job.pod.requests for job in batch.jobs}
    gpus = 0 if without_gpu else max(one.gpus for one in wanted)
    milli_cpus, memory = max(one.milli_cpus for one in wanted), max(one.memory for one in wanted)
    lacks = [
        text
        for text, more in (
            (f"{milli_cpus / 1000:g} CPUs (it has {has.milli_cpus / 1000:g})", milli_cpus > has.milli_cpus),
            (f"{memory // MEBIBYTE} MiB of memory (it has {has.memory // MEBIBYTE})", memory > has.memory),
            (f"{gpus} GPUs (it has {has.gpus})", gpus > has.gpus),
        )
        if more
    ]
    if not lacks:
        return
    only_gpus = gpus > has.gpus and len(lacks) == 1
    hint = (
        "sweep local --without-gpu runs the trials without, and their records say so" if only_gpus else None
    )
    message = f"each trial of {batch.name} asks for more than this machine has: {', '.join(lacks)}"
    yield Problem(f"overlays/active/{batch.name}", 0, 0, "resources", message, CODE, hint)

"""Capacity of this machine, and the batches that do not fit it."""

import os
import shutil
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sweepledger import process
from sweepledger.engine.local.local_batch import LocalBatch, ResourceAmounts
from sweepledger.problems import Problem
from sweepledger.process import LimitExceededError, Limits

PROBLEM_CODE = "resources-lacking"
MEBIBYTE = 1 << 20
MEMORY_INFO = Path("/proc/meminfo")
"""Only Linux has it; other systems know their number of pages."""
NVIDIA_SECONDS = 20
"""The driver starts slowly on a machine without its persistence daemon."""
NVIDIA_BYTES = 1 << 20


def capacity() -> ResourceAmounts:
    """Return the resources that all pods together may use."""
    return ResourceAmounts(1000 * len(cpus()), memory(), gpus())


def cpus(system: Any = os) -> tuple[int, ...]:
    """Return the CPUs that this process may use; all of the machine where the system cannot restrict it."""
    if hasattr(system, "sched_getaffinity"):
        return tuple(sorted(system.sched_getaffinity(0)))
    return tuple(range(system.cpu_count() or 1))


def can_pin_cpus(system: Any = os) -> bool:
    """Return whether a process can be restricted to some CPUs on this system."""
    return hasattr(system, "sched_setaffinity")


def memory(meminfo: Path = MEMORY_INFO) -> int:
    """Return the memory of this machine in bytes."""
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal:"))
    except (OSError, ValueError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def gpus() -> int:
    """Return the number of GPUs that the driver lists; 0 without a driver."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return 0
    try:
        listing = process.run([tool, "-L"], Limits(NVIDIA_SECONDS, NVIDIA_BYTES), env=os.environ)
    except (OSError, LimitExceededError):
        return 0
    return 0 if listing.code else count_gpus(listing.stdout.decode(errors="replace"))


def count_gpus(listing: str) -> int:
    """Return the number of GPUs in the output of `nvidia-smi -L`, which indents partitions of a GPU below it."""
    return sum(line.startswith("GPU ") for line in listing.splitlines())


def without_gpus(batch: LocalBatch) -> LocalBatch:
    """Return the batch with requests for no GPUs; the limits remain, so that records show the difference."""
    return replace(batch, requests=replace(batch.requests, gpus=0))


def with_parallelism(batch: LocalBatch, trials: int | None) -> LocalBatch:
    """Return the batch with this parallelism; None: unchanged. The machine's capacity is a separate limit."""
    if trials is None:
        return batch
    at_once = 1 if batch.pack is None else min(batch.pack.at_once, trials)
    return replace(_with_at_once(batch, at_once), parallelism=trials // at_once)


def fitted(batch: LocalBatch, has: ResourceAmounts) -> LocalBatch:
    """Return the batch with fewer trials at once in a pod if the machine is too small for the requested number."""
    most = 0 if batch.pack is None else batch.pack.at_once
    smaller = (_with_at_once(batch, at_once) for at_once in range(most, 0, -1))
    return next((each for each in smaller if each.requests.fits(has)), batch)


def _with_at_once(batch: LocalBatch, at_once: int) -> LocalBatch:
    """Return the batch with `at_once` trials at once in a pod, whose resources shrink accordingly."""
    if batch.pack is None:
        return batch
    requests, limits = (
        amounts.share(at_once, batch.pack.at_once) for amounts in (batch.requests, batch.limits)
    )
    return replace(batch, pack=replace(batch.pack, at_once=at_once), requests=requests, limits=limits)


def capacity_problems(batch: LocalBatch, has: ResourceAmounts) -> tuple[Problem, ...]:
    """Return a problem if a pod of a batch does not fit the machine."""
    milli_cpus, memory, gpus = batch.requests.milli_cpus, batch.requests.memory, batch.requests.gpus
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
        return ()
    hint = None
    if gpus > has.gpus and len(lacks) == 1:
        hint = "`sweep cluster local --without-gpu` runs the trials without GPUs and marks their records"
    message = f"each trial of {batch.name} requests more than this machine has: {', '.join(lacks)}"
    return (Problem(f"overlays/active/{batch.name}", 0, 0, "resources", message, PROBLEM_CODE, hint),)

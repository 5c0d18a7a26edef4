"""Capacity of this machine, and the batches that do not fit it."""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sweepledger import process
from sweepledger.engine.local.job_spec import BatchSpec, JobSpec, ResourceAmounts
from sweepledger.problems import Problem
from sweepledger.process import LimitExceededError, Limits
from sweepledger.structs.run_config import Pack, RunningState

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


def paused(batch: BatchSpec) -> BatchSpec:
    """Return the batch so that no further pod starts; those that run go on."""
    return replace(batch, jobs=tuple(replace(job, is_paused=True) for job in batch.jobs))


def without_gpus(batch: BatchSpec) -> BatchSpec:
    """Return the batch with requests for no GPUs; the limits remain, so that records show the difference."""
    return replace(batch, jobs=tuple(_without_gpus(job) for job in batch.jobs))


def _without_gpus(job: JobSpec) -> JobSpec:
    return replace(job, pod=replace(job.pod, requests=replace(job.pod.requests, gpus=0)))


def with_parallelism(batch: BatchSpec, trials: int | None) -> BatchSpec:
    """Return the batch with so many trials at once; None: unchanged. What fits the machine is another limit."""
    if trials is None:
        return batch
    return replace(batch, jobs=tuple(_with_parallelism(job, trials) for job in batch.jobs))


def running(batch: BatchSpec, state: RunningState) -> BatchSpec:
    """Return the batch as it runs now."""
    changed = batch if batch.jobs[0].has_own_row else with_parallelism(batch, state.parallelism)
    return replace(changed, jobs=tuple(replace(job, is_paused=state.paused) for job in changed.jobs))


def _with_parallelism(job: JobSpec, trials: int) -> JobSpec:
    if job.pack is None:
        return replace(job, parallelism=trials)
    at_once = min(job.pack.at_once, trials)
    return replace(_smaller(job, job.pack, at_once), parallelism=trials // at_once)


def fitted(batch: BatchSpec, has: ResourceAmounts) -> BatchSpec:
    """Return the batch with fewer trials at once in a pod, if the machine is too small for as many as it says."""
    return replace(batch, jobs=tuple(_fitted(job, has) for job in batch.jobs))


def _fitted(job: JobSpec, has: ResourceAmounts) -> JobSpec:
    if job.pack is None:
        return job
    smaller = (_smaller(job, job.pack, at_once) for at_once in range(job.pack.at_once, 0, -1))
    return next((each for each in smaller if each.pod.requests.fits(has)), job)


def _smaller(job: JobSpec, pack: Pack, at_once: int) -> JobSpec:
    """Return the Job with fewer trials at once in a pod, which needs that much less."""
    requests, limits = (
        amounts.share(at_once, pack.at_once) for amounts in (job.pod.requests, job.pod.limits)
    )
    return replace(
        job,
        pack=replace(pack, at_once=at_once),
        pod=replace(job.pod, requests=requests, limits=limits),
    )


def capacity_problems(
    batches: Sequence[BatchSpec], has: ResourceAmounts, *, without_gpu: bool = False
) -> tuple[Problem, ...]:
    """Return a problem for every batch with a pod that does not fit the machine."""
    return tuple(
        problem for batch in batches for problem in _batch_problems(batch, has, without_gpu=without_gpu)
    )


def _batch_problems(batch: BatchSpec, has: ResourceAmounts, *, without_gpu: bool) -> Iterator[Problem]:
    requests = {job.pod.requests for job in batch.jobs}
    gpus = 0 if without_gpu else max(amounts.gpus for amounts in requests)
    milli_cpus = max(amounts.milli_cpus for amounts in requests)
    memory = max(amounts.memory for amounts in requests)
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
        "`sweep cluster local --without-gpu` runs the trials without GPUs and marks their records"
        if only_gpus
        else None
    )
    message = f"each trial of {batch.name} requests more than this machine has: {', '.join(lacks)}"
    yield Problem(f"overlays/active/{batch.name}", 0, 0, "resources", message, PROBLEM_CODE, hint)

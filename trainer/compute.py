"""What computes: this process's device and precision, and the processes that train one network together.

torchrun and mpirun start those processes. Each takes its share of every batch, DistributedDataParallel
averages the gradients, and rank 0 writes for all.
"""

import ctypes
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from trainer.contract import BAD_SWEEP, Environment, Problem, TrialError
from trainer.hyperparameters import RunOptions

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3): how much free memory is kept, and from which size a block is never kept."""
RANKS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
)
"""The variables in which torchrun and Open MPI give a process its rank."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device and the arithmetic used on it."""

    device: torch.device
    precision: str
    """fp32, or bf16: products in 16 bits, sums and weights in 32."""
    threads: int

    @property
    def name(self) -> str:
        """The name of the device in the result."""
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else self.device.type

    @property
    def sync_interval(self) -> int:
        """Steps between two reads of the loss; each read makes a GPU wait until it has caught up."""
        return 16 if self.device.type == "cuda" else 1

    def arithmetic(self) -> AbstractContextManager[Any]:
        """Return a context in which torch computes in this precision."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.precision == "bf16")


def set_up_device(environment: Environment, options: RunOptions, *, local_rank: int = 0) -> Device:
    """Choose and set up the device and threads, and seed torch."""
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
        if environment.gpu_fraction < 1:
            # More than its share ends this trial, not those beside it.
            torch.cuda.set_per_process_memory_fraction(environment.gpu_fraction, device)
    _keep_memory()
    torch.set_num_threads(environment.threads)
    torch.manual_seed(environment.seed)
    if options.deterministic:
        _make_deterministic()
    else:
        torch.backends.cudnn.benchmark = True
    precision = _best_precision(device) if options.precision == "auto" else options.precision
    return Device(device, precision, environment.threads)


def _best_precision(device: torch.device) -> str:
    """Return bf16 if the device multiplies it natively; otherwise it would be slower than fp32."""
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "fp32"
    # torch 1.13 has neither function, and counts as unsupported.
    supported = [getattr(torch.cpu, f"_is_{name}_supported", None) for name in ("amx_tile", "avx512_bf16")]
    return "bf16" if any(is_supported() for is_supported in supported if is_supported) else "fp32"


def _keep_memory() -> None:
    """Let a step reuse the memory of the last one: returning and requesting it takes 10 % of the time."""
    with suppress(AttributeError, OSError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(MMAP_THRESHOLD, 2**30)
        mallopt(TRIM_THRESHOLD, 2**31 - 1)


def _make_deterministic() -> None:
    """Make the same seed on the same machine give the same bits; operations that cannot raise an error."""
    # cuBLAS reads it when CUDA starts; without it deterministic mode refuses matrix products.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # Equivalent to use_deterministic_algorithms(True), without loading torch's compiler (1.5 s).
    torch.set_deterministic_debug_mode("error")
    # That mode also fills uninitialized memory, to expose reads of it. There are none, and it takes a sixth
    # of the time.
    if hasattr(torch.utils, "deterministic"):  # since torch 2.2
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    # The result says fp32, but TF32 is the default for convolutions on recent GPUs.
    if hasattr(torch.backends.cudnn, "conv"):
        torch.backends.cudnn.conv.fp32_precision = "ieee"
        torch.backends.cuda.matmul.fp32_precision = "ieee"
    else:  # before torch 2.9
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False


@dataclass(frozen=True, slots=True)
class Group:
    """This process's rank among those that train together; a single process by default."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def is_writer(self) -> bool:
        """Whether this process writes output, result and checkpoints."""
        return self.rank == 0

    def wrap(self, model: nn.Module, device: torch.device) -> nn.Module:
        """Return a network whose gradients are averaged over all processes."""
        if self.size == 1:
            return model
        return DistributedDataParallel(model, device_ids=[device] if device.type == "cuda" else None)

    def sum(self, numbers: Tensor) -> Tensor:
        """Add up numbers over all processes, in place."""
        if self.size > 1:
            distributed.all_reduce(numbers)
        return numbers

    def align(self, model: nn.Module) -> None:
        """Give all processes the running means of rank 0, before each tests its share of the images."""
        if self.size > 1:
            for buffer in model.buffers():
                distributed.broadcast(buffer, 0)

    def broadcast(self, content: bytes | None) -> bytes | None:
        """Return what rank 0 has read: processes may see different versions of a file on a volume."""
        if self.size == 1:
            return content
        contents: list[bytes | None] = [content]
        distributed.broadcast_object_list(contents, 0)
        return contents[0]

    def leave(self) -> None:
        """Close the connections."""
        if self.size > 1:
            distributed.destroy_process_group()


def join_group(environ: Mapping[str, str], checkpoints: Path | None = None) -> Group:
    """Connect to the other processes, if any, at MASTER_ADDR or at a file in the checkpoint folder."""
    names = next((names for names in RANKS if environ.get(names[0]) and environ.get(names[1])), None)
    if names is None or environ[names[1]] == "1":
        return Group()
    rank, size, local_rank = (int(environ.get(name) or 0) for name in names)
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if environ.get("MASTER_ADDR"):
        os.environ.setdefault("MASTER_PORT", "29500")
        distributed.init_process_group(backend, rank=rank, world_size=size)
    elif checkpoints:
        # The name is unique to this start: processes would wait for ever at the file of an earlier one.
        rendezvous = checkpoints / f"meeting-{environ.get('PMIX_NAMESPACE', '')}"
        distributed.init_process_group(
            backend, init_method=f"file://{rendezvous}", rank=rank, world_size=size
        )
    else:
        message = f"must say where the {size} processes connect"
        hint = (
            "torchrun sets it; with mpirun add -x MASTER_ADDR, or -x SWEEP_CHECKPOINTS, a folder of all pods"
        )
        raise TrialError([Problem("MASTER_ADDR", message, BAD_SWEEP, hint)])
    return Group(rank, size, local_rank)

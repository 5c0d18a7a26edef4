"""The processes that train one network together: torchrun and mpirun start them, rank 0 speaks for all.

Each takes its share of every batch; the gradients are averaged by DistributedDataParallel.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from trainer.contract import BAD_SWEEP, Problem, TrialError

RANKS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
)
"""Where torchrun and Open MPI tell a process its place."""


@dataclass(frozen=True, slots=True)
class Group:
    """This process's place among them; alone by default."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def speaks(self) -> bool:
        """Tell whether this one writes what there is to write."""
        return self.rank == 0

    def wrapped(self, model: nn.Module, device: torch.device) -> nn.Module:
        """Let the gradients of all processes be averaged whenever they are computed."""
        if self.size == 1:
            return model
        return DistributedDataParallel(model, device_ids=[device] if device.type == "cuda" else None)

    def summed(self, numbers: Tensor) -> Tensor:
        """Add up numbers over all processes, in place."""
        if self.size > 1:
            distributed.all_reduce(numbers)
        return numbers

    def aligned(self, model: nn.Module) -> None:
        """Give all processes the running means of rank 0, before they test a share of the images each."""
        if self.size > 1:
            for buffer in model.buffers():
                distributed.broadcast(buffer, 0)

    def shared(self, content: bytes | None) -> bytes | None:
        """Give all processes what rank 0 has read: a volume may show them different ages of one file."""
        if self.size == 1:
            return content
        held: list[bytes | None] = [content]
        distributed.broadcast_object_list(held, 0)
        return held[0]

    def leave(self) -> None:
        """End the connections."""
        if self.size > 1:
            distributed.destroy_process_group()


def join(environ: Mapping[str, str], folder: Path | None = None) -> Group:
    """Meet the others, if there are any: at MASTER_ADDR, or else at a file in a folder that all share."""
    names = next((names for names in RANKS if environ.get(names[0]) and environ.get(names[1])), None)
    if names is None or environ[names[1]] == "1":
        return Group()
    rank, size, local = (int(environ.get(name) or 0) for name in names)
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if environ.get("MASTER_ADDR"):
        os.environ.setdefault("MASTER_PORT", "29500")
        distributed.init_process_group(backend, rank=rank, world_size=size)
    elif folder:
        # Its name is of this start alone: what an earlier one left there would never be a quorum.
        meeting_place = folder / f"meeting-{environ.get('PMIX_NAMESPACE', '')}"
        distributed.init_process_group(
            backend, init_method=f"file://{meeting_place}", rank=rank, world_size=size
        )
    else:
        message = f"must say where the {size} processes meet"
        hint = (
            "torchrun sets it; with mpirun add -x MASTER_ADDR, or -x SWEEP_CHECKPOINTS, a folder of all pods"
        )
        raise TrialError([Problem("MASTER_ADDR", message, BAD_SWEEP, hint)])
    return Group(rank, size, local)

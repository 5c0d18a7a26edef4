"""What computes: device, precision, threads, and how repeatable it all is."""

import ctypes
import os
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from trainer.contract import BAD_SWEEP, Problem, Surroundings, TrialError
from trainer.hyperparameters import Running

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Names of mallopt(3): how much free memory is kept, and from which size on a block is never kept."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A device and the arithmetic that it is used with."""

    device: torch.device
    precision: str
    """fp32, or bf16: products of 16 bits, sums and weights of 32."""
    threads: int

    @property
    def name(self) -> str:
        """Name the device for the result."""
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else self.device.type

    @property
    def patience(self) -> int:
        """Say after how many steps to look at them: a look makes a GPU wait until it has caught up."""
        return 16 if self.device.type == "cuda" else 1

    def arithmetic(self) -> AbstractContextManager[Any]:
        """Compute in this precision inside."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.precision == "bf16")

    def compiled(self, model: nn.Module, cache: Path | None) -> nn.Module:
        """Compile a network, with the work of earlier attempts where there is a folder for it."""
        if not hasattr(torch, "compile"):
            message = f"needs torch 2, got {torch.__version__}"
            raise TrialError([Problem("--compile", message, BAD_SWEEP)])
        if cache:
            os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache / "compiled"))
        # torch's stubs say what decorating a function gives
        return torch.compile(model)  # type: ignore[return-value]


def prepare(given: Surroundings, running: Running, local_rank: int) -> Machine:
    """Choose and set up what computes, and seed it."""
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    _keep_memory()
    torch.set_num_threads(given.threads)
    torch.manual_seed(given.seed)
    if running.deterministic:
        _make_repeatable()
    else:
        torch.backends.cudnn.benchmark = True
    precision = _best_precision(device) if running.precision == "auto" else running.precision
    return Machine(device, precision, given.threads)


def _best_precision(device: torch.device) -> str:
    """Ask for the instructions that multiply bf16; without them it would be slower than fp32."""
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "fp32"
    # torch 1.13 has no such question, and is answered for.
    able = [getattr(torch.cpu, f"_is_{name}_supported", None) for name in ("amx_tile", "avx512_bf16")]
    return "bf16" if any(ask() for ask in able if ask) else "fp32"


def _keep_memory() -> None:
    """Let a step use the memory of the last one: giving it back to ask anew takes a tenth of the time."""
    with suppress(AttributeError, OSError):  # the C library is another one
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(MMAP_THRESHOLD, 2**30)
        mallopt(TRIM_THRESHOLD, 2**31 - 1)


def _make_repeatable() -> None:
    """Same seed, same machine, same numbers to the last bit; what cannot be so raises an error."""
    # cuBLAS reads it when CUDA starts; without it deterministic mode refuses matrix products.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # The same as use_deterministic_algorithms(True), without loading torch's compiler (1.5 s).
    torch.set_deterministic_debug_mode("error")
    # It also fills what is made empty, to show who reads that: nothing here, at a sixth of the time.
    if hasattr(torch.utils, "deterministic"):  # since torch 2.2
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    # Full fp32, as the result says: TF32 is the default for convolutions on recent GPUs.
    if hasattr(torch.backends.cudnn, "conv"):
        torch.backends.cudnn.conv.fp32_precision = "ieee"
        torch.backends.cuda.matmul.fp32_precision = "ieee"
    else:  # before torch 2.9
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False

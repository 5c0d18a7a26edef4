"""One trial from hyperparameters to result document; makes torch repeatable first."""

import os
from collections.abc import Callable
from typing import Any

import torch

from trainer import result
from trainer.contract import BAD_HYPERPARAMETERS, OUT_OF_MEMORY, Problem, Surroundings, TrialError
from trainer.evaluate import evaluate
from trainer.hyperparameters import Hyperparameters
from trainer.images import Dataset
from trainer.model import small_cnn, tensors
from trainer.train import Epoch, train


def run(
    knobs: Hyperparameters,
    dataset: Dataset,
    given: Surroundings,
    report: Callable[[Epoch], None],
) -> dict[str, Any]:
    """Train and evaluate. Raises TrialError if the values do not fit the data or the machine."""
    if knobs.batch_size > dataset.train.count:
        message = f"must be at most {dataset.train.count} (all training images), got {knobs.batch_size}"
        raise TrialError([Problem("--batch_size", message, BAD_HYPERPARAMETERS)])
    make_repeatable(given)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        # Made on the CPU, so every device starts from the same weights.
        model = small_cnn(knobs.width).to(device)
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing in torch's stubs
        training = train(model, *tensors(dataset.train, device), knobs=knobs, seed=given.seed, report=report)
        evaluation = evaluate(model, *tensors(dataset.test, device))
    except (MemoryError, torch.cuda.OutOfMemoryError) as error:
        message = f"not enough memory for batch_size {knobs.batch_size} and width {knobs.width}"
        raise TrialError([Problem(str(device), message, OUT_OF_MEMORY)]) from error
    return result.document(result.metrics(training, evaluation), knobs, dataset, given, device)


def make_repeatable(given: Surroundings) -> None:
    """Same seed, same machine, same numbers to the last bit; what cannot be so raises an error."""
    # cuBLAS reads it when CUDA starts; without it deterministic mode refuses matrix products.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(given.threads)
    torch.manual_seed(given.seed)
    # The same as use_deterministic_algorithms(True), without loading torch's compiler (1.5 s).
    torch.set_deterministic_debug_mode("error")
    # Full fp32, as the result says: TF32 is the default for convolutions on recent GPUs.
    if hasattr(torch.backends.cudnn, "conv"):
        torch.backends.cudnn.conv.fp32_precision = "ieee"
        torch.backends.cuda.matmul.fp32_precision = "ieee"
    else:  # before torch 2.9
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False

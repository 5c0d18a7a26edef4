"""The one file a trial leaves: its metrics, and what they came from."""

import json
import math
import platform
from dataclasses import asdict
from typing import Any

import torch

from trainer.contract import Surroundings
from trainer.evaluate import Evaluation
from trainer.hyperparameters import Hyperparameters
from trainer.images import Dataset
from trainer.train import Training

PRECISION = "fp32"


def metrics(training: Training, evaluation: Evaluation) -> dict[str, float]:
    """Name the numbers. If training diverged, what was measured on the wreck is NaN as well."""
    diverged = not (math.isfinite(training.loss) and math.isfinite(evaluation.loss))
    return {
        "images_per_second": training.images / training.seconds,
        "test_accuracy": math.nan if diverged else evaluation.accuracy,
        "test_loss": math.nan if diverged else evaluation.loss,
        "train_loss": training.loss,
        "train_seconds": training.seconds,
    }


def document(
    measured: dict[str, float],
    knobs: Hyperparameters,
    dataset: Dataset,
    given: Surroundings,
    device: torch.device,
) -> dict[str, Any]:
    """Put the metrics beside everything that is needed to get them again."""
    return {
        "metrics": measured,
        "data": {
            "name": dataset.name,
            "digest": dataset.digest,
            "train": dataset.train.count,
            "test": dataset.test.count,
        },
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "hyperparameters": asdict(knobs),
        "precision": PRECISION,
        "seed": given.seed,
        "threads": given.threads,
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
    }


def text(content: dict[str, Any]) -> str:
    """Write the document as one line of JSON; only a metric of a diverged training is the literal NaN."""
    return json.dumps(content, sort_keys=True) + "\n"

"""What a trial leaves: a line of metrics after each epoch, and the document of what they came from."""

import json
import platform
import time
from dataclasses import asdict
from typing import Any

import torch

from trainer.contract import Surroundings
from trainer.images import Dataset
from trainer.progress import Epoch, metrics
from trainer.train import Training


def line(epochs: list[Epoch]) -> str:
    """Write the metrics after an epoch as a line of JSON, with its number as `step`."""
    return json.dumps({"step": epochs[-1].number, **metrics(epochs)})


def document(training: Training, dataset: Dataset, given: Surroundings) -> dict[str, Any]:
    """Put the metrics beside everything that is needed to get them again."""
    setting, history = training.setting, training.history
    return {
        "metrics": metrics(training.progress.epochs),
        "data": {
            "name": dataset.name,
            "digest": dataset.digest,
            "train": setting.epochs.pictures.count,
            "test": setting.test.count,
        },
        "data_digest": dataset.digest,
        "cpu_seconds": {"first_step": training.first_step_seconds, "all": time.process_time()},
        "device": setting.machine.name,
        "hyperparameters": asdict(setting.knobs.network),
        "network": setting.knobs.name,
        "precision": "+".join(history.precisions),
        # Numbers lie deeper: whoever reads lines takes one at the top for a metric.
        "running": {
            **asdict(setting.knobs.running),
            "processes": setting.group.size,
            "resumed": history.resumed,
            "seed": given.seed,
            "threads": given.threads,
        },
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "workload": setting.knobs.workload,
    }


def text(content: dict[str, Any]) -> str:
    """Write the document as one line of JSON; only a metric of a diverged training is the literal NaN."""
    return json.dumps(content, sort_keys=True) + "\n"

"""The results of a trial: a line of metrics after each epoch, and one document at the end."""

import json
import math
import platform
import time
from dataclasses import asdict
from typing import Any

import torch

from trainer.checkpoint import EpochMetrics
from trainer.train import Training


def metrics(epochs: list[EpochMetrics]) -> dict[str, float]:
    """Return the metrics after an epoch: of the training so far, and of the epoch's test if it had one.

    If training diverged, the test's metrics are NaN too.
    """
    last = epochs[-1]
    seconds = math.fsum(epoch.seconds for epoch in epochs)
    tested = (
        {}
        if last.test_accuracy is None
        else {"test_accuracy": last.test_accuracy, "test_loss": last.test_loss}
    )
    diverged = last.diverged or any(math.isnan(value) for value in tested.values() if value is not None)
    return {
        "images_per_second": sum(epoch.images for epoch in epochs) / seconds,
        **{name: math.nan if diverged else float(value or 0) for name, value in tested.items()},
        "train_loss": last.loss,
        "train_seconds": seconds,
    }


def line(epochs: list[EpochMetrics]) -> str:
    """Format the metrics after an epoch as a line of JSON, with its number as `step`."""
    return json.dumps({"step": epochs[-1].number, **metrics(epochs)})


def document(training: Training) -> dict[str, Any]:
    """Return the metrics together with everything that is needed to reproduce them."""
    setup, history = training.setup, training.history
    configuration, dataset, environment = setup.configuration, setup.dataset, setup.environment
    return {
        "metrics": metrics(training.progress.epochs),
        "data": {
            "name": dataset.name,
            "digest": dataset.digest,
            "train": training.epochs.images.count,
            "test": training.test.count,
        },
        "data_digest": dataset.digest,
        "cpu_seconds": {"first_step": training.first_step_seconds, "all": time.process_time()},
        "device": setup.device.name,
        "hyperparameters": asdict(configuration.network),
        "network": configuration.network.name,
        "precision": "+".join(history.precisions),
        # Nested, because readers of lines take a number at the top level for a metric.
        "running": {
            **asdict(configuration.options),
            "processes": setup.group.size,
            "resumed": history.resumed,
            "seed": environment.seed,
            "threads": environment.threads,
        },
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "workload": configuration.workload,
    }


def text(content: dict[str, Any]) -> str:
    """Format the document as one line of JSON; metrics of a diverged training are the literal NaN."""
    return json.dumps(content, sort_keys=True) + "\n"

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import nn

from trainer import result, trial
from trainer.contract import BAD_HYPERPARAMETERS, Surroundings, TrialError
from trainer.data import Dataset
from trainer.evaluate import Evaluation, evaluate
from trainer.hyperparameters import Hyperparameters
from trainer.schedule import learning_rate
from trainer.train import Descent, Epoch, Training

QUICK = Hyperparameters(learning_rate=0.05, batch_size=30, epochs=2, width=2)


def repeatable(metrics: dict[str, float]) -> dict[str, float]:
    return {name: metrics[name] for name in ("test_accuracy", "test_loss", "train_loss")}


def run(few: Dataset, knobs: Hyperparameters, seed: int = 0) -> tuple[dict[str, float], list[Epoch]]:
    epochs: list[Epoch] = []
    document = trial.run(knobs, few, Surroundings(seed=seed), epochs.append)
    return document["metrics"], epochs


def test_the_learning_rate_rises_in_a_line_and_falls_in_a_line() -> None:
    rates = [learning_rate(step, 100, peak=2.0, warmup=0.2) for step in range(100)]

    assert rates[0] == pytest.approx(2 * 0.005 / 0.2)
    assert max(rates) == pytest.approx(2, rel=0.03)
    assert rates[-1] == pytest.approx(2 * 0.005 / 0.8)
    assert rates.index(max(rates)) in (19, 20)
    assert all(a < b for a, b in pairwise(rates[:20]))
    assert all(a > b for a, b in pairwise(rates[20:]))


def test_without_warmup_the_learning_rate_only_falls() -> None:
    rates = [learning_rate(step, 10, peak=1.0, warmup=0.0) for step in range(10)]

    assert rates == sorted(rates, reverse=True)
    assert rates[0] == pytest.approx(0.95)


def test_a_descent_takes_the_steps_of_torchs_own_sgd() -> None:
    torch.manual_seed(0)
    mine, theirs = nn.Linear(4, 3), nn.Linear(4, 3)
    theirs.load_state_dict(mine.state_dict())
    knobs = Hyperparameters(learning_rate=0.3, momentum=0.8, weight_decay=0.01)
    descent = Descent(mine.parameters(), knobs, steps=5)
    optimizer = torch.optim.SGD(
        theirs.parameters(), lr=1, momentum=0.8, weight_decay=0.01, nesterov=True, foreach=False
    )

    for step in range(5):
        inputs = torch.randn(8, 4)
        descent.step(mine(inputs).square().mean())
        optimizer.param_groups[0]["lr"] = learning_rate(step, 5, peak=0.3, warmup=knobs.warmup)
        optimizer.zero_grad()
        theirs(inputs).square().mean().backward()
        optimizer.step()

    for ours, reference in zip(mine.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(ours, reference)


def test_every_epoch_sees_every_image_and_is_reported(few: Dataset) -> None:
    metrics, epochs = run(few, QUICK)

    assert [(epoch.number, epoch.images) for epoch in epochs] == [(1, 200), (2, 200)]
    assert metrics["train_loss"] == epochs[1].loss < epochs[0].loss
    assert metrics["train_seconds"] == pytest.approx(sum(epoch.seconds for epoch in epochs))
    assert metrics["images_per_second"] == pytest.approx(400 / metrics["train_seconds"])


def test_same_seed_same_numbers_and_another_seed_others(few: Dataset) -> None:
    first, _ = run(few, QUICK, seed=3)
    again, _ = run(few, QUICK, seed=3)
    other, _ = run(few, QUICK, seed=4)

    assert repeatable(first) == repeatable(again)
    assert first["test_loss"] != other["test_loss"]


@pytest.mark.parametrize(
    "change",
    [
        {"learning_rate": 0.06},
        {"batch_size": 31},
        {"epochs": 3},
        {"momentum": 0.8},
        {"weight_decay": 0.1},
        {"label_smoothing": 0.1},
        {"warmup": 0.5},
        {"width": 3},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_knob_changes_the_training(few: Dataset, change: dict[str, float]) -> None:
    base, _ = run(few, QUICK)

    changed, _ = run(few, replace(QUICK, **change))  # type: ignore[arg-type]

    assert changed["test_loss"] != base["test_loss"]


def test_a_training_that_diverges_ends_early_with_nan(few: Dataset) -> None:
    knobs = Hyperparameters(learning_rate=1e30, batch_size=30, epochs=50, width=2)

    metrics, epochs = run(few, knobs)

    assert sum(epoch.images for epoch in epochs) < 400
    assert math.isnan(epochs[-1].loss)
    assert all(math.isnan(value) for value in repeatable(metrics).values())
    assert math.isfinite(metrics["train_seconds"])


def test_a_wreck_found_only_at_the_end_has_no_accuracy_either() -> None:
    training = Training((Epoch(1, 10, 0.5, 0.9, 1.0),))

    metrics = result.metrics(training, Evaluation(accuracy=0.1, loss=math.inf))

    assert math.isnan(metrics["test_accuracy"])
    assert math.isnan(metrics["test_loss"])
    assert metrics["train_loss"] == 0.5


def test_a_batch_larger_than_the_training_set_is_a_bad_value(few: Dataset) -> None:
    with pytest.raises(TrialError) as caught:
        run(few, Hyperparameters(batch_size=201))

    assert str(caught.value) == "--batch_size: must be at most 200 (all training images), got 201"
    assert caught.value.exit_code == BAD_HYPERPARAMETERS


def test_evaluation_counts_all_images_whatever_the_passes() -> None:
    scores = torch.eye(10)[torch.arange(2500) % 10]
    right = torch.arange(2500) % 10
    labels = torch.where(torch.arange(2500) < 2000, right, (right + 1) % 10)

    found = evaluate(nn.Identity(), scores, labels)

    assert found.accuracy == 0.8
    assert found.loss == pytest.approx(math.log(math.e + 9) - 0.8)


def test_the_demos_best_values_reach_ninety_five_percent(mnist_5k: Dataset) -> None:
    metrics, _ = run(mnist_5k, Hyperparameters(learning_rate=0.1, batch_size=32, epochs=2))

    assert metrics["test_accuracy"] >= 0.95

import pytest
import torch

from trainer.data import Dataset, Images
from trainer.evaluate import evaluate
from trainer.hyperparameters import Hyperparameters
from trainer.model import small_cnn, tensors
from trainer.train import train

CPU = torch.device("cpu")


def test_digits_become_normalised_images_and_classes(few: Dataset) -> None:
    images, labels = tensors(few.train, CPU)

    assert images.shape == (200, 1, 28, 28)
    assert images.is_contiguous(memory_format=torch.channels_last)
    assert abs(images.mean().item()) < 0.05
    assert abs(images.std().item() - 1) < 0.05
    assert labels.tolist() == list(few.train.labels)


def test_black_and_white_have_the_values_of_the_constants() -> None:
    images, _ = tensors(Images(bytes(783) + b"\xff", b"\0", channels=1, side=28), CPU)

    assert images[0, 0, 0, 0].item() == pytest.approx(-0.1307 / 0.3081)
    assert images[0, 0, 27, 27].item() == pytest.approx((1 - 0.1307) / 0.3081)


@pytest.mark.parametrize("width", [1, 16])
def test_the_network_gives_a_score_for_every_class(width: int) -> None:
    assert small_cnn(width)(torch.zeros(3, 1, 28, 28)).shape == (3, 10)


def test_the_network_has_the_size_that_its_docstring_says() -> None:
    assert sum(parameter.numel() for parameter in small_cnn(16).parameters()) == 80_250


def test_one_batch_can_be_learnt_by_heart(few: Dataset) -> None:
    images, labels = tensors(few.train, CPU)
    batch, targets = images[::5], labels[::5]
    torch.manual_seed(0)
    model = small_cnn(8)
    knobs = Hyperparameters(learning_rate=0.05, batch_size=len(batch), epochs=30)

    training = train(model, batch, targets, knobs=knobs, seed=0, report=lambda _: None)

    assert training.loss < 0.01
    assert evaluate(model, batch, targets).accuracy == 1

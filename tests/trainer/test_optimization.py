import pytest
import torch
from torch import nn

from trainer.hyperparameters import Eidf, Network, Resnet9, Small
from trainer.schedule import learning_rate, optimizer


def test_the_resnets_rate_rises_to_epoch_five_and_is_zero_at_epoch_twenty_four() -> None:
    def rate(epoch: float) -> float:
        """Return the rate of the step that ends at an epoch, times the batch size, as in the example."""
        return 512 * learning_rate(Resnet9().recipe, round(epoch * 97) - 1, steps_per_epoch=97)

    assert rate(1 / 97) == pytest.approx(0.4 / 5 / 97)
    assert rate(2.5 + 0.5 / 97) == pytest.approx(0.4 * (2.5 + 0.5 / 97) / 5)
    assert rate(5) == pytest.approx(0.4)
    assert rate(14.5 + 0.5 / 97) == pytest.approx(0.4 * (9.5 - 0.5 / 97) / 19)
    assert rate(24) == 0


def test_the_eidf_networks_rate_shrinks_after_every_epoch() -> None:
    rates = [learning_rate(Eidf().recipe, step, steps_per_epoch=3) for step in range(9)]

    assert rates == pytest.approx([1, 1, 1, 0.7, 0.7, 0.7, 0.49, 0.49, 0.49])
    assert learning_rate(Eidf(step_size=2).recipe, 5, steps_per_epoch=3) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("network", "theirs"),
    [
        (
            Small(momentum=0.8, weight_decay=0.01),
            lambda weights: torch.optim.SGD(
                weights, lr=0.3, momentum=0.8, weight_decay=0.01, nesterov=True, foreach=False
            ),
        ),
        (
            Resnet9(momentum=0.9, weight_decay=0.001, batch_size=8),
            lambda weights: torch.optim.SGD(
                weights, lr=0.3, momentum=0.9, weight_decay=0.008, nesterov=True, foreach=False
            ),
        ),
        (
            Eidf(weight_decay=0.01),
            lambda weights: torch.optim.Adadelta(weights, lr=0.3, rho=0.9, eps=1e-6, weight_decay=0.01),
        ),
    ],
    ids=["small", "resnet9: decay times batch", "eidf"],
)
def test_an_optimizer_takes_the_steps_of_torchs_own(network: Network, theirs: object) -> None:
    torch.manual_seed(0)
    mine, reference = nn.Linear(4, 3), nn.Linear(4, 3)
    reference.load_state_dict(mine.state_dict())
    ours = optimizer(network.recipe.optimizer, mine.parameters())
    torchs = theirs(reference.parameters())  # type: ignore[operator]

    for _ in range(5):
        inputs = torch.randn(8, 4)
        ours.step(list(torch.autograd.grad(mine(inputs).square().mean(), list(mine.parameters()))), 0.3)
        torchs.zero_grad()
        reference(inputs).square().mean().backward()
        torchs.step()

    for parameter, expected in zip(mine.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(parameter, expected)

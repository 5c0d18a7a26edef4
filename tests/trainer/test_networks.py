import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.hyperparameters import Eidf, Resnet9, Small
from trainer.model import build


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_published_counts_are_met() -> None:
    assert count(build(Small(), 1)) == 80_250
    assert count(build(Eidf(), 1)) == 1_199_882
    assert count(build(Resnet9(), 3)) == 6_573_120


def conv_norm_relu(inputs: Tensor, weights: dict[str, Tensor], name: str) -> Tensor:
    filtered = functional.conv2d(inputs, weights[f"{name}.conv.weight"], padding=1)
    mean = filtered.mean((0, 2, 3), keepdim=True)
    variance = filtered.var((0, 2, 3), unbiased=False, keepdim=True)
    normal = (filtered - mean) / (variance + 1e-5).sqrt()
    factor, summand = (weights[f"{name}.norm.{each}"].view(1, -1, 1, 1) for each in ("weight", "bias"))
    return functional.relu(normal * factor + summand)


def example(inputs: Tensor, weights: dict[str, Tensor]) -> Tensor:
    """The ResNet-9 in the order of NVIDIA's example: convolution, normalization, ReLU, then pooling."""
    outputs = conv_norm_relu(inputs, weights, "prep")
    outputs = functional.max_pool2d(conv_norm_relu(outputs, weights, "layer1"), 2)
    change = conv_norm_relu(conv_norm_relu(outputs, weights, "residual1.first"), weights, "residual1.second")
    outputs = functional.max_pool2d(conv_norm_relu(outputs + change, weights, "layer2"), 2)
    outputs = functional.max_pool2d(conv_norm_relu(outputs, weights, "layer3"), 2)
    change = conv_norm_relu(conv_norm_relu(outputs, weights, "residual3.first"), weights, "residual3.second")
    flat = functional.max_pool2d(outputs + change, 4).flatten(1)
    return 0.125 * flat @ weights["linear.weight"].T


def test_the_resnet_gives_the_scores_and_the_gradients_of_the_example() -> None:
    torch.manual_seed(0)
    model, images = build(Resnet9(width=4), 3), torch.randn(6, 3, 32, 32)
    for name, parameter in model.named_parameters():
        if ".norm." in name:
            nn.init.normal_(parameter)
    weights: dict[str, Tensor] = dict(model.named_parameters())

    mine, theirs = model(images), example(images, weights)

    torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
    for ours, reference in zip(
        torch.autograd.grad(mine.square().sum(), list(weights.values())),
        torch.autograd.grad(theirs.square().sum(), list(weights.values())),
        strict=True,
    ):
        torch.testing.assert_close(ours, reference, rtol=1e-3, atol=1e-4)


def test_the_eidf_network_gives_the_scores_of_pytorchs_example() -> None:
    torch.manual_seed(0)
    model, images = build(Eidf(), 1).eval(), torch.randn(5, 1, 28, 28)
    first, second, hidden, last = (model[at] for at in (0, 2, 7, 10))

    outputs = functional.relu(second(functional.relu(first(images))))
    outputs = last(functional.relu(hidden(functional.max_pool2d(outputs, 2).flatten(1))))

    torch.testing.assert_close(functional.log_softmax(model(images), 1), functional.log_softmax(outputs, 1))
    assert [module.p for module in model if isinstance(module, nn.Dropout)] == [0.25, 0.5]

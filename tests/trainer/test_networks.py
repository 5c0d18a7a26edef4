import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.hyperparameters import Eidf, Network, Resnet9, Small
from trainer.model import build


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("network", "channels", "parameters"),
    [
        # 25·16 + 25·16·32 filters, 2·16 + 2·32 of normalization, 512·128 + 128 and 128·10 + 10 of full layers
        (Small(), 1, 400 + 12_800 + 32 + 64 + 65_664 + 1_290),
        # (9 + 1)·32, (9·32 + 1)·64, (9,216 + 1)·128, (128 + 1)·10
        (Eidf(), 1, 320 + 18_496 + 1_179_776 + 1_290),
        # 9·64·(3 + 128 + 2·256 + 512 + 2,048 + 2·4,096) filters, 2·64·(1 + 3·2 + 4 + 3·8) of norms, 512·10
        (Resnet9(), 3, 6_563_520 + 4_480 + 5_120),
        (Resnet9(batch_norm=False), 3, 6_563_520 + 5_120),
        (Resnet9(), 1, 6_563_520 - 9 * 64 * 2 + 4_480 + 5_120),
    ],
    ids=["small", "eidf", "resnet9", "resnet9 without normalization", "resnet9 for grey images"],
)
def test_a_network_has_as_many_parameters_as_a_manual_count_gives(
    network: Network, channels: int, parameters: int
) -> None:
    assert count(build(network, channels)) == parameters


def test_the_published_counts_are_met() -> None:
    assert count(build(Small(), 1)) == 80_250
    assert count(build(Eidf(), 1)) == 1_199_882
    assert count(build(Resnet9(), 3)) == 6_573_120


@pytest.mark.parametrize(
    "network", [Small(width=1), Small(), Eidf(width=1), Eidf(), Resnet9(width=1), Resnet9(width=8)], ids=str
)
def test_a_network_returns_a_score_for_every_class(network: Network) -> None:
    side = network.recipe.image_size

    assert build(network, 1)(torch.zeros(3, 1, side, side)).shape == (3, 10)


def test_the_resnet_has_the_shapes_of_the_example() -> None:
    shapes: dict[str, tuple[int, ...]] = {}
    model = build(Resnet9(), 3)
    for name, module in model.named_children():
        module.register_forward_hook(
            lambda _module, _inputs, output, name=name: shapes.update({name: tuple(output.shape[1:])})
        )

    model(torch.zeros(1, 3, 32, 32))

    assert shapes == {
        "prep": (64, 32, 32),
        "layer1": (128, 16, 16),
        "residual1": (128, 16, 16),
        "layer2": (256, 8, 8),
        "layer3": (512, 4, 4),
        "residual3": (512, 4, 4),
        "pool": (512, 1, 1),
        "flatten": (512,),
        "linear": (10,),
        "scale": (10,),
    }


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


def test_a_white_image_through_copying_filters_scores_what_a_manual_computation_gives() -> None:
    model = build(Resnet9(width=1, batch_norm=False), 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
            if parameter.dim() == 4:  # copy: each output is the mean of the inputs
                parameter[:, :, 1, 1] = 1 / parameter.shape[1]
        model.get_parameter("linear.weight").copy_(torch.arange(10.0).view(-1, 1).expand(10, 8) / 8)

    scores = model(torch.full((1, 1, 32, 32), 0.5))

    # Each of the two residual blocks doubles the 0.5; class c weighs it c times; the scale is an eighth.
    assert scores.tolist() == [[0.5 * 2 * 2 * c / 8 for c in range(10)]]
    loss = functional.cross_entropy(scores, torch.tensor([7]))
    assert loss.item() == pytest.approx(math.log(sum(math.exp(c / 4) for c in range(10))) - 7 / 4)


def test_the_eidf_network_gives_the_scores_of_pytorchs_example() -> None:
    torch.manual_seed(0)
    model, images = build(Eidf(), 1).eval(), torch.randn(5, 1, 28, 28)
    first, second, hidden, last = (model[at] for at in (0, 2, 7, 10))

    outputs = functional.relu(second(functional.relu(first(images))))
    outputs = last(functional.relu(hidden(functional.max_pool2d(outputs, 2).flatten(1))))

    torch.testing.assert_close(functional.log_softmax(model(images), 1), functional.log_softmax(outputs, 1))
    assert [module.p for module in model if isinstance(module, nn.Dropout)] == [0.25, 0.5]

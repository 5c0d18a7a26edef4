"""The five hyperparameters of NVIDIA's example, on a narrow residual network and some digits."""

import csv
import os

import torch
from digits import load, values
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, max_pool2d

WIDTH = 8
EPOCHS = 6
DECAY = 5e-4

torch.manual_seed(0)
torch.set_num_threads(1)
chosen = values()
batch_size, cutout = chosen["batch_size"], chosen["data_aug_cutout_size"]


def block(inputs: int, outputs: int) -> nn.Sequential:
    norm = nn.BatchNorm2d(outputs) if chosen["batch_norm"] == "on" else nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), norm, nn.ReLU())


class Network(nn.Module):
    """Two halvings, with a residual part between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = block(1, WIDTH), block(WIDTH, 2 * WIDTH)
        self.residual = nn.Sequential(block(2 * WIDTH, 2 * WIDTH), block(2 * WIDTH, 2 * WIDTH))
        self.last = nn.Linear(2 * WIDTH, 10, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Give logits, an eighth of what the last layer says."""
        half = max_pool2d(self.second(max_pool2d(self.first(images), 2)), 2)
        logits: Tensor = 0.125 * self.last((half + self.residual(half)).amax(dim=(2, 3)))
        return logits


(images, labels), (seen, known) = load(104)
network = Network()
optimizer = torch.optim.SGD(
    network.parameters(),
    lr=chosen["max_learning_rate"] / batch_size,
    momentum=chosen["momentum"],
    weight_decay=DECAY * batch_size,
    nesterov=True,
)
for _ in range(EPOCHS):
    for begin in range(0, len(images) - batch_size + 1, batch_size):  # the last partial batch is dropped
        part = images[begin : begin + batch_size].clone()
        part[:, :, 4 : 4 + cutout, 4 : 4 + cutout] = 0
        optimizer.zero_grad()
        cross_entropy(network(part), labels[begin : begin + batch_size], reduction="sum").backward()
        optimizer.step()
network.eval()
with torch.no_grad():
    accuracy = (network(seen).argmax(1) == known).double().mean().item()
with open(os.environ["SWEEP_RESULT"], "w", newline="") as log:  # noqa: PTH123 - as theirs
    csv.writer(log).writerows([("epoch", EPOCHS), ("lr", 0.0), ("test acc", accuracy)])

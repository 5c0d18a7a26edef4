"""Every knob of every training: names, units, defaults and limits. The only list of them.

A network has its hyperparameters; `Running` says how any of them is run, and changes no method.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from trainer.contract import Problem
from trainer.knobs import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    SHARE,
    WIDTH,
    Knob,
    declared,
    number,
    pairs,
    read,
    switch,
    word,
)


@dataclass(frozen=True, slots=True)
class Small:
    """The demo's CNN: two blocks of 5x5 filters, SGD under a rate that rises and falls in a line."""

    learning_rate: float = number(0.1, "per step", POSITIVE, "peak of the schedule")
    batch_size: int = number(64, "images", COUNT, "images a step; an epoch's last batch may be smaller")
    epochs: int = number(2, "epochs", COUNT, "passes over the training images")
    momentum: float = number(0.9, "share", SHARE, "of the last step's velocity that is kept (Nesterov)")
    weight_decay: float = number(0.0005, "per weight", NOT_NEGATIVE, "L2 penalty, added to the gradient")
    label_smoothing: float = number(0.0, "share", SHARE, "of the target spread over all classes")
    warmup: float = number(0.2, "share", SHARE, "of all steps in which the rate rises to its peak")
    width: int = number(16, "filters", WIDTH, "of the first convolution; the second has twice as many")


@dataclass(frozen=True, slots=True)
class Eidf:
    """PyTorch's MNIST example, as the EIDF guide sweeps it: 3x3 filters, dropout, Adadelta, rate in steps."""

    learning_rate: float = number(1.0, "per step", POSITIVE, "of the first epoch")
    batch_size: int = number(64, "images", COUNT, "images a step; an epoch's last batch may be smaller")
    epochs: int = number(14, "epochs", COUNT, "passes over the training images")
    gamma: float = number(0.7, "factor", PROBABILITY, "by which the rate shrinks from step to step of it")
    step_size: int = number(1, "epochs", COUNT, "that a step of the rate lasts")
    rho: float = number(0.9, "share", SHARE, "of its running means that Adadelta keeps a step")
    epsilon: float = number(1e-6, "per step", POSITIVE, "added to those means before their root is taken")
    weight_decay: float = number(0.0, "per weight", NOT_NEGATIVE, "L2 penalty, added to the gradient")
    dropout: float = number(0.25, "share", SHARE, "of the pooled pixels that a step leaves out")
    hidden_dropout: float = number(0.5, "share", SHARE, "of the hidden units that a step leaves out")
    width: int = number(32, "filters", WIDTH, "of the first convolution; the second has twice as many")
    hidden: int = number(128, "units", COUNT, "between the filters and the classes")


@dataclass(frozen=True, slots=True)
class Resnet9:
    """The ResNet-9 of NVIDIA's sweep: summed loss, Nesterov SGD, a rate that rises up to epoch 5 of 24.

    The loss is summed over the batch, so a step is as long as `max_learning_rate / batch_size` says, and the
    decay counts once an image.
    """

    max_learning_rate: float = number(0.4, "per step", POSITIVE, "peak of the schedule, for a mean loss")
    data_aug_cutout_size: int = number(8, "pixels", NOT_NEGATIVE, "edge of the square cut out; 0 cuts none")
    batch_size: int = number(512, "images", COUNT, "images a step; an epoch's last partial batch is dropped")
    momentum: float = number(0.9, "share", SHARE, "of the last step's velocity that is kept (Nesterov)")
    batch_norm: bool = switch("batch normalisation after each convolution", default=True)
    epochs: int = number(24, "epochs", COUNT, "passes over the training images")
    warmup: float = number(5 / 24, "share", SHARE, "of the epochs in which the rate rises: 5 of 24")
    weight_decay: float = number(0.0005, "per weight", NOT_NEGATIVE, "L2 penalty, times the batch size")
    label_smoothing: float = number(0.0, "share", SHARE, "of the target spread over all classes")
    width: int = number(64, "filters", WIDTH, "of the first convolution; the last have eight times as many")
    logit_scale: float = number(0.125, "factor", POSITIVE, "by which the scores are multiplied")
    crop_padding: int = number(4, "pixels", NOT_NEGATIVE, "by which images move at most, reflected at edges")
    flip: float = number(0.5, "probability", PROBABILITY, "that an epoch sees an image mirrored")


Network = Small | Eidf | Resnet9
NETWORKS: Mapping[str, type[Network]] = MappingProxyType({"small": Small, "eidf": Eidf, "resnet9": Resnet9})
WORKLOADS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "cifar10": ("resnet9",),
        "fashion-mnist": ("resnet9", "small", "eidf"),
        "mnist": ("small", "eidf", "resnet9"),
        "mnist-5k": ("small", "eidf", "resnet9"),
    }
)
"""The networks that take a workload's images; the first is trained where none is named."""
NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Running:
    """How a training is run: speed, repeatability, how much of the data, how often it is looked at."""

    precision: str = word(
        "auto", ("auto", "bf16", "fp32"), "of the arithmetic; auto is bf16 where the hardware has it"
    )
    deterministic: bool = switch("same seed, same machine, same bits", default=True)
    compile: bool = switch("compile the network first: for long trials on a GPU", default=False)
    train_images: int = number(0, "images", NOT_NEGATIVE, "to train with, evenly chosen; 0 is all")
    test_images: int = number(0, "images", NOT_NEGATIVE, "to test with, evenly chosen; 0 is all")
    test_every: int = number(1, "epochs", COUNT, "between tests; the last is always tested")
    checkpoint_every: float = number(
        60.0, "seconds", NOT_NEGATIVE, "between checkpoints, where there are any"
    )


@dataclass(frozen=True, slots=True)
class Knobs:
    """What the arguments say."""

    workload: str
    network: Network
    running: Running

    @property
    def name(self) -> str:
        """Give the name of the network."""
        return next(name for name, network in NETWORKS.items() if isinstance(self.network, network))


def knobs_of(workload: str, network: str) -> dict[str, Knob]:
    """List all knobs of a training by name: which network, those of the network, those of any run."""
    able = WORKLOADS[workload]
    which = Knob(NETWORK, str, able[0], "a word", "what is trained", among=able)
    return {NETWORK: which, **declared(NETWORKS[network]), **declared(Running)}


def parse(workload: str, arguments: Sequence[str]) -> Knobs:
    """Read the knobs of one of WORKLOADS. Raises TrialError with every problem of all arguments."""
    able = WORKLOADS[workload]
    # Which knobs there are depends on one of them; a wrong name is told with the rest.
    asked = (pair[1] for pair in pairs(arguments) if not isinstance(pair, Problem) and pair[0] == NETWORK)
    name = next((str(found) for found in asked if found in able), able[0])
    values = read(knobs_of(workload, name), arguments)
    values.pop(NETWORK, None)
    general = {known: values.pop(known) for known in declared(Running) if known in values}
    # `read` gives each its declared type
    return Knobs(workload, NETWORKS[name](**values), Running(**general))  # type: ignore[arg-type]

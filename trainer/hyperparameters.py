"""Every hyperparameter of every network, with unit, default and limits, and the recipe that they amount to.

A network's class declares its hyperparameters. Its `recipe` states as data how the network is trained, so
that no other module needs to know which network it trains. Knows no torch.
"""

import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, ClassVar, cast

from trainer.contract import BAD_HYPERPARAMETERS, BAD_SWEEP, Problem, TrialError

Value = float | bool | str

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""float() alone would also accept `1_0`, `nan` and digits of other scripts."""
LONGEST_TEXT = 40
"""Maximum length of a number, and of a quoted value in a message; repr of a float needs 24."""
SWITCH = {"on": True, "off": False, "true": True, "false": False}
"""Spellings of a switch, in any case: Python writes True, YAML true, NVIDIA's sweep 'on'."""


# How a hyperparameter is declared


@dataclass(frozen=True, slots=True)
class Rule:
    """A limit of a number, in words and as a test."""

    words: str
    allows: Callable[[float], bool]


POSITIVE = Rule("must be greater than 0 and finite", lambda value: 0 < value < math.inf)
NOT_NEGATIVE = Rule("must be at least 0 and finite", lambda value: 0 <= value < math.inf)
FRACTION = Rule("must be at least 0 and less than 1", lambda value: 0 <= value < 1)
PROBABILITY = Rule("must be from 0 to 1", lambda value: 0 <= value <= 1)
COUNT = Rule("must be at least 1 and finite", lambda value: 1 <= value < math.inf)
WIDTH = Rule("must be from 1 to 512", lambda value: 1 <= value <= 512)  # noqa: PLR2004 the words name it


@dataclass(frozen=True, slots=True)
class Hyperparameter:
    """One hyperparameter: its name, type, default, unit, meaning and limits."""

    name: str
    kind: Any
    """int, float, bool or str."""
    default: Value
    unit: str
    meaning: str
    rule: Rule | None = None
    """The limit of a number."""
    choices: tuple[str, ...] = ()
    """The allowed words."""

    @property
    def allowed(self) -> str:
        """Describe the allowed values."""
        if self.rule:
            return self.rule.words
        return f"must be {', '.join(self.choices)}" if self.choices else "must be on or off"


def number(default: float, unit: str, rule: Rule, meaning: str) -> Any:
    """Declare a field that holds a number; its annotation says whether it is an integer."""
    return field(default=default, metadata={"rule": rule, "unit": unit, "meaning": meaning})


def switch(meaning: str, *, default: bool) -> Any:
    """Declare a field that is on or off."""
    return field(default=default, metadata={"unit": "on or off", "meaning": meaning})


def word(default: str, choices: Sequence[str], meaning: str) -> Any:
    """Declare a field that is one of several words."""
    return field(default=default, metadata={"choices": tuple(choices), "unit": "a word", "meaning": meaning})


# What a network's training consists of


@dataclass(frozen=True, slots=True)
class Sgd:
    """SGD with Nesterov momentum and an L2 penalty."""

    momentum: float
    weight_decay: float


@dataclass(frozen=True, slots=True)
class Adadelta:
    """Adadelta with an L2 penalty."""

    rho: float
    epsilon: float
    weight_decay: float


@dataclass(frozen=True, slots=True)
class Triangle:
    """A learning rate that rises linearly to its peak and falls linearly to zero."""

    peak: float
    warmup: float
    """Fraction of all steps before the peak."""
    sampled_at: float
    """Where in a step the rate is taken: 0.5 in the middle, 1 at the end."""


@dataclass(frozen=True, slots=True)
class Staircase:
    """A learning rate that shrinks by a factor every few epochs."""

    initial: float
    factor: float
    epochs: int


@dataclass(frozen=True, slots=True)
class Augmentation:
    """How training images are changed at random."""

    crop_padding: int
    """By how many pixels a crop may be off the image, which is reflected at its edges."""
    cutout_size: int
    """Edge of the square that is cut out, in pixels; 0 cuts nothing."""
    flip: float
    """Probability that an image is mirrored."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a network is trained: everything in which networks differ besides their layers."""

    image_size: int
    """Edge of the images that the network takes, in pixels; smaller images get a black frame."""
    batch_size: int
    epochs: int
    optimizer: Sgd | Adadelta
    schedule: Triangle | Staircase
    label_smoothing: float = 0.0
    sums_loss: bool = False
    """Whether the loss of a batch is the sum over its images, not their mean."""
    drops_partial_batch: bool = False
    """Whether the last batch of an epoch is dropped if it is not full."""
    random_layers: bool = False
    """Whether the network itself draws random numbers, as dropout does."""
    augmentation: Augmentation | None = None


# The networks


@dataclass(frozen=True, slots=True)
class Small:
    """The demo's CNN: two blocks of 5x5 filters, SGD, a learning rate that rises and falls linearly."""

    name: ClassVar[str] = "small"

    learning_rate: float = number(0.1, "per step", POSITIVE, "peak of the schedule")
    batch_size: int = number(64, "images", COUNT, "images per step; an epoch's last batch may be smaller")
    epochs: int = number(2, "epochs", COUNT, "passes over the training images")
    momentum: float = number(0.9, "fraction", FRACTION, "velocity kept from step to step (Nesterov)")
    weight_decay: float = number(0.0005, "per weight", NOT_NEGATIVE, "L2 penalty, added to the gradient")
    label_smoothing: float = number(0.0, "fraction", FRACTION, "target that is spread over all classes")
    warmup: float = number(0.2, "fraction", FRACTION, "steps in which the rate rises to its peak")
    width: int = number(16, "filters", WIDTH, "size of the first convolution; the second has twice as many")

    @property
    def recipe(self) -> Recipe:
        """Return how the network is trained."""
        return Recipe(
            image_size=28,
            batch_size=self.batch_size,
            epochs=self.epochs,
            optimizer=Sgd(self.momentum, self.weight_decay),
            # Sampled in the middle, so that neither the first nor the last step is wasted on a rate of zero.
            schedule=Triangle(self.learning_rate, self.warmup, sampled_at=0.5),
            label_smoothing=self.label_smoothing,
        )


@dataclass(frozen=True, slots=True)
class Eidf:
    """PyTorch's MNIST example, as the EIDF guide sweeps it: 3x3 filters, dropout, Adadelta, step decay."""

    name: ClassVar[str] = "eidf"

    learning_rate: float = number(1.0, "per step", POSITIVE, "rate of the first epoch")
    batch_size: int = number(64, "images", COUNT, "images per step; an epoch's last batch may be smaller")
    epochs: int = number(14, "epochs", COUNT, "passes over the training images")
    gamma: float = number(0.7, "factor", PROBABILITY, "decay of the rate every step_size epochs")
    step_size: int = number(1, "epochs", COUNT, "epochs between two decays of the rate")
    rho: float = number(0.9, "fraction", FRACTION, "running means that Adadelta keeps per step")
    epsilon: float = number(1e-6, "per step", POSITIVE, "added to those means before taking the root")
    weight_decay: float = number(0.0, "per weight", NOT_NEGATIVE, "L2 penalty, added to the gradient")
    dropout: float = number(0.25, "fraction", FRACTION, "pooled pixels that a step leaves out")
    hidden_dropout: float = number(0.5, "fraction", FRACTION, "hidden units that a step leaves out")
    width: int = number(32, "filters", WIDTH, "size of the first convolution; the second has twice as many")
    hidden: int = number(128, "units", COUNT, "size of the layer between the filters and the classes")

    @property
    def recipe(self) -> Recipe:
        """Return how the network is trained."""
        return Recipe(
            image_size=28,
            batch_size=self.batch_size,
            epochs=self.epochs,
            optimizer=Adadelta(self.rho, self.epsilon, self.weight_decay),
            schedule=Staircase(self.learning_rate, self.gamma, self.step_size),
            random_layers=True,
        )


@dataclass(frozen=True, slots=True)
class Resnet9:
    """The ResNet-9 of NVIDIA's sweep: summed loss, Nesterov SGD, a rate that peaks at epoch 5 of 24.

    The loss is summed over the batch, so the rate is `max_learning_rate / batch_size`, and the weight decay
    is multiplied by the batch size.
    """

    name: ClassVar[str] = "resnet9"

    max_learning_rate: float = number(0.4, "per step", POSITIVE, "peak of the schedule, for a mean loss")
    data_aug_cutout_size: int = number(8, "pixels", NOT_NEGATIVE, "edge of the square cut out; 0 cuts none")
    batch_size: int = number(512, "images", COUNT, "images per step; a partial last batch is dropped")
    momentum: float = number(0.9, "fraction", FRACTION, "velocity kept from step to step (Nesterov)")
    batch_norm: bool = switch("batch normalization after each convolution", default=True)
    epochs: int = number(24, "epochs", COUNT, "passes over the training images")
    warmup: float = number(5 / 24, "fraction", FRACTION, "epochs in which the rate rises: 5 of 24")
    weight_decay: float = number(0.0005, "per weight", NOT_NEGATIVE, "L2 penalty, times the batch size")
    label_smoothing: float = number(0.0, "fraction", FRACTION, "target that is spread over all classes")
    width: int = number(
        64, "filters", WIDTH, "size of the first convolution; the last has eight times as many"
    )
    logit_scale: float = number(0.125, "factor", POSITIVE, "multiplies the scores")
    crop_padding: int = number(4, "pixels", NOT_NEGATIVE, "largest shift of an image, reflected at its edges")
    flip: float = number(0.5, "probability", PROBABILITY, "chance that an epoch mirrors an image")

    @property
    def recipe(self) -> Recipe:
        """Return how the network is trained."""
        return Recipe(
            image_size=32,
            batch_size=self.batch_size,
            epochs=self.epochs,
            optimizer=Sgd(self.momentum, self.weight_decay * self.batch_size),
            # Sampled at the end, as in the example: the last step has a rate of zero.
            schedule=Triangle(self.max_learning_rate / self.batch_size, self.warmup, sampled_at=1),
            label_smoothing=self.label_smoothing,
            sums_loss=True,
            drops_partial_batch=True,
            augmentation=Augmentation(self.crop_padding, self.data_aug_cutout_size, self.flip),
        )


Network = Small | Eidf | Resnet9
NETWORKS: Mapping[str, type[Network]] = MappingProxyType(
    {network.name: network for network in (Small, Eidf, Resnet9)}
)
WORKLOADS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "cifar10": ("resnet9",),
        "fashion-mnist": ("resnet9", "small", "eidf"),
        "mnist": ("small", "eidf", "resnet9"),
        "mnist-5k": ("small", "eidf", "resnet9"),
    }
)
"""The networks that accept a workload's images; the first one is the default."""
NETWORK = "network"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How any network is run: precision, determinism, amount of data, intervals. Not part of the method."""

    precision: str = word(
        "auto", ("auto", "bf16", "fp32"), "arithmetic; auto is bf16 where the hardware has it"
    )
    deterministic: bool = switch("same seed, same machine, same bits", default=True)
    train_images: int = number(0, "images", NOT_NEGATIVE, "images to train on, evenly chosen; 0 is all")
    test_images: int = number(0, "images", NOT_NEGATIVE, "images to test on, evenly chosen; 0 is all")
    test_every: int = number(1, "epochs", COUNT, "interval of tests; the last epoch is always tested")
    checkpoint_every: float = number(60.0, "seconds", NOT_NEGATIVE, "interval of checkpoints, if enabled")


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the arguments of a trial say."""

    workload: str
    network: Network
    options: RunOptions


# How arguments are read


def hyperparameters_of(workload: str, network: str) -> dict[str, Hyperparameter]:
    """Return all hyperparameters of a training by name: the network's choice, its own, the run options."""
    networks = WORKLOADS[workload]
    choice = Hyperparameter(NETWORK, str, networks[0], "a word", "network to train", choices=networks)
    return {NETWORK: choice, **_declared(NETWORKS[network]), **_declared(RunOptions)}


def parse(workload: str, arguments: Sequence[str]) -> Configuration:
    """Read the arguments for one of WORKLOADS. Raises TrialError with every problem."""
    networks = WORKLOADS[workload]
    # The network decides which hyperparameters exist; a wrong name is reported with the other problems.
    named = (pair[1] for pair in _pairs(arguments) if not isinstance(pair, Problem) and pair[0] == NETWORK)
    name = next((str(value) for value in named if value in networks), networks[0])
    values = _values(hyperparameters_of(workload, name), arguments)
    values.pop(NETWORK, None)
    options = {option: values.pop(option) for option in _declared(RunOptions) if option in values}
    # `_values` gives each its declared type
    return Configuration(workload, NETWORKS[name](**values), RunOptions(**options))  # type: ignore[arg-type]


def format_value(value: Value) -> str:
    """Format a value as it is typed on the command line."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def nearest(word: str, known: Sequence[str]) -> str | None:
    """Return the known word that is most similar, if one is similar."""
    return next(iter(difflib.get_close_matches(word, known, n=1)), None)


def _declared(owner: type[Any]) -> dict[str, Hyperparameter]:
    """Return the hyperparameters that a dataclass declares, in its order."""
    return {
        each.name: Hyperparameter(
            name=each.name, kind=each.type, default=cast("Value", each.default), **each.metadata
        )
        for each in fields(owner)
    }


def _values(known: Mapping[str, Hyperparameter], arguments: Sequence[str]) -> dict[str, Value]:
    """Read `--name=value`. Raises TrialError with every problem."""
    problems: list[Problem] = []
    values: dict[str, Value] = {}
    seen: set[str] = set()
    for pair in _pairs(arguments):
        if isinstance(pair, Problem):
            problems.append(pair)
            continue
        name, text = pair
        value = _repeated(name) if name in seen else _value(known, name, text)
        seen.add(name)
        if isinstance(value, Problem):
            problems.append(value)
        else:
            values[name] = value
    if problems:
        raise TrialError(problems)
    return values


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str | None] | Problem]:
    """Split arguments into names and values."""
    for argument in arguments:
        if argument.startswith("--"):
            name, equals, text = argument.removeprefix("--").partition("=")
            yield name, text if equals else None
        else:
            yield Problem(argument[:LONGEST_TEXT], "must have the form --name=value", BAD_SWEEP)


def _value(known: Mapping[str, Hyperparameter], name: str, text: str | None) -> Value | Problem:
    hyperparameter = known.get(name)
    if hyperparameter is None:
        return _unknown(known, name)
    if text is None:
        example = format_value(hyperparameter.default)
        return Problem(f"--{name}", f"must have a value, such as --{name}={example}", BAD_SWEEP)
    if hyperparameter.kind is bool and text.lower() in SWITCH:
        return SWITCH[text.lower()]
    if text in hyperparameter.choices:
        return text
    if hyperparameter.rule is None:
        return Problem(f"--{name}", f"{hyperparameter.allowed}, got {text[:LONGEST_TEXT]!r}", BAD_SWEEP)
    return _number(hyperparameter, hyperparameter.rule, text)


def _number(hyperparameter: Hyperparameter, rule: Rule, text: str) -> float | Problem:
    location, quoted = f"--{hyperparameter.name}", repr(text[:LONGEST_TEXT])
    if len(text) > LONGEST_TEXT or not NUMBER.fullmatch(text):
        return Problem(location, f"must be a number, got {quoted}", BAD_SWEEP)
    value = float(text)
    if hyperparameter.kind is int and math.isfinite(value):
        # A table of numbers does not distinguish 64 from 64.0, so both are integers here.
        if not value.is_integer():
            return Problem(location, f"must be a whole number, got {quoted}", BAD_SWEEP)
        value = int(value)
    if not rule.allows(value):
        return Problem(location, f"{rule.words}, got {quoted}", BAD_HYPERPARAMETERS)
    return value


def _unknown(known: Mapping[str, Hyperparameter], name: str) -> Problem:
    similar = nearest(name, tuple(known))
    hint = f"did you mean --{similar}?" if similar else f"known are {', '.join(sorted(known))}"
    return Problem(f"--{name}", "is not a hyperparameter of this trainer", BAD_SWEEP, hint)


def _repeated(name: str) -> Problem:
    return Problem(f"--{name}", "must be given only once", BAD_SWEEP)

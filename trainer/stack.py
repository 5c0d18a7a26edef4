"""A stack: networks of one shape, trained on the same batches as one model, one slice of each tensor per network.

Only what the optimizer and the schedule take may differ between them. Each network sees the images, starts
from the weights and drops the units that it has alone, so its numbers differ from those only by rounding.
"""

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer import hyperparameters
from trainer.batches import Epochs, ImageTensors, Pass, to_tensors
from trainer.checkpoint import EpochMetrics, History, Progress
from trainer.compute import Group, set_up_device
from trainer.contract import BAD_SWEEP, OUT_OF_MEMORY, Environment, Problem, TrialError
from trainer.evaluate import IMAGES_PER_PASS
from trainer.files import Dataset, Images
from trainer.hyperparameters import Configuration
from trainer.model import build
from trainer.schedule import learning_rate
from trainer.train import Setup, check

IMAGE_DIMENSIONS = 4
"""Of a batch of images: image, channel, row and column."""

Report = Callable[[int, list[EpochMetrics]], None]
"""Called after each epoch of each network, with its number in the stack and the metrics of all its epochs."""


@dataclass(slots=True)
class StackedTraining:
    """One network of a stack, as far as its result needs it."""

    setup: Setup
    epochs: Epochs
    test: ImageTensors
    history: History
    stacked: int
    """The number of networks in the stack."""
    progress: Progress = field(default_factory=Progress)
    """Its times are its share of the stack's."""
    first_step_seconds: float = 0.0


def train(
    configurations: Sequence[Configuration], dataset: Dataset, *, environment: Environment, report: Report
) -> list[StackedTraining]:
    """Train a stack to its last epoch, and return its networks in their order.

    Raises TrialError if the networks cannot share a stack, or do not fit the data or the machine.
    """
    first = configurations[0]
    check_equal(configurations)
    check(first, dataset, group=Group())
    if not hasattr(torch, "func"):
        raise TrialError([Problem("SWEEP_STACK", f"needs torch 2, got {torch.__version__}", BAD_SWEEP)])
    device = set_up_device(environment, first.options)
    setups = [Setup(each, dataset, environment, device, Group()) for each in configurations]
    try:
        stack = Stack(setups)
        stack.run(report)
    except (MemoryError, torch.cuda.OutOfMemoryError) as error:
        message = f"not enough memory for {len(setups)} networks with batch_size {first.network.batch_size}"
        raise TrialError([Problem(str(device.device), message, OUT_OF_MEMORY)]) from error
    return stack.members


def check_equal(configurations: Sequence[Configuration]) -> None:
    """Check that networks differ only in what a stack may. Raises TrialError with every problem."""
    first = configurations[0]
    problems = dict[str, Problem]()
    for each in configurations[1:]:
        pairs = [(first.options, each.options), (first.network, each.network)]
        if type(each.network) is not type(first.network):
            problems["network"] = _different("network", first.network.name, each.network.name)
            continue
        for own, other in pairs:
            for name in own.__slots__:
                values = getattr(own, name), getattr(other, name)
                if values[0] != values[1] and name not in first.network.stackable:
                    problems[name] = _different(name, *values)
    if first.options.compile:
        message = "must be off in a stack, which is compiled by nothing"
        problems["compile"] = Problem("--compile", message, BAD_SWEEP)
    if problems:
        raise TrialError(problems.values())


def _different(name: str, one: object, other: object) -> Problem:
    message = f"must be the same for all networks of a stack, got {one} and {other}"
    return Problem(f"--{name}", message, BAD_SWEEP, "leave it out of the parameters that the stack may vary")


class Stack:
    """Networks in training: the first dimension of every weight counts them."""

    def __init__(self, setups: Sequence[Setup]) -> None:
        setup = setups[0]
        self.count, self.device, self.options = len(setups), setup.device, setup.configuration.options
        self.recipe = setup.configuration.network.recipe
        self.recipes = [each.configuration.network.recipe for each in setups]
        # Equal seeds give equal weights, so one network is built and copied.
        model = build(setup.configuration.network, setup.dataset.train.channels)
        self.model = _with_equal_dropout(model).to(self.device.device)
        self.weights = {name: self._copies(each) for name, each in self.model.named_parameters()}
        self.buffers = {name: self._copies(each) for name, each in self.model.named_buffers()}
        for weight in self.weights.values():
            weight.requires_grad_()
        self.optimizer = optimizer(list(self.weights.values()), self.recipes)
        self.epochs = Epochs(
            self._tensors(setup, setup.dataset.train, self.options.train_images),
            self.recipe,
            setup.environment.seed,
        )
        self.test = self._tensors(setup, setup.dataset.test, self.options.test_images)
        history = History(precisions=(self.device.precision,))
        self.members = [StackedTraining(each, self.epochs, self.test, history, self.count) for each in setups]

    def run(self, report: Report) -> None:
        """Train to the last epoch. Ends early if no network's loss is finite any more."""
        last = self.recipe.epochs
        for number, images in zip(range(1, last + 1), self.epochs, strict=False):
            training = [each for each in self.members if len(each.progress.epochs) == number - 1]
            training = [each for each in training if not _has_diverged(each)]
            if not training:
                return
            self._train_epoch(images, number, training)
            is_due = number % self.options.test_every == 0 or number == last
            tests = self._evaluate() if is_due else [None] * self.count
            for place, (each, test) in enumerate(zip(self.members, tests, strict=True)):
                if any(each is one for one in training):
                    each.progress.close((math.nan, math.nan) if each.progress.diverged else test)
                    report(place, each.progress.epochs)

    def _train_epoch(self, images: Pass, number: int, training: Sequence[StackedTraining]) -> None:
        self.model.train()
        steps, started = self.epochs.steps, time.perf_counter()
        sums = torch.zeros(2, self.count, dtype=torch.float64, device=self.device.device)
        seen = 0
        for step in range(steps):
            sums += self._step(images, number, step)
            seen += self.epochs.size(step)
            for each in training:
                each.first_step_seconds = each.first_step_seconds or time.process_time()
            if (step + 1) % self.device.sync_interval and step + 1 != steps:
                continue
            seconds = (time.perf_counter() - started) / self.count
            for place, each in enumerate(self.members):
                if each.progress.diverged or not any(each is one for one in training):
                    continue
                loss, right = sums[:, place].tolist()
                each.progress.add(loss=loss, right=right, images=seen)
                each.progress.seconds, each.progress.step = seconds, step + 1
            sums.zero_()
            seen = 0
            if all(each.progress.diverged for each in training):
                return

    def _step(self, images: Pass, number: int, step: int) -> Tensor:
        """Take one step down the losses. Returns the sums of the loss and of the correct images, by network."""
        inputs, targets = images.batch(step)
        if self.recipe.random_layers:
            self._reseed(number, step)
        scores = self._scores(inputs)
        losses = functional.cross_entropy(
            scores.flatten(0, 1).float(),
            targets.repeat(self.count),
            label_smoothing=self.recipe.label_smoothing,
            reduction="none",
        ).view(self.count, -1)
        divisor = 1 if self.recipe.sums_loss else self.epochs.size(step)
        (losses.sum() / divisor).backward()  # type: ignore[no-untyped-call]
        completed = (number - 1) * self.epochs.steps + step
        rates = [learning_rate(each, completed, steps_per_epoch=self.epochs.steps) for each in self.recipes]
        gradients = [weight.grad for weight in self.weights.values()]
        self.optimizer.step([each for each in gradients if each is not None], rates)
        for weight in self.weights.values():
            weight.grad = None
        right = (scores.argmax(2) == targets).sum(1)
        return torch.stack([losses.detach().double().sum(1), right.double()])

    def _scores(self, inputs: Tensor) -> Tensor:
        """Return a score by network, image and class."""

        def scores(weights: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
            answer: Tensor = torch.func.functional_call(self.model, (weights, buffers), (inputs,))
            return answer

        with self.device.arithmetic():
            # Every network drops the units that it drops alone: they have one seed.
            every: Tensor = torch.func.vmap(scores, randomness="same")(self.weights, self.buffers)
        return every

    def _reseed(self, number: int, step: int) -> None:
        """Seed random layers as the training of one network does."""
        place = (self.epochs.seed, number - 1, step, 0)
        torch.manual_seed(random.Random(repr(place)).getrandbits(63))  # noqa: S311 not a secret

    @torch.no_grad()
    def _evaluate(self) -> list[tuple[float, float] | None]:
        """Return accuracy and loss of every network on the test images."""
        self.model.eval()
        sums = torch.zeros(2, self.count, dtype=torch.float64, device=self.device.device)
        every = torch.arange(self.test.count, device=self.device.device)
        for batch in torch.split(every, max(1, IMAGES_PER_PASS // self.count)):
            scores = self._scores(self.test.normalized(self.test.pixels[batch]))
            labels = self.test.labels[batch]
            losses = functional.cross_entropy(
                scores.flatten(0, 1).float(), labels.repeat(self.count), reduction="none"
            )
            sums[0] += losses.view(self.count, -1).double().sum(1)
            sums[1] += (scores.argmax(2) == labels).sum(1)
        return [
            (right / self.test.count, loss / self.test.count) if math.isfinite(loss) else (math.nan, math.nan)
            for loss, right in sums.T.tolist()
        ]

    def _copies(self, tensor: Tensor) -> Tensor:
        return tensor.detach().expand(self.count, *tensor.shape).clone()

    def _tensors(self, setup: Setup, images: Images, limit: int) -> ImageTensors:
        side, device = self.recipe.image_size, self.device.device
        return to_tensors(images, setup.configuration.workload, side=side, device=device, limit=limit)


def _has_diverged(training: StackedTraining) -> bool:
    return bool(training.progress.epochs) and training.progress.epochs[-1].diverged


class EqualDropout(nn.Module):
    """Dropout that draws for all networks of a stack what a network draws alone, on a processor.

    There it draws in the order of its input's memory, in which the channels of images come last.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.kept = 1 - probability

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the input without the dropped units, and with the others enlarged."""
        if not self.training:
            return inputs
        order = torch.channels_last if inputs.dim() == IMAGE_DIMENSIONS else torch.contiguous_format
        kept = torch.empty(inputs.shape, dtype=inputs.dtype, device=inputs.device, memory_format=order)
        return inputs * kept.bernoulli_(self.kept).div_(self.kept)


def _with_equal_dropout(model: nn.Sequential) -> nn.Sequential:
    for name, layer in model.named_children():
        if isinstance(layer, nn.Dropout):
            setattr(model, name, EqualDropout(layer.p))
    return model


# Optimizers whose settings differ from network to network


class StackedSgd:
    """`schedule.Sgd` with a momentum and a penalty for each network."""

    def __init__(self, parameters: Sequence[Tensor], settings: Sequence[hyperparameters.Sgd]) -> None:
        self.parameters = parameters
        self.velocities = [torch.zeros_like(parameter) for parameter in parameters]
        self.momentum, self.weight_decay = (
            _tensor([getattr(each, name) for each in settings], parameters[0])
            for name in ("momentum", "weight_decay")
        )

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], rates: Sequence[float]) -> None:
        """Take one step down the gradients."""
        rate = _tensor(rates, self.parameters[0])
        for parameter, gradient, velocity in zip(self.parameters, gradients, self.velocities, strict=True):
            momentum, decay = _like(self.momentum, parameter), _like(self.weight_decay, parameter)
            slope = torch.addcmul(gradient, parameter, decay)
            velocity.mul_(momentum).add_(slope)
            slope.addcmul_(velocity, momentum)
            parameter.addcmul_(slope, _like(rate, parameter), value=-1)


class StackedAdadelta:
    """`schedule.Adadelta` with settings for each network."""

    def __init__(self, parameters: Sequence[Tensor], settings: Sequence[hyperparameters.Adadelta]) -> None:
        self.parameters = parameters
        self.slopes = [torch.zeros_like(parameter) for parameter in parameters]
        self.moves = [torch.zeros_like(parameter) for parameter in parameters]
        self.rho, self.epsilon, self.weight_decay = (
            _tensor([getattr(each, name) for each in settings], parameters[0])
            for name in ("rho", "epsilon", "weight_decay")
        )

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], rates: Sequence[float]) -> None:
        """Take one step down the gradients."""
        rate = _tensor(rates, self.parameters[0])
        for parameter, gradient, slopes, moves in zip(
            self.parameters, gradients, self.slopes, self.moves, strict=True
        ):
            rho, epsilon = _like(self.rho, parameter), _like(self.epsilon, parameter)
            slope = torch.addcmul(gradient, parameter, _like(self.weight_decay, parameter))
            slopes.mul_(rho).add_(slope * slope * (1 - rho))
            move = slope * (moves.add(epsilon).div_(slopes.add(epsilon)).sqrt_())
            moves.mul_(rho).add_(move * move * (1 - rho))
            parameter.addcmul_(move, _like(rate, parameter), value=-1)


def optimizer(
    parameters: Sequence[Tensor], recipes: Sequence[hyperparameters.Recipe]
) -> StackedSgd | StackedAdadelta:
    """Return the optimizer of a stack."""
    settings = [recipe.optimizer for recipe in recipes]
    sgd = [each for each in settings if isinstance(each, hyperparameters.Sgd)]
    if sgd:
        return StackedSgd(parameters, sgd)
    return StackedAdadelta(
        parameters, [each for each in settings if isinstance(each, hyperparameters.Adadelta)]
    )


def _tensor(values: Sequence[float], like: Tensor) -> Tensor:
    return torch.tensor(values, dtype=like.dtype, device=like.device)


def _like(values: Tensor, parameter: Tensor) -> Tensor:
    """Give every network's value the dimensions of a parameter."""
    return values.view(-1, *([1] * (parameter.dim() - 1)))

"""The learning rate over the steps of a training, as pure functions. Steps are counted from 0."""

from typing import assert_never

from trainer.hyperparameters import Eidf, Network, Resnet9, Small


def learning_rate(knobs: Network, step: int, *, steps_an_epoch: int) -> float:
    """Give the rate of a step of a training."""
    steps = knobs.epochs * steps_an_epoch
    match knobs:
        case Small():
            return rise_and_fall(step, steps, peak=knobs.learning_rate, warmup=knobs.warmup)
        case Eidf():
            return staircase(step // steps_an_epoch, knobs)
        case Resnet9():
            # The loss is summed over the batch.
            peak = knobs.max_learning_rate / knobs.batch_size
            return piecewise_linear(step, steps, peak=peak, warmup=knobs.warmup)
        case _:
            assert_never(knobs)


def rise_and_fall(step: int, steps: int, *, peak: float, warmup: float) -> float:
    """Rise in a line to the peak over the share `warmup` of all steps, then fall in a line to zero.

    Taken at the middle of each step, so neither the first nor the last one is wasted on a rate of zero.
    """
    return _two_lines((step + 0.5) / steps, peak, warmup)


def piecewise_linear(step: int, steps: int, *, peak: float, warmup: float) -> float:
    """Rise and fall likewise, but taken at the end of each step, as the example does: the last is at zero."""
    return _two_lines((step + 1) / steps, peak, warmup)


def staircase(epoch: int, knobs: Eidf) -> float:
    """Shrink the rate by a factor every few epochs. Epochs are counted from 0."""
    return float(knobs.learning_rate * knobs.gamma ** (epoch // knobs.step_size))


def _two_lines(progress: float, peak: float, warmup: float) -> float:
    if progress < warmup:
        return peak * progress / warmup
    return peak * (1 - progress) / (1 - warmup)

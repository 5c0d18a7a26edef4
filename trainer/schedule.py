"""The learning rate over the steps of a training, as a pure function."""


def learning_rate(step: int, steps: int, *, peak: float, warmup: float) -> float:
    """Rise in a line to the peak over the share `warmup` of all steps, then fall in a line to zero.

    Taken at the middle of each step, so neither the first nor the last one is wasted on a rate of zero.
    """
    progress = (step + 0.5) / steps
    if progress < warmup:
        return peak * progress / warmup
    return peak * (1 - progress) / (1 - warmup)

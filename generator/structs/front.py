"""What no other beats in all metrics: instead of a best, where there are several of them."""

from collections.abc import Sequence

from generator.structs.sweep import Goal, Metric


def unbeaten(values: Sequence[tuple[float, ...]], metrics: Sequence[Metric]) -> tuple[int, ...]:
    """Give the places of those that no other beats, best in the first metric first, equals in their order."""
    turned = [_turned(one, metrics) for one in values]
    kept: list[int] = []
    for place in sorted(range(len(turned)), key=lambda at: tuple(-value for value in turned[at])):
        # In this order nothing that comes later can beat what came before.
        if not any(_beats(turned[other], turned[place]) for other in kept):
            kept.append(place)
    return tuple(kept)


def _turned(values: Sequence[float], metrics: Sequence[Metric]) -> tuple[float, ...]:
    """Turn values so that larger is better."""
    return tuple(
        value if metric.goal is Goal.MAXIMIZE else -value
        for value, metric in zip(values, metrics, strict=True)
    )


def _beats(left: Sequence[float], right: Sequence[float]) -> bool:
    return left != right and all(one >= other for one, other in zip(left, right, strict=True))

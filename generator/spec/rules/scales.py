"""Logarithmic scales: bounds that are values, and bounds that are exponents."""

import math
from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import shown
from generator.spec.draft import Draft
from generator.spec.ranges import exponential
from generator.spec.rules.bounds import FARTHEST_SIGMAS, is_space, number
from generator.spec.rules.forms import range_of
from generator.spec.rules.sections import sound, written

VALUES = frozenset({"log_uniform_values", "q_log_uniform_values", "inv_log_uniform_values"})
EXPONENTS = frozenset({"log_uniform", "q_log_uniform", "inv_log_uniform"})

FARTHEST_EXPONENT = 700
"""Of e; beyond 709 there is no float, and below -708 it loses digits."""
FARTHEST_POWER = 300
"""Of ten; there are floats to 308."""
FLATTEST_BETA = 0.001
STEEPEST_BETA = 100_000
"""Of a and b: SciPy's quantiles are good to ten digits between them, and to none at 10^8."""

UNLIKELY_EXPONENT = 30
"""e to this power is 10^13: whoever writes 32 to 512 means the numbers, not their exponents."""


def values(draft: Draft) -> Iterator[Problem]:
    """What has a logarithm is more than 0."""
    for leaf in written(draft):
        kind, keys = range_of(draft, leaf) or ("", {})
        for key in ("min", "max") if kind in VALUES else ():
            bound = number(keys, key)
            if bound is not None and bound <= 0:
                message = f"must be more than 0 on a logarithmic scale, got {shown(bound)}"
                hint = _log_hint(kind, bound)
                yield draft.problem((*leaf.path, key), message, code="log-range", hint=hint)


def exponents(draft: Draft) -> Iterator[Problem]:
    """An exponent must give a number, and one whose logarithm can be taken again."""
    for leaf in written(draft):
        kind, keys = range_of(draft, leaf) or ("", {})
        for key in ("min", "max") if kind in EXPONENTS else ():
            bound = number(keys, key)
            if bound is not None and abs(bound) > FARTHEST_EXPONENT:
                message = f"must be an exponent of e from -{FARTHEST_EXPONENT} to {FARTHEST_EXPONENT}, "
                hint = f"distribution: {kind}_values takes the values themselves"
                place = (*leaf.path, key)
                yield draft.problem(place, message + f"got {shown(bound)}", code="exponent-range", hint=hint)
        if is_space(draft, leaf, "logspace"):
            for index, bound in enumerate(sound(draft, leaf)["logspace"][:2]):
                if abs(bound) > FARTHEST_POWER:
                    message = f"must be an exponent of ten from -{FARTHEST_POWER} to {FARTHEST_POWER}, "
                    message += f"got {shown(bound)}"
                    place, hint = (*leaf.path, "logspace", index), "geomspace takes the values themselves"
                    yield draft.problem(place, message, code="exponent-range", hint=hint)


def exponents_apart(draft: Draft) -> Iterator[Problem]:
    """Two exponents give two numbers, once each is rounded to what a number can hold."""
    for leaf in written(draft):
        kind, keys = range_of(draft, leaf) or ("", {})
        low, high = number(keys, "min"), number(keys, "max")
        if kind not in EXPONENTS or low is None or high is None or not low < high:
            continue
        if max(abs(low), abs(high)) > FARTHEST_EXPONENT:
            continue
        signed = (-high, -low) if kind.startswith("inv") else (low, high)
        first, last = map(exponential, signed)
        if first >= last:
            message = (
                f"must be so far above min ({shown(low)}) that e to both powers differs, got {shown(high)}"
            )
            hint = f"both are {shown(first)}; distribution: {kind}_values takes the values themselves"
            yield draft.problem((*leaf.path, "max"), message, code="exponent-range", hint=hint)


def beta(draft: Draft) -> Iterator[Problem]:
    """The shape of a beta distribution is one whose quantiles can be computed."""
    for leaf in written(draft):
        kind, keys = range_of(draft, leaf) or ("", {})
        for key in ("a", "b") if kind in {"beta", "q_beta"} else ():
            shape = number(keys, key)
            if shape is not None and shape > 0 and not FLATTEST_BETA <= shape <= STEEPEST_BETA:
                message = f"must be from {FLATTEST_BETA} to {STEEPEST_BETA}, got {shown(shape)}"
                hint = "beyond, nearly all draws are one value"
                yield draft.problem((*leaf.path, key), message, code="out-of-range", hint=hint)


def log_normal(draft: Draft) -> Iterator[Problem]:
    """The exponents that a log-normal distribution draws are held to the same."""
    for leaf in written(draft):
        kind, keys = range_of(draft, leaf) or ("", {})
        if not kind.endswith("log_normal"):
            continue
        mu, sigma = number(keys, "mu") or 0, number(keys, "sigma") or 1
        if sigma > 0 and abs(mu) + FARTHEST_SIGMAS * sigma > FARTHEST_EXPONENT:
            message = "must be the mean and the spread of natural logarithms, with "
            message += f"|mu| + {FARTHEST_SIGMAS} * sigma at most {FARTHEST_EXPONENT}, "
            message += f"got mu {shown(mu)} and sigma {shown(sigma)}"
            yield draft.problem(leaf.path, message, code="exponent-range", at_key=True)


def likely_values(draft: Draft) -> Iterator[Problem]:
    """Exponents that look like values are likely to be meant as values."""
    for leaf in written(draft):
        kind, keys = range_of(draft, leaf) or ("", {})
        low, high = number(keys, "min"), number(keys, "max")
        if kind in EXPONENTS and low is not None and high is not None and _look_like_values(low, high):
            ends = (-high, -low) if kind.startswith("inv") else (low, high)
            first, last = (f"{math.exp(end):.6g}" for end in ends)
            message = (
                f"{shown(low)} and {shown(high)} are natural-log exponents: values from {first} to {last}"
            )
            hint = f"did you mean {kind}_values?"
            place = (*leaf.path, "distribution")
            yield draft.warning(place, message, code="exponent-bounds", hint=hint)
        if is_space(draft, leaf, "logspace"):
            start, stop = sorted(sound(draft, leaf)["logspace"][:2])
            if 0 < start < stop <= 1:
                message = f"{shown(start)} and {shown(stop)} are exponents of ten: values from "
                message += f"{10**start:.6g} to {10**stop:.6g}"
                hint = "did you mean geomspace?"
                place = (*leaf.path, "logspace")
                yield draft.warning(place, message, code="exponent-bounds", hint=hint)


def _look_like_values(low: float, high: float) -> bool:
    return (
        low < high <= FARTHEST_EXPONENT and low >= 0 and ((low > 0 and high <= 1) or high > UNLIKELY_EXPONENT)
    )


def _log_hint(kind: str, bound: float) -> str:
    if bound == 0:
        return "for example 1e-6"
    return f"exponents of e are the bounds of distribution: {kind.removesuffix('_values')}"

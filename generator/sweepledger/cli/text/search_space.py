"""A search space in words, a line each: what a person reads before looking at trials."""

from collections.abc import Iterator
from typing import assert_never

from generator.reader import shown
from generator.structs.adaptive import Search
from generator.structs.domain import (
    Beta,
    Choice,
    Constant,
    Domain,
    IntUniform,
    LogNormal,
    LogUniform,
    Normal,
    Quantized,
    Uniform,
)
from generator.structs.space import Parameter
from generator.structs.sweep import Block, Draw, Grid, Listing
from generator.structs.values import Value

FEW = 8
"""Values shown of a parameter that has more; the spec has all."""


def rows(block: Block) -> Iterator[tuple[str, str]]:
    """Give what a block searches: names, and what each may be; then what ties them together."""
    space = block.space
    for parameter in space.parameters:
        yield parameter.name, " ".join([in_words(parameter.domain), *_conditions(parameter)])
    if isinstance(block, Listing):
        yield ", ".join(block.names), f"{len(block.assignments)} assignments, as listed"
    if isinstance(block, Search) and (resource := block.resource):
        yield resource.parameter, f"{resource.minimum} … {resource.maximum}, the resource"
    for derived in space.derived:
        yield derived.name, f"= {derived.text}"
    for group in space.zips:
        yield "zip", ", ".join(group)
    for constraint in space.constraints:
        yield "constraint", constraint.text


def heading(block: Block) -> str:
    """Say how a block finds its assignments."""
    match block:
        case Grid(_, cap, None):
            return "grid" if cap is None else f"grid, at most {cap}"
        case Grid(_, cap, seed):
            return f"grid, shuffled by seed {seed}" + ("" if cap is None else f", the first {cap}")
        case Draw(_, _, seed, cap):
            return f"{block.method}, {cap} by seed {seed}"
        case Listing():
            return "list"
        case Search(method, _, seed, rounds):
            return f"{method}, rounds of {rounds.size} by seed {seed}"
        case _:
            assert_never(block)


def in_words(domain: Domain) -> str:  # noqa: PLR0911 - a sentence a kind
    """Say what a parameter may be."""
    match domain:
        case Constant(value):
            return _value(value)
        case Choice():
            return _choice(domain)
        case IntUniform(low, high):
            return f"{low} … {high}, integers"
        case Uniform(low, high):
            return f"{_value(low)} … {_value(high)}, uniform"
        case LogUniform(low, high):
            return f"{_value(low)} … {_value(high)}, log-uniform"
        case Normal():
            return _normal(domain)
        case LogNormal(mu, sigma):
            return f"log-normal, mu {_value(mu)}, sigma {_value(sigma)}"
        case Beta(a, b):
            return f"beta, a {_value(a)}, b {_value(b)}"
        case Quantized(of, q):
            return f"{in_words(of)}, by {_value(q)}"
        case _:
            assert_never(domain)


def _choice(choice: Choice) -> str:
    values = [_value(value) for value in choice.values[:FEW]]
    if choice.probabilities is not None:
        values = [
            f"{text} ({100 * share:.3g} %)" for text, share in zip(values, choice.probabilities, strict=False)
        ]
    more = [f"… ({len(choice.values)} values)"] if len(choice.values) > FEW else []
    return ", ".join([*values, *more])


def _normal(normal: Normal) -> str:
    text = f"normal, mu {_value(normal.mu)}, sigma {_value(normal.sigma)}"
    text += "" if normal.low is None else f", from {_value(normal.low)}"
    return text if normal.high is None else f"{text}, to {_value(normal.high)}"


def _conditions(parameter: Parameter) -> Iterator[str]:
    if parameter.when:
        wanted = (
            f"{condition.parameter} is {' or '.join(map(_value, condition.values))}"
            for condition in parameter.when
        )
        yield f"when {' and '.join(wanted)}"


def _value(value: Value) -> str:
    match value:
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case float() if value.is_integer():
            return f"{value:g}"
        case _:
            return shown(value)

"""How large the table of a sweep becomes, by bounds on its rows before any is made."""

from collections.abc import Iterable, Mapping
from itertools import chain

from generator.structs.domain import Choice, Constant
from generator.structs.expression import Expression, Listed, Literal, Name, children
from generator.structs.sweep import Block, Listing
from generator.structs.values import Value, canonical_json

MOST_CELLS = 2_000_000
"""Trials times columns: as many as a hundred thousand trials of twenty values."""

MOST_BYTES = 64 * 2**20
"""Of the table: more than all cells of numbers together, and less than Git hosts take as one file."""

NUMBER = 24
"""Bytes of the longest number."""
ITEM = 16
"""Bytes of memory that an item of a list takes at least, however short it is written."""


def weight(value: Value) -> int:
    """Count the bytes of a value in the table, or those that it takes in memory if these are more."""
    match value:
        case str():
            return len(canonical_json(value)) if not value.isascii() else len(value) + 2
        case list() | tuple():
            return max(len(canonical_json(value)), ITEM * len(value))
        case _:
            return NUMBER


def least_row(block: Block) -> int:
    """Count bytes that each assignment of a block has at least: those of what every one of them has."""
    space = block.space
    always = [parameter.domain for parameter in space.parameters if not parameter.when]
    listed = block.names if isinstance(block, Listing) else ()
    constants = [domain.value for domain in always if isinstance(domain, Constant)]
    if listed:
        return 0
    chosen = [min(map(weight, domain.values)) for domain in always if isinstance(domain, Choice)]
    return sum(chosen) + sum(map(weight, constants))


def largest_row(block: Block) -> int:
    """Bound the bytes of a block's assignments, of whose values each is the longest."""
    longest: dict[str, int] = {}
    for parameter in block.space.parameters:
        match parameter.domain:
            case Constant(value):
                longest[parameter.name] = weight(value)
            case Choice(values):
                longest[parameter.name] = max(map(weight, values))
            case _:
                longest[parameter.name] = NUMBER
    if isinstance(block, Listing):
        for name, value in chain.from_iterable(row.items() for row in block.assignments):
            longest[name] = max(longest.get(name, 0), weight(value))
    for derived in block.space.derived:
        longest[derived.name] = _longest(derived.expression, longest)
    return sum(longest.values())


def table(rows: Iterable[Mapping[str, Value]]) -> int:
    """Count the bytes of a table."""
    return sum(sum(map(weight, row.values())) for row in rows)


def _longest(expression: Expression, longest: Mapping[str, int]) -> int:
    """Bound the bytes of what an expression gives: none makes a text or a list longer than its parts."""
    match expression:
        case Literal(value):
            return weight(value)
        case Name(name):
            return longest[name]
        case Listed(items):
            return sum(ITEM + _longest(item, longest) for item in items)
        case _:
            return max(NUMBER, *(_longest(child, longest) for child in children(expression)))

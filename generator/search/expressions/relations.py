"""How two values of an expression compare: by kind first, so that 1 is no boolean and no text."""

import operator
from collections.abc import Callable

from generator.reader.shown import shown
from generator.search.expressions.arithmetic import NUMBERS, KindError
from generator.structs.expression import ComparisonOperator
from generator.structs.values import Value

Relation = Callable[[Value, Value], bool]

ORDERS: dict[ComparisonOperator, Callable[..., bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def relation(sign: ComparisonOperator) -> Relation:
    """Give what a comparison does; it raises KindError for values that it cannot compare."""
    match sign:
        case "==":
            return equal
        case "!=":
            return lambda left, right: not equal(left, right)
        case "in":
            return _holds
        case "not in":
            return lambda left, right: not _holds(left, right)
        case _:
            return _ordered(sign)


def equal(left: Value, right: Value) -> bool:
    """Tell whether two values are the same; values of different kinds never are."""
    if type(left) in NUMBERS:
        return type(right) in NUMBERS and left == right
    if isinstance(left, list | tuple):
        return isinstance(right, list | tuple) and len(left) == len(right) and all(map(equal, left, right))
    return type(left) is type(right) and left == right


def _holds(item: Value, whole: Value) -> bool:
    if isinstance(whole, list | tuple):
        return any(equal(item, value) for value in whole)
    if isinstance(item, str) and isinstance(whole, str):
        return item in whole
    raise KindError(f"in must look into a list, or for a text in a text, got {shown(item)} in {shown(whole)}")


def _ordered(sign: ComparisonOperator) -> Relation:
    order = ORDERS[sign]

    def compare(left: Value, right: Value) -> bool:
        if type(left) in NUMBERS and type(right) in NUMBERS:
            return order(left, right)
        if isinstance(left, str) and isinstance(right, str):
            return order(left, right)
        raise disorder(sign, left, right)

    return compare


def disorder(sign: str, left: Value, right: Value) -> KindError:
    """Say that two values have no order."""
    return KindError(f"{sign} must compare two numbers or two texts, got {shown(left)} {sign} {shown(right)}")

"""A search space as text: one line per parameter, then what relates parameters."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from sweepledger.cli.text.style import new_table
from sweepledger.reader import safe_repr
from sweepledger.structs.domain import Domain
from sweepledger.structs.search_block import AdaptiveSearch, ConfigurationList, Design, Rounds
from sweepledger.structs.space import Parameter
from sweepledger.structs.values import Value

MOST_VALUES = 8
"""Values of a parameter that are shown; the spec has all."""


def round_sizes_text(rounds: Rounds) -> str:
    """Return the size of rounds, and how many of them overlap."""
    return f"rounds of {rounds.size}" + (f", {rounds.ahead} at once" if rounds.ahead > 1 else "")


def search_space_table(design: Design) -> Table:
    """Return the search space, one parameter per line."""
    table = new_table("  parameter", "values")
    for name, text in parameter_rows(design):
        table.add_row(Text(f"  {name}"), Text(text))
    return table


def parameter_rows(design: Design) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a design with their domains, then zip groups and constraints."""
    space = design.space
    for parameter in space.parameters:
        yield parameter.name, " ".join([domain_text(parameter.domain), *_conditions(parameter)])
    if isinstance(design, ConfigurationList):
        yield ", ".join(design.names), f"{len(design.assignments)} configurations, as listed"
    if isinstance(design, AdaptiveSearch) and (resource := design.resource):
        yield resource.parameter, f"{resource.minimum} … {resource.maximum}, the resource"
    for derived in space.derived:
        yield derived.name, f"= {derived.text}"
    for group in space.zips:
        yield "zip", ", ".join(group)
    for constraint in space.constraints:
        yield "constraint", constraint.text


def domain_text(domain: Domain) -> str:
    """Return the possible values of a parameter."""
    return domain.text if not domain.listed else _listed_text(domain)


def _listed_text(domain: Domain) -> str:
    values = [_value_text(value) for value in domain.listed[:MOST_VALUES]]
    if domain.chances is not None:
        values = [
            f"{text} ({100 * share:.3g} %)" for text, share in zip(values, domain.chances, strict=False)
        ]
    more = [f"… ({len(domain.listed)} values)"] if len(domain.listed) > MOST_VALUES else []
    return ", ".join([*values, *more])


def _conditions(parameter: Parameter) -> Iterator[str]:
    if parameter.when:
        conditions = (
            f"{condition.parameter} is {' or '.join(map(_value_text, condition.values))}"
            for condition in parameter.when
        )
        yield f"when {' and '.join(conditions)}"


def _value_text(value: Value) -> str:
    match value:
        case list() | tuple():
            return f"[{', '.join(map(_value_text, value))}]"
        case float() if value.is_integer():
            return f"{value:g}"
        case _:
            return safe_repr(value)

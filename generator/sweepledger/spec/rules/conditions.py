"""Conditions, which make parameters exist only for certain values of others; constraints and derived values."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sweepledger.distributions import FORMS
from sweepledger.expressions.kinds import ANY, ValueType, ValueTypes, check_condition, check_types, type_of
from sweepledger.expressions.parser import ExpressionError, parse_expression, position_in
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr, truncate
from sweepledger.spec.draft import Draft, Leaf
from sweepledger.spec.rules.domains import quote
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.spec.sweep_builder import dependency_order
from sweepledger.structs.expression import Expression, names_in
from sweepledger.structs.methods import LIST
from sweepledger.structs.values import identity, is_number

FEW_VALUES = 8
"""Number of values that a hint lists at most."""


def parents(draft: Draft) -> Iterator[Problem]:
    """A condition names another parameter in full."""
    for place, name in _conditions(draft):
        if draft.has("derived", name):
            message = f"must be the name of a parameter, got the derived value {name!r}"
            hint = "conditions are evaluated before derived values; use the parameters it is computed from"
            yield draft.at_key(place, message, "unknown-parameter", hint)
        elif draft.is_whole and name not in draft.variables:
            ends = [leaf for leaf in draft.parameters if leaf.endswith(f".{name}")]
            whole = f"nested names are written in full: {ends[0]}" if len(ends) == 1 else None
            nearest = whole or did_you_mean(name, draft.variables)
            yield draft.wrong_key(place, "must be the name of a parameter", "unknown-parameter", nearest)


def condition_cycles(draft: Draft) -> Iterator[Problem]:
    """Conditions have no cycle: one of the parameters must exist without a condition."""
    needs = {
        leaf.name: {name: place for when in leaf.conditions for place, name in _keys(draft, when)}
        for leaf in draft.parameters.values()
    }
    for chain in dependency_order(needs)[1]:
        message = f"must not lead back to itself, got {' needs '.join(map(repr, chain))}"
        if chain[0] == chain[1]:
            message = f"must name another parameter, got {chain[0]!r} itself"
        hint = "one of them must exist without a condition"
        yield draft.at_key(needs[chain[0]][chain[1]], message, "dependency-cycle", hint)


def reachable(draft: Draft) -> Iterator[Problem]:
    """A condition requires values that its parent can have."""
    for place, name in _conditions(draft):
        items, values = draft.get(*place, kind=list), _values(draft, name)
        if (
            items
            and values is not None
            and not any(isinstance(item, list | dict) for item in items)
            and draft.is_sound(*place)
            and identity(items) in map(identity, values)
        ):
            message = f"must be a list of values that {name!r} can have, got one value that is a list"
            yield draft.problem(place, message, "when-unreachable", truncate(f"write {[items]!r}"))
            continue
        for at, value in _condition_values(draft, place):
            for hint in _unreachable(draft, name, value):
                message = f"must be a value that {name!r} can have, got {quote(value)}"
                yield draft.problem(at, message, "when-unreachable", hint)


def redundant(draft: Draft) -> Iterator[Problem]:
    """A condition that is always true has no effect."""
    for place, name in _conditions(draft):
        parent = draft.parameters.get(name)
        values = _own_values(parent) if parent else None
        if values is None or parent is None or parent.conditions or draft.method == LIST:
            continue
        if {*map(identity, values)} <= {identity(value) for _, value in _condition_values(draft, place)}:
            message = f"the condition is true for every value of {name!r}"
            hint = "delete it, or remove the values for which it should be false"
            yield draft.warning(place, message, "when-always", hint, at_key=True)


def _conditions(draft: Draft) -> Iterator[tuple[DocumentPath, str]]:
    """Yield the conditions: the path of each, and the parameter that it names."""
    for when in dict.fromkeys(when for leaf in draft.parameters.values() for when in leaf.conditions):
        yield from _keys(draft, when)


def _keys(draft: Draft, when: DocumentPath) -> Iterator[tuple[DocumentPath, str]]:
    places = (((*when, name), name) for name in draft.names(*when))
    yield from ((place, name) for place, name in places if place not in draft.document.unread)


def _condition_values(draft: Draft, place: DocumentPath) -> list[tuple[DocumentPath, Any]]:
    """Return the readable values that a condition names."""
    items = draft.get(*place, kind=list)
    places = [place] if items is None else [at for at, _ in draft.items(*place)]
    return [(at, draft.get(*at, kind=object)) for at in places if draft.is_sound(*at)]


def _unreachable(draft: Draft, name: str, value: Any) -> Iterator[str | None]:
    """Yield a hint if a parameter cannot have a value; nothing if it can, or if that is unknown."""
    values, leaf = _values(draft, name), draft.parameters.get(name)
    if values is not None:
        if identity(value) not in map(identity, values):
            listed = truncate(", ".join(map(quote, values[:FEW_VALUES])))
            is_text = all(isinstance(each, str) for each in (value, *values))
            few = f"values: {listed}" if len(values) <= FEW_VALUES else None
            yield did_you_mean(value, values) if is_text else few
        return
    if leaf is None or not leaf.distribution or not draft.is_whole:
        return
    form, low, high = FORMS[leaf.distribution], leaf.keys.get("min"), leaf.keys.get("max")
    if not (form.is_integer or "q" in form.keys or {"step", "count"} & leaf.keys.keys()):
        yield "a drawn number is never exactly equal to this value; add step or count, or use a constraint"
        return
    is_possible = is_number(value)
    if is_possible and form.is_linear_range and low is not None and high is not None:
        is_possible = low <= value <= high
        is_possible &= not form.is_integer or "count" in leaf.keys or float(value).is_integer()
    if not is_possible:
        yield f"it is a number from {safe_repr(low)} to {safe_repr(high)}"


def _values(draft: Draft, name: str) -> list[Any] | None:
    """Return the values of a parameter; None if it is not a list of values, or if some cannot be read."""
    leaf = draft.parameters.get(name)
    written = _own_values(leaf) if leaf else []
    listed = _listed_values(draft, name)
    if not draft.is_whole or name not in draft.variables or written is None or listed is None:
        return None
    return [*written, *listed]


def _own_values(leaf: Leaf) -> list[Any] | None:
    """Return the values of a parameter with a value or a list of values; None for others and unreadable ones."""
    values: list[Any] | None = [leaf.keys["value"]] if "value" in leaf.keys else leaf.keys.get("values")
    return values


def _listed_values(draft: Draft, name: str) -> list[Any] | None:
    """Return the values of a name in `assignments`, or in their file; None if some cannot be read."""
    places, rows = draft.listed.get(name, []), draft.table.rows if draft.table else ()
    if not all(draft.is_sound(*place) for place in places):
        return None
    return [
        *(draft.get(*place, kind=object) for place in places),
        *(row[name] for row in rows if name in row),
    ]


@dataclass(frozen=True, slots=True)
class WrittenExpression:
    """An expression as written, with its tree or its syntax error."""

    path: DocumentPath
    text: str
    tree: Expression | ExpressionError

    @property
    def names(self) -> list[str]:
        """The names that it mentions, each once."""
        names = () if isinstance(self.tree, ExpressionError) else names_in(self.tree)
        return list(dict.fromkeys(name.name for name in names))


def syntax(draft: Draft) -> Iterator[Problem]:
    """The text of an expression has valid syntax; a constraint mentions a parameter."""
    for text in _expressions(draft, "constraints", "derived"):
        if isinstance(text.tree, ExpressionError):
            message = f"{text.tree.message}{position_in(text.text, text.tree.offset)}"
            yield draft.problem(text.path, message, "expression-syntax", text.tree.hint)
        elif text.path[0] == "constraints" and not text.names:
            message = f"must mention a parameter, got {truncate(repr(text.text))}"
            hint = "it is always true or always false; text needs quotes, names do not"
            yield draft.problem(text.path, message, "expression-constant", hint)


def types(draft: Draft) -> Iterator[Problem]:
    """Names in expressions are known, and operands have suitable types."""
    texts = _expressions(draft, "constraints", "derived")
    known = _known_types(draft) if texts else {}
    for text in texts:
        if isinstance(text.tree, ExpressionError):
            continue
        # A search that is not whole may have every name that the text mentions.
        names = known if draft.is_whole else {**dict.fromkeys(text.names, ANY), **known}
        if text.path[0] == "constraints":
            findings = check_condition(text.text, text.tree, names)
        else:
            findings, _ = check_types(text.tree, names)
        for finding in findings:
            # Text without quotes looks like a name, wherever it stands.
            word = next((name.name for name in names_in(text.tree) if name.offset == finding.offset), None)
            texts_of = (draft.texts(*leaf.path) for leaf in draft.parameters.values())
            hint, unknown = finding.hint, finding.unknown
            if word not in {None, *draft.variables} and word in {
                each for found in texts_of for _, each in found
            }:
                hint = f"write text in quotes: '{word}'"
            elif unknown is not None:
                whole = [name for name in names if "-" in name and name.startswith(f"{unknown}-")]
                in_backticks = f"write a name with a hyphen in backticks: `{min(whole, default='')}`"
                hint = in_backticks if whole else did_you_mean(unknown, names)
            message = f"{finding.message}{position_in(text.text, finding.offset)}"
            code = "unknown-parameter" if finding.unknown else "expression-kind"
            yield draft.problem(text.path, message, code, hint)


def cycles(draft: Draft) -> Iterator[Problem]:
    """A derived value does not depend on itself."""
    texts = _derived(draft)
    for chain in dependency_order({name: text.names for name, text in texts.items()})[1]:
        message = (
            f"must not depend on itself: {chain[0]!r} needs {', which needs '.join(map(repr, chain[1:]))}"
        )
        if chain[0] == chain[1]:
            message = f"must be computed from other values, got {chain[0]!r} itself"
        yield draft.problem(texts[chain[0]].path, message, "dependency-cycle")


def _expressions(draft: Draft, *keys: str) -> list[WrittenExpression]:
    expressions = []
    for path, text in (item for key in keys for item in draft.texts(key)):
        tree: Expression | ExpressionError
        try:
            tree = parse_expression(text)
        except ExpressionError as error:
            tree = error
        expressions.append(WrittenExpression(path, text, tree))
    return expressions


def _derived(draft: Draft) -> dict[str, WrittenExpression]:
    return {str(text.path[-1]): text for text in _expressions(draft, "derived")}


def _known_types(draft: Draft) -> dict[str, ValueTypes]:
    """Return the possible types of each name of a search; all types if they are unknown."""
    known: dict[str, ValueTypes] = {}
    for name, leaf in draft.parameters.items():
        known[name] = frozenset({ValueType.NUMBER}) if leaf.keys.keys() - {"when"} else ANY
        if {"value", "values"} & leaf.written.keys():
            known[name] = _types(_own_values(leaf))
    for name in (*draft.listed, *(draft.table.names if draft.table else ())):
        known[name] = known.get(name, frozenset()) | _types(_listed_values(draft, name))
    texts = _derived(draft)
    known |= {name: ANY for name in draft.names("derived") if name not in texts}
    for name in dependency_order({name: text.names for name, text in texts.items()})[0]:
        tree = texts[name].tree
        if isinstance(tree, ExpressionError):
            known[name] = ANY
            continue
        findings, kinds = check_types(tree, {**dict.fromkeys(texts, ANY), **known})
        known[name] = ANY if findings else kinds
    return known


def _types(values: list[Any] | None) -> ValueTypes:
    """Return the types of values; all types if some cannot be read, or if there are none."""
    return frozenset(map(type_of, values)) if values else ANY

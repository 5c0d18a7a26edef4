"""Conditions, by which parameters exist only if others have certain values, constraints and derived values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sweepledger.distributions import FORMS
from sweepledger.expressions.kinds import ANY, ValueType, ValueTypes, check_condition, check_types, type_of
from sweepledger.expressions.parser import ExpressionError, parse_expression, position_in
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr, truncate
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.domains import distribution_of, is_sound_value, quote
from sweepledger.spec.sections import Leaf, Section, dependency_order, search_section, sound_keys
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs.expression import Expression, names_in
from sweepledger.structs.methods import LIST
from sweepledger.structs.values import identity

FEW_VALUES = 8
"""Number of values that a hint lists at most."""


def parents(draft: Draft) -> Iterator[Problem]:
    """A condition names another parameter in full."""
    section = search_section(draft)
    for place, name in _conditions(draft, section):
        if name in section.derived:
            message = f"must be the name of a parameter, got the derived value {name!r}"
            hint = "conditions are evaluated before derived values; use the parameters it is computed from"
            yield draft.problem(place, message, code="unknown-parameter", hint=hint, at_key=True)
        elif section.is_whole and name not in section.parameters:
            message = f"must be the name of a parameter, got {safe_repr(name)}"
            ends = [leaf for leaf in section.leaves if leaf.endswith(f".{name}")]
            whole = f"nested names are written in full: {ends[0]}" if len(ends) == 1 else None
            nearest = whole or did_you_mean(name, section.parameters)
            yield draft.problem(place, message, code="unknown-parameter", hint=nearest, at_key=True)


def condition_cycles(draft: Draft) -> Iterator[Problem]:
    """Conditions have no cycle: one of the parameters must exist without a condition."""
    section = search_section(draft)
    needs = {
        leaf.name: {name: place for when in leaf.conditions for place, name in _keys(draft, when)}
        for leaf in section.leaves.values()
    }
    for chain in find_cycles({name: list(parents) for name, parents in needs.items()}):
        place = needs[chain[0]][chain[1]]
        if len(chain) == 2:  # noqa: PLR2004 - the parameter and itself again
            message = f"must name another parameter, got {chain[0]!r} itself"
        else:
            message = f"must not lead back to itself, got {' needs '.join(map(repr, chain))}"
        hint = "one of them must exist without a condition"
        yield draft.problem(place, message, code="dependency-cycle", hint=hint, at_key=True)


def reachable(draft: Draft) -> Iterator[Problem]:
    """A condition requires values that its parent can have."""
    section = search_section(draft)
    for place, name in _conditions(draft, section):
        items, values = draft.get(*place, kind=list), _values(draft, section, name)
        is_flat = items is not None and not any(isinstance(item, list | dict) for item in items)
        if (
            is_flat
            and values is not None
            and is_sound_value(draft, place, items)
            and identity(items or ()) in {identity(each) for each in values}
        ):
            message = f"must be a list of values that {name!r} can have, got one value that is a list"
            written = truncate(f"write {[items]!r}")
            yield draft.problem(place, message, code="when-unreachable", hint=written)
            continue
        for at, value in _condition_values(draft, place):
            if is_sound_value(draft, at, value) and not _may_be(draft, section, name, value):
                message = f"must be a value that {name!r} can have, got {quote(value)}"
                hint = _values_hint(draft, section, name, value)
                yield draft.problem(at, message, code="when-unreachable", hint=hint)


def redundant(draft: Draft) -> Iterator[Problem]:
    """A condition that is always true has no effect."""
    section = search_section(draft)
    for place, name in _conditions(draft, section):
        parent = section.leaves.get(name)
        values = _own_values(draft, parent) if parent else None
        if values is None or parent is None or parent.conditions or section.method == LIST:
            continue
        wanted = {
            identity(value)
            for at, value in _condition_values(draft, place)
            if is_sound_value(draft, at, value)
        }
        if {identity(value) for value in values} <= wanted:
            message = f"the condition is true for every value of {name!r}"
            hint = "delete it, or remove the values for which it should be false"
            yield draft.warning(place, message, code="when-always", hint=hint, at_key=True)


def find_cycles(needs: dict[str, list[str]]) -> Iterator[list[str]]:
    """Yield cycles: chains of names that end where they began, each once."""
    done: set[str] = set()
    for start in needs:
        trail: list[str] = []
        steps = [iter([start])]
        while steps:
            name: str | None = next(steps[-1], None)
            if name is None:
                steps.pop()
                done |= {trail.pop()} if trail else set()
            elif name in trail:
                yield [*trail[trail.index(name) :], name]
            elif name in needs and name not in done:
                trail.append(name)
                steps.append(iter(needs[name]))


def _conditions(draft: Draft, section: Section) -> Iterator[tuple[DocumentPath, str]]:
    """Yield the conditions of a section: the path of each, and the parameter that it names."""
    for when in dict.fromkeys(when for leaf in section.leaves.values() for when in leaf.conditions):
        yield from _keys(draft, when)


def _keys(draft: Draft, when: DocumentPath) -> Iterator[tuple[DocumentPath, str]]:
    places = (((*when, name), name) for name in draft.names(*when))
    yield from ((place, name) for place, name in places if place not in draft.document.unread)


def _condition_values(draft: Draft, place: DocumentPath) -> list[tuple[DocumentPath, Any]]:
    if place in draft.broken:
        return []
    items = draft.get(*place, kind=list)
    return [(place, draft.get(*place, kind=object))] if items is None else list(draft.items(*place))


def _may_be(draft: Draft, section: Section, name: str, value: Any) -> bool:
    """Return whether a parameter can have a value; true if that is unknown."""
    values = _values(draft, section, name)
    if values is not None:
        return identity(value) in {identity(each) for each in values}
    kind, keys = _range(draft, section, name)
    if not kind or not section.is_whole:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float) or _is_drawn(kind, keys):
        return False
    low, high = keys.get("min"), keys.get("max")
    if not FORMS[kind].is_linear_range or low is None or high is None:
        return True
    is_one = not FORMS[kind].is_integer or "count" in keys or float(value).is_integer()
    return low <= value <= high and is_one


def _range(draft: Draft, section: Section, name: str) -> tuple[str, dict[str, Any]]:
    leaf = section.leaves.get(name)
    return (distribution_of(draft, leaf) if leaf else None) or ("", {})


def _is_drawn(kind: str, keys: dict[str, Any]) -> bool:
    form = FORMS.get(kind)
    return form is None or not (form.is_integer or "q" in form.keys or {"step", "count"} & keys.keys())


def _values(draft: Draft, section: Section, name: str) -> list[Any] | None:
    """Return the values of a parameter; None if it is not a list of values, or if some cannot be read."""
    leaf = section.leaves.get(name)
    written = _own_values(draft, leaf) if leaf else []
    listed = _at(draft, section.listed.get(name, []))
    if not section.is_whole or name not in section.parameters or written is None or listed is None:
        return None
    rows = section.table.rows if section.table else ()
    return [*written, *listed, *(row[name] for row in rows if name in row)]


def _own_values(draft: Draft, leaf: Leaf) -> list[Any] | None:
    if "value" in draft.names(*leaf.path):
        return _at(draft, [(*leaf.path, "value")])
    values = draft.get(*leaf.path, "values", kind=list)
    return None if values is None else _at(draft, [(*leaf.path, "values", n) for n in range(len(values))])


def _at(draft: Draft, places: list[DocumentPath]) -> list[Any] | None:
    """Return the values at paths; None if some cannot be read."""
    values = [draft.get(*place, kind=object) for place in places]
    pairs = zip(places, values, strict=True)
    is_whole = all(
        place not in draft.broken and is_sound_value(draft, place, value) for place, value in pairs
    )
    return values if is_whole else None


def _values_hint(draft: Draft, section: Section, name: str, value: Any) -> str | None:
    values = _values(draft, section, name)
    if values is None:
        kind, keys = _range(draft, section, name)
        if _is_drawn(kind, keys):
            return (
                "a drawn number is never exactly equal to this value; add step or count, or use a constraint"
            )
        return f"it is a number from {safe_repr(keys.get('min'))} to {safe_repr(keys.get('max'))}"
    texts = [each for each in values if isinstance(each, str)]
    if isinstance(value, str) and len(texts) == len(values):
        return did_you_mean(value, texts)
    written = ", ".join(quote(each) for each in values[:FEW_VALUES])
    return f"values: {truncate(written)}" if len(values) <= FEW_VALUES else None


NUMBER = frozenset({ValueType.NUMBER})


@dataclass(frozen=True, slots=True)
class WrittenExpression:
    """An expression as written, with its tree or its syntax error."""

    path: DocumentPath
    text: str
    tree: Expression | ExpressionError

    @property
    def names(self) -> list[str]:
        """The names that it mentions, each once."""
        return (
            []
            if isinstance(self.tree, ExpressionError)
            else list(dict.fromkeys(name.name for name in names_in(self.tree)))
        )


def syntax(draft: Draft) -> Iterator[Problem]:
    """The text of an expression has valid syntax."""
    for text in (*_constraints(draft), *_derived(draft).values()):
        if isinstance(text.tree, ExpressionError):
            message = f"{text.tree.message}{position_in(text.text, text.tree.offset)}"
            yield draft.problem(text.path, message, code="expression-syntax", hint=text.tree.hint)


def types(draft: Draft) -> Iterator[Problem]:
    """Names in expressions are known, and operands have suitable types."""
    section = search_section(draft)
    texts = [*_constraints(draft), *_derived(draft).values()]
    known = _known_types(draft, section) if texts else {}
    for text in texts:
        if isinstance(text.tree, ExpressionError):
            continue
        # A section that is not whole may have every name that the text mentions.
        names = known if section.is_whole else {**dict.fromkeys(text.names, ANY), **known}
        if "constraints" in text.path:
            findings = check_condition(text.text, text.tree, names)
        else:
            findings, _ = check_types(text.tree, names)
        for finding in findings:
            # Text without quotes looks like a name, wherever it stands.
            word = next((name.name for name in names_in(text.tree) if name.offset == finding.offset), None)
            yield draft.problem(
                text.path,
                f"{finding.message}{position_in(text.text, finding.offset)}",
                code="unknown-parameter" if finding.unknown else "expression-kind",
                hint=_quotes_hint(draft, section, word)
                or (finding.hint if finding.unknown is None else _name_hint(finding.unknown, names)),
            )


def constants(draft: Draft) -> Iterator[Problem]:
    """A constraint mentions a parameter; otherwise it has the same value for every trial."""
    for text in _constraints(draft):
        if not isinstance(text.tree, ExpressionError) and not text.names:
            message = f"must mention a parameter, got {truncate(repr(text.text))}"
            hint = "it is always true or always false; text needs quotes, names do not"
            yield draft.problem(text.path, message, code="expression-constant", hint=hint)


def cycles(draft: Draft) -> Iterator[Problem]:
    """A derived value does not depend on itself."""
    texts = _derived(draft)
    for chain in find_cycles({name: text.names for name, text in texts.items()}):
        if len(chain) == 2:  # noqa: PLR2004 - the value and itself again
            message = f"must be computed from other values, got {chain[0]!r} itself"
        else:
            message = f"must not depend on itself, got {' needs '.join(map(repr, chain))}"
        yield draft.problem(texts[chain[0]].path, message, code="dependency-cycle")


def _constraints(draft: Draft) -> list[WrittenExpression]:
    places = draft.items("constraints")
    return [_text(place, text) for place, text in places if isinstance(text, str)]


def _derived(draft: Draft) -> dict[str, WrittenExpression]:
    places = [(name, ("derived", name)) for name in draft.names("derived")]
    texts = [(name, place, draft.get(*place, kind=str)) for name, place in places]
    return {name: _text(place, text) for name, place, text in texts if text is not None}


def _text(path: DocumentPath, text: str) -> WrittenExpression:
    try:
        return WrittenExpression(path, text, parse_expression(text))
    except ExpressionError as error:
        return WrittenExpression(path, text, error)


def _known_types(draft: Draft, section: Section) -> dict[str, ValueTypes]:
    """Return the possible types of each name of a section; all types if they are unknown."""
    known = {name: _parameter_types(draft, leaf) for name, leaf in section.leaves.items()}
    for name, places in section.listed.items():
        listed = frozenset().union(*(_types_at(draft, place) for place in places))
        known[name] = known.get(name, frozenset()) | listed
    for row in section.table.rows if section.table else ():
        for name, value in row.items():
            known[name] = known.get(name, frozenset()) | {type_of(value)}
    texts = _derived(draft)
    known |= {name: ANY for name in section.derived if name not in texts}
    for name in dependency_order({name: text.names for name, text in texts.items()}):
        tree = texts[name].tree
        if isinstance(tree, ExpressionError):
            known[name] = ANY
            continue
        findings, kinds = check_types(tree, {**dict.fromkeys(texts, ANY), **known})
        known[name] = ANY if findings else kinds
    return known


def _parameter_types(draft: Draft, leaf: Leaf) -> ValueTypes:
    keys = sound_keys(draft, leaf)
    if "value" in keys:
        return _types_at(draft, (*leaf.path, "value"))
    if "values" in keys:
        found = [_types_at(draft, (*leaf.path, "values", index)) for index in range(len(keys["values"]))]
        return frozenset().union(*found) or ANY
    return NUMBER if keys.keys() - {"when"} else ANY


def _types_at(draft: Draft, place: DocumentPath) -> ValueTypes:
    value: Any = draft.get(*place, kind=object)
    return (
        ANY
        if place in draft.broken or not is_sound_value(draft, place, value)
        else frozenset({type_of(value)})
    )


def _quotes_hint(draft: Draft, section: Section, word: str | None) -> str | None:
    """Return a hint for a name that is the text of a parameter's value without quotes."""
    places = (found for leaf in section.leaves.values() for found in draft.texts(*leaf.path))
    if word is None or word in section.parameters or word not in {found for _, found in places}:
        return None
    return f"write text in quotes: '{word}'"


def _name_hint(found: str, known: Mapping[str, ValueTypes]) -> str | None:
    if whole := [name for name in known if "-" in name and name.startswith(f"{found}-")]:
        return f"write a name with a hyphen in backticks: `{min(whole)}`"
    return did_you_mean(found, known)

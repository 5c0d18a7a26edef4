"""Constraints and derived values: their syntax, names, types and cycles."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sweepledger.expressions.kinds import ANY, ValueType, ValueTypes, check_condition, check_types, type_of
from sweepledger.expressions.parser import ExpressionError, parse_expression, position_in
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, truncate
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.conditions import find_cycles
from sweepledger.spec.rules.domains import is_sound_value
from sweepledger.spec.sections import Leaf, Section, search_section, sound_keys
from sweepledger.spec.space_builder import dependency_order
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs.expression import Expression, names_in

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

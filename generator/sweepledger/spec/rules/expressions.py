"""Constraints and derived values: their text, their names, and what they can come to."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from generator.problems import Problem
from generator.reader import Path, cut
from generator.reader.expression import ExpressionError, parse
from generator.spec.draft import Draft
from generator.spec.kinds import ANY, Finding, Kind, Kinds, check, kind_of
from generator.spec.rules.choices import is_sound
from generator.spec.rules.conditions import rings
from generator.spec.rules.sections import Leaf, Section, once, sections, sound
from generator.structs.expression import Expression, mentions

NUMBERS = frozenset({Kind.NUMBER})


@dataclass(frozen=True, slots=True)
class Text:
    """An expression as written, and its tree where it is one."""

    path: Path
    text: str
    tree: Expression | ExpressionError

    @property
    def names(self) -> list[str]:
        """What it mentions, each once."""
        return [] if isinstance(self.tree, ExpressionError) else list(_mentioned(self.tree))


def syntax(draft: Draft) -> Iterator[Problem]:
    """The text of an expression must be one."""
    for section in sections(draft):
        for text in (*_constraints(draft, section), *_derived(draft, section).values()):
            if isinstance(text.tree, ExpressionError):
                message = f"{text.tree.message}{_at(text, text.tree.offset)}"
                yield draft.problem(text.path, message, code="expression-syntax", hint=text.tree.hint)


@once
def meanings(draft: Draft) -> Iterator[Problem]:
    """Names are known, and operations are carried out on what they can work with."""
    for section in sections(draft):
        texts = [*_constraints(draft, section), *_derived(draft, section).values()]
        known = _known(draft, section) if texts else {}
        for text in texts:
            if isinstance(text.tree, ExpressionError):
                continue
            findings, kinds = check(text.tree, _with_all(known, section, text))
            for finding in findings:
                code = "expression-kind" if _names_known(finding, known, text) else "unknown-parameter"
                message = f"{finding.message}{_at(text, finding.offset)}"
                hint = _quotes_hint(draft, section, text, finding) or finding.hint
                yield draft.problem(text.path, message, code=code, hint=hint)
            if not findings:
                yield from _results(draft, text, kinds)


def constants(draft: Draft) -> Iterator[Problem]:
    """A constraint that mentions no parameter is the same for every trial."""
    for section in sections(draft):
        for text in _constraints(draft, section):
            if not isinstance(text.tree, ExpressionError) and not text.names:
                message = f"must mention a parameter, got {cut(repr(text.text))}"
                hint = "it holds always or never; texts stand in quotes, names do not"
                yield draft.problem(text.path, message, code="expression-constant", hint=hint)


def cycles(draft: Draft) -> Iterator[Problem]:
    """A derived value must not be made of itself."""
    for section in sections(draft):
        texts = _derived(draft, section)
        for chain in rings({name: text.names for name, text in texts.items()}):
            if len(chain) == 2:  # noqa: PLR2004 - the value and itself again
                message = f"must be made of other values, got {chain[0]!r} itself"
            else:
                message = f"must not be made of itself, got {' needs '.join(map(repr, chain))}"
            yield draft.problem(texts[chain[0]].path, message, code="derived-cycle")


def _results(draft: Draft, text: Text, kinds: Kinds) -> Iterator[Problem]:
    if "constraints" in text.path and Kind.BOOLEAN not in kinds:
        message = f"must be true or false, got a {_said(kinds)}: {cut(repr(text.text))}"
        hint = "compare it with something, as in `x <= 10`"
        yield draft.problem(text.path, message, code="expression-kind", hint=hint)


def _constraints(draft: Draft, section: Section) -> list[Text]:
    places = draft.items(*section.path, "constraints")
    return [_text(place, text) for place, text in places if isinstance(text, str)]


def _derived(draft: Draft, section: Section) -> dict[str, Text]:
    places = [(name, (*section.path, "derived", name)) for name in section.derived]
    texts = [(name, place, draft.get(*place, kind=str)) for name, place in places]
    return {name: _text(place, text) for name, place, text in texts if text is not None}


def _text(path: Path, text: str) -> Text:
    try:
        return Text(path, text, parse(text))
    except ExpressionError as error:
        return Text(path, text, error)


def _mentioned(tree: Expression) -> dict[str, None]:
    return dict.fromkeys(name.name for name in mentions(tree))


def _known(draft: Draft, section: Section) -> dict[str, Kinds]:
    """Say what each name of a section can be; anything where that is not known."""
    known = {name: _kinds(draft, leaf) for name, leaf in section.leaves.items()}
    for name, places in section.listed.items():
        listed = frozenset().union(*(_kinds_at(draft, place) for place in places))
        known[name] = known.get(name, frozenset()) | listed
    for row in section.table.rows if section.table else ():
        for name, value in row.items():
            known[name] = known.get(name, frozenset()) | {kind_of(value)}
    texts = _derived(draft, section)
    known |= {name: ANY for name in section.derived if name not in texts}
    for name in _in_order(texts):
        tree = texts[name].tree
        if isinstance(tree, ExpressionError):
            known[name] = ANY
            continue
        findings, kinds = check(tree, {**dict.fromkeys(texts, ANY), **known})
        known[name] = ANY if findings else kinds
    return known


def _in_order(texts: Mapping[str, Text]) -> list[str]:
    """Sort derived values so that each comes after those it is made of, as far as that goes."""
    ordered: dict[str, None] = {}
    for _ in texts:
        ready = [
            name
            for name, text in texts.items()
            if name not in ordered and all(other in ordered or other not in texts for other in text.names)
        ]
        ordered |= dict.fromkeys(ready)
    return [*ordered, *(name for name in texts if name not in ordered)]


def _kinds(draft: Draft, leaf: Leaf) -> Kinds:
    keys = sound(draft, leaf)
    if "value" in keys:
        return _kinds_at(draft, (*leaf.path, "value"))
    if "values" in keys:
        found = [_kinds_at(draft, (*leaf.path, "values", index)) for index in range(len(keys["values"]))]
        return frozenset().union(*found) or ANY
    return NUMBERS if keys.keys() - {"when"} else ANY


def _kinds_at(draft: Draft, place: Path) -> Kinds:
    value: Any = draft.get(*place, kind=object)
    return ANY if place in draft.broken or not is_sound(draft, place, value) else frozenset({kind_of(value)})


def _with_all(known: dict[str, Kinds], section: Section, text: Text) -> dict[str, Kinds]:
    """Where names may be missing from a section, take every name that is mentioned for one."""
    return known if section.is_whole else {**dict.fromkeys(text.names, ANY), **known}


def _names_known(finding: Finding, known: Mapping[str, Kinds], text: Text) -> bool:
    assert not isinstance(text.tree, ExpressionError)
    unknown = {name.offset for name in mentions(text.tree) if name.name not in known}
    return finding.offset not in unknown


def _quotes_hint(draft: Draft, section: Section, text: Text, finding: Finding) -> str | None:
    """Recognise a name that is no name but one of the texts that a parameter can have."""
    assert not isinstance(text.tree, ExpressionError)
    word = next((name.name for name in mentions(text.tree) if name.offset == finding.offset), None)
    places = (found for leaf in section.leaves.values() for found in draft.texts(*leaf.path))
    if word is None or word in section.parameters or word not in {found for _, found in places}:
        return None
    return f"a text stands in quotes: '{word}'"


def _at(text: Text, offset: int | None) -> str:
    """Say where in the text something is: its place in the file is that of the whole text."""
    return "" if offset is None else f" at character {offset + 1} of {cut(repr(text.text))}"


def _said(kinds: Kinds) -> str:
    return " or ".join(sorted(kinds))

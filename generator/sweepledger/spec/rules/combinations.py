"""Combinations of parameters: zip groups, and numbers of values."""

from collections.abc import Iterator
from typing import Any

from sweepledger.distributions import FORMS, LISTED, SPACINGS
from sweepledger.distributions.ranges import step_count
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.reader.configurations import MAX_LIST_COLUMNS
from sweepledger.spec.draft import Draft, Leaf
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs.methods import LIST
from sweepledger.structs.space import MAX_TRIALS
from sweepledger.structs.values import canonical_json


def listed_count(leaf: Leaf) -> int | None:
    """Count the values of a parameter that is a list of them; None if it is not a list, or is invalid."""
    if isinstance(values := leaf.keys.get("values"), list):
        return len(values)
    if "count" in leaf.keys:
        return int(leaf.keys["count"])
    if spacing := next((key for key in SPACINGS if key in leaf.keys), None):
        return int(leaf.keys[spacing][2])
    low, high, step = map(leaf.keys.get, ("min", "max", "step"))
    return None if low is None or high is None or step is None or low >= high else step_count(low, high, step)


def largest_lists(draft: Draft) -> Iterator[Problem]:
    """All lists together are within the limit of one list; names in `assignments` are within the limit of columns."""
    counts = [listed_count(leaf) or 0 for leaf in draft.parameters.values()]
    if sum(counts) > MAX_TRIALS >= max(counts):
        message = f"must list at most {MAX_TRIALS} values in all parameters together, got {sum(counts)}"
        hint = "ranges without step or count are not listed"
        yield draft.at_key(("parameters",), message, "too-many-values", hint)
    if len(draft.listed) > MAX_LIST_COLUMNS:
        message = f"must name at most {MAX_LIST_COLUMNS} different values, got {len(draft.listed)}"
        hint = "write assignments with different parameters as several sweeps"
        yield draft.at_key(("assignments",), message, "out-of-range", hint)


def zip_members(draft: Draft) -> Iterator[Problem]:
    """A zip group names parameters, each in one group only."""
    first: dict[str, DocumentPath] = {}
    for place, name in draft.texts("zip"):
        if draft.is_whole and draft.method != LIST and name not in draft.parameters:
            hint = did_you_mean(name, draft.parameters)
            yield draft.wrong(place, "must be the name of a parameter", "unknown-parameter", hint)
        other = first.setdefault(name, place)
        if other != place:
            line = draft.document.place(other).value.line
            message = f"must not be zipped twice: {safe_repr(name)} is already in the group in line {line}"
            yield draft.problem(place, message, "zip-repeated", "merge the two groups")


def zip_counts(draft: Draft) -> Iterator[Problem]:
    """The parameters of a zip group have equally many values."""
    for _, members in _zip_groups(draft):
        first: tuple[str, int] | None = None
        for place, leaf in members:
            count, hint, found = listed_count(leaf), None, None
            form = FORMS.get(str(leaf.written.get("distribution", LISTED)))
            if "value" in leaf.written:
                found, hint = "a single value", "a constant needs no zip"
            elif not (
                (form and form.is_listed and "probabilities" not in leaf.written) or "count" in leaf.written
            ):
                found = "a parameter that is drawn"
            elif count is None and not leaf.written.keys() & {"values", "step", "count", *SPACINGS}:
                found, hint = "min and max", "add step or count"
            if found is not None:
                message = f"must be a list of values to be zipped, got {safe_repr(leaf.name)}: {found}"
                yield draft.problem(place, message, "zip-values", hint)
            elif count is not None:
                first = first or (leaf.name, count)
                if count != first[1]:
                    message = f"must have as many values as {first[0]!r} ({first[1]}), "
                    message += f"got {leaf.name!r} with {count}"
                    hint = "zipped values are paired by position, so all lists need the same length"
                    yield draft.problem(place, message, "zip-values", hint)


def zip_tuples(draft: Draft) -> Iterator[Problem]:
    """The combinations of a zip group differ."""
    for size, members in _zip_groups(draft):
        columns: list[list[Any]] = [leaf.keys.get("values") or [] for _, leaf in members]
        if len(columns) < size or len({*map(len, columns)}) != 1:
            continue
        first: dict[str, int] = {}
        for index, row in enumerate(zip(*columns, strict=True)):
            other = first.setdefault(canonical_json(row), index)
            if other != index:
                names = ", ".join(leaf.name for _, leaf in members)
                message = f"must differ from values[{other}] in at least one of {names}, "
                message += f"got {', '.join(map(safe_repr, row))} again"
                place = members[0][1].at("values", index)
                yield draft.problem(place, message, "duplicate-value", "delete one of them")


def _zip_groups(draft: Draft) -> Iterator[tuple[int, list[tuple[DocumentPath, Leaf]]]]:
    """Yield the number of names in each group, with the place and the parameter for names of parameters."""
    for group, names in draft.items("zip") if draft.method != LIST else ():
        members = [(place, draft.parameters.get(name)) for place, name in draft.texts(*group)]
        yield len(names), [(place, leaf) for place, leaf in members if leaf is not None and leaf.written]

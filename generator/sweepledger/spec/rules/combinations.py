"""Combinations of parameters: zipped groups, and how many values there are."""

from collections.abc import Iterator

from sweepledger.distributions import FORMS, LISTED, SPACINGS
from sweepledger.distributions.ranges import MAX_VALUES, step_count
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.reader.configurations import MAX_LIST_COLUMNS
from sweepledger.spec.draft import Draft, Leaf
from sweepledger.spec.rules.domains import is_sound_value, is_spacing, stepped_range
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs.methods import LIST
from sweepledger.structs.values import canonical_json


def listed_count(draft: Draft, leaf: Leaf) -> int | None:
    """Count the values of a parameter that is a list of them; None if it is not a list, or is invalid."""
    if isinstance(values := leaf.keys.get("values"), list):
        return len(values)
    if "count" in leaf.keys:
        return int(leaf.keys["count"])
    for key in SPACINGS:
        if is_spacing(draft, leaf, key):
            return int(leaf.keys[key][2])
    bounds = stepped_range(leaf)
    return None if bounds is None else step_count(*bounds)


def largest_lists(draft: Draft) -> Iterator[Problem]:
    """All lists together are no longer than one may be; `assignments` has no more names than a file has columns."""
    counts = [listed_count(draft, leaf) or 0 for leaf in draft.parameters.values()]
    if sum(counts) > MAX_VALUES >= max(counts):
        message = f"must list at most {MAX_VALUES} values in all parameters together, got {sum(counts)}"
        hint = "ranges without step or count are not listed"
        yield draft.at_key(("parameters",), message, "too-many-values", hint)
    if len(draft.listed) > MAX_LIST_COLUMNS:
        message = f"must name at most {MAX_LIST_COLUMNS} different values, got {len(draft.listed)}"
        hint = "write assignments with different parameters as several sweeps"
        yield draft.at_key(("assignments",), message, "out-of-range", hint)


def zip_members(draft: Draft) -> Iterator[Problem]:
    """A zip group names parameters, each in one group only."""
    for group in _zip_groups(draft) if draft.is_whole else ():
        for place, name in draft.items(*group):
            if isinstance(name, str) and name not in draft.parameters:
                hint = did_you_mean(name, draft.parameters)
                yield draft.wrong(place, "must be the name of a parameter", "unknown-parameter", hint)
    first: dict[str, DocumentPath] = {}
    for place, name in draft.texts("zip"):
        other = first.setdefault(name, place)
        if other != place:
            line = draft.document.place(other).value.line
            message = f"must not be zipped twice, got {safe_repr(name)} as in line {line}"
            yield draft.problem(place, message, "zip-repeated", "merge the two groups")


def zip_counts(draft: Draft) -> Iterator[Problem]:
    """The parameters of a zip group have equally many values."""
    for group in _zip_groups(draft):
        first: tuple[str, int] | None = None
        for place, name in draft.items(*group):
            leaf = draft.parameters.get(name) if isinstance(name, str) else None
            if leaf is None or draft.get(*leaf.path, kind=dict) is None:
                continue
            count, hint, found = listed_count(draft, leaf), None, None
            if "value" in leaf.written:
                found, hint = "a single value", "a constant needs no zip"
            elif _is_drawn(leaf):
                found = "a parameter that is drawn"
            elif count is None and not leaf.written.keys() & {"values", "step", "count", *SPACINGS}:
                found, hint = "min and max", "add step or count"
            if found is not None:
                message = f"must be a list of values to be zipped, got {safe_repr(name)}: {found}"
                yield draft.problem(place, message, "zip-values", hint)
            elif count is not None:
                first = first or (name, count)
                if count != first[1]:
                    message = f"must have as many values as {first[0]!r} ({first[1]}), "
                    message += f"got {name!r} with {count}"
                    hint = "the first goes with the first, the second with the second"
                    yield draft.problem(place, message, "zip-values", hint)


def _is_drawn(leaf: Leaf) -> bool:
    form = FORMS.get(str(leaf.written.get("distribution", LISTED)))
    return (
        form is None or not form.is_listed or "probabilities" in leaf.written
    ) and "count" not in leaf.written


def zip_tuples(draft: Draft) -> Iterator[Problem]:
    """The combinations of a zip group differ."""
    for group in _zip_groups(draft):
        names = [name for _, name in draft.items(*group) if isinstance(name, str)]
        leaves = [draft.parameters[name] for name in names if name in draft.parameters]
        columns = [list(draft.items(*leaf.at("values"))) for leaf in leaves]
        whole = all(is_sound_value(draft, place, value) for column in columns for place, value in column)
        is_complete = whole and len(leaves) >= len(draft.get(*group, kind=list) or ())
        if not is_complete or len({len(column) for column in columns}) != 1:
            continue
        first: dict[str, int] = {}
        for index, row in enumerate(zip(*columns, strict=True)):
            key = canonical_json([value for _, value in row])
            if first.setdefault(key, index) != index:
                message = f"must differ from values[{first[key]}] in at least one of {', '.join(names)}, "
                message += f"got {', '.join(safe_repr(value) for _, value in row)} again"
                yield draft.problem(row[0][0], message, "duplicate-value", "delete one of them")


def _zip_groups(draft: Draft) -> Iterator[DocumentPath]:
    groups = draft.items("zip") if draft.method != LIST else ()
    yield from (place for place, group in groups if isinstance(group, list))

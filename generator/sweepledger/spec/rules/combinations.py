"""Combinations of parameters: zipped groups, and how many values there are."""

from collections.abc import Iterator

from sweepledger.distributions import FORMS, LISTED, SPACINGS
from sweepledger.distributions.ranges import MAX_VALUES, step_count
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.reader.configurations import MAX_LIST_COLUMNS
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.domains import is_sound_value, is_spacing
from sweepledger.spec.sections import Leaf, Section, search_section, sound_keys
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs.methods import LIST
from sweepledger.structs.values import canonical_json


def listed_count(draft: Draft, leaf: Leaf) -> int | None:
    """Count the values of a parameter that is a list of them; None if it is not a list, or is invalid."""
    keys = sound_keys(draft, leaf)
    if isinstance(values := keys.get("values"), list):
        return len(values)
    if "count" in keys:
        return int(keys["count"])
    for key in SPACINGS:
        if is_spacing(draft, leaf, key):
            return int(keys[key][2])
    low, high, step = (keys.get(key) for key in ("min", "max", "step"))
    if low is None or high is None or step is None or low >= high:
        return None
    return step_count(low, high, step)


def total_values(draft: Draft) -> Iterator[Problem]:
    """All lists together have at most the length that a single one may have."""
    counts = [listed_count(draft, leaf) or 0 for leaf in search_section(draft).leaves.values()]
    total = sum(counts)
    if total > MAX_VALUES >= max(counts):
        message = f"must list at most {MAX_VALUES} values in all parameters together, got {total}"
        hint = "ranges without step or count are not listed"
        yield draft.problem(("parameters",), message, code="too-many-values", hint=hint, at_key=True)


def listed_names(draft: Draft) -> Iterator[Problem]:
    """`assignments` has at most as many names as a file may have columns."""
    section = search_section(draft)
    count = len(section.listed)
    if count > MAX_LIST_COLUMNS:
        message = f"must name at most {MAX_LIST_COLUMNS} different values, got {count}"
        hint = "write assignments with different parameters as several sweeps"
        yield draft.problem(("assignments",), message, code="out-of-range", hint=hint, at_key=True)


def zip_members(draft: Draft) -> Iterator[Problem]:
    """A zip group names parameters, each in one group only."""
    for section, group in _zip_groups(draft):
        for place, name in draft.items(*group):
            if isinstance(name, str) and section.is_whole and name not in section.leaves:
                message = f"must be the name of a parameter, got {safe_repr(name)}"
                hint = did_you_mean(name, section.leaves)
                yield draft.problem(place, message, code="unknown-parameter", hint=hint)
    section = search_section(draft)
    first: dict[str, DocumentPath] = {}
    for place, name in draft.texts("zip"):
        other = first.setdefault(name, place)
        if other != place:
            line = draft.document.mark(other).line
            message = f"must not be zipped twice, got {safe_repr(name)} as in line {line}"
            yield draft.problem(place, message, code="zip-repeated", hint="merge the two groups")


def zip_counts(draft: Draft) -> Iterator[Problem]:
    """The parameters of a zip group have equally many values."""
    for section, group in _zip_groups(draft):
        first: tuple[str, int] | None = None
        for place, name in draft.items(*group):
            leaf = section.leaves.get(name) if isinstance(name, str) else None
            keys = draft.get(*leaf.path, kind=dict) if leaf else None
            if leaf is None or keys is None:
                continue
            if _is_no_list(keys):
                found = "a single value" if "value" in keys else "a parameter that is drawn"
                message = f"must be a list of values to be zipped, got {safe_repr(name)}: {found}"
                hint = "a constant needs no zip" if "value" in keys else None
                yield draft.problem(place, message, code="zip-values", hint=hint)
            elif (count := listed_count(draft, leaf)) is None and not keys.keys() & LIST_KEYS:
                message = f"must be a list of values to be zipped, got {safe_repr(name)}: min and max"
                yield draft.problem(place, message, code="zip-values", hint="add step or count")
            elif count is not None:
                first = first or (name, count)
                if count != first[1]:
                    message = (
                        f"must have as many values as {first[0]!r} ({first[1]}), got {name!r} with {count}"
                    )
                    hint = "the first goes with the first, the second with the second"
                    yield draft.problem(place, message, code="zip-values", hint=hint)


def zip_tuples(draft: Draft) -> Iterator[Problem]:
    """The combinations of a zip group differ."""
    for section, group in _zip_groups(draft):
        names = [name for _, name in draft.items(*group) if isinstance(name, str)]
        leaves = [section.leaves[name] for name in names if name in section.leaves]
        columns = [list(draft.items(*leaf.path, "values")) for leaf in leaves]
        whole = all(is_sound_value(draft, place, value) for column in columns for place, value in column)
        if len(leaves) < len(draft.get(*group, kind=list) or ()) or not whole:
            continue
        if len({len(column) for column in columns}) != 1:
            continue
        first: dict[str, int] = {}
        for index, row in enumerate(zip(*columns, strict=True)):
            key = canonical_json([value for _, value in row])
            if first.setdefault(key, index) != index:
                message = f"must differ from values[{first[key]}] in at least one of {', '.join(names)}, "
                message += f"got {', '.join(safe_repr(value) for _, value in row)} again"
                yield draft.problem(row[0][0], message, code="duplicate-value", hint="delete one of them")


def _zip_groups(draft: Draft) -> Iterator[tuple[Section, DocumentPath]]:
    section = search_section(draft)
    for place, group in draft.items("zip") if section.method != LIST else ():
        if isinstance(group, list):
            yield section, place


LIST_KEYS = {"values", "step", "count", *SPACINGS}


def _is_no_list(keys: dict[str, object]) -> bool:
    """Return whether a parameter is a constant or is drawn."""
    form = FORMS.get(str(keys.get("distribution", LISTED)))
    is_drawn = form is None or not form.is_listed or "probabilities" in keys
    return "value" in keys or (is_drawn and "count" not in keys)

"""Methods: which keys each needs, and which it cannot use."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import Path
from generator.spec.draft import Draft
from generator.spec.rules.forms import DISTRIBUTIONS, range_of
from generator.spec.rules.sections import Leaf, Section, has_blocks, is_shuffled, once, sections
from generator.structs.adaptive import Method
from generator.structs.sweep import Sampler

DRAWN = frozenset(map(str, Sampler))
ADAPTIVE = frozenset(map(str, Method))
SEARCH_KEYS = ("zip", "constraints", "derived", "seed", "run_cap", "grid_order", "assignments", "file")
SHARED = frozenset({"parameters", "seed"})
USED = {
    "grid": frozenset({"zip", "constraints", "derived", "run_cap", "grid_order"}),
    "list": frozenset({"constraints", "derived", "assignments", "file"}),
    **dict.fromkeys(DRAWN | ADAPTIVE, frozenset({"zip", "constraints", "derived", "seed", "run_cap"})),
}
COUNTABLE = frozenset(
    {"", "constant", "categorical", "categorical_w_probabilities", "int_uniform", "q_uniform"}
)


@once
def integer_bounds(draft: Draft) -> Iterator[Problem]:
    """Where nothing lies between two integers, what lies between 0.0 and 1.0 is likely to be meant."""
    for section in sections(draft):
        for leaf in section.leaves.values() if section.method in DRAWN | ADAPTIVE else ():
            kind, keys = range_of(draft, leaf) or ("", {})
            if kind != "int_uniform" or keys.keys() - {"min", "max", "when"}:
                continue
            low, high = keys["min"], keys["max"]
            if high - low == 1:
                message = f"two integer bounds mean integers: {low} or {high}"
                hint = f"write {low}.0 and {high}.0, or distribution: uniform, for what lies between; "
                hint += "distribution: int_uniform if integers are meant"
                yield draft.warning(leaf.path, message, code="integer-bounds", hint=hint, at_key=True)


def given(draft: Draft) -> Iterator[Problem]:
    """A sweep has a method, or blocks that have one each."""
    if draft.names() and not has_blocks(draft) and "method" not in draft.names():
        message, hint = "must be given", "for example method: grid; or several searches under blocks"
        yield draft.problem(("method",), message, code="missing-key", hint=hint, at_key=True)


def beside_blocks(draft: Draft) -> Iterator[Problem]:
    """Beside blocks, the top holds only what all of them share."""
    for key in ("method", *SEARCH_KEYS) if has_blocks(draft) else ():
        if key not in SHARED and key in draft.names():
            message = f"must stand in a block where there are blocks, got {key} at the top"
            hint = "blocks share parameters and seed; each has its own method and other keys"
            yield draft.problem((key,), message, code="method-key", hint=hint, at_key=True)


def unused_keys(draft: Draft) -> Iterator[Problem]:
    """A key that the method cannot use would promise something that does not happen."""
    for section in sections(draft):
        if section.method not in USED:
            continue
        used = USED[section.method] | ({"seed"} if is_shuffled(draft, section) else frozenset())
        for key in SEARCH_KEYS:
            if key not in used and key in draft.names(*section.path):
                message = f"must not be given with method: {section.method}, got {key}"
                place, hint = (*section.path, key), _unused_hint(key, section.method)
                yield draft.problem(place, message, code="method-key", hint=hint, at_key=True)


def needed_keys(draft: Draft) -> Iterator[Problem]:
    """Drawing takes a seed and an end."""
    for section in sections(draft):
        keys = draft.names(*section.path)
        draws = section.method in DRAWN
        chance = draws or section.method in ADAPTIVE
        if (chance or is_shuffled(draft, section)) and not {"seed"} & {*keys, *draft.names()}:
            what = "grid_order: shuffled" if section.method == "grid" else f"method: {section.method}"
            yield _needed(draft, section, "seed", what, "for example seed: 0; the same seed, the same trials")
        if draws and "run_cap" not in keys:
            hint = "how many assignments to draw, for example run_cap: 50"
            yield _needed(draft, section, "run_cap", f"method: {section.method}", hint)
        searches = chance or section.method == "grid"
        if searches and "parameters" not in {*keys, *draft.names()}:
            hint = "for example parameters: {learning_rate: {values: [0.01, 0.1]}}"
            yield _needed(draft, section, "parameters", f"method: {section.method}", hint)


@once
def walkable(draft: Draft) -> Iterator[Problem]:
    """A grid tries all values, so they must be countable."""
    for section in sections(draft):
        for leaf in section.leaves.values() if section.method == "grid" else ():
            if "probabilities" in draft.names(*leaf.path):
                message, place = (
                    "must not be given in a grid, got probabilities",
                    (*leaf.path, "probabilities"),
                )
                hint = "a grid tries every value; method: random draws by probability"
                yield draft.problem(place, message, code="grid-domain", hint=hint, at_key=True)
            elif (kind := _uncountable(draft, leaf)) is not None:
                message = f"must be countable in a grid, got {kind}"
                hint = _countable_hint(kind)
                yield draft.problem(leaf.path, message, code="grid-domain", hint=hint, at_key=True)


def _needed(draft: Draft, section: Section, key: str, what: str, hint: str) -> Problem:
    place: Path = (*section.path, key)
    return draft.problem(place, f"must be given with {what}", code="missing-key", hint=hint, at_key=True)


def _unused_hint(key: str, method: str) -> str:
    if key == "seed":
        return (
            "a grid is the same every time; grid_order: shuffled takes a seed"
            if method == "grid"
            else ("nothing is drawn; delete the key")
        )
    if key in {"assignments", "file"}:
        return "assignments are tried by method: list"
    if key == "grid_order":
        return "only a grid has an order to shuffle"
    return "a list is tried as it stands; delete the key"


def _uncountable(draft: Draft, leaf: Leaf) -> str | None:
    """Name the continuous domain of a parameter; None where it has none, or one that is wrong anyway."""
    kind, keys = range_of(draft, leaf) or ("", {})
    if kind in COUNTABLE or {"step", "count"} & {*draft.names(*leaf.path)}:
        return None
    return f"distribution: {kind}" if "distribution" in keys else "min and max alone"


def _countable_hint(found: str) -> str:
    if found == "min and max alone":
        return "add step: 0.1 or count: 5, or let a method draw: random, sobol, halton, latin-hypercube"
    kind = found.removeprefix("distribution: ")
    if "count" in DISTRIBUTIONS[kind].keys:
        return "add count: 5, or let a method draw: random, sobol, halton, latin-hypercube"
    return "write values, or let a method draw: random, sobol, halton, latin-hypercube"

"""Searches by rounds: what each of their methods needs, what bounds them, and what they measure."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import shown
from generator.spec.draft import Draft
from generator.spec.rules.forms import range_of
from generator.spec.rules.sections import has_blocks, sections
from generator.structs.adaptive import SEVERAL, Method
from generator.structs.names import RESERVED_SWEEP_NAMES, SWEEP_NAME

METHODS = frozenset(map(str, Method))
WITH_RESOURCE = frozenset(str(method) for method in Method if method.has_parents)
OF_SEVERAL = frozenset(map(str, SEVERAL))
ROUND_KEYS = ("rounds", "start", "resource")
"""At the top of a spec only: a search by rounds is alone in its sweep."""

ENDS = (("rounds", "max"), ("rounds", "patience"), ("run_cap",), ("budget",), ("metric", "target"))
SMALLEST_POPULATION = 2
CHOSEN = frozenset({"constant", "categorical", "categorical_w_probabilities"})


def alone(draft: Draft) -> Iterator[Problem]:
    """A round is the next batch of its sweep, so another search beside it would have no batches."""
    for section in sections(draft):
        if section.path and section.method in METHODS:
            message = f"must not stand in a block, got method: {section.method}"
            hint = "a search by rounds has a sweep to itself; it can begin with another: start: [NAME]"
            yield draft.problem((*section.path, "method"), message, code="search-alone", hint=hint)


def round_keys(draft: Draft) -> Iterator[Problem]:
    """What only rounds have promises nothing where there are none."""
    method = draft.get("method", kind=str)
    for key in ROUND_KEYS if method is not None or has_blocks(draft) else ():
        unused = method not in METHODS or (key == "resource" and method not in WITH_RESOURCE)
        if unused and key in draft.names():
            what = "blocks" if has_blocks(draft) else f"method: {method}"
            message = f"must not be given with {what}, got {key}"
            owners = sorted(WITH_RESOURCE if key == "resource" else METHODS)
            hint = f"it belongs to {', '.join(owners)}"
            yield draft.problem((key,), message, code="method-key", hint=hint, at_key=True)


def needs(draft: Draft) -> Iterator[Problem]:
    """Rounds have a size, and what goes on has something to go on with."""
    method = draft.get("method", kind=str)
    wanted = {
        "rounds": (METHODS, "for example rounds: {size: 8, max: 12}; eight assignments at a time"),
        "resource": (WITH_RESOURCE, "for example resource: {parameter: epochs, min: 1, max: 27}"),
    }
    for key, (methods, hint) in wanted.items():
        if method in methods and not has_blocks(draft) and key not in draft.names():
            message = f"must be given with method: {method}"
            yield draft.problem((key,), message, code="missing-key", hint=hint, at_key=True)


def ends(draft: Draft) -> Iterator[Problem]:
    """A search that nothing bounds would spend for ever: the merge approves all of its rounds."""
    method = draft.get("method", kind=str)
    if method not in METHODS - {"halving", "hyperband", "pbt"} or "rounds" not in draft.names():
        return
    if not any(place[-1] in draft.names(*place[:-1]) for place in ENDS):
        message, hint = "must come to an end, got only a size", "for example max: 12, or run_cap beside it"
        yield draft.problem(("rounds",), message, code="search-endless", hint=hint, at_key=True)


def population(draft: Draft) -> Iterator[Problem]:
    """Who is alone has nobody to learn from."""
    method, size = draft.get("method", kind=str), draft.number("rounds", "size")
    if method in WITH_RESOURCE - {"asha"} and size is not None and size < SMALLEST_POPULATION:
        message = f"must be at least {SMALLEST_POPULATION} with method: {method}, got {shown(size)}"
        yield draft.problem(("rounds", "size"), message, code="out-of-range")


def replicated(draft: Draft) -> Iterator[Problem]:
    """What goes on goes on from one trial's checkpoints, so an assignment is one trial."""
    method, count = draft.get("method", kind=str), draft.number("replicates")
    if method in WITH_RESOURCE and count is not None and count > 1:
        message = f"must not be given with method: {method}, got replicates"
        hint = "each trial goes on from one other; repeat the best assignments in a sweep of their own"
        yield draft.problem(("replicates",), message, code="method-key", hint=hint, at_key=True)


def adapts(draft: Draft) -> Iterator[Problem]:
    """An evolution strategy walks along numbers, and adapts to how two of them or more hang together."""
    for section in sections(draft):
        if section.path or section.method != "cma-es" or not section.is_whole:
            continue
        kinds = [range_of(draft, leaf) for leaf in section.leaves.values() if not leaf.conditions]
        lists = [
            draft.get(*leaf.path, "values", kind=list)
            for leaf in section.leaves.values()
            if not leaf.conditions
        ]
        numbers = sum(found is not None and found[0] not in CHOSEN for found in kinds) + sum(
            map(_are_numbers, lists)
        )
        if numbers < SMALLEST_POPULATION:
            message = f"must have two ranges of numbers that always exist with method: cma-es, got {numbers}"
            hint = "method: tpe takes any mix of kinds and conditions"
            yield draft.problem(("parameters",), message, code="search-space", hint=hint, at_key=True)


def _are_numbers(values: list[object] | None) -> bool:
    return values is not None and all(
        isinstance(one, int | float) and not isinstance(one, bool) for one in values
    )


def resource_bounds(draft: Draft) -> Iterator[Problem]:
    """Without more to give there is only one rung."""
    low, high = draft.number("resource", "min"), draft.number("resource", "max")
    if low is not None and high is not None and low >= high:
        message = f"must be greater than min ({low}), got {high}"
        yield draft.problem(("resource", "max"), message, code="range-inverted", hint="swap them")


def started(draft: Draft) -> Iterator[Problem]:
    """Evidence comes from other sweeps, each named once."""
    seen = {draft.get("name", kind=str)}
    for place, name in draft.items("start"):
        if not isinstance(name, str):
            continue
        if not SWEEP_NAME.fullmatch(name) or name in RESERVED_SWEEP_NAMES:
            message, hint = f"must be a sweep's name, got {shown(name)}", "`sweep status` lists them"
            yield draft.problem(place, message, code="start-sweep", hint=hint)
        elif name in seen:
            message = f"must name other sweeps, each once, got {shown(name)}"
            hint = "a search always goes on from its own records; delete it"
            yield draft.problem(place, message, code="start-sweep", hint=hint)
        seen.add(name)


def several(draft: Draft) -> Iterator[Problem]:
    """There is one metric, or there are several that a method can weigh against each other."""
    names = draft.names()
    if names and not {"metric", "metrics"} & {*names}:
        yield draft.problem(("metric",), "must be given", code="missing-key", at_key=True)
    if "metrics" not in names:
        return
    method = draft.get("method", kind=str)
    if "metric" in names:
        message, hint = "must not be given with metric, got both", "the first of several is the metric"
        yield draft.problem(("metrics",), message, code="metrics", hint=hint, at_key=True)
    elif method not in OF_SEVERAL:
        what = "blocks" if has_blocks(draft) else f"method: {method}"
        message = f"must not be given with {what}, got metrics"
        hint = f"only {' and '.join(sorted(OF_SEVERAL))} look for a front; write metric for the others"
        yield draft.problem(("metrics",), message, code="metrics", hint=hint, at_key=True)
    yield from _beside_the_first(draft)


def _beside_the_first(draft: Draft) -> Iterator[Problem]:
    seen = set[str]()
    for number, (place, _) in enumerate(draft.items("metrics")):
        for key in draft.names(*place):
            if key == "target" or (number and key in {"source", "format", "reduce"}):
                message = (
                    f"must not be given {'with several metrics' if key == 'target' else 'here'}, got {key}"
                )
                hint = (
                    "a front has no one value" if key == "target" else "said of the first, it holds for all"
                )
                yield draft.problem((*place, key), message, code="metrics", hint=hint, at_key=True)
        name = draft.get(*place, "name", kind=str)
        if name is not None and name in seen:
            message = f"must differ from the other metrics, got {shown(name)} again"
            yield draft.problem((*place, "name"), message, code="metrics")
        seen.add(name or "")


def weighed(draft: Draft) -> Iterator[Problem]:
    """Only what asks for more from results can find one good enough, or count one that has none."""
    method, stop = draft.get("method", kind=str), draft.get("early_terminate", "type", kind=str)
    if method in METHODS or (method is None and not has_blocks(draft)):
        return
    for key in ("target", "impute"):
        if key in draft.names("metric") and not (key == "target" and stop == "target"):
            what = "blocks" if has_blocks(draft) else f"method: {method}"
            message = f"must not be given with {what}, got {key}"
            hint = "it belongs to searches by rounds"
            if key == "target":
                hint += ", and to early_terminate: {type: target}"
            yield draft.problem(("metric", key), message, code="method-key", hint=hint, at_key=True)

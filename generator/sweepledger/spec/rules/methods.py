"""Metrics and search methods: how metrics are reported, the keys of each method, adaptive search, early stopping."""

from collections.abc import Iterator

from sweepledger.distributions import FORMS
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.reader.metric_lines import pattern_error
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.domains import distribution_of
from sweepledger.spec.sections import Leaf, search_section
from sweepledger.stopping import TYPES
from sweepledger.structs.methods import GRID, LIST, METHODS, SAMPLERS, Method, methods_with
from sweepledger.structs.metric import (
    DEFAULT_FORMATS,
    FILE_FORMATS,
    STREAM_FORMATS,
    MetricFormat,
    MetricSource,
    Reduce,
)
from sweepledger.structs.names import RESERVED_SWEEP_NAMES, SWEEP_NAME
from sweepledger.structs.values import is_number


def metric_goal(draft: Draft) -> Iterator[Problem]:
    """A metric says its goal: an accuracy that is minimized by default would rank the worst trial first."""
    for place in _metric_paths(draft):
        name = draft.get(*place, "name", kind=str)
        if name is not None and "goal" not in draft.names(*place):
            message = f"has no goal, so {safe_repr(name)} is minimized"
            hint = "write `goal: maximize`, or `goal: minimize` to confirm it"
            yield draft.warning(place, message, code="goal-default", hint=hint, at_key=place == ("metric",))


def _metric_paths(draft: Draft) -> tuple[DocumentPath, ...]:
    return ("metric",), *(place for place, _ in draft.items("other_metrics"))


METRIC_FORMAT = "metric-format"


def source_format(draft: Draft) -> Iterator[Problem]:
    """Format, path, patterns and capture fit the source, as the launcher requires."""
    place, source, found = ("metric",), _metric_source(draft), metric_format(draft)
    if source != MetricSource.RESULT and found in FILE_FORMATS:
        message = (
            f"must be one of jsonl, log, regex, text if the source is {source}, got {safe_repr(str(found))}"
        )
        hint = "jsonl reads one JSON object per line"
        yield draft.problem((*place, "format"), message, code=METRIC_FORMAT, hint=hint)
    keys = draft.names(*place)
    if "path" in keys and source != MetricSource.RESULT:
        message, hint = f"must not be given if the source is {source}, got path", "source: result"
        yield draft.problem((*place, "path"), message, code=METRIC_FORMAT, hint=hint, at_key=True)
    if found is MetricFormat.TENSORBOARD and "path" not in keys and source == MetricSource.RESULT:
        message, hint = "needs path, got format: tensorboard", "path: runs"
        yield draft.problem((*place, "format"), message, code=METRIC_FORMAT, hint=hint)
    if found is MetricFormat.REGEX and "patterns" not in keys:
        message, hint = "needs patterns, got format: regex", r"patterns: ['loss=(?P<value>\S+)']"
        yield draft.problem((*place, "format"), message, code=METRIC_FORMAT, hint=hint)
    if "patterns" in keys and found is not None and found is not MetricFormat.REGEX:
        message, hint = f"must not be given with the format {found}, got patterns", "format: regex"
        yield draft.problem((*place, "patterns"), message, code=METRIC_FORMAT, hint=hint, at_key=True)
    if draft.get(*place, "capture", kind=bool) and (
        (source, found) != (MetricSource.RESULT, MetricFormat.JSONL) or "path" in keys
    ):
        message = "needs source: result and format: jsonl without path, got capture: true"
        hint = "captured metrics are lines of JSON in $SWEEP_RESULT"
        yield draft.problem((*place, "capture"), message, code=METRIC_FORMAT, hint=hint)
    for at, _ in draft.items(*place, "patterns"):
        if (text := draft.get(*at, kind=str)) is not None and (why := pattern_error(text)):
            hint = r"loss=(?P<value>\S+) reads the objective"
            yield draft.problem(at, f"{why}, got {safe_repr(text)}", code=METRIC_FORMAT, hint=hint)


def several_reports(draft: Draft) -> Iterator[Problem]:
    """`curve`, and `reduce` by `min` and `max`, need a format that can report a number several times."""
    found = metric_format(draft)
    if found is None or found in STREAM_FORMATS:
        return
    why, hint = f"the format {found}, which reports one number", "format: jsonl or text"
    if (reduce := draft.get("metric", "reduce", kind=str)) in {Reduce.MIN, Reduce.MAX}:
        message = f"must be last with {why}, got {safe_repr(reduce)}"
        yield draft.problem(("metric", "reduce"), message, code=METRIC_FORMAT, hint=hint)
    if "curve" in draft.names("metric"):
        message = f"must not be given with {why}, got curve"
        yield draft.problem(("metric", "curve"), message, code=METRIC_FORMAT, hint=hint, at_key=True)


def _metric_source(draft: Draft) -> str:
    return draft.get("metric", "source", kind=str) or MetricSource.RESULT


def metric_format(draft: Draft) -> MetricFormat | None:
    """Return the format in effect; None if the written one is invalid, which the structure check reports."""
    written, source = draft.get("metric", "format", kind=str), _metric_source(draft)
    if written is None:
        return DEFAULT_FORMATS[MetricSource(source)] if source in set(MetricSource) else None
    return MetricFormat(written) if written in set(MetricFormat) else None


MULTI_METRIC_METHODS = methods_with(lambda method: method.has_several_metrics)


def several_metrics(draft: Draft) -> Iterator[Problem]:
    """Several metrics have different names, a method for several, and no target."""
    if "other_metrics" not in draft.names():
        return
    method = draft.get("method", kind=str)
    if method not in MULTI_METRIC_METHODS:
        message = f"must not be given with method: {method}, got other_metrics"
        *others, last = MULTI_METRIC_METHODS
        hint = f"only {', '.join(others)} and {last} search for a Pareto front; other methods have one metric"
        yield draft.problem(("other_metrics",), message, code="metrics", hint=hint, at_key=True)
    if "target" in draft.names("metric"):
        message = "must not be given with several metrics, got target"
        hint = "a Pareto front has no single best value"
        yield draft.problem(("metric", "target"), message, code="metrics", hint=hint, at_key=True)
    seen = set[str]()
    for place in _metric_paths(draft):
        name = draft.get(*place, "name", kind=str)
        if name is not None and name in seen:
            message = f"must differ from the other metrics, got {safe_repr(name)} again"
            yield draft.problem((*place, "name"), message, code="metrics")
        seen.add(name or "")


def target_and_impute(draft: Draft) -> Iterator[Problem]:
    """`target` and `impute` need a method that uses results."""
    method, stop = draft.get("method", kind=str), draft.get("early_terminate", "type", kind=str)
    if method in METHODS or method is None:
        return
    is_target_used = (stop in TYPES and TYPES[stop].needs_target) or "rounds" in draft.names()
    for key in ("target", "impute"):
        if key in draft.names("metric") and not (key == "target" and is_target_used):
            message = f"must not be given with method: {method}, got {key}"
            hint = "it belongs to adaptive methods"
            if key == "target":
                hint += ", to sweeps with rounds, and to early_terminate: {type: target}"
            yield draft.problem(("metric", key), message, code="method-key", hint=hint, at_key=True)


SAMPLING_METHODS, ADAPTIVE_METHODS = frozenset(SAMPLERS), frozenset(METHODS)
DRAWING_METHODS = SAMPLING_METHODS | ADAPTIVE_METHODS
RESOURCE_METHODS = frozenset(methods_with(lambda method: method.has_parents))
OWNERS: dict[DocumentPath, frozenset[str]] = {
    ("zip",): DRAWING_METHODS | {GRID},
    ("seed",): DRAWING_METHODS,
    ("run_cap",): DRAWING_METHODS | {GRID},
    ("assignments",): frozenset({LIST}),
    ("start",): ADAPTIVE_METHODS,
    ("resource",): RESOURCE_METHODS,
    ("rounds", "startup"): frozenset(methods_with(lambda method: method.has_startup)),
}
"""Keys that not every method has, and the methods that have them."""
UNUSED_HINTS = {"seed": "nothing is drawn; delete the key"}
UNUSED_HINTS |= dict.fromkeys(("zip", "run_cap"), "a list is run as written; delete the key")


def integer_bounds(draft: Draft) -> Iterator[Problem]:
    """Warn of two adjacent integers, which probably mean real numbers."""
    section = search_section(draft)
    for leaf in section.leaves.values() if section.method in DRAWING_METHODS else ():
        kind, keys = distribution_of(draft, leaf) or ("", {})
        if not kind or not FORMS[kind].is_integer or keys.keys() - {"min", "max", "when"}:
            continue
        low, high = keys["min"], keys["max"]
        if high - low == 1:
            message = f"two integer bounds mean integers: {low} or {high}"
            hint = f"write {low}.0 and {high}.0, or distribution: uniform, for what lies between; "
            hint += "distribution: int_uniform if integers are meant"
            yield draft.warning(leaf.path, message, code="integer-bounds", hint=hint, at_key=True)


def method_given(draft: Draft) -> Iterator[Problem]:
    """A sweep has a method."""
    if draft.names() and "method" not in draft.names():
        message, hint = "must be given", "for example method: grid"
        yield draft.problem(("method",), message, code="missing-key", hint=hint, at_key=True)


def unused_keys(draft: Draft) -> Iterator[Problem]:
    """A sweep has only keys that its method uses."""
    method = draft.get("method", kind=str)
    for place, owners in OWNERS.items() if method is not None else ():
        *holder, key = place
        if method not in owners and key in draft.names(*holder):
            message = f"must not be given with method: {method}, got {key}"
            hint = UNUSED_HINTS.get(str(key)) or f"it belongs to {', '.join(sorted(owners))}"
            yield draft.problem(place, message, code="method-key", hint=hint, at_key=True)


def required_keys(draft: Draft) -> Iterator[Problem]:
    """A method has the keys that it requires, such as seed and run_cap."""
    method, keys = draft.get("method", kind=str), draft.names()
    for key, methods, hint in (
        ("seed", DRAWING_METHODS, "for example seed: 0; the same seed, the same trials"),
        ("run_cap", SAMPLING_METHODS, "how many assignments to draw, for example run_cap: 50"),
        (
            "parameters",
            DRAWING_METHODS | {GRID},
            "for example parameters: {learning_rate: {values: [0.01, 0.1]}}",
        ),
        (
            "assignments",
            {LIST},
            "for example assignments: [{learning_rate: 0.1}], or NAME.csv next to the spec",
        ),
        ("rounds", ADAPTIVE_METHODS, "for example rounds: {size: 8, max: 12}; eight assignments at a time"),
        ("resource", RESOURCE_METHODS, "for example resource: {parameter: epochs, min: 1, max: 27}"),
    ):
        if method in methods and key not in keys:
            message = f"must be given with method: {method}"
            yield draft.problem((key,), message, code="missing-key", hint=hint, at_key=True)


def grid_domains(draft: Draft) -> Iterator[Problem]:
    """The parameters of a grid have countable values."""
    section = search_section(draft)
    for leaf in section.leaves.values() if section.method == GRID else ():
        if "probabilities" in draft.names(*leaf.path):
            message, place = ("must not be given in a grid, got probabilities", (*leaf.path, "probabilities"))
            hint = "a grid tries every value; method: random draws by probability"
            yield draft.problem(place, message, code="grid-domain", hint=hint, at_key=True)
        elif (kind := _uncountable(draft, leaf)) is not None:
            message = f"must be countable in a grid, got {kind}"
            hint = _countable_hint(kind)
            yield draft.problem(leaf.path, message, code="grid-domain", hint=hint, at_key=True)


def _uncountable(draft: Draft, leaf: Leaf) -> str | None:
    """Return the name of a parameter's continuous domain; None if it is countable or invalid."""
    kind, keys = distribution_of(draft, leaf) or ("", {})
    if not kind or FORMS[kind].is_countable or {"step", "count"} & {*draft.names(*leaf.path)}:
        return None
    return f"distribution: {kind}" if "distribution" in keys else "min and max alone"


def _countable_hint(found: str) -> str:
    if found == "min and max alone":
        return "add step: 0.1 or count: 5, or let a method draw: random, sobol, halton, latin-hypercube"
    kind = found.removeprefix("distribution: ")
    if "count" in FORMS[kind].keys:
        return "add count: 5, or let a method draw: random, sobol, halton, latin-hypercube"
    return "write values, or let a method draw: random, sobol, halton, latin-hypercube"


END_KEYS = (("rounds", "max"), ("rounds", "patience"), ("run_cap",), ("budget",), ("metric", "target"))
SMALLEST_POPULATION = 2


def search_end(draft: Draft) -> Iterator[Problem]:
    """An adaptive search has an end, because merging the spec approves all of its rounds."""
    method = _adaptive_method(draft)
    if method is None or method.ends or not draft.names("rounds"):
        return
    if not any(place[-1] in draft.names(*place[:-1]) for place in END_KEYS):
        message, hint = "must have an end, got only a size", "for example max: 12, or run_cap at the top"
        yield draft.problem(("rounds",), message, code="search-endless", hint=hint, at_key=True)


def overlapping_rounds(draft: Draft) -> Iterator[Problem]:
    """Rounds overlap only if a round does not compare all trials of the one before."""
    method, ahead = _adaptive_method(draft), draft.number("rounds", "ahead")
    if method is not None and not method.overlaps and ahead is not None and ahead > 1:
        overlapping = methods_with(lambda each: each.overlaps)
        message = f"must be 1 with method: {method}, got {safe_repr(ahead)}"
        hint = f"its rounds need all results of the round before; {', '.join(overlapping)} overlap"
        yield draft.problem(("rounds", "ahead"), message, code="out-of-range", hint=hint)


def population_size(draft: Draft) -> Iterator[Problem]:
    """A round has at least two configurations if trials are compared within it."""
    method, size = _adaptive_method(draft), draft.number("rounds", "size")
    if method is not None and not method.overlaps and size is not None and size < SMALLEST_POPULATION:
        message = f"must be at least {SMALLEST_POPULATION} with method: {method}, got {safe_repr(size)}"
        yield draft.problem(("rounds", "size"), message, code="out-of-range")


def replicates(draft: Draft) -> Iterator[Problem]:
    """With a resource, a configuration is one trial, because the next trial continues from its checkpoints."""
    method, count = _resource_method(draft), draft.number("replicates")
    if method is not None and count is not None and count > 1:
        message = f"must not be given with {method}, got replicates"
        hint = "each trial continues from one other; repeat the best configurations in a separate sweep"
        yield draft.problem(("replicates",), message, code="method-key", hint=hint, at_key=True)


def numeric_space(draft: Draft) -> Iterator[Problem]:
    """Some methods need two numeric parameters without conditions."""
    section, method = search_section(draft), _adaptive_method(draft)
    if method is None or not method.needs_numbers or not section.is_whole:
        return
    leaves = [leaf for leaf in section.leaves.values() if not leaf.conditions]
    lists = [draft.get(*leaf.path, "values", kind=list) for leaf in leaves]
    numbers = sum(values is not None and all(map(is_number, values)) for values in lists)
    kinds = [distribution_of(draft, leaf) for leaf in leaves]
    numbers += sum(found is not None and not FORMS[found[0]].is_listed for found in kinds)
    if numbers < SMALLEST_POPULATION:
        message = f"must have two numeric parameters without conditions with method: {method}, got {numbers}"
        hint = "method: tpe takes all types of parameters, and conditions"
        yield draft.problem(("parameters",), message, code="search-space", hint=hint, at_key=True)


def _adaptive_method(draft: Draft) -> Method | None:
    return METHODS.get(draft.get("method", kind=str) or "")


def _resource_method(draft: Draft) -> str | None:
    """Return how messages name a method whose trials continue from others; None for other methods."""
    method = draft.get("method", kind=str)
    return f"method: {method}" if method in RESOURCE_METHODS else None


def iteration_bounds(draft: Draft) -> Iterator[Problem]:
    """The largest resource is more than the smallest, and max_iter at least min_iter."""
    for holder, end, least in (("resource", "", 1), ("early_terminate", "_iter", 0)):
        low, high = (draft.number(holder, f"{key}{end}") for key in ("min", "max"))
        if low is not None and high is not None and high < low + least:
            message = f"must be {'greater than' if least else 'at least'} min{end} ({low}), got {high}"
            place = (holder, f"max{end}")
            yield draft.problem(place, message, code="range-inverted", hint="swap them")


def kept_checkpoints(draft: Draft) -> Iterator[Problem]:
    """A method whose trials continue from checkpoints of others needs a store that keeps them."""
    method, store = _resource_method(draft), draft.settings.results.store
    continues = draft.get("resource", "continues", kind=bool) is not False
    if method is not None and continues and not store.facts.keeps_files:
        message = (
            f"needs checkpoints of earlier trials, which results.store: {store} does not keep, got "
            + method.removeprefix("method: ")
        )
        hint = "choose store: volume, claim or bucket in sweepledger.yaml, or a method such as tpe with "
        hint += "early_terminate; or resource.continues: false, if promoted trials may begin anew"
        yield draft.problem(("method",), message, code="store-unsupported", hint=hint)


def population_continues(draft: Draft) -> Iterator[Problem]:
    """The members of a population train on: without their checkpoints nothing of it would be left."""
    method = _adaptive_method(draft)
    if method is not None and method.must_continue and draft.get("resource", "continues", kind=bool) is False:
        message = f"must be true with method: {method}, got false"
        hint = "asha, halving and hyperband may begin anew"
        yield draft.problem(("resource", "continues"), message, code="out-of-range", hint=hint)


def start_sweeps(draft: Draft) -> Iterator[Problem]:
    """`start` names other sweeps, each once."""
    seen = {draft.get("name", kind=str)}
    for item_place, item in draft.items("start"):
        place, name = item_place, item
        if not isinstance(item, str):
            place, name = (*item_place, "sweep"), draft.get(*item_place, "sweep", kind=str)
        if not isinstance(name, str):
            continue
        if not SWEEP_NAME.fullmatch(name) or name in RESERVED_SWEEP_NAMES:
            message, hint = f"must be a sweep's name, got {safe_repr(name)}", "`sweep status` lists them"
            yield draft.problem(place, message, code="start-sweep", hint=hint)
        elif name in seen:
            message = f"must name other sweeps, each once, got {safe_repr(name)}"
            hint = "a search always uses its own results; delete it"
            yield draft.problem(place, message, code="start-sweep", hint=hint)
        seen.add(name)


def start_mappings(draft: Draft) -> Iterator[Problem]:
    """A mapping of `start` leads to parameters of this search."""
    search = search_section(draft)
    if not search.is_whole:
        return
    for place, item in draft.items("start"):
        if isinstance(item, str):
            continue
        renamed = [
            ((*place, "rename", there), draft.get(*place, "rename", there, kind=str))
            for there in draft.names(*place, "rename")
        ]
        given = [((*place, "values", name), name) for name in draft.names(*place, "values")]
        for path, name in (*renamed, *given):
            if name is not None and name not in search.leaves:
                message = f"must be a parameter of this search, got {safe_repr(name)}"
                hint = f"it has {', '.join(sorted(search.leaves))}"
                yield draft.problem(path, message, code="start-sweep", hint=hint)


EARLY_STOP = "early-stop"


def early_stopping_keys(draft: Draft) -> Iterator[Problem]:
    """`early_terminate` has only keys that its type uses, and those that it requires."""
    name, given = draft.get("early_terminate", "type", kind=str), {*draft.names("early_terminate")}
    kind = TYPES.get(name or "")
    if kind is None:
        return
    keys = sorted(kind.keys.split())
    for key in sorted(given - {"type", *keys}):
        message, hint = f"must not be given with type: {name}, got {key}", f"it has {', '.join(keys)}"
        yield draft.problem(("early_terminate", key), message, code=EARLY_STOP, hint=hint, at_key=True)
    for key in sorted(kind.required.keys() - given):
        message, hint = f"must be given with type: {name}", f"for example {kind.required[key]}"
        yield draft.problem(("early_terminate", key), message, code="missing-key", hint=hint, at_key=True)
    if (wrong := kind.problem(given)) is not None:
        message, hint = wrong
        yield draft.problem(("early_terminate",), message, code=EARLY_STOP, hint=hint, at_key=True)
    if kind.needs_target and "target" not in draft.names("metric"):
        message, hint = f"must be given with early_terminate: {{type: {name}}}", "for example target: 0.99"
        yield draft.problem(("metric", "target"), message, code="missing-key", hint=hint, at_key=True)


def early_stopping_alone(draft: Draft) -> Iterator[Problem]:
    """Warn if trials would be compared with the curves of a batch that contains all of them."""
    kind, method = draft.get("early_terminate", "type", kind=str), draft.get("method", kind=str)
    compares = kind in TYPES and TYPES[kind].policy.compares
    if not compares or method in ADAPTIVE_METHODS or "rounds" in draft.names():
        return
    if method is not None:
        message = f"{kind} compares with recorded trials, and all trials are requested in one batch"
        hint = "add for example rounds: {size: 8}, so that later rounds are compared with earlier ones"
        yield draft.warning(("early_terminate",), message, code="early-stop-alone", hint=hint, at_key=True)


def early_stopping_curve(draft: Draft) -> Iterator[Problem]:
    """Early stopping needs one metric, reported by step."""
    if not {"early_terminate", "metric"} <= {*draft.names()}:
        return
    if "other_metrics" in draft.names():
        message, hint = "must not be given with several metrics", "early stopping compares one metric"
        yield draft.problem(("early_terminate",), message, code=EARLY_STOP, hint=hint, at_key=True)
    elif (found := metric_format(draft)) is not None and found not in STREAM_FORMATS:
        message = f"must have a format with steps for early_terminate, got format: {found}"
        hint = "source: stdout with lines name=value, or format: jsonl"
        yield draft.problem(("metric",), message, code=EARLY_STOP, hint=hint, at_key=True)

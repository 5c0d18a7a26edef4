"""Metrics and search methods: how metrics are reported, the keys of each method, adaptive search, early stopping."""

from collections.abc import Iterator, Mapping

from sweepledger.distributions import FORMS
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.reader.metric_lines import pattern_error
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.names import named_items
from sweepledger.spec.schema_keys import example_hint, load_schema
from sweepledger.stopping import TYPES
from sweepledger.structs.methods import GRID, LIST, METHODS, NAMES, SAMPLERS, Method, methods_with
from sweepledger.structs.metric import DEFAULT_FORMATS, MetricFormat, MetricSource, Reduce
from sweepledger.structs.names import is_sweep_name
from sweepledger.structs.values import is_number

STREAM_FORMATS = frozenset(
    {MetricFormat.JSONL, MetricFormat.TEXT, MetricFormat.CSV, MetricFormat.REGEX, MetricFormat.TENSORBOARD}
)
"""Formats in which a trial can report a metric several times."""
FILE_FORMATS = frozenset({MetricFormat.JSON, MetricFormat.CSV, MetricFormat.TENSORBOARD})
"""Formats that standard output cannot have."""


def metric_goal(draft: Draft) -> Iterator[Problem]:
    """A metric should state its goal: the default, to minimize, would rank the worst accuracy first."""
    for place in _metric_paths(draft):
        name = draft.text(*place, "name")
        if name is not None and not draft.has(*place, "goal"):
            message = f"has no goal, so {safe_repr(name)} is minimized"
            hint = "write `goal: maximize`, or `goal: minimize` to confirm it"
            yield draft.warning(place, message, "goal-default", hint, at_key=place == METRIC)


def _metric_paths(draft: Draft) -> tuple[DocumentPath, ...]:
    return METRIC, *(place for place, _ in draft.items("other_metrics"))


METRIC: DocumentPath = ("metric",)
METRIC_FORMAT = "metric-format"


def source_format(draft: Draft) -> Iterator[Problem]:
    """Format, path, patterns and capture fit the source, as the launcher requires."""
    source, form, keys = _metric_source(draft), metric_format(draft), draft.names(*METRIC)
    if source is not MetricSource.RESULT and form in FILE_FORMATS:
        message = f"must be one of jsonl, log, regex, text if the source is {source}, got {str(form)!r}"
        hint = "jsonl reads one JSON object per line"
        yield draft.problem((*METRIC, "format"), message, METRIC_FORMAT, hint)
    if "path" in keys and source != MetricSource.RESULT:
        yield draft.unwanted((*METRIC, "path"), f"if the source is {source}", METRIC_FORMAT, "source: result")
    for needing, key, example in (
        (MetricFormat.TENSORBOARD if source == MetricSource.RESULT else None, "path", "path: runs"),
        (MetricFormat.REGEX, "patterns", r"patterns: ['loss=(?P<value>\S+)']"),
    ):
        if form is not None and form is needing and key not in keys:
            message = f"needs {key}, got format: {form}"
            yield draft.problem((*METRIC, "format"), message, METRIC_FORMAT, example)
    if "patterns" in keys and form is not None and form is not MetricFormat.REGEX:
        yield draft.unwanted((*METRIC, "patterns"), f"with the format {form}", METRIC_FORMAT, "format: regex")
    is_captured = (source, form, "path" in keys) == (MetricSource.RESULT, MetricFormat.JSONL, False)
    if draft.get(*METRIC, "capture", kind=bool) and not is_captured:
        message = "needs source: result and format: jsonl without path, got capture: true"
        hint = "captured metrics are lines of JSON in $SWEEP_RESULT"
        yield draft.problem((*METRIC, "capture"), message, METRIC_FORMAT, hint)
    for place, text in draft.texts(*METRIC, "patterns"):
        if why := pattern_error(text):
            yield draft.wrong(place, why, METRIC_FORMAT, r"loss=(?P<value>\S+) reads the objective")


def several_reports(draft: Draft) -> Iterator[Problem]:
    """`curve`, and `reduce` with `min` or `max`, need a format that can report a number several times."""
    form = metric_format(draft)
    if form is None or form in STREAM_FORMATS:
        return
    why, hint = f"the format {form}, which reports one number", "format: jsonl or text"
    if draft.text(*METRIC, "reduce") in {Reduce.MIN, Reduce.MAX}:
        yield draft.wrong((*METRIC, "reduce"), f"must be last with {why}", METRIC_FORMAT, hint)
    if draft.has(*METRIC, "curve"):
        yield draft.unwanted((*METRIC, "curve"), f"with {why}", METRIC_FORMAT, hint)


def _metric_source(draft: Draft) -> MetricSource | None:
    """Return the source in effect; None if the written source is invalid, which the structure check reports."""
    return draft.meaning(MetricSource, *METRIC, "source", default=MetricSource.RESULT)


def metric_format(draft: Draft) -> MetricFormat | None:
    """Return the format in effect; None if the written format is invalid, which the structure check reports."""
    source = _metric_source(draft)
    return draft.meaning(
        MetricFormat, *METRIC, "format", default=None if source is None else DEFAULT_FORMATS[source]
    )


MULTI_METRIC_METHODS = methods_with(lambda method: method.has_several_metrics)


def several_metrics(draft: Draft) -> Iterator[Problem]:
    """Several metrics have different names, a method for several, and no target."""
    if not draft.has("other_metrics"):
        return
    if draft.method not in MULTI_METRIC_METHODS:
        *others, last = MULTI_METRIC_METHODS
        hint = f"only {', '.join(others)} and {last} search for a Pareto front; other methods have one metric"
        yield draft.unwanted(("other_metrics",), f"with method: {draft.method}", "metrics", hint)
    if draft.has(*METRIC, "target"):
        hint = "a Pareto front has no single best value"
        yield draft.unwanted((*METRIC, "target"), "with several metrics", "metrics", hint)
    seen = set[str]()
    for place in _metric_paths(draft):
        name = draft.text(*place, "name")
        if name is not None and name in seen:
            message = f"must differ from the other metrics, got {safe_repr(name)} again"
            yield draft.problem((*place, "name"), message, "metrics")
        seen.add(name or "")


def metric_target(draft: Draft) -> Iterator[Problem]:
    """`target` needs a method that uses results, `rounds`, or early stopping at the target."""
    stop = draft.text("early_terminate", "type")
    is_used = draft.has("rounds") or (stop in TYPES and TYPES[stop].needs_target)
    if draft.method not in {*METHODS, None} and draft.has(*METRIC, "target") and not is_used:
        hint = "it belongs to adaptive methods, to sweeps with rounds, and to early_terminate: {type: target}"
        yield draft.unwanted((*METRIC, "target"), f"with method: {draft.method}", "method-key", hint)


SAMPLING_METHODS, ADAPTIVE_METHODS = frozenset(SAMPLERS), frozenset(METHODS)
DRAWING_METHODS = SAMPLING_METHODS | ADAPTIVE_METHODS
SEARCHES = DRAWING_METHODS | {GRID}
RESOURCE_METHODS = frozenset(methods_with(lambda method: not method.has_model))
STARTUP_METHODS = frozenset(methods_with(lambda method: method.has_startup))
NO_METHOD = frozenset[str]()
A_LIST = "a list is run as written; delete the key"
METHOD_KEYS: Mapping[DocumentPath, tuple[frozenset[str], frozenset[str], str | None]] = {
    ("parameters",): (frozenset(NAMES), SEARCHES, None),
    ("zip",): (SEARCHES, NO_METHOD, A_LIST),
    ("seed",): (DRAWING_METHODS, DRAWING_METHODS, "nothing is drawn; delete the key"),
    ("run_cap",): (SEARCHES, SAMPLING_METHODS, A_LIST),
    ("assignments",): (frozenset({LIST}), frozenset({LIST}), None),
    ("start",): (ADAPTIVE_METHODS, NO_METHOD, None),
    ("rounds",): (frozenset(NAMES), ADAPTIVE_METHODS, None),
    ("rounds", "startup"): (STARTUP_METHODS, NO_METHOD, None),
    ("resource",): (RESOURCE_METHODS, RESOURCE_METHODS, None),
    ("metric", "impute"): (ADAPTIVE_METHODS, NO_METHOD, "it belongs to adaptive methods"),
}
"""The methods that have a key, those that require it, and a hint for the others besides the names of those."""


def method_keys(draft: Draft) -> Iterator[Problem]:
    """A sweep has only keys that its method uses, and all keys that its method requires, such as seed and run_cap."""
    method, examples = draft.method, load_schema("sweep")["properties"]
    for place, (owners, requiring, reason) in METHOD_KEYS.items() if method is not None else ():
        is_given, key = draft.has(*place), str(place[-1])
        if is_given and method not in owners:
            hint = reason or f"it belongs to {', '.join(sorted(owners))}"
            yield draft.unwanted(place, f"with method: {method}", "method-key", hint)
        elif not is_given and method in requiring:
            message = f"must be given with method: {method}"
            yield draft.at_key(place, message, "missing-key", example_hint(examples[key], key))


def integer_bounds(draft: Draft) -> Iterator[Problem]:
    """Warn of two adjacent integers, which probably mean real numbers."""
    for leaf in draft.parameters.values() if draft.method in DRAWING_METHODS else ():
        kind, keys = leaf.distribution, leaf.keys
        if not kind or not FORMS[kind].is_integer or keys.keys() - {"min", "max", "when"}:
            continue
        low, high = keys["min"], keys["max"]
        if high - low == 1:
            message = f"two integer bounds mean integers: {low} or {high}"
            hint = f"write {low}.0 and {high}.0, or distribution: uniform, for what lies between; "
            hint += "distribution: int_uniform if integers are meant"
            yield draft.warning(leaf.path, message, "integer-bounds", hint, at_key=True)


def grid_domains(draft: Draft) -> Iterator[Problem]:
    """The parameters of a grid have countable values."""
    drawing = f"or let a method draw: {', '.join(SAMPLERS)}"
    for leaf in draft.parameters.values() if draft.method == GRID else ():
        form = FORMS.get(leaf.distribution)
        if "probabilities" in leaf.written:
            hint = "a grid tries every value; method: random draws by probability"
            yield draft.unwanted(leaf.at("probabilities"), "in a grid", "grid-domain", hint)
        elif form and not form.is_countable and not {"step", "count"} & leaf.written.keys():
            found, hint = "min and max alone", f"add step: 0.1 or count: 5, {drawing}"
            if "distribution" in leaf.keys:
                found = f"distribution: {leaf.distribution}"
                hint = f"{'add count: 5' if 'count' in form.keys else 'write values'}, {drawing}"
            yield draft.at_key(leaf.path, f"must be countable in a grid, got {found}", "grid-domain", hint)


END_KEYS = (("rounds", "max"), ("rounds", "patience"), ("run_cap",), ("budget",), ("metric", "target"))
SMALLEST_POPULATION = 2


def rounds(draft: Draft) -> Iterator[Problem]:
    """An adaptive search has an end, because merging the spec approves all of its rounds."""
    method = _adaptive_method(draft)
    if method is None:
        return
    ahead, size = draft.number("rounds", "ahead"), draft.number("rounds", "size")
    if not method.ends and draft.names("rounds") and not any(draft.has(*place) for place in END_KEYS):
        message, hint = "must have an end, got only a size", "for example max: 12, or run_cap at the top"
        yield draft.at_key(("rounds",), message, "search-endless", hint)
    # If trials are compared within a round, it has at least two configurations, and rounds do not overlap.
    if not method.overlaps and ahead is not None and ahead > 1:
        overlapping = ", ".join(methods_with(lambda each: each.overlaps))
        hint = f"its rounds need all results of the round before; {overlapping} overlap"
        yield draft.wrong(("rounds", "ahead"), f"must be 1 with method: {method}", "out-of-range", hint)
    if not method.overlaps and size is not None and size < SMALLEST_POPULATION:
        message = f"must be at least {SMALLEST_POPULATION} with method: {method}"
        yield draft.wrong(("rounds", "size"), message, "out-of-range")


def numeric_space(draft: Draft) -> Iterator[Problem]:
    """Some methods need two numeric parameters without conditions."""
    method = _adaptive_method(draft)
    if method is None or not method.needs_numbers or not draft.is_whole:
        return
    numbers = 0
    for leaf in (leaf for leaf in draft.parameters.values() if not leaf.conditions):
        values = draft.get(*leaf.at("values"), kind=list)
        numbers += values is not None and all(map(is_number, values))
        numbers += bool(leaf.distribution) and not FORMS[leaf.distribution].is_listed
    if numbers < SMALLEST_POPULATION:
        message = f"must have two numeric parameters without conditions with method: {method}, got {numbers}"
        hint = "method: tpe takes all types of parameters, and conditions"
        yield draft.at_key(("parameters",), message, "search-space", hint)


def _adaptive_method(draft: Draft) -> Method | None:
    return METHODS.get(draft.method or "")


def iteration_bounds(draft: Draft) -> Iterator[Problem]:
    """The largest resource is more than the smallest, and max_iter at least min_iter."""
    for holder, end, least in (("resource", "", 1), ("early_terminate", "_iter", 0)):
        low, high = (draft.number(holder, f"{key}{end}") for key in ("min", "max"))
        if low is not None and high is not None and high < low + least:
            message = f"must be {'greater than' if least else 'at least'} min{end} ({low}), got {high}"
            yield draft.problem((holder, f"max{end}"), message, "range-inverted", "swap them")


def continued_trials(draft: Draft) -> Iterator[Problem]:
    """Trials that continue from checkpoints of others need a store that keeps them, and have no replicates."""
    method, store, count = _adaptive_method(draft), draft.settings.results.store, draft.number("replicates")
    if method is None:
        return
    begins_anew = draft.get("resource", "continues", kind=bool) is False
    if not method.has_model and count is not None and count > 1:
        hint = "each trial continues from one other; repeat the best configurations in a separate sweep"
        yield draft.unwanted(("replicates",), f"with method: {method}", "method-key", hint)
    if not method.has_model and not begins_anew and not store.facts.keeps_files:
        message = "needs checkpoints of earlier trials, "
        message += f"which results.store: {store} does not keep, got {method}"
        hint = "choose store: volume, claim or bucket in sweepledger.yaml, or a method such as tpe with "
        hint += "early_terminate; or resource.continues: false, if promoted trials may begin anew"
        yield draft.problem(("method",), message, "store-unsupported", hint)
    # The members of a population continue training.
    if method.must_continue and begins_anew:
        message, hint = f"must be true with method: {method}", "asha, halving and hyperband may begin anew"
        yield draft.wrong(("resource", "continues"), message, "out-of-range", hint)


def start(draft: Draft) -> Iterator[Problem]:
    """`start` names other sweeps, each once, and a mapping there has parameters of this search as targets."""
    seen = {draft.text("name")}
    for place, name in named_items(draft, "start", "sweep"):
        if not is_sweep_name(name):
            yield draft.wrong(place, "must be a sweep's name", "start-sweep", "`sweep status` lists them")
        elif name in seen:
            hint = "a search always uses its own results; delete it"
            yield draft.wrong(place, "must name other sweeps, each once", "start-sweep", hint)
        seen.add(name)
    for place, _ in draft.items("start") if draft.is_whole else ():
        given = (((*place, "values", name), name) for name in draft.names(*place, "values"))
        for path, name in (*draft.texts(*place, "rename"), *given):
            if name not in draft.parameters:
                message = f"must be a parameter of this search, got {safe_repr(name)}"
                hint = f"it has {', '.join(sorted(draft.parameters))}"
                yield draft.problem(path, message, "start-sweep", hint)


EARLY_STOP = "early-stop"


def early_stopping_keys(draft: Draft) -> Iterator[Problem]:
    """`early_terminate` has only keys that its type uses, and all keys that its type requires."""
    place: DocumentPath = ("early_terminate",)
    name, given = draft.text(*place, "type"), {*draft.names(*place)}
    kind = TYPES.get(name or "")
    if kind is None:
        return
    keys = sorted(kind.keys.split())
    for key in sorted(given - {"type", *keys}):
        yield draft.unwanted((*place, key), f"with type: {name}", EARLY_STOP, f"it has {', '.join(keys)}")
    for key in sorted(kind.required.keys() - given):
        hint = f"for example {kind.required[key]}"
        yield draft.at_key((*place, key), f"must be given with type: {name}", "missing-key", hint)
    if (wrong := kind.problem(given)) is not None:
        message, hint = wrong
        yield draft.at_key(place, message, EARLY_STOP, hint)
    if kind.needs_target and not draft.has(*METRIC, "target"):
        message = f"must be given with early_terminate: {{type: {name}}}"
        yield draft.at_key((*METRIC, "target"), message, "missing-key", "for example target: 0.99")


def early_stopping(draft: Draft) -> Iterator[Problem]:
    """Early stopping needs one metric, reported by step; warn if all trials of a sweep are in one batch."""
    place, kind, form = ("early_terminate",), draft.text("early_terminate", "type"), metric_format(draft)
    compares = kind in TYPES and TYPES[kind].policy.compares
    if compares and draft.method not in {*ADAPTIVE_METHODS, None} and not draft.has("rounds"):
        message = f"{kind} compares with recorded trials, and all trials are requested in one batch"
        hint = "add for example rounds: {size: 8}, so that later rounds are compared with earlier ones"
        yield draft.warning(place, message, "early-stop-alone", hint, at_key=True)
    if not (draft.has(*place) and draft.has(*METRIC)):
        return
    if draft.has("other_metrics"):
        message, hint = "must not be given with several metrics", "early stopping compares one metric"
        yield draft.at_key(place, message, EARLY_STOP, hint)
    elif form is not None and form not in STREAM_FORMATS:
        message = f"must have a format with steps for early_terminate, got format: {form}"
        hint = "source: stdout with lines name=value, or format: jsonl"
        yield draft.at_key(METRIC, message, EARLY_STOP, hint)

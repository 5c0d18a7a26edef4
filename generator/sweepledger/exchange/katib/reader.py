"""A Katib Experiment, v1alpha3 or v1beta1, as a spec: every key is either used or listed as a loss.

Includes its algorithm and its early stopping.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sweepledger.exchange.conversion import Imported, Loss, LossList
from sweepledger.exchange.fields import Fields, show_value
from sweepledger.exchange.katib.parameters import ImportedParameter, read_parameters
from sweepledger.exchange.katib.trial_template import read_trial_template
from sweepledger.exchange.spec_parts import ForeignSearch, metric_name, size_keys
from sweepledger.formats import foreign_yaml
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.reader.launcher_parts import LONGEST_MATCH
from sweepledger.reader.metric_lines import pattern_error
from sweepledger.structs.metric import Reduce
from sweepledger.structs.names import suggest_sweep_name

DEFAULT_FILTER = r"([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)"
"""Katib's filter of lines `name=value`, which the format `text` finds, too."""

PRINT = "print lines `name=value`"
OTHER_COLLECTORS = {
    "TensorFlowEvent": (
        "the program must write its event files below its working directory: then write `source: result`, "
        f"`format: tensorboard`, and their folder as `path`; or {PRINT}"
    ),
    "PrometheusMetric": f"a trial serves no metrics here; {PRINT}",
    "Custom": f"a collector of your own does not run here; {PRINT}",
    "Push": f"the program reports to Katib's database; {PRINT}",
    "None": f"Katib reads no metrics; {PRINT}",
}


GROUP_NAMES = ("(?P<name>", "(?P<value>")
"""Katib reads the name and the value in the first two groups of a filter."""
ONLY_GO = re.compile(r"\[\[|\[:|&&|--|\|\||~~|\{,|[*+?}]\+|\(\?(?!:)")
"""What Go's regular expressions read in another way than Python's, or not at all."""
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?:|.", re.DOTALL)
"""An escape, a set of characters, the start of a group, or another character."""


def pattern_of_filter(text: str) -> str | None:
    """Return the pattern that finds what a filter of Katib finds; None if there is no equal one."""
    if len(text) > LONGEST_MATCH or ONLY_GO.search(text):
        return None
    names = iter(GROUP_NAMES)
    parts = [next(names, "(?:") if part == "(" else part for part in _TOKEN.findall(text)]
    pattern = "".join(parts)
    has_both = next(names, None) is None
    return pattern if has_both and not pattern_error(pattern) else None


def read_collector(
    collector: Fields, losses: LossList, *, is_renamed: bool
) -> tuple[dict[str, Any], str | None]:
    """Return the keys of how the program reports its metrics, and the file that it writes; None: standard output.

    `is_renamed`: the metric has another name here, which a filter would not find.
    """
    chosen, source = collector.inner("collector"), collector.inner("source")
    kind = chosen.text("kind") or "StdOut"
    filters = [str(item) for item in source.inner("filter").items("metricsFormat")]
    if set(filters) == {DEFAULT_FILTER}:
        filters = []
    patterns = [] if is_renamed or kind not in {"StdOut", "File"} else _patterns(filters)
    can_read = len(patterns) == len(filters)
    keys, file = _from_file(source, losses) if kind == "File" and can_read else ({}, None)
    if file is None:
        keys = {"source": "stdout"}
        if kind == "File":
            losses.add(f"{source.at('fileSystemPath')}", f"{PRINT} instead of writing this file")
            source.inner("fileSystemPath").taken |= {"path", "kind"}
    if not can_read:
        why = f"has no equal pattern here; {PRINT}, or write `format: regex` and `patterns`"
        losses.add(f"{source.at('filter.metricsFormat')}: {show_value(filters)}", why)
    elif patterns and keys.get("format") != "jsonl":
        keys |= {"format": "regex", "patterns": patterns}
    if kind in OTHER_COLLECTORS:
        losses.add(f"{chosen.at('kind')}: {kind}", OTHER_COLLECTORS[kind])
    elif kind not in {"StdOut", "File"}:
        losses.add(f"{chosen.at('kind')}: {kind}", f"is not a collector of Katib; {PRINT}")
    return keys, file


def _patterns(filters: Sequence[str]) -> list[str]:
    return [pattern for text in filters if (pattern := pattern_of_filter(text)) is not None]


def _from_file(source: Fields, losses: LossList) -> tuple[dict[str, Any], str | None]:
    """Return the keys and the path of a file with lines of text or JSON; None if the path is not a file."""
    place = source.inner("fileSystemPath")
    path, kind, form = place.text("path"), place.text("kind"), place.text("format") or "TEXT"
    if path is None or kind not in {None, "File"} or form not in {"TEXT", "JSON"}:
        return {}, None
    if form == "JSON":
        why = "numbers must be JSON numbers here; Katib also reads them in quotes, as hypertune writes them"
        losses.add(f"{place.at('format')}: JSON", why)
    return {"source": "result", "format": "jsonl" if form == "JSON" else "text"}, path


METHOD_OF_ALGORITHM = {
    "grid": "grid",
    "random": "random",
    "sobol": "sobol",
    "tpe": "tpe",
    "multivariate-tpe": "tpe",
    "bayesianoptimization": "bayes",
    "cmaes": "cma-es",
    "hyperband": "hyperband",
    "pbt": "pbt",
}
ARCHITECTURES = frozenset({"enas", "darts"})
USUAL_ROUND = 3
"""Katib's default parallelTrialCount."""
FEWEST_NUMBERS = 2
USUAL_POPULATION = 40
USUAL_ETA = 3

STOPPED_WHEN = "trials are stopped by medians of earlier batches; Katib compares running trials"


@dataclass(frozen=True, slots=True)
class ImportedAlgorithm:
    """The method of a spec for an Experiment's algorithm."""

    name: str
    """Katib's name."""
    method: str
    seed: int | None
    settings: dict[str, Fields]
    """Unused settings by name."""
    place: str


def read_algorithm(algorithm: Fields) -> ImportedAlgorithm:
    """Return the method of an Experiment. Raises ForeignError for searches of neural architectures."""
    name = algorithm.text("algorithmName") or ""
    place = f"{algorithm.at('algorithmName')}: {name}"
    if name in ARCHITECTURES:
        raise ForeignError(
            f"{place} searches neural architectures, not hyperparameters",
            hint="a sweep varies values; let the program build the network from them",
        )
    settings = {setting.text("name") or "": setting for setting in algorithm.each("algorithmSettings")}
    method, seed = METHOD_OF_ALGORITHM.get(name, "random"), None
    state = settings.get("random_state")
    value = state.text("value") if state and method != "grid" else None
    if value is not None and value.isdecimal():
        seed = int(value)
        del settings["random_state"]
    return ImportedAlgorithm(name, method, seed, settings, place)


def search_keys(
    algorithm: ImportedAlgorithm,
    imported: Sequence[ImportedParameter],
    search: ForeignSearch,
    losses: LossList,
) -> dict[str, Any]:
    """Return the method, and the number of trials, seed and rounds."""
    keys: dict[str, Any] | None = None
    method = algorithm.method
    if method == "hyperband":
        keys = _hyperband(algorithm, imported, losses)
    elif method == "pbt":
        keys = _population(algorithm, losses)
    elif method == "cma-es" and sum(parameter.is_numeric for parameter in imported) < FEWEST_NUMBERS:
        losses.add(algorithm.place, "needs two numeric parameters; written as tpe")
        method = "tpe"
    if keys is not None:
        return {"method": method, "seed": search.seed or 0, **keys} | (
            {} if search.cap is None else {"run_cap": search.cap}
        )
    method = "tpe" if method == "hyperband" else method
    return {"method": method} | size_keys(replace(search, method=method), losses)


def _hyperband(
    algorithm: ImportedAlgorithm, imported: Sequence[ImportedParameter], losses: LossList
) -> dict[str, Any] | None:
    most, eta = _whole(algorithm, "r_l"), _whole(algorithm, "eta") or USUAL_ETA
    setting = algorithm.settings.pop("resource_name", None)
    foreign = setting.text("value") if setting else None
    name = next((parameter.name for parameter in imported if parameter.foreign == foreign), None)
    if most is None or name is None or most < eta or eta < 2:  # noqa: PLR2004 - eta is at least 2
        why = "needs r_l, at least eta, and the resource_name of a parameter; written as tpe"
        losses.add(algorithm.place, why)
        return None
    steps = int(math.log(most, eta) + 1e-9)
    resource = {"parameter": name, "min": max(1, most // eta**steps), "max": most, "eta": eta}
    why = f"is set by the method here, from {resource['min']} to {most}; its feasible space is left out"
    losses.add(f"parameters: {name}", why)
    return {"rounds": {"size": eta**steps}, "resource": resource}


def _population(algorithm: ImportedAlgorithm, losses: LossList) -> dict[str, Any]:
    size = _whole(algorithm, "n_population") or USUAL_POPULATION
    setting = algorithm.settings.pop("suggestion_trial_dir", None)
    if setting is not None:
        why = "the folder of checkpoints; here the program reads $SWEEP_PARENT and writes $SWEEP_CHECKPOINTS"
        losses.add(f"{setting.path}: suggestion_trial_dir: {setting.text('value')}", why)
    why = "Katib trains a fixed amount a generation; here `epochs` is how far each goes in all: adapt it"
    losses.add("resource", why)
    kept = ("truncation_threshold", "resample_probability")
    losses += [
        Loss(f"{setting.path}: {name}", "a fifth is replaced, and a quarter drawn anew, here")
        for name in kept
        if (setting := algorithm.settings.pop(name, None)) is not None
    ]
    resource = {"parameter": "epochs", "min": 1, "max": 10}
    return {"rounds": {"size": max(2, size)}, "resource": resource}


def _whole(algorithm: ImportedAlgorithm, name: str) -> int | None:
    setting = algorithm.settings.get(name)
    value = setting.text("value") if setting else None
    try:
        number = None if value is None else int(float(value))
    except (ValueError, OverflowError):
        return None
    if number is not None:
        del algorithm.settings[name]
    return number


def read_early_stopping(stopping: Fields, losses: LossList) -> dict[str, Any] | None:
    """Return the rule of early stopping; None if there is none, or if it is unknown."""
    if not stopping.data:
        return None
    name = stopping.text("algorithmName") or ""
    if name != "medianstop":
        why = "is not a rule of Katib; trials run to their end"
        losses.add(f"{stopping.at('algorithmName')}: {name}", why)
        return None
    rule: dict[str, Any] = {"type": "median", "min_trials": 3, "min_iter": 4}
    losses.add(f"{stopping.path}: medianstop", STOPPED_WHEN)
    for setting in stopping.each("algorithmSettings"):
        key, value = setting.text("name") or "", setting.text("value") or ""
        named = {"min_trials_required": "min_trials", "start_step": "min_iter"}.get(key)
        if named is None or not value.isdecimal() or int(value) < 1:
            losses.add(f"{setting.path}: {key}: {value}", "has no counterpart here")
        else:
            rule[named] = int(value)
    return rule


VERSIONS = ("kubeflow.org/v1alpha3", "kubeflow.org/v1beta1")
DEFAULT_STRATEGIES = {"maximize": "max", "minimize": "min"}
"""Katib's default strategies for the values that a trial prints."""
REDUCE_OF_STRATEGY = {"latest": Reduce.LAST, "max": Reduce.MAX, "min": Reduce.MIN}
"""Katib's strategies as reductions."""
OTHER_METRIC = "of metrics other than the objective, the last value counts here"
EVERY_METRIC = f"every metric that a trial reports is recorded without being listed; {OTHER_METRIC}"


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec for an Experiment. Raises ForeignError."""
    root = Fields.of(foreign_yaml.load(content, version="go"), "")
    version, kind = root.text("apiVersion"), root.text("kind")
    if version not in VERSIONS or kind != "Experiment":
        raise ForeignError(
            f"must be an Experiment of {' or '.join(VERSIONS)}, got {kind!r} of {version!r}",
            hint="`kubectl get experiment NAME -o yaml` shows one",
        )
    fields = root.inner("spec")
    losses = LossList()
    name = _identity(root, name, losses)
    algorithm = fields.inner("algorithm")
    method = read_algorithm(algorithm)
    metric, result_file = _metric(fields, losses)
    stopping = _stopping(algorithm, fields, losses)
    imported = read_parameters(fields.each("parameters"), algorithm=method.name)
    if not imported:
        why = "neural architecture search is not supported" if fields.data.get("nasConfig") else "it has none"
        raise ForeignError(f"spec.parameters must contain at least one parameter: {why}")
    search = ForeignSearch(
        "Katib",
        method.method,
        {parameter.name: parameter.domain for parameter in imported},
        cap=fields.whole("maxTrialCount"),
        seed=method.seed,
        at_once=fields.whole("parallelTrialCount") or USUAL_ROUND,
        uses_results=bool(stopping) or "target" in metric,
    )
    keys = search_keys(method, imported, search, losses)
    resource = keys.get("resource", {}).get("parameter")
    chosen = [parameter for parameter in imported if parameter.name != resource]
    spec: dict[str, Any] = {"name": name, "method": keys.pop("method"), **keys, "metric": metric}
    spec["parameters"] = {parameter.name: parameter.domain for parameter in chosen}
    if method.name not in METHOD_OF_ALGORITHM:
        losses.add(method.place, "is not an algorithm of Katib; written as random")
    losses += [
        Loss(f"{setting.path}: {key}: {setting.text('value')}", "has no counterpart here")
        for key, setting in method.settings.items()
    ]
    losses += [loss for parameter in chosen for loss in parameter.losses]
    spec |= stopping
    trial = read_trial_template(fields.inner("trialTemplate"), imported, result_file=result_file)
    spec |= trial.as_spec()
    losses += trial.losses
    if result_file is not None and not trial.passes_result_file:
        why = "is the file that Katib reads; write the metrics to the file $SWEEP_RESULT instead"
        losses.add(f"spec.metricsCollectorSpec: {result_file}", why)
    parallel = fields.whole("parallelTrialCount")
    if parallel is None:
        losses.add("spec.parallelTrialCount", "the file has none; written as 3, Katib's default")
    spec["run"] = {"parallelism": 3 if parallel is None else parallel, **spec["run"]}
    _max_failed(fields, spec, losses)
    losses += fields.lost("resumePolicy", "Katib's service is not used here")
    return Imported(spec, (*losses, *root.rest()))


def _identity(root: Fields, name: str, losses: LossList) -> str:
    """Return the Experiment's name if a sweep can have it, else the given name."""
    metadata = root.inner("metadata")
    foreign = metadata.text("name")
    name = suggest_sweep_name(foreign or "") or name
    if foreign not in {None, name}:
        losses.add(f"metadata.name: {foreign}", f"is named {name} here")
    losses += metadata.rest("belongs to the cluster")
    losses += root.lost("status", "is the state in a cluster, not part of the experiment")
    return name


def _stopping(algorithm: Fields, fields: Fields, losses: LossList) -> dict[str, Any]:
    """Return the rule of early stopping, which versions have in different places."""
    for place in (fields, algorithm):
        rule = read_early_stopping(place.inner("earlyStopping"), losses)
        if rule is not None:
            return {"early_terminate": rule}
    return {}


def _metric(fields: Fields, losses: LossList) -> tuple[dict[str, Any], str | None]:
    """Return the key `metric`, and the file that the program writes."""
    objective = fields.inner("objective")
    foreign, goal = objective.text("objectiveMetricName"), objective.text("type")
    if foreign is None or goal not in {"maximize", "minimize"}:
        raise ForeignError(
            "spec.objective must have an objectiveMetricName, and the type maximize or minimize"
        )
    name = metric_name(foreign, losses)
    target = objective.data.get("goal")
    if isinstance(target, int | float) and not isinstance(target, bool):
        objective.take("goal")
    else:
        target = None
        losses += objective.lost("goal", "is not a number; no value ends the sweep")
    losses += objective.lost("additionalMetricNames", EVERY_METRIC)
    reduce = _reduced(objective, foreign, DEFAULT_STRATEGIES[goal], losses)
    keys, file = read_collector(fields.inner("metricsCollectorSpec"), losses, is_renamed=name != foreign)
    reduction = {} if reduce is Reduce.LAST else {"reduce": str(reduce)}
    target_key = {} if target is None else {"target": target}
    return {"name": name, "goal": goal, **keys, **reduction, **target_key}, file


def _reduced(objective: Fields, foreign: str, usual: str, losses: LossList) -> Reduce:
    """Return which of the objective's values counts; strategies of other metrics are losses."""
    strategy = usual
    for entry in objective.each("metricStrategies"):
        name, value = entry.text("name"), entry.text("value") or usual
        if name == foreign and value not in REDUCE_OF_STRATEGY:
            raise ForeignError(f"{entry.at('value')} must be latest, max or min, got {value!r}")
        if name == foreign:
            strategy = value
        elif value != "latest":
            losses.add(f"{entry.path}: {name}: {value}", OTHER_METRIC)
    return REDUCE_OF_STRATEGY[strategy]


def _max_failed(fields: Fields, spec: dict[str, Any], losses: LossList) -> None:
    """Set how many failed trials a batch tolerates, which only an Indexed Job counts."""
    run, method = spec["run"], spec["method"]
    if "shape" in run or method in {"hyperband", "pbt"}:
        what = f"shape {run['shape']}" if "shape" in run else f"method {method}"
        losses += fields.lost("maxFailedTrialCount", f"with {what}, a failed trial does not stop others")
    elif (most := fields.whole("maxFailedTrialCount")) is not None:
        run["max_failed"] = most

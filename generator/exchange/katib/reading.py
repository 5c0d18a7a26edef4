"""An Experiment of Katib, v1alpha3 or v1beta1, as a spec; every key of it is used or named as lost."""

from collections.abc import Sequence
from math import prod
from typing import Any

from generator.exchange.katib import algorithms, spaces, template
from generator.exchange.katib.algorithms import Algorithm
from generator.exchange.katib.fields import Fields
from generator.exchange.loss import ForeignError, Imported, Loss
from generator.exchange.names import metric_name, sweep_name
from generator.formats import foreign_yaml
from generator.structs.reporting import Reduce

VERSIONS = ("kubeflow.org/v1alpha3", "kubeflow.org/v1beta1")
UNLIMITED = 100
"""Trials of an Experiment that sets no limit of its own."""

USUAL = {"maximize": "max", "minimize": "min"}
"""What Katib takes of the values that a trial prints, where no strategy says anything else."""
REDUCED = {"latest": Reduce.LAST, "max": Reduce.MAX, "min": Reduce.MIN}
"""Its strategies, and what they are called here."""
OTHER_METRIC = "of every metric but the objective the last value counts here"
EVERY_METRIC = f"every metric that a trial reports is recorded, without being named; {OTHER_METRIC}"


def read(content: bytes, *, name: str) -> Imported:
    """Make a spec of an Experiment. Raises ForeignError."""
    root = Fields.of(foreign_yaml.load(content), "")
    version, kind = root.text("apiVersion"), root.text("kind")
    if version not in VERSIONS or kind != "Experiment":
        raise ForeignError(
            f"must be an Experiment of {' or '.join(VERSIONS)}, got {kind!r} of {version!r}",
            hint="`kubectl get experiment NAME -o yaml` shows one",
        )
    fields = root.inner("spec")
    name, losses = _identity(root, name)
    losses += root.rest()
    algorithm = fields.inner("algorithm")
    method = algorithms.read(algorithm)
    metric = _metric(fields, losses, is_searched=method.method in algorithms.BY_ROUNDS)
    search, more = _search(method)
    stopping = _stopping(algorithm, fields, losses)
    found = spaces.parameters(fields.each("parameters"), draws=search["method"] != "grid")
    if not found:
        why = "neural architecture search is not supported" if fields.data.get("nasConfig") else "it has none"
        raise ForeignError(f"spec.parameters must hold at least one parameter: {why}")
    spec: dict[str, Any] = {"name": name, "method": search.pop("method"), "metric": metric}
    if method.method in algorithms.BY_ROUNDS:
        at_once = fields.whole("parallelTrialCount")
        rounds, told = algorithms.searched(method, found, at_once)
        search |= rounds
        spec["method"] = search.pop("method")
        losses += told
    resource = search.get("resource", {}).get("parameter")
    chosen = [parameter for parameter in found if parameter.name != resource]
    spec["parameters"] = {parameter.name: parameter.domain for parameter in chosen}
    losses += [*method.losses, *algorithms.unused(method), *algorithm.rest(), *more, *spaces.losses(chosen)]
    spec |= search | _limit(fields, chosen, spec["method"], losses) | stopping
    trial = template.read(fields.inner("trialTemplate"), found)
    spec |= trial.as_spec()
    losses += trial.losses
    _parallelism(fields, spec, losses)
    return Imported(spec, (*losses, *fields.rest()))


def _identity(root: Fields, name: str) -> tuple[str, list[Loss]]:
    """Take the Experiment's name where a sweep can have it."""
    metadata = root.inner("metadata")
    foreign = metadata.text("name")
    name = sweep_name(foreign or "") or name
    losses = [] if foreign in {None, name} else [Loss(f"metadata.name: {foreign}", f"is called {name} here")]
    losses += metadata.rest("is the cluster's")
    losses += root.lost("status", "tells what a cluster found, not what was asked for")
    return name, losses


def _search(algorithm: Algorithm) -> tuple[dict[str, Any], list[Loss]]:
    """Say how assignments are found, and by which seed."""
    if algorithm.method == "grid":
        return {"method": "grid"}, []
    why = "the file has none; 0 stands there, so the same trials are drawn every time"
    losses = [Loss("seed", why)]
    if algorithm.seed is not None:
        losses = [Loss("random_state", "is the seed here, but Katib draws other values from the same one")]
    return {"method": algorithm.method, "seed": algorithm.seed or 0}, losses


def _stopping(algorithm: Fields, fields: Fields, losses: list[Loss]) -> dict[str, Any]:
    """Take the rule of early stopping, wherever a version has it."""
    for place in (fields, algorithm):
        rule, more = algorithms.early_stopping(place.inner("earlyStopping"))
        losses += more
        if rule is not None:
            return {"early_terminate": rule}
    return {}


def _metric(fields: Fields, losses: list[Loss], *, is_searched: bool) -> dict[str, Any]:
    objective = fields.inner("objective")
    foreign, goal = objective.text("objectiveMetricName"), objective.text("type")
    if foreign is None or goal not in {"maximize", "minimize"}:
        raise ForeignError(
            "spec.objective must have an objectiveMetricName, and the type maximize or minimize"
        )
    name = metric_name(foreign)
    if name != foreign:
        losses.append(Loss(f"spec.objective.objectiveMetricName: {foreign}", f"is called {name} here"))
    target = objective.data.get("goal") if is_searched else None
    if isinstance(target, int | float) and not isinstance(target, bool):
        objective.take("goal")
    else:
        target = None
        losses += objective.lost("goal", "a sweep that knows its trials runs all of them")
    losses += objective.lost("additionalMetricNames", EVERY_METRIC)
    reduce = _reduced(objective, foreign, USUAL[goal], losses)
    losses += objective.rest()
    _collector(fields.inner("metricsCollectorSpec"), losses)
    said = {} if reduce is Reduce.LAST else {"reduce": str(reduce)}
    wished = {} if target is None else {"target": target}
    return {"name": name, "goal": goal, "source": "stdout", **said, **wished}


def _reduced(objective: Fields, foreign: str, usual: str, losses: list[Loss]) -> Reduce:
    """Find which of the objective's values counts; what is said of other metrics is lost."""
    strategy = usual
    for entry in objective.each("metricStrategies"):
        name, value = entry.text("name"), entry.text("value") or usual
        if name == foreign and value not in REDUCED:
            raise ForeignError(f"{entry.at('value')} must be latest, max or min, got {value!r}")
        if name == foreign:
            strategy = value
        elif value != "latest":
            losses.append(Loss(f"{entry.path}: {name}: {value}", OTHER_METRIC))
        losses += entry.rest()
    return REDUCED[strategy]


def _collector(collector: Fields, losses: list[Loss]) -> None:
    chosen = collector.inner("collector")
    kind = chosen.text("kind")
    if kind not in {None, "StdOut"}:
        why = "metrics are read from lines `name=value` on standard output here: print them"
        losses.append(Loss(f"{chosen.at('kind')}: {kind}", why))
    losses += [*chosen.rest(), *collector.rest()]


def _limit(fields: Fields, found: Sequence[spaces.Read], method: str, losses: list[Loss]) -> dict[str, Any]:
    """Say how many trials; a grid is as large as it is, unless Katib would have stopped before its end."""
    limit = fields.whole("maxTrialCount")
    counts = [parameter.count for parameter in found]
    size = None if None in counts else prod(count for count in counts if count is not None)
    if method not in {"grid", "hyperband", "pbt"} and limit is None:
        losses.append(Loss("spec.maxTrialCount", f"the file sets no limit; {UNLIMITED} stands there"))
        limit = UNLIMITED
    if method in {"hyperband", "pbt"}:
        return {} if limit is None else {"run_cap": limit}
    if limit is not None and size is not None and limit > size:
        why = f"the space has only {size} combinations, and each is one trial here"
        losses.append(Loss(f"spec.maxTrialCount: {limit}", why))
        limit = size
    if method != "grid":
        return {"run_cap": limit}
    if limit is None or size is None or limit == size:
        return {}
    why = f"Katib takes the first {limit} of {size} combinations, we take as many in the order of seed 0"
    losses.append(Loss(f"spec.maxTrialCount: {limit}", why))
    return {"run_cap": limit, "grid_order": "shuffled", "seed": 0}


def _parallelism(fields: Fields, spec: dict[str, Any], losses: list[Loss]) -> None:
    parallel = fields.whole("parallelTrialCount")
    if parallel is None:
        losses.append(Loss("spec.parallelTrialCount", "the file has none; Katib's default, 3, stands there"))
    spec["run"] = {"parallelism": 3 if parallel is None else parallel, **spec["run"]}
    losses += fields.lost("maxFailedTrialCount", "a failed trial stops no other here")
    losses += fields.lost("resumePolicy", "Katib's service; there is none here to be resumed")

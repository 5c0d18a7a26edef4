"""A HyperParameterTuningJob of SageMaker: the object of its Kubernetes controller (ACK), or the request of its API."""

from collections.abc import Mapping
from typing import Any

from sweepledger.exchange.conversion import Imported, Loss
from sweepledger.exchange.fields import Fields, exact_number, no_values, spec_number
from sweepledger.exchange.search_frame import ForeignSearch, parameter_names, run_keys, search_spec
from sweepledger.exchange.spec_parts import CODE_DIR, PROGRAM
from sweepledger.formats import foreign_yaml
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.names import suggest_sweep_name

TOOL = "SageMaker"
METHODS = {"Bayesian": "bayes", "Random": "random", "Grid": "grid", "Hyperband": "tpe"}
KINDS = ("HyperParameterTuningJob", "HyperparameterTuningJob")
"""Of ACK, and of the operator before it, whose constants are a list."""
RANGES = ("integerParameterRanges", "continuousParameterRanges", "categoricalParameterRanges")


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec for a tuning job. Raises ForeignError."""
    root = Fields.of(foreign_yaml.load(content, version="go"), "")
    kind = root.text("kind")
    if kind not in {None, *KINDS}:
        raise ForeignError(f"must be a HyperParameterTuningJob, got {kind!r}")
    root.taken |= {"apiVersion"}
    job = Fields(_lower(root.inner("spec").data if kind else root.data), "spec" if kind else "")
    # A file for `--hyper-parameter-tuning-job-config` has the keys of this part alone.
    is_alone = kind is None and "parameterRanges" in job.data
    config = job if is_alone else job.inner("hyperParameterTuningJobConfig")
    if not config.data:
        raise ForeignError("must be a HyperParameterTuningJob with hyperParameterTuningJobConfig")
    losses = [
        *root.inner("metadata").rest("belongs to the cluster"),
        *root.lost("status", "is the state in a cluster"),
    ]
    training = _training(job)
    own_ranges = "parameterRanges" not in config.data or config.data["parameterRanges"] is None
    ranges = training.inner("hyperParameterRanges") if own_ranges else config.inner("parameterRanges")
    parameters = _parameters(ranges, _constants(training), losses)
    objective = config.inner("hyperParameterTuningJobObjective")
    if not objective.data:
        objective = training.inner("tuningObjective")
    search = _search(config, objective, parameters, losses)
    own = job.text("hyperParameterTuningJobName") or ""
    spec, more = search_spec(search, suggest_sweep_name(own) or name)
    run = _run(training, losses)
    spec |= {"program": PROGRAM} | run_keys(search, run)
    rest = [
        *config.rest(),
        *training.rest(),
        *(() if is_alone else job.rest()),
        *(root.rest() if kind else ()),
    ]
    return Imported(spec, (*losses, *more, *rest))


def _training(job: Fields) -> Fields:
    """Return the only training job, which may be in a list. Raises ForeignError if there are several."""
    listed = job.each("trainingJobDefinitions")
    if len(listed) > 1:
        raise ForeignError(
            f"must have one training job, since a sweep has one program, got {len(listed)} in trainingJobDefinitions",
            hint="make a file for each, with trainingJobDefinition and its own parameterRanges",
        )
    if not listed:
        return job.inner("trainingJobDefinition")
    listed[0].taken.add("definitionName")
    return listed[0]


def _constants(training: Fields) -> Fields:
    """Return the constants by their names."""
    key = "staticHyperParameters"
    if not isinstance(training.data.get(key), list):
        return training.inner(key)
    entries = training.each(key)
    names = [entry.text("name") or "" for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise ForeignError(f"{training.at(key)} must have each name once, got {name} twice")
    return Fields(
        {name: entry.data.get("value") for name, entry in zip(names, entries, strict=True)}, training.at(key)
    )


def _lower(data: Any) -> Any:
    """Return the data with keys that begin in lower case, as ACK writes them; the API begins them in upper case."""
    match data:
        case dict():
            return {_lower_key(str(key)): _lower(value) for key, value in data.items()}
        case list():
            return [_lower(item) for item in data]
        case _:
            return data


def _lower_key(key: str) -> str:
    return key if "-" in key or "_" in key else key[:1].lower() + key[1:]


def _search(
    config: Fields, objective: Fields, parameters: Mapping[str, dict[str, Any]], losses: list[Loss]
) -> ForeignSearch:
    strategy, limits = config.text("strategy") or "Bayesian", config.inner("resourceLimits")
    method = METHODS.get(strategy)
    if method is None or strategy == "Hyperband":
        losses.append(Loss(f"{config.at('strategy')}: {strategy}", f"written as {method or 'random'}"))
    stopping = config.text("trainingJobEarlyStoppingType")
    if stopping not in {None, "Off"}:
        why = "trials run to their end; early_terminate: {type: median} is the nearest rule"
        losses.append(Loss(f"{config.at('trainingJobEarlyStoppingType')}: {stopping}", why))
    goal = objective.text("type") or objective.text("type_")
    search = ForeignSearch(
        TOOL,
        method or "random",
        parameters,
        objective.text("metricName"),
        goal,
        limits.whole("maxNumberOfTrainingJobs"),
        config.whole("randomSeed"),
        limits.whole("maxParallelTrainingJobs"),
    )
    losses += [*objective.rest(), *limits.rest()]
    return search


def _parameters(ranges: Fields, static: Fields, losses: list[Loss]) -> dict[str, dict[str, Any]]:
    entries = [(kind, entry) for kind in RANGES for entry in ranges.each(kind)]
    if not entries:
        raise ForeignError(f"{ranges.path} must have at least one range, got none")
    foreign = [str(entry.text("name") or "") for _, entry in entries]
    # A range replaces the constant of the same name.
    constants = {key: static.text(key) for key in static.data if key not in foreign}
    names = parameter_names([*foreign, *constants], losses)
    parameters = {
        names[key]: _range(kind, entry, losses) for key, (kind, entry) in zip(foreign, entries, strict=True)
    }
    parameters |= {names[key]: {"value": text or ""} for key, text in constants.items()}
    losses += ranges.rest()
    return parameters


def _range(kind: str, entry: Fields, losses: list[Loss]) -> dict[str, Any]:
    if kind == "categoricalParameterRanges":
        values = list(dict.fromkeys(str(item) for item in entry.items("values")))
        losses += entry.rest()
        if not values:
            raise no_values(entry.at("values"))
        return {"values": values} if len(values) > 1 else {"value": values[0]}
    low, high = (exact_number(entry.text(key), entry.at(key)) for key in ("minValue", "maxValue"))
    scaling, whole = entry.text("scalingType") or "Auto", kind == "integerParameterRanges"
    losses += entry.rest()
    ends = {"min": spec_number(low), "max": spec_number(high)}
    if low == high:
        return {"value": ends["min"]}
    if scaling == "Logarithmic":
        return (
            {"distribution": "log_uniform_values", **ends}
            if not whole
            else {"distribution": "q_log_uniform_values", **ends, "q": 1}
        )
    if scaling != "Linear":
        losses.append(Loss(f"{entry.at('scalingType')}: {scaling}", "written as linear"))
    return {"distribution": "int_uniform" if whole else "uniform", **ends}


def _run(training: Fields, losses: list[Loss]) -> dict[str, Any]:
    algorithm, stopping = training.inner("algorithmSpecification"), training.inner("stoppingCondition")
    run: dict[str, Any] = {"code": {"path": CODE_DIR}}
    image, seconds = algorithm.text("trainingImage"), stopping.whole("maxRuntimeInSeconds")
    if image is not None and "@sha256:" in image:
        run["image"] = image
    elif image is not None:
        losses.append(
            Loss(
                f"{algorithm.at('trainingImage')}: {image}", "a tag can be moved; set run.image with a digest"
            )
        )
    if seconds is not None:
        run["timeout"] = f"{seconds}s"
    for definition in algorithm.each("metricDefinitions"):
        why = "a regular expression is not a format here; print lines `name=value`"
        losses.append(Loss(f"{definition.path}: {definition.text('name')}", why))
    why = f"is in the image; written as {CODE_DIR}/{PROGRAM}: write your program, which receives --name=value"
    losses += [Loss("program", why), *algorithm.rest(), *stopping.rest()]
    return run
